//! The words for the answer to one puzzle.

use std::fmt;

use crate::grid::Solution;
use crate::invalid::InvalidPuzzle;

/// How many digits the recipe places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Placements {
    /// Counting was switched off.
    NotCounted,
    /// Exactly so many.
    Exact(u64),
    /// More than the placement limit.
    OverLimit,
}

/// The answer to one puzzle.
///
/// Placements are counted up to and with the first solution, or over the whole search when there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Exactly one solution.
    Unique {
        /// The only solution.
        solution: Solution,
        /// Placements up to it.
        placements: Placements,
    },
    /// Two solutions or more.
    Multiple {
        /// The first solution in the recipe's order: the lexicographically smallest.
        solution: Solution,
        /// Placements up to that first solution.
        placements: Placements,
    },
    /// The givens do not clash, and nothing completes them.
    NoSolution {
        /// Placements of the whole search.
        placements: Placements,
    },
    /// Not a puzzle; the recipe is not run.
    Invalid(InvalidPuzzle),
    /// The search budget was spent before there was a proof.
    Undecided,
    /// The solver panicked over the puzzle: a bug in this crate. Given by the service too, for a puzzle that ended its worker.
    Failed,
    /// The batch was cancelled first. Given by the service, never by the solver.
    Cancelled,
}

impl Verdict {
    /// The verdict in one word.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Verdict::Unique { .. } => Outcome::Unique,
            Verdict::Multiple { .. } => Outcome::Multiple,
            Verdict::NoSolution { .. } => Outcome::NoSolution,
            Verdict::Invalid(_) => Outcome::Invalid,
            Verdict::Undecided => Outcome::Undecided,
            Verdict::Failed => Outcome::Failed,
            Verdict::Cancelled => Outcome::Cancelled,
        }
    }

    /// The solution, if the puzzle has one.
    #[must_use]
    pub fn solution(&self) -> Option<&Solution> {
        match self {
            Verdict::Unique { solution, .. } | Verdict::Multiple { solution, .. } => Some(solution),
            _ => None,
        }
    }

    /// The placements; 0 for a puzzle that is not one, `None` where there is no answer.
    #[must_use]
    pub fn placements(&self) -> Option<Placements> {
        match *self {
            Verdict::Unique { placements, .. }
            | Verdict::Multiple { placements, .. }
            | Verdict::NoSolution { placements } => Some(placements),
            Verdict::Invalid(_) => Some(Placements::Exact(0)),
            Verdict::Undecided | Verdict::Failed | Verdict::Cancelled => None,
        }
    }
}

/// A [`Verdict`] in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Outcome {
    /// Exactly one solution.
    Unique,
    /// Two solutions or more.
    Multiple,
    /// Givens that do not clash and cannot be completed.
    NoSolution,
    /// Not a puzzle.
    Invalid,
    /// The search budget was spent.
    Undecided,
    /// The puzzle ended its worker.
    Failed,
    /// The batch was cancelled first.
    Cancelled,
}

impl Outcome {
    /// All outcomes, in the order in which they are listed.
    pub const ALL: [Outcome; 7] = [
        Outcome::Unique,
        Outcome::Multiple,
        Outcome::NoSolution,
        Outcome::Invalid,
        Outcome::Undecided,
        Outcome::Failed,
        Outcome::Cancelled,
    ];

    /// The name in results, files and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Unique => "unique",
            Outcome::Multiple => "multiple",
            Outcome::NoSolution => "no_solution",
            Outcome::Invalid => "invalid",
            Outcome::Undecided => "undecided",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid::Reason;

    #[test]
    fn names_are_distinct_and_as_published() {
        let names = Outcome::ALL.map(Outcome::name);
        assert_eq!(
            names,
            ["unique", "multiple", "no_solution", "invalid", "undecided", "failed", "cancelled"]
        );
        assert_eq!(Outcome::ALL.map(|outcome| outcome.to_string()), names);
    }

    #[test]
    fn verdicts_without_a_search_have_no_solution() {
        let invalid = InvalidPuzzle { reason: Reason::Length, cells: vec![], found_length: 3 };
        let expected = [
            (Verdict::NoSolution { placements: Placements::OverLimit }, Some(Placements::OverLimit)),
            (Verdict::Invalid(invalid), Some(Placements::Exact(0))),
            (Verdict::Undecided, None),
            (Verdict::Failed, None),
            (Verdict::Cancelled, None),
        ];
        for ((verdict, placements), outcome) in expected.into_iter().zip(&Outcome::ALL[2..]) {
            assert_eq!(verdict.outcome(), *outcome);
            assert_eq!(verdict.placements(), placements);
            assert_eq!(verdict.solution(), None);
        }
    }
}
