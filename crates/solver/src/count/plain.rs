//! Counts exactly how many digits the recipe places, by the same search on bit sets: what the tests compare with.
//!
//! The order is the recipe's own, so the count needs no argument. The empty cells are listed once; what each row,
//! column and box still misses is one word, and so are the digits left to try in a cell. One thing is done
//! early: the digits of the next empty cell are known before a digit is placed, so a placement that leaves that
//! cell without any is counted and not made.

use crate::givens::Givens;
use crate::grid::{CELLS, Grid};
use crate::houses::{ALL_DIGITS, are_peers, box_of, column_of, row_of};
use crate::stop::{StopFlag, Stopped};

/// How often the stop flag is looked at: about every 0.3 milliseconds.
const PLACEMENTS_PER_STOP_CHECK: u64 = 1 << 16;

/// What the count came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    /// The recipe finds this solution after so many placements.
    Solved { placements: u64, digits: [u8; CELLS] },
    /// The recipe finds nothing after so many placements.
    Exhausted { placements: u64 },
    /// The recipe places more digits than the limit.
    OverLimit,
}

/// Counts the recipe's placements up to `limit`; a count of exactly `limit` is still given.
pub(super) fn count(givens: &Givens, limit: u64, stop: &StopFlag) -> Result<Counted, Stopped> {
    Counter::new(givens.grid()).run(limit, stop)
}

/// An empty cell.
#[derive(Clone, Copy)]
struct EmptyCell {
    cell: usize,
    row: usize,
    column: usize,
    square: usize,
    /// All digits if the next empty cell shares a house with this one, else none.
    taken_from_next: u16,
}

/// What comes after the last empty cell: a cell in houses of its own, which always has candidates.
const END: EmptyCell = EmptyCell { cell: CELLS, row: 9, column: 9, square: 9, taken_from_next: 0 };

/// The work at one depth of the search.
#[derive(Clone, Copy)]
struct Frame {
    /// Digits not tried yet.
    untried: u16,
    /// The digit that is placed while deeper cells are worked on.
    placed: u16,
    /// Candidates of the next empty cell while this one is empty.
    next: u16,
}

/// What the houses miss; house 9 is that of [`END`]. Sixteen, so that a masked index needs no check.
type Missing = [u16; 16];

struct Counter {
    /// The digits of the grid, 0 where it is empty.
    grid: Grid,
    /// The empty cells in row-major order, then [`END`].
    cells: Vec<EmptyCell>,
    frames: Vec<Frame>,
    rows: Missing,
    columns: Missing,
    squares: Missing,
}

impl Counter {
    fn new(grid: &Grid) -> Counter {
        let empty: Vec<usize> = (0..CELLS).filter(|&cell| grid.0[cell] == 0).collect();
        let mut cells = Vec::with_capacity(empty.len() + 1);
        for (i, &cell) in empty.iter().enumerate() {
            let next_is_peer = empty.get(i + 1).is_some_and(|&next| are_peers(cell, next));
            cells.push(EmptyCell {
                cell,
                row: row_of(cell),
                column: column_of(cell),
                square: box_of(cell),
                taken_from_next: if next_is_peer { ALL_DIGITS } else { 0 },
            });
        }
        cells.push(END);
        let frames = vec![Frame { untried: 0, placed: 0, next: 0 }; cells.len()];
        let full = [ALL_DIGITS; 16];
        let mut counter = Counter { grid: *grid, cells, frames, rows: full, columns: full, squares: full };
        for cell in 0..CELLS {
            if let Some(digit) = grid.0[cell].checked_sub(1) {
                let digit = 1 << digit;
                counter.rows[row_of(cell)] &= !digit;
                counter.columns[column_of(cell)] &= !digit;
                counter.squares[box_of(cell)] &= !digit;
            }
        }
        counter
    }

    fn run(mut self, limit: u64, stop: &StopFlag) -> Result<Counted, Stopped> {
        let last = self.cells.len() - 1;
        if last == 0 {
            return Ok(Counted::Solved { placements: 0, digits: self.grid.0 });
        }
        let mut placements = 0_u64;
        let mut pause_after = 0;
        let mut depth = 0_usize;
        let mut frame = self.enter(0, self.candidates(self.cells[0]));
        loop {
            if frame.untried == 0 {
                let Some(above) = depth.checked_sub(1) else { return Ok(Counted::Exhausted { placements }) };
                depth = above;
                frame = self.frames[depth];
                self.toggle(self.cells[depth], frame.placed);
                continue;
            }
            let digit = frame.untried & frame.untried.wrapping_neg();
            frame.untried ^= digit;
            placements += 1;
            if placements > pause_after {
                if placements > limit {
                    return Ok(Counted::OverLimit);
                }
                if stop.is_raised() {
                    return Err(Stopped);
                }
                pause_after = limit.min(placements.saturating_add(PLACEMENTS_PER_STOP_CHECK));
            }
            let cell = self.cells[depth];
            let next = frame.next & !(digit & cell.taken_from_next);
            if next == 0 {
                continue;
            }
            frame.placed = digit;
            self.frames[depth] = frame;
            self.toggle(cell, digit);
            depth += 1;
            if depth == last {
                return Ok(Counted::Solved { placements, digits: self.solution() });
            }
            frame = self.enter(depth, next);
        }
    }

    /// The frame for the empty cell at `depth`.
    fn enter(&self, depth: usize, untried: u16) -> Frame {
        Frame { untried, placed: 0, next: self.candidates(self.cells[depth + 1]) }
    }

    fn candidates(&self, at: EmptyCell) -> u16 {
        self.rows[at.row & 15] & self.columns[at.column & 15] & self.squares[at.square & 15]
    }

    /// Takes a digit out of the cell's houses, or puts it back.
    fn toggle(&mut self, at: EmptyCell, digit: u16) {
        self.rows[at.row & 15] ^= digit;
        self.columns[at.column & 15] ^= digit;
        self.squares[at.square & 15] ^= digit;
    }

    /// The grid with what is placed in all empty cells.
    fn solution(&self) -> [u8; CELLS] {
        let mut digits = self.grid.0;
        for (at, frame) in self.cells.iter().zip(&self.frames) {
            if let Some(digit) = digits.get_mut(at.cell) {
                *digit = u8::try_from(frame.placed.trailing_zeros() + 1).unwrap_or(0);
            }
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::solve_counting;

    const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
    const SEED_PLACEMENTS: u64 = 4208;

    fn counted(text: &str, limit: u64) -> Counted {
        count(&Givens::parse(text).unwrap(), limit, &StopFlag::new()).unwrap()
    }

    #[test]
    fn the_solution_counted_to_is_the_recipes() {
        let mut grid = Grid::from_text(SEED).unwrap();
        assert!(solve_counting(&mut grid, &mut 0));
        let expected = Counted::Solved { placements: SEED_PLACEMENTS, digits: grid.0 };
        assert_eq!(counted(SEED, u64::MAX), expected);
        assert_eq!(counted(SEED, SEED_PLACEMENTS), expected);
        assert_eq!(counted(SEED, SEED_PLACEMENTS - 1), Counted::OverLimit);
        assert_eq!(counted(SEED, 0), Counted::OverLimit);
    }

    #[test]
    fn the_limit_is_exact_around_a_stop_check() {
        // 110,300 placements: more than one interval between two looks at the stop flag.
        let text = "1..5.37..6.3..8.9......98...1.......8761..........6...........7.8.9.76.47...6.312";
        for limit in [PLACEMENTS_PER_STOP_CHECK, PLACEMENTS_PER_STOP_CHECK + 1, 110_299] {
            assert_eq!(counted(text, limit), Counted::OverLimit, "limit {limit}");
        }
        for limit in [110_300, 110_301, 2 * PLACEMENTS_PER_STOP_CHECK] {
            let Counted::Solved { placements, .. } = counted(text, limit) else { panic!("limit {limit}") };
            assert_eq!(placements, 110_300);
        }
    }

    #[test]
    fn nothing_is_placed_where_nothing_can_be() {
        let first_cell_dead =
            "...45678.1........2........3........9............................................";
        assert_eq!(counted(first_cell_dead, 0), Counted::Exhausted { placements: 0 });
        let full = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
        assert!(matches!(counted(full, 0), Counted::Solved { placements: 0, .. }));
    }

    #[test]
    fn a_raised_flag_stops_the_count() {
        let stop = StopFlag::new();
        stop.raise();
        assert_eq!(count(&Givens::parse(SEED).unwrap(), 5000, &stop), Err(Stopped));
    }
}
