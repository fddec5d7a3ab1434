//! Why a text or grid is not a puzzle, and which cells show it.

use std::error::Error;
use std::fmt;

/// Cells a message names before it says how many more there are.
const CELLS_NAMED_MAX: usize = 9;

/// The first thing that is wrong with a puzzle, in the order of checking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Reason {
    /// Not 81 characters.
    Length,
    /// A character other than `1` to `9`, `.` and `0`.
    Character,
    /// Two equal givens in one row, column or box.
    DuplicateGiven,
}

/// A text or grid that is not a puzzle.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct InvalidPuzzle {
    /// The first reason that holds.
    pub reason: Reason,
    /// The cells (0..81, row-major, ascending) that show it: all wrong characters, or all givens that clash with
    /// another one. Empty for [`Reason::Length`].
    pub cells: Vec<u8>,
    /// Characters found: 81 unless the reason is [`Reason::Length`]; at most `u32::MAX`.
    pub found_length: u32,
}

impl fmt::Display for InvalidPuzzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Length => return write!(f, "81 characters expected, {} found", self.found_length),
            Reason::Character => write!(f, "neither a digit nor '.' at ")?,
            Reason::DuplicateGiven => write!(f, "equal givens in one row, column or box at ")?,
        }
        write_cells(f, &self.cells)
    }
}

impl Error for InvalidPuzzle {}

/// Names cells as people do: `r1c1` is the first.
fn write_cells(f: &mut fmt::Formatter<'_>, cells: &[u8]) -> fmt::Result {
    for (i, cell) in cells.iter().take(CELLS_NAMED_MAX).enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        write!(f, "{separator}r{}c{}", cell / 9 + 1, cell % 9 + 1)?;
    }
    match cells.len().saturating_sub(CELLS_NAMED_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(reason: Reason, cells: Vec<u8>, found_length: u32) -> String {
        InvalidPuzzle { reason, cells, found_length }.to_string()
    }

    #[test]
    fn messages_name_the_cells_as_people_do() {
        assert_eq!(message(Reason::Length, vec![], 80), "81 characters expected, 80 found");
        assert_eq!(message(Reason::Character, vec![0, 80], 81), "neither a digit nor '.' at r1c1, r9c9");
        assert_eq!(
            message(Reason::DuplicateGiven, (9..21).collect(), 81),
            "equal givens in one row, column or box at \
             r2c1, r2c2, r2c3, r2c4, r2c5, r2c6, r2c7, r2c8, r2c9 and 3 more"
        );
    }
}
