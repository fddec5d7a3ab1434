//! The rows of a puzzle that have empty cells, and the path of the first solution through them.

use crate::givens::Givens;
use crate::grid::CELLS;
use crate::houses::ALL_DIGITS;
use crate::simd::sets::WORDS;

/// What has been placed when a row begins: the digits in each column, then those in each box of the row's band.
/// Givens are not in it.
pub(super) type State = [u16; WORDS];

/// A row with empty cells. The lists of these have room for one that does not exist.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Number of empty cells, and of digits that are missing: 1 to 9.
    pub(super) cells: usize,
    /// Columns of the empty cells.
    pub(super) columns: [usize; 10],
    /// Digits given in the column or box of each empty cell.
    pub(super) taken: [u16; 10],
    /// The missing digits, ascending, a bit each. A digit of the row is from here on its index in this list.
    pub(super) digits: [u16; 16],
    /// All missing digits.
    pub(super) missing: u16,
    /// The first solution's digits in the empty cells, a bit each.
    pub(super) path: [u16; 10],
    /// The state in which the first solution begins this row.
    pub(super) start: State,
    /// No row above has an empty cell in the same band: nothing has been placed in its boxes.
    pub(super) opens_band: bool,
    /// No row below has empty cells.
    pub(super) last: bool,
}

impl Row {
    const NONE: Row = Row {
        cells: 0,
        columns: [0; 10],
        taken: [0; 10],
        digits: [0; 16],
        missing: 0,
        path: [0; 10],
        start: [0; WORDS],
        opens_band: true,
        last: false,
    };

    /// The indices that stand for no digit: they count as used from the beginning.
    #[inline(always)]
    pub(super) fn absent_digits(&self) -> u16 {
        ALL_DIGITS & (u16::MAX << self.cells)
    }

    /// The index of a missing digit.
    #[inline(always)]
    pub(super) fn index_of(&self, digit: u16) -> usize {
        (self.missing & (digit - 1)).count_ones() as usize
    }

    /// The digits that can be placed in an empty cell when the path begins the row.
    #[inline(always)]
    pub(super) fn open_to_path(&self, cell: usize) -> u16 {
        let column = self.columns[cell];
        self.missing & !(self.taken[cell] | self.start[column] | self.start[9 + column / 3])
    }
}

/// The rows with empty cells, from the top.
pub(super) struct Rows {
    rows: [Row; 9],
    number: usize,
}

impl Rows {
    /// No rows.
    pub(super) const NONE: Rows = Rows { rows: [Row::NONE; 9], number: 0 };

    pub(super) fn all(&self) -> &[Row] {
        &self.rows[..self.number]
    }

    /// Reads a puzzle and its first solution.
    #[inline(always)]
    pub(super) fn read(&mut self, givens: &Givens, first: Option<&[u8; CELLS]>) {
        let (mut given, mut solution) = (Digits::NONE, Digits::NONE);
        given.read(&givens.grid().0);
        if let Some(first) = first {
            solution.read(first);
        }
        let bands = [given.band(0), given.band(1), given.band(2)];
        let columns = either(either(bands[0], &bands[1]), &bands[2]);
        let mut state = [0; WORDS];
        self.number = 0;
        for (band, band_columns) in bands.iter().enumerate() {
            let boxes = by_box(band_columns);
            let mut opens_band = true;
            state[9..].fill(0);
            for row in band * 3..band * 3 + 3 {
                let (given, solution) = (&given.0[row], &solution.0[row]);
                let [a, b, c] = by_box(given);
                let missing = ALL_DIGITS & !(a | b | c);
                if missing == 0 {
                    continue;
                }
                let to = &mut self.rows[self.number];
                self.number += 1;
                (to.start, to.opens_band, to.last) = (state, opens_band, false);
                to.read(given, missing, &columns, boxes, solution);
                for column in 0..9 {
                    let placed = if given[column] == 0 { solution[column] } else { 0 };
                    state[column] |= placed;
                    state[9 + column / 3] |= placed;
                }
                opens_band = false;
            }
        }
        if let Some(last) = self.number.checked_sub(1) {
            self.rows[last].last = true;
        }
    }
}

/// Digits of a row or of the columns, a bit each and none for an empty cell. Only the first nine have a meaning: a
/// vector holds sixteen.
type Line = [u16; 16];

/// The digits in each three columns.
#[inline(always)]
fn by_box(line: &Line) -> [u16; 3] {
    [line[0] | line[1] | line[2], line[3] | line[4] | line[5], line[6] | line[7] | line[8]]
}

/// What is in any of two lines.
#[inline(always)]
fn either(a: Line, b: &Line) -> Line {
    let mut either = a;
    for i in 0..16 {
        either[i] |= b[i];
    }
    either
}

/// The digits of a grid, by row.
struct Digits([Line; 9]);

impl Digits {
    const NONE: Digits = Digits([[0; 16]; 9]);

    #[inline(always)]
    fn read(&mut self, grid: &[u8; CELLS]) {
        for (row, to) in self.0.iter_mut().enumerate() {
            // Sixteen bytes from the row's first cell on; behind the last row there are none.
            let from = (row * 9).min(CELLS - 16);
            let cells: &[u8; 16] = grid[from..].first_chunk().expect("sixteen cells");
            let cells = (u128::from_le_bytes(*cells) >> (8 * (row * 9 - from))).to_le_bytes();
            for (to, digit) in to.iter_mut().zip(cells) {
                *to = (1 << (digit & 15)) >> 1;
            }
        }
    }

    /// The digits in each column of a band.
    #[inline(always)]
    fn band(&self, band: usize) -> Line {
        either(either(self.0[band * 3], &self.0[band * 3 + 1]), &self.0[band * 3 + 2])
    }
}

impl Row {
    /// Lists what is empty and what is missing. There are as many digits missing as cells are empty.
    ///
    /// No branch depends on a cell: it would be guessed wrong too often.
    #[inline(always)]
    fn read(&mut self, given: &Line, missing: u16, columns: &Line, boxes: [u16; 3], solution: &Line) {
        self.missing = missing;
        let mut rest = missing;
        for digit in &mut self.digits[..9] {
            *digit = rest & rest.wrapping_neg();
            rest &= rest.wrapping_sub(1);
        }
        let mut cells = 0;
        for column in 0..9 {
            let cell = cells.min(9);
            self.columns[cell] = column;
            self.taken[cell] = columns[column] | boxes[column / 3];
            self.path[cell] = solution[column];
            cells += usize::from(given[column] == 0);
        }
        debug_assert_eq!(cells, missing.count_ones() as usize, "givens do not clash");
        self.cells = cells;
    }
}
