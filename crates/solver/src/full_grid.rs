//! Fills an empty grid at random.
//!
//! The cell with the fewest candidates (the first of them) gets one of these, in a random order until the rest can
//! be filled. Not every grid is equally likely.

use crate::grid::{CELLS, Grid};
use crate::houses::{box_of, column_of, row_of};
use crate::random::SplitMix64;

/// A complete valid grid; the same numbers give the same grid.
pub(crate) fn random_full_grid(random: &mut SplitMix64) -> Grid {
    let mut filling = Filling { grid: Grid::EMPTY, rows: [0; 9], columns: [0; 9], squares: [0; 9] };
    assert!(filling.fill(random), "an empty grid can be filled");
    filling.grid
}

/// A grid and the digits (bits 1 to 9) that stand in each of its houses.
struct Filling {
    grid: Grid,
    rows: [u16; 9],
    columns: [u16; 9],
    squares: [u16; 9],
}

impl Filling {
    fn fill(&mut self, random: &mut SplitMix64) -> bool {
        let empty = (0..CELLS).filter(|&cell| self.grid.0[cell] == 0);
        let Some(cell) = empty.max_by_key(|&cell| (self.taken(cell).count_ones(), CELLS - cell)) else {
            return true;
        };
        let taken = self.taken(cell);
        let mut digits: Vec<u8> = (1..=9).filter(|digit| (taken >> digit) & 1 == 0).collect();
        random.shuffle(&mut digits);
        for digit in digits {
            self.grid.0[cell] = digit;
            self.toggle(cell, digit);
            if self.fill(random) {
                return true;
            }
            self.toggle(cell, digit);
            self.grid.0[cell] = 0;
        }
        false
    }

    fn taken(&self, cell: usize) -> u16 {
        self.rows[row_of(cell)] | self.columns[column_of(cell)] | self.squares[box_of(cell)]
    }

    fn toggle(&mut self, cell: usize, digit: u8) {
        self.rows[row_of(cell)] ^= 1 << digit;
        self.columns[column_of(cell)] ^= 1 << digit;
        self.squares[box_of(cell)] ^= 1 << digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Solution;

    #[test]
    fn filled_grids_are_valid_and_differ() {
        let mut random = SplitMix64::new(1);
        let grids: Vec<Grid> = (0..200).map(|_| random_full_grid(&mut random)).collect();
        for (i, grid) in grids.iter().enumerate() {
            assert!(Solution::new(grid.0).is_some(), "{grid}");
            assert!(!grids[..i].contains(grid), "{grid} came twice");
        }
    }
}
