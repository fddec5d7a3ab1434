//! Reads puzzles and refuses those whose givens clash.

use crate::clashes::Clashes;
use crate::grid::{CELLS, Grid, index};
use crate::houses::HOUSES;
use crate::invalid::{InvalidPuzzle, Reason};

/// Characters of a puzzle.
const LENGTH: u32 = 81;

/// What was sent as a puzzle: givens, or why it is none.
pub type Puzzle = Result<Givens, InvalidPuzzle>;

/// Givens that do not clash.
///
/// No row, column or box holds a digit twice. That does not mean that there is a solution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Givens(pub(crate) Grid);

impl Givens {
    /// An empty grid's.
    pub const NONE: Givens = Givens(Grid::EMPTY);

    /// Reads a puzzle: 81 Unicode scalar characters, `1` to `9`, and `.` or `0` for an empty cell.
    ///
    /// # Errors
    /// The first reason that holds: [`Reason::Length`], [`Reason::Character`] (any other character, also a
    /// full-width digit or a blank), [`Reason::DuplicateGiven`].
    pub fn parse(text: &str) -> Result<Givens, InvalidPuzzle> {
        Givens::new(Grid::from_text(text)?)
    }

    /// Reads a puzzle of one-byte characters, as grids are packed. Every byte counts as one character.
    ///
    /// # Errors
    /// As [`Givens::parse`].
    pub fn parse_bytes(bytes: &[u8]) -> Result<Givens, InvalidPuzzle> {
        Givens::new(Grid::from_characters(bytes.iter().map(|&byte| char::from(byte)))?)
    }

    /// Takes the digits of a grid as givens.
    ///
    /// # Errors
    /// [`Reason::Character`] with all cells that hold a number above 9; then [`Reason::DuplicateGiven`] with all
    /// givens that clash with another one.
    pub fn new(grid: Grid) -> Result<Givens, InvalidPuzzle> {
        let wrong: Vec<u8> = (0..CELLS).filter(|&cell| grid.0[cell] > 9).map(index).collect();
        if !wrong.is_empty() {
            return Err(InvalidPuzzle { reason: Reason::Character, cells: wrong, found_length: LENGTH });
        }
        let mut clashes = Clashes::default();
        for (cell, &digit) in grid.0.iter().enumerate() {
            clashes.place_given(cell, digit);
        }
        if clashes.any() {
            let cells = clashing_cells(&grid);
            return Err(InvalidPuzzle { reason: Reason::DuplicateGiven, cells, found_length: LENGTH });
        }
        Ok(Givens(grid))
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.0.iter().filter(|&&digit| digit != 0).count()
    }

    /// The givens as a grid.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.0
    }
}

/// Bit `d` is set for each digit `d` that stands twice or more in the house.
fn repeated_digits(grid: &Grid, house: &[usize; 9]) -> u32 {
    let mut once = 0;
    let mut twice = 0;
    for &cell in house {
        let digit = (1 << grid.0[cell]) & !1;
        twice |= once & digit;
        once |= digit;
    }
    twice
}

fn clashing_cells(grid: &Grid) -> Vec<u8> {
    let mut clashes = [false; CELLS];
    for house in &HOUSES {
        let repeated = repeated_digits(grid, house);
        for &cell in house {
            clashes[cell] |= (repeated >> grid.0[cell]) & 1 == 1;
        }
    }
    (0..CELLS).filter(|&cell| clashes[cell]).map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (Reason, Vec<u8>, u32) {
        let InvalidPuzzle { reason, cells, found_length } = Givens::parse(text).unwrap_err();
        (reason, cells, found_length)
    }

    /// An empty puzzle with these characters in these cells.
    fn text_with(characters: &[(usize, char)]) -> String {
        let mut text = vec!['.'; CELLS];
        for &(cell, character) in characters {
            text[cell] = character;
        }
        text.into_iter().collect()
    }

    #[test]
    fn length_is_counted_in_characters_and_comes_first() {
        assert_eq!(refused(""), (Reason::Length, vec![], 0));
        assert_eq!(refused(&"1".repeat(80)), (Reason::Length, vec![], 80));
        assert_eq!(refused(&"x".repeat(82)), (Reason::Length, vec![], 82));
        assert_eq!(refused(&"\u{ff11}".repeat(27)), (Reason::Length, vec![], 27), "81 bytes, 27 characters");
    }

    #[test]
    fn all_wrong_characters_are_named_before_any_clash() {
        let text = text_with(&[(0, '1'), (1, '1'), (7, '\u{ff11}'), (40, ' '), (80, '-')]);
        assert_eq!(refused(&text), (Reason::Character, vec![7, 40, 80], 81));
        for wrong in ['*', '_', 'x', '\n', '\t', '\0', '\u{660}', '\u{b2}', '\u{1d7d8}'] {
            assert_eq!(refused(&text_with(&[(80, wrong)])), (Reason::Character, vec![80], 81), "{wrong:?}");
        }
    }

    #[test]
    fn all_clashing_givens_are_named_and_no_others() {
        assert_eq!(
            refused(&text_with(&[(0, '1'), (8, '1'), (9, '2')])),
            (Reason::DuplicateGiven, vec![0, 8], 81)
        );
        assert_eq!(refused(&text_with(&[(4, '7'), (76, '7')])), (Reason::DuplicateGiven, vec![4, 76], 81));
        assert_eq!(refused(&text_with(&[(0, '5'), (20, '5')])), (Reason::DuplicateGiven, vec![0, 20], 81));
        let two_pairs = text_with(&[(0, '1'), (1, '1'), (40, '9'), (44, '9'), (50, '8')]);
        assert_eq!(refused(&two_pairs), (Reason::DuplicateGiven, vec![0, 1, 40, 44], 81));
        assert_eq!(refused(&"1".repeat(81)).1.len(), 81);
    }

    #[test]
    fn bytes_are_read_as_characters() {
        let text = text_with(&[(3, '4'), (30, '0')]);
        assert_eq!(Givens::parse_bytes(text.as_bytes()), Givens::parse(&text));
        let mut bytes = [b'.'; CELLS];
        bytes[9] = 0xe9;
        bytes[10] = 4;
        let refusal = Givens::parse_bytes(&bytes).unwrap_err();
        assert_eq!((refusal.reason, refusal.cells), (Reason::Character, vec![9, 10]));
        assert_eq!(Givens::parse_bytes(&bytes[..80]).unwrap_err().found_length, 80);
    }

    #[test]
    fn numbers_above_nine_in_a_grid_are_refused() {
        let mut grid = Grid::EMPTY;
        grid.0[5] = 10;
        grid.0[6] = 255;
        let refusal = Givens::new(grid).unwrap_err();
        assert_eq!(
            (refusal.reason, refusal.cells, refusal.found_length),
            (Reason::Character, vec![5, 6], 81)
        );
    }
}
