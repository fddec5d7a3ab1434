//! The answer to one puzzle: the search for the solutions, then the count of placements.

use crate::count::{Counted, count};
use crate::givens::Givens;
use crate::grid::{CELLS, Solution};
use crate::search::{Effort, Found, Interrupted, SEARCH_BUDGET_NODES, find};
use crate::stop::{StopFlag, Stopped};
use crate::verdict::{Placements, Verdict};

/// Up to how many placements are counted; 0 switches counting off.
///
/// A count of exactly so many is given; anything above reads [`Placements::OverLimit`]. The limit never changes
/// the outcome or the solution. Counting takes about a second for every 200 million placements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementLimit(pub u64);

impl PlacementLimit {
    /// Placements are not counted.
    pub const OFF: PlacementLimit = PlacementLimit(0);
    /// The limit where none is asked for: 100,000,000.
    pub const DEFAULT: PlacementLimit = PlacementLimit(100_000_000);
    /// The greatest limit a server accepts unless it is set up otherwise: 10,000,000,000.
    pub const GREATEST_DEFAULT: PlacementLimit = PlacementLimit(10_000_000_000);
    /// The greatest limit a server can be set up for: 1,000,000,000,000.
    pub const GREATEST: PlacementLimit = PlacementLimit(1_000_000_000_000);
}

/// Answers one puzzle; gives every verdict but [`Verdict::Invalid`], [`Verdict::Failed`] and
/// [`Verdict::Cancelled`].
///
/// [`Verdict::Undecided`] comes after [`SEARCH_BUDGET_NODES`] boards. The same arguments give the same verdict on
/// every machine.
///
/// # Errors
/// [`Stopped`] if the flag was raised before the answer was complete.
///
/// # Panics
/// If a solution breaks a rule or a given, or the count meets another solution than the search: a bug in this
/// crate, never the fault of a puzzle.
pub fn answer(givens: &Givens, limit: PlacementLimit, stop: &StopFlag) -> Result<Verdict, Stopped> {
    answer_within(SEARCH_BUDGET_NODES, givens, limit, stop)
}

fn answer_within(
    budget_nodes: u32,
    givens: &Givens,
    limit: PlacementLimit,
    stop: &StopFlag,
) -> Result<Verdict, Stopped> {
    let found = match find(givens, &mut Effort::new(budget_nodes, stop)) {
        Ok(found) => found,
        Err(Interrupted::BudgetSpent) => return Ok(Verdict::Undecided),
        Err(Interrupted::Stopped) => return Err(Stopped),
    };
    let solution = match found {
        Found::None => None,
        Found::One(digits) | Found::Many(digits) => Some(checked(digits, givens)),
    };
    let placements = placements(givens, solution.as_ref(), limit, stop)?;
    Ok(match (found, solution) {
        (Found::Many(_), Some(solution)) => Verdict::Multiple { solution, placements },
        (_, Some(solution)) => Verdict::Unique { solution, placements },
        (_, None) => Verdict::NoSolution { placements },
    })
}

/// Nothing leaves as a solution that is not one.
fn checked(digits: [u8; CELLS], givens: &Givens) -> Solution {
    let solution = Solution::new(digits).expect("the search gives complete valid grids only");
    assert!(solution.extends(givens), "the search keeps the givens");
    solution
}

/// Counts, and holds the two ways to the first solution against each other where both got there.
fn placements(
    givens: &Givens,
    solution: Option<&Solution>,
    limit: PlacementLimit,
    stop: &StopFlag,
) -> Result<Placements, Stopped> {
    if limit == PlacementLimit::OFF {
        return Ok(Placements::NotCounted);
    }
    let (placements, counted_to) = match count(givens, limit.0, stop)? {
        Counted::OverLimit => return Ok(Placements::OverLimit),
        Counted::Solved { placements, digits } => (placements, Some(digits)),
        Counted::Exhausted { placements } => (placements, None),
    };
    assert!(
        counted_to.as_ref() == solution.map(Solution::digits),
        "the search and the count come to the same first solution"
    );
    Ok(Placements::Exact(placements))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hardest for row by row search: see the case tests.
    const HARD: &str = "98.7..6..75..4......3..8.7.8....9.5..3.2..1.....4....6.7...4.3....8..4......1...2";

    #[test]
    fn a_spent_budget_is_undecided_and_never_no_solution() {
        let stop = StopFlag::new();
        let empty = ".".repeat(CELLS);
        for text in [HARD, &empty] {
            let givens = Givens::parse(text).unwrap();
            for budget_nodes in [0, 1, 5] {
                let verdict = answer_within(budget_nodes, &givens, PlacementLimit::DEFAULT, &stop);
                assert_eq!(verdict, Ok(Verdict::Undecided), "{text} with {budget_nodes} nodes");
            }
        }
    }

    #[test]
    fn a_raised_flag_stops_before_the_first_node() {
        let stop = StopFlag::new();
        stop.raise();
        let givens = Givens::parse(HARD).unwrap();
        assert_eq!(answer(&givens, PlacementLimit::OFF, &stop), Err(Stopped));
    }
}
