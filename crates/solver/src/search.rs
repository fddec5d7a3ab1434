//! Decides whether a puzzle has none, one or more solutions, and finds the first one in the recipe's order.
//!
//! Propagation (see [`Board`]) and guesses of one candidate each: first "this digit stands here", then "it does
//! not". A guess is made in a cell with two candidates, else for a digit with two places in a house, else in a
//! cell with the fewest candidates. The second kind matters: one known grid takes hundreds of times as many
//! nodes without it.

use crate::bands::{CellSet, HOUSE_SETS, bits, cells_of};
use crate::board::{Board, Contradiction};
use crate::givens::Givens;
use crate::grid::CELLS;
use crate::stop::StopFlag;

/// Boards that the search for one puzzle may look at before it gives up.
///
/// A board takes 0.4 to 0.7 microseconds in a long search, so the budget lasts one to two seconds. Published hard
/// puzzles need fewer than 5,000; the worst of 1.6 million random grids of 13 to 21 givens needed 80,306. The order
/// of search is fixed, so the same puzzles are given up on every machine.
pub const SEARCH_BUDGET_NODES: u32 = 3_000_000;

/// How often the stop flag is looked at: about every 0.2 milliseconds.
const NODES_PER_STOP_CHECK: u32 = 256;

/// Why a search ended without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interrupted {
    BudgetSpent,
    Stopped,
}

/// What one puzzle has cost and may cost.
#[derive(Clone, Copy)]
pub(crate) struct Effort<'a> {
    nodes: u32,
    budget_nodes: u32,
    stop: &'a StopFlag,
}

impl<'a> Effort<'a> {
    pub(crate) fn new(budget_nodes: u32, stop: &'a StopFlag) -> Effort<'a> {
        Effort { nodes: 0, budget_nodes, stop }
    }

    fn spend_node(&mut self) -> Result<(), Interrupted> {
        if self.nodes.is_multiple_of(NODES_PER_STOP_CHECK) && self.stop.is_raised() {
            return Err(Interrupted::Stopped);
        }
        if self.nodes == self.budget_nodes {
            return Err(Interrupted::BudgetSpent);
        }
        self.nodes += 1;
        Ok(())
    }
}

/// The solutions of a puzzle, as far as needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    None,
    One([u8; CELLS]),
    /// Two or more; the lexicographically smallest is given.
    Many([u8; CELLS]),
}

/// Decides how many solutions there are: none, one or more.
pub(crate) fn find(givens: &Givens, effort: &mut Effort<'_>) -> Result<Found, Interrupted> {
    let Ok(mut board) = Board::new(givens.grid()) else { return Ok(Found::None) };
    if board.propagate().is_err() {
        return Ok(Found::None);
    }
    let mut solutions = Solutions::of(board.clone());
    let Some(first) = solutions.next(effort)? else { return Ok(Found::None) };
    let Some(second) = solutions.next(effort)? else { return Ok(Found::One(first)) };
    smallest(board, first.min(second), effort).map(Found::Many)
}

/// The lexicographically smallest solution of a propagated board, of which `witness` is a solution.
///
/// Cell by cell in row-major order, each candidate below the witness's digit is tried. A search decides whether a
/// solution begins so; if one does, it is the new witness. Unlike a search in row-major order this does not
/// depend on how late in the grid a bad beginning shows.
fn smallest(
    mut board: Board,
    mut witness: [u8; CELLS],
    effort: &mut Effort<'_>,
) -> Result<[u8; CELLS], Interrupted> {
    while let Some(cell) = cells_of(board.open()).next() {
        let digit = board.candidates(cell).next().expect("the witness's digit is a candidate");
        let mut with_digit = board.clone();
        let alive = with_digit.place(cell, digit).and_then(|()| with_digit.propagate()).is_ok();
        if digit != witness[cell] {
            let better = if alive { Solutions::of(with_digit.clone()).next(effort)? } else { None };
            let Some(better) = better else {
                board.remove(cell, digit);
                board.propagate().expect("the witness solves the board");
                continue;
            };
            witness = better;
        }
        board = with_digit;
    }
    Ok(witness)
}

/// The solutions of a board one after the other, each once, in an order of no meaning.
pub(crate) struct Solutions {
    /// Boards still to be looked at. Each guess on the way to the current board left one here and filled a cell,
    /// so there are never more than 81.
    pending: Vec<Board>,
}

impl Solutions {
    pub(crate) fn of(board: Board) -> Solutions {
        Solutions { pending: vec![board] }
    }

    /// The next solution, `None` if there are no more.
    pub(crate) fn next(&mut self, effort: &mut Effort<'_>) -> Result<Option<[u8; CELLS]>, Interrupted> {
        while let Some(mut board) = self.pending.pop() {
            loop {
                effort.spend_node()?;
                if board.propagate().is_err() {
                    break;
                }
                let Some(guess) = choose(&board) else { return Ok(board.digits()) };
                let mut without = board.clone();
                without.remove(guess.cell, guess.digit);
                self.pending.push(without);
                if board.place(guess.cell, guess.digit) == Err(Contradiction) {
                    break;
                }
            }
        }
        Ok(None)
    }
}

/// A candidate of an open cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Guess {
    cell: usize,
    digit: u8,
}

/// The guess to make on a propagated board; `None` if it is solved.
fn choose(board: &Board) -> Option<Guess> {
    if board.open() == [0; 3] {
        return None;
    }
    in_cell_of_two(board).or_else(|| in_house_with_two_places(board)).or_else(|| in_smallest_cell(board))
}

/// In the first cell with two candidates.
fn in_cell_of_two(board: &Board) -> Option<Guess> {
    for band in 0..3 {
        let (mut once, mut twice, mut thrice) = (0, 0, 0);
        for places in board.places() {
            thrice |= twice & places[band];
            twice |= once & places[band];
            once |= places[band];
        }
        if let Some(bit) = bits(twice & !thrice).next() {
            return first_in(board, band * 27 + bit);
        }
    }
    None
}

/// In a house with two places for a digit.
fn in_house_with_two_places(board: &Board) -> Option<Guess> {
    for (places, digit) in board.places().iter().zip(1..) {
        for house in &HOUSE_SETS {
            let places = [0, 1, 2].map(|band| places[band] & house[band]);
            if size(places) == 2 {
                return cells_of(places).next().map(|cell| Guess { cell, digit });
            }
        }
    }
    None
}

/// In the first of the cells with the fewest candidates.
fn in_smallest_cell(board: &Board) -> Option<Guess> {
    let cell = cells_of(board.open()).min_by_key(|&cell| board.candidates(cell).count())?;
    first_in(board, cell)
}

fn first_in(board: &Board, cell: usize) -> Option<Guess> {
    board.candidates(cell).next().map(|digit| Guess { cell, digit })
}

fn size(set: CellSet) -> u32 {
    set.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_solutions(text: &str) -> Vec<[u8; CELLS]> {
        let stop = StopFlag::new();
        let mut effort = Effort::new(u32::MAX, &stop);
        let mut solutions = Solutions::of(Board::new(Givens::parse(text).unwrap().grid()).unwrap());
        std::iter::from_fn(|| solutions.next(&mut effort).unwrap()).collect()
    }

    #[test]
    fn every_solution_comes_exactly_once() {
        // Numbers of solutions found by other programs.
        let known = [
            ("534678912672195348198342567859761423426853791713924856961.3728.287.1963.345286179", 2),
            ("..467.........5..8.9.....6.85...142....8..7...1...4.5..........2.7.....5...28....", 1_607),
            (".1....7.....3..2...7...........71...6......4.3........4..5....3.2..8...........6.", 10_106),
            ("..............3.85..1.2.......5.7.....4...1...9.......5......73..2.4...9.........", 394_987),
        ];
        for (text, number) in known {
            let mut solutions = all_solutions(text);
            assert_eq!(solutions.len(), number, "{text}");
            solutions.sort_unstable();
            solutions.dedup();
            assert_eq!(solutions.len(), number, "{text}");
            let stop = StopFlag::new();
            let found = find(&Givens::parse(text).unwrap(), &mut Effort::new(SEARCH_BUDGET_NODES, &stop));
            assert_eq!(found, Ok(Found::Many(solutions[0])), "{text}");
        }
    }

    #[test]
    fn the_budget_is_spent_exactly() {
        let stop = StopFlag::new();
        let givens = Givens::parse(&".".repeat(CELLS)).unwrap();
        let needed = (0..1000)
            .find(|&nodes| find(&givens, &mut Effort::new(nodes, &stop)).is_ok())
            .expect("an empty grid takes fewer than a thousand boards");
        assert!(needed > 1);
        assert_eq!(find(&givens, &mut Effort::new(needed - 1, &stop)), Err(Interrupted::BudgetSpent));
        assert!(matches!(find(&givens, &mut Effort::new(needed, &stop)), Ok(Found::Many(_))));
    }

    #[test]
    fn a_raised_flag_stops_the_search() {
        let stop = StopFlag::new();
        stop.raise();
        let givens = Givens::parse(&".".repeat(CELLS)).unwrap();
        assert_eq!(find(&givens, &mut Effort::new(SEARCH_BUDGET_NODES, &stop)), Err(Interrupted::Stopped));
    }
}
