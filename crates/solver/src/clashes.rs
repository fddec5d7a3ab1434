//! Whether givens clash, told as they come, one by one.

use crate::grid::CELLS;
use crate::houses::{box_of, column_of, row_of};

/// A bit for the row, one for the column and one for the box of each cell. A power of two of them, so that no place is out of bounds.
const HOUSES_OF: [u32; 128] = houses_of();

/// Digits and the houses that they stand in.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Clashes {
    /// By digit: the houses that have it.
    seen: [u32; 16],
    /// The houses that were to have a digit twice.
    twice: u32,
}

impl Clashes {
    /// Puts a digit, 1 to 9, into a cell, 0 to 80.
    #[inline(always)]
    pub(crate) fn place(&mut self, cell: usize, digit: u8) {
        self.place_in(HOUSES_OF[cell % HOUSES_OF.len()], digit);
    }

    /// The same, but nothing for digit 0.
    #[inline]
    pub(crate) fn place_given(&mut self, cell: usize, digit: u8) {
        self.place_in(HOUSES_OF[cell % HOUSES_OF.len()] * u32::from(digit != 0), digit);
    }

    #[inline(always)]
    fn place_in(&mut self, houses: u32, digit: u8) {
        let seen = &mut self.seen[usize::from(digit) % 16];
        self.twice |= *seen & houses;
        *seen |= houses;
    }

    /// Whether a house holds a digit twice.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.twice != 0
    }
}

const fn houses_of() -> [u32; 128] {
    let mut houses = [0; 128];
    let mut cell = 0;
    while cell < CELLS {
        houses[cell] = 1 << row_of(cell) | 1 << (9 + column_of(cell)) | 1 << (18 + box_of(cell));
        cell += 1;
    }
    houses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::houses::are_peers;

    #[test]
    fn equal_digits_clash_exactly_in_cells_that_share_a_house() {
        for one in 0..CELLS {
            for other in (0..CELLS).filter(|&other| other != one) {
                let mut clashes = Clashes::default();
                clashes.place(one, 9);
                clashes.place(other, 1);
                assert!(!clashes.any(), "different digits in {one} and {other}");
                clashes.place(other, 9);
                assert_eq!(clashes.any(), are_peers(one, other), "{one} and {other}");
                let mut empty = Clashes::default();
                empty.place_given(one, 0);
                empty.place_given(other, 0);
                assert!(!empty.any());
            }
        }
    }
}
