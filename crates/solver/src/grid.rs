//! Grids of 81 cells: any content, or a complete valid one.

use std::fmt;

use crate::givens::Givens;
use crate::houses::HOUSES;
use crate::invalid::{InvalidPuzzle, Reason};

/// Cells of a grid, numbered 0..81 in row-major order.
pub const CELLS: usize = 81;

/// The digits 1 to 9 as bits 1 to 9.
const ALL_DIGITS: u32 = 0b11_1111_1110;

/// 81 digits in row-major order, 0 for an empty cell. Any content is allowed, also clashing digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid(pub [u8; CELLS]);

impl Grid {
    /// The grid without any digit.
    pub const EMPTY: Grid = Grid([0; CELLS]);

    /// Reads 81 characters: `1` to `9`, and `.` or `0` for an empty cell. Clashes are not looked for.
    ///
    /// # Errors
    /// [`Reason::Length`] unless there are exactly 81 Unicode scalar characters; then [`Reason::Character`] with
    /// the positions of all characters that are none of those named.
    pub fn from_text(text: &str) -> Result<Grid, InvalidPuzzle> {
        Grid::from_characters(text.chars())
    }

    /// Whether no cell is empty.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.0.contains(&0)
    }

    pub(crate) fn from_characters(characters: impl Iterator<Item = char>) -> Result<Grid, InvalidPuzzle> {
        let mut grid = Grid::EMPTY;
        let mut wrong = Vec::new();
        let mut found_length = 0_u32;
        for (cell, character) in characters.enumerate() {
            found_length = found_length.saturating_add(1);
            let Some(slot) = grid.0.get_mut(cell) else { continue };
            match character {
                '.' | '0' => {}
                '1'..='9' => *slot = character as u8 - b'0',
                _ => wrong.push(index(cell)),
            }
        }
        if found_length != 81 {
            return Err(InvalidPuzzle { reason: Reason::Length, cells: Vec::new(), found_length });
        }
        if wrong.is_empty() {
            Ok(grid)
        } else {
            Err(InvalidPuzzle { reason: Reason::Character, cells: wrong, found_length })
        }
    }
}

impl fmt::Display for Grid {
    /// 81 characters in one line, `.` for an empty cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_digits(f, &self.0)
    }
}

/// A complete valid grid: each digit once in each row, column and box.
///
/// Aligned so that copies of it consist of whole words: a copy at odd places, read in other pieces soon after, has cost more
/// than the search (2.4 times the time for easy puzzles).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(align(8))]
pub struct Solution([u8; CELLS]);

impl Solution {
    /// Takes 81 digits in row-major order; `None` unless each of the 27 houses holds each digit 1 to 9 once.
    #[must_use]
    pub fn new(digits: [u8; CELLS]) -> Option<Solution> {
        let holds_each_digit = |house: &[usize; 9]| {
            let seen = house.iter().fold(0, |seen, &cell| seen | 1_u32.wrapping_shl(u32::from(digits[cell])));
            seen == ALL_DIGITS
        };
        // Shifts wrap at 32, so the range is checked on its own.
        let valid = digits.iter().all(|digit| (1..=9).contains(digit)) && HOUSES.iter().all(holds_each_digit);
        valid.then_some(Solution(digits))
    }

    /// Takes digits of which it is proven that they are a complete valid grid.
    #[inline]
    pub(crate) fn proven(digits: [u8; CELLS]) -> Solution {
        debug_assert!(Solution::new(digits).is_some(), "{}", Grid(digits));
        Solution(digits)
    }

    /// The 81 digits, row-major.
    #[must_use]
    pub fn digits(&self) -> &[u8; CELLS] {
        &self.0
    }

    /// Whether every given stands in this solution.
    #[must_use]
    pub fn extends(&self, givens: &Givens) -> bool {
        givens.grid().0.iter().zip(&self.0).all(|(&given, &digit)| given == 0 || given == digit)
    }
}

impl fmt::Display for Solution {
    /// 81 digits in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_digits(f, &self.0)
    }
}

/// A cell number as it is passed around outside; `cell` is below 81.
pub(crate) fn index(cell: usize) -> u8 {
    debug_assert!(cell < CELLS);
    u8::try_from(cell).unwrap_or(u8::MAX)
}

/// Anything that is no digit is shown as `?`: a [`Grid`] may hold it.
fn write_digits(f: &mut fmt::Formatter<'_>, digits: &[u8; CELLS]) -> fmt::Result {
    let text: String = digits
        .iter()
        .map(|&digit| match digit {
            0 => '.',
            1..=9 => char::from(b'0' + digit),
            _ => '?',
        })
        .collect();
    f.pad(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOLVED: &str = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";

    #[test]
    fn text_and_grid_are_each_others_inverse() {
        let text = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
        let grid = Grid::from_text(text).unwrap();
        assert_eq!(grid.to_string(), text);
        assert_eq!(Grid::from_text(&text.replace('.', "0")).unwrap(), grid);
        assert!(!grid.is_full());
        assert!(Grid::from_text(SOLVED).unwrap().is_full());
        assert_eq!(Grid::EMPTY.to_string(), ".".repeat(81));
    }

    #[test]
    fn a_solution_holds_each_digit_once_in_each_house() {
        let digits = Grid::from_text(SOLVED).unwrap().0;
        assert_eq!(Solution::new(digits).unwrap().to_string(), SOLVED);
        for cell in 0..CELLS {
            for wrong in [0, digits[cell] % 9 + 1, digits[cell] + 32, 255] {
                let mut changed = digits;
                changed[cell] = wrong;
                assert_eq!(Solution::new(changed), None, "digit {wrong} in cell {cell}");
            }
        }
    }

    #[test]
    fn rows_alone_or_rows_and_columns_alone_do_not_make_a_solution() {
        let mut rows_only = [0; CELLS];
        let mut latin_square = [0; CELLS];
        for cell in 0..CELLS {
            rows_only[cell] = index(cell % 9 + 1);
            latin_square[cell] = index((cell / 9 + cell) % 9 + 1);
        }
        assert_eq!(Solution::new(rows_only), None);
        assert_eq!(Solution::new(latin_square), None);
    }
}
