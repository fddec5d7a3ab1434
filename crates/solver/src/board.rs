//! The candidates of a puzzle as bits, and what follows from them without guessing.
//!
//! Three rules are used to a fixpoint: a cell with one candidate (naked single), a house with one place for a
//! digit (hidden single), and locked candidates. The last come from one table: within a band a digit takes
//! three minirows, no two of them in the same row or box, so a minirow in none of the six possible arrangements
//! is out. Within a stack (three columns) the same holds for minicolumns. This way of working by bands is known
//! from tdoku and `JCZSolve`.

use crate::bands::{
    ARRANGED, BAND, Band, CellSet, FIRST_BOX, PEERS, ROW, ROW_STARTS, bits, cells_of, columns_once_and_twice,
    minirows_of, sole_bit, spread_minirows,
};
use crate::grid::{CELLS, Grid};

/// The candidates of each cell, as long as none is left without.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    /// Where each digit may stand; digit `d` is at `d - 1`. Placed digits stay.
    places: [CellSet; 9],
    /// Cells without a placed digit.
    open: CellSet,
}

/// The candidates leave no solution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Contradiction;

impl Board {
    const EMPTY: Board = Board { places: [[BAND; 3]; 9], open: [BAND; 3] };

    /// The board of a grid, without any conclusion but that a given rules itself out in its houses.
    pub(crate) fn new(grid: &Grid) -> Result<Board, Contradiction> {
        let mut board = Board::EMPTY;
        for (cell, &digit) in grid.0.iter().enumerate() {
            if digit != 0 {
                board.place(cell, digit)?;
            }
        }
        Ok(board)
    }

    /// Puts a digit into an open cell.
    pub(crate) fn place(&mut self, cell: usize, digit: u8) -> Result<(), Contradiction> {
        let (band, bit) = (cell / 27, 1 << (cell % 27));
        let places = &self.places[usize::from(digit) - 1];
        if places[band] & bit == 0 {
            return Err(Contradiction);
        }
        let kept = [0, 1, 2].map(|i| places[i] & !PEERS[cell][i]);
        for other in &mut self.places {
            other[band] &= !bit;
        }
        self.places[usize::from(digit) - 1] = kept;
        self.open[band] &= !bit;
        Ok(())
    }

    /// Rules out a candidate.
    pub(crate) fn remove(&mut self, cell: usize, digit: u8) {
        self.places[usize::from(digit) - 1][cell / 27] &= !(1 << (cell % 27));
    }

    /// Whether the digit may stand in the cell.
    pub(crate) fn allows(&self, cell: usize, digit: u8) -> bool {
        self.places[usize::from(digit) - 1][cell / 27] >> (cell % 27) & 1 == 1
    }

    /// The candidates of a cell, ascending.
    pub(crate) fn candidates(&self, cell: usize) -> impl Iterator<Item = u8> {
        (1..=9).filter(move |&digit| self.allows(cell, digit))
    }

    /// The cells without a placed digit.
    pub(crate) fn open(&self) -> CellSet {
        self.open
    }

    /// Where each digit may stand.
    pub(crate) fn places(&self) -> &[CellSet; 9] {
        &self.places
    }

    /// The digits, if every cell has one.
    pub(crate) fn digits(&self) -> Option<[u8; CELLS]> {
        if self.open != [0; 3] {
            return None;
        }
        let mut digits = [0; CELLS];
        for (places, digit) in self.places.iter().zip(1..) {
            for cell in cells_of(*places) {
                digits[cell] = digit;
            }
        }
        Some(digits)
    }

    /// Draws all conclusions that need no guess.
    pub(crate) fn propagate(&mut self) -> Result<(), Contradiction> {
        // What each digit looked like when its houses were last gone through: 0 is unlike any live board.
        let mut seen = [[0; 3]; 9];
        loop {
            self.place_naked_singles()?;
            let mut changed = false;
            for digit in 1..=9 {
                let i = usize::from(digit) - 1;
                if self.places[i] != seen[i] {
                    changed = true;
                    self.arrange(digit)?;
                    seen[i] = self.places[i];
                    self.place_hidden_singles(digit)?;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Fills cells with one candidate until there are none.
    fn place_naked_singles(&mut self) -> Result<(), Contradiction> {
        loop {
            let mut placed = false;
            for band in 0..3 {
                let (mut once, mut twice) = (0, 0);
                for places in &self.places {
                    twice |= once & places[band];
                    once |= places[band];
                }
                if once != BAND {
                    return Err(Contradiction);
                }
                for bit in bits(once & !twice & self.open[band]) {
                    let cell = band * 27 + bit;
                    // A single placed just before in the same band may have taken this cell's last candidate.
                    let digit = self.candidates(cell).next().ok_or(Contradiction)?;
                    self.place(cell, digit)?;
                    placed = true;
                }
            }
            if !placed {
                return Ok(());
            }
        }
    }

    /// Locked candidates of one digit: first by minirows, band by band, then by minicolumns, stack by stack.
    fn arrange(&mut self, digit: u8) -> Result<(), Contradiction> {
        let bands = &mut self.places[usize::from(digit) - 1];
        let mut columns = [0; 3];
        for (band, columns) in bands.iter_mut().zip(&mut columns) {
            let arranged = ARRANGED[minirows_of(*band)];
            if arranged == 0 {
                return Err(Contradiction);
            }
            *band &= spread_minirows(arranged);
            *columns = (*band | *band >> 9 | *band >> 18) & ROW;
        }
        let mut kept = [0; 3];
        for first in [0, 3, 6] {
            let minicolumn = |band: usize| columns[band] >> first & 0b111;
            let arranged = ARRANGED[(minicolumn(0) | minicolumn(1) << 3 | minicolumn(2) << 6) as usize];
            if arranged == 0 {
                return Err(Contradiction);
            }
            for (band, kept) in kept.iter_mut().enumerate() {
                *kept |= (Band::from(arranged) >> (3 * band) & 0b111) << first;
            }
        }
        for (band, kept) in bands.iter_mut().zip(kept) {
            *band &= kept * ROW_STARTS;
        }
        Ok(())
    }

    /// Fills the only place of a digit in each house that has but one.
    fn place_hidden_singles(&mut self, digit: u8) -> Result<(), Contradiction> {
        let bands = self.places[usize::from(digit) - 1];
        let [a, b, c] = bands.map(columns_once_and_twice);
        let twice = a.1 | b.1 | c.1 | a.0 & b.0 | a.0 & c.0 | b.0 & c.0;
        let single_columns = (ROW & !twice) * ROW_STARTS;
        for (band, places) in bands.into_iter().enumerate() {
            let mut single = places & single_columns;
            for i in 0..3 {
                single |= sole_bit(places & ROW << (9 * i)) | sole_bit(places & FIRST_BOX << (3 * i));
            }
            for bit in bits(single & self.open[band]) {
                self.place(band * 27 + bit, digit)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_grid::random_full_grid;
    use crate::houses::{HOUSES, are_peers};
    use crate::random::SplitMix64;

    fn candidates(board: &Board, cell: usize) -> Vec<u8> {
        board.candidates(cell).collect()
    }

    #[test]
    fn givens_rule_themselves_out_in_their_houses_only() {
        let mut board = Board::EMPTY;
        board.place(40, 5).unwrap();
        for cell in (0..CELLS).filter(|&cell| cell != 40) {
            assert_eq!(board.allows(cell, 5), !are_peers(cell, 40), "cell {cell}");
            assert_eq!(candidates(&board, cell).len(), if are_peers(cell, 40) { 8 } else { 9 });
        }
        assert_eq!(candidates(&board, 40), [5]);
        assert_eq!(board.place(41, 5), Err(Contradiction));
    }

    #[test]
    fn a_digit_locked_in_a_box_leaves_the_rest_of_the_row_and_column() {
        // 9 is left in row 1 of the first box only.
        let mut rows = Board::EMPTY;
        for cell in [9, 10, 11, 18, 19, 20] {
            rows.remove(cell, 9);
        }
        rows.propagate().unwrap();
        assert!((3..9).all(|cell| !rows.allows(cell, 9)));
        assert!((0..3).all(|cell| rows.allows(cell, 9)));
        // The same by columns: 9 is left in column 1 of the first box only.
        let mut columns = Board::EMPTY;
        for cell in [1, 2, 10, 11, 19, 20] {
            columns.remove(cell, 9);
        }
        columns.propagate().unwrap();
        assert!((3..9).all(|row| !columns.allows(row * 9, 9)));
        assert!((0..3).all(|row| columns.allows(row * 9, 9)));
    }

    #[test]
    fn a_cell_or_a_house_without_a_candidate_is_a_contradiction() {
        let mut cell = Board::EMPTY;
        for digit in 1..=9 {
            cell.remove(17, digit);
        }
        assert_eq!(cell.propagate(), Err(Contradiction));
        for house in &HOUSES {
            let mut board = Board::EMPTY;
            for &cell in house {
                board.remove(cell, 4);
            }
            assert_eq!(board.propagate(), Err(Contradiction), "{house:?}");
        }
    }

    #[test]
    fn the_last_place_in_any_house_is_taken() {
        for house in &HOUSES {
            for &last in house {
                let mut board = Board::EMPTY;
                house.iter().filter(|&&cell| cell != last).for_each(|&cell| board.remove(cell, 4));
                board.propagate().unwrap();
                assert_eq!(candidates(&board, last), [4], "{house:?}");
            }
        }
    }

    #[test]
    fn conclusions_never_contradict_a_solution() {
        let mut random = SplitMix64::new(7);
        let mut solved = 0;
        for givens in (0..81).cycle().take(2000) {
            let full = random_full_grid(&mut random);
            let mut order: Vec<usize> = (0..CELLS).collect();
            random.shuffle(&mut order);
            let mut grid = Grid::EMPTY;
            order[..givens].iter().for_each(|&cell| grid.0[cell] = full.0[cell]);
            let mut board = Board::new(&grid).unwrap();
            board.propagate().unwrap();
            assert!((0..CELLS).all(|cell| board.allows(cell, full.0[cell])), "{grid}");
            if let Some(digits) = board.digits() {
                assert_eq!(digits, full.0);
                solved += 1;
            }
        }
        assert!((500..1500).contains(&solved), "{solved} of 2000 were solved without a guess");
    }
}
