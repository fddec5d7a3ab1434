//! A run of results: columns on the wire, and from them one value a puzzle.

use proto::v1;

use crate::Error;

/// A puzzle's placements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// There is no count: counting was off, or the outcome has none.
    None,
    /// So many.
    Exact(u64),
    /// More than the batch's limit.
    OverLimit,
}

/// Why a puzzle is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidReason {
    /// What is wrong.
    pub reason: v1::invalid_puzzle::Reason,
    /// The cells to blame, 0 to 80, ascending.
    pub cells: Vec<u8>,
    /// Characters found, for a wrong length.
    pub found_length: u32,
}

/// One puzzle's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PuzzleResult {
    /// Its index in the batch.
    pub index: u64,
    /// How it ended; unspecified for an outcome that only a newer client knows.
    pub outcome: v1::Outcome,
    /// 81 digits, if it has a solution.
    pub solution: Option<String>,
    /// Its placements.
    pub placements: Count,
    /// Why it is no puzzle, if it is none.
    pub invalid: Option<InvalidReason>,
}

/// Results of puzzles that follow each other, in columns. A *place* is a puzzle's number within the run, from 0.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    start_index: u64,
    /// Its columns have been found to be of one length.
    chunk: v1::ResultChunk,
}

impl Run {
    pub(crate) fn of(chunk: v1::ResultChunk) -> Result<Self, Error> {
        let count = chunk.outcomes.len();
        let has_placements = !chunk.placements.is_empty();
        if chunk.solutions.len() != count || (has_placements && chunk.placements.len() != count) {
            return Err(Error::Contract("the columns of a result message differ in length"));
        }
        let start_index =
            u64::try_from(chunk.start_index).map_err(|_| Error::Contract("start_index is negative"))?;
        Ok(Self { start_index, chunk })
    }

    /// Index in the batch of the puzzle at place 0.
    #[must_use]
    pub fn start_index(&self) -> u64 {
        self.start_index
    }

    /// How many results there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunk.outcomes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How a puzzle ended; unspecified for an outcome that only a newer client knows, and beyond the last place.
    #[must_use]
    pub fn outcome(&self, place: usize) -> v1::Outcome {
        self.chunk.outcomes.get(place).unwrap_or_default()
    }

    /// The bytes of a puzzle's solution, 81 digits; `None` if it has none.
    #[must_use]
    pub fn solution_bytes(&self, place: usize) -> Option<&[u8]> {
        self.chunk.solutions.bytes(place).filter(|solution| !solution.is_empty())
    }

    /// A puzzle's solution as text; `None` if it has none.
    #[must_use]
    pub fn solution(&self, place: usize) -> Option<&str> {
        self.chunk.solutions.get(place).filter(|solution| !solution.is_empty())
    }

    /// A puzzle's placements.
    #[must_use]
    pub fn placements(&self, place: usize) -> Count {
        use v1::Outcome;
        match self.outcome(place) {
            Outcome::Invalid => Count::Exact(0),
            Outcome::Unique | Outcome::Multiple | Outcome::NoSolution => {
                match self.chunk.placements.get(place) {
                    None => Count::None,
                    Some(count) => u64::try_from(*count).map_or(Count::OverLimit, Count::Exact),
                }
            }
            _ => Count::None,
        }
    }

    /// Why puzzles are invalid, for those that are, in order: each with its place.
    pub fn invalid(&self) -> impl Iterator<Item = (usize, InvalidReason)> {
        self.chunk.invalid.iter().filter_map(|wire| {
            let place = u64::try_from(wire.index).ok()?.checked_sub(self.start_index)?;
            Some((usize::try_from(place).ok()?, reason(wire)))
        })
    }

    /// One value a puzzle.
    #[must_use]
    pub fn results(&self) -> Vec<PuzzleResult> {
        let mut invalid = self.invalid().peekable();
        let result = |place| PuzzleResult {
            index: self.start_index + place as u64,
            outcome: self.outcome(place),
            solution: self.solution(place).map(str::to_owned),
            placements: self.placements(place),
            invalid: invalid.next_if(|reason| reason.0 == place).map(|(_, reason)| reason),
        };
        (0..self.len()).map(result).collect()
    }
}

fn reason(wire: &v1::InvalidPuzzle) -> InvalidReason {
    InvalidReason {
        reason: wire.reason(),
        cells: wire.cells.iter().filter_map(|cell| u8::try_from(*cell).ok()).collect(),
        found_length: u32::try_from(wire.found_length).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> v1::ResultChunk {
        v1::ResultChunk {
            start_index: 7,
            outcomes: vec![1, 99, 3, 4].into(),
            solutions: vec!["1".repeat(81), String::new(), String::new(), String::new()].into(),
            placements: vec![5, 0, -1, 0],
            invalid: vec![v1::InvalidPuzzle { index: 10, reason: 2, cells: vec![3], found_length: 0 }],
            ..v1::ResultChunk::default()
        }
    }

    #[test]
    fn an_outcome_of_a_newer_server_shifts_no_other_result() {
        let results = Run::of(columns()).expect("columns of one length").results();
        let seen: Vec<_> =
            results.iter().map(|result| (result.index, result.outcome, result.placements)).collect();
        assert_eq!(
            seen,
            [
                (7, v1::Outcome::Unique, Count::Exact(5)),
                (8, v1::Outcome::Unspecified, Count::None),
                (9, v1::Outcome::NoSolution, Count::OverLimit),
                (10, v1::Outcome::Invalid, Count::Exact(0)),
            ]
        );
        let reasons: Vec<_> = results.iter().map(|result| result.invalid.is_some()).collect();
        assert_eq!(reasons, [false, false, false, true]);
    }

    #[test]
    fn columns_say_what_the_values_say() {
        let run = Run::of(columns()).expect("columns of one length");
        assert_eq!((run.start_index(), run.len(), run.is_empty()), (7, 4, false));
        for (place, result) in run.results().into_iter().enumerate() {
            assert_eq!(run.outcome(place), result.outcome);
            assert_eq!(run.solution(place), result.solution.as_deref());
            assert_eq!(run.solution_bytes(place), run.solution(place).map(str::as_bytes));
            assert_eq!(run.placements(place), result.placements);
        }
        let reason =
            InvalidReason { reason: v1::invalid_puzzle::Reason::Character, cells: vec![3], found_length: 0 };
        assert!(run.invalid().eq([(3, reason)]));
        assert_eq!((run.outcome(4), run.solution(4)), (v1::Outcome::Unspecified, None));
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let short = v1::ResultChunk { solutions: vec![""].into(), ..columns() };
        assert!(matches!(Run::of(short), Err(Error::Contract(_))));
        let few = v1::ResultChunk { placements: vec![1], ..columns() };
        assert!(matches!(Run::of(few), Err(Error::Contract(_))));
        let negative = v1::ResultChunk { start_index: -1, ..columns() };
        assert!(matches!(Run::of(negative), Err(Error::Contract(_))));
    }
}
