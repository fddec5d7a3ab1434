//! Sets of cells as bits, a word for each band of three rows, and the tables for them.
//!
//! A set has one bit a cell, in three words of 27 bits, a word a band (three rows):
//!
//! ```text
//!            column 0 1 2  3 4 5  6 7 8
//! row 0 of band     0 1 2  3 4 5  6 7 8     bit = row in band * 9 + column
//! row 1 of band     9 ..            17     bit 3 * i .. 3 * i + 3 is a minirow: one row of one box
//! row 2 of band    18 ..            26
//! ```

use crate::grid::CELLS;
use crate::houses::{HOUSE_COUNT, HOUSES, are_peers};

/// One bit a cell of a band.
pub(crate) type Band = u32;

/// One bit a cell of the grid.
pub(crate) type CellSet = [Band; 3];

pub(crate) const BAND: Band = (1 << 27) - 1;
pub(crate) const ROW: Band = 0b1_1111_1111;
/// The first cell of each row of a band: times a set of columns gives that set in all three rows.
pub(crate) const ROW_STARTS: Band = 1 | 1 << 9 | 1 << 18;
/// The cells of the first box of a band.
pub(crate) const FIRST_BOX: Band = 0b111 * ROW_STARTS;

/// The cells that see each cell.
pub(crate) static PEERS: [CellSet; CELLS] = peers();
/// The cells of each house.
pub(crate) static HOUSE_SETS: [CellSet; HOUSE_COUNT] = house_sets();
/// For nine bits in three rows of three: those that are part of a choice of three with one in each row and one in
/// each column; 0 if there is no such choice.
pub(crate) static ARRANGED: [u16; 512] = arranged();
/// For a row of nine cells: which of its three minirows are not empty.
static MINIROWS: [u8; 512] = minirows();

/// The numbers of the set bits, ascending.
pub(crate) fn bits(mut word: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < u32::BITS).then_some(bit as usize)
    })
}

/// The cells of a set, ascending.
pub(crate) fn cells_of(set: CellSet) -> impl Iterator<Item = usize> {
    set.into_iter().enumerate().flat_map(|(band, word)| bits(word).map(move |bit| band * 27 + bit))
}

/// The word itself if it has one bit, else 0.
pub(crate) fn sole_bit(word: u32) -> u32 {
    if word & word.wrapping_sub(1) == 0 { word } else { 0 }
}

/// The columns that hold at least one and at least two cells of a band.
pub(crate) fn columns_once_and_twice(band: Band) -> (Band, Band) {
    let [a, b, c] = [band & ROW, band >> 9 & ROW, band >> 18];
    (a | b | c, a & b | a & c | b & c)
}

/// Which of the nine minirows of a band are not empty.
pub(crate) fn minirows_of(band: Band) -> usize {
    let of_row = |row: u32| usize::from(MINIROWS[(band >> (9 * row) & ROW) as usize]);
    of_row(0) | of_row(1) << 3 | of_row(2) << 6
}

/// Three cells for each of nine minirow bits.
pub(crate) fn spread_minirows(minirows: u16) -> Band {
    static SPREAD: [Band; 512] = spread();
    SPREAD[usize::from(minirows) % 512]
}

const fn peers() -> [CellSet; CELLS] {
    let mut peers = [[0; 3]; CELLS];
    let mut cell = 0;
    while cell < CELLS {
        let mut other = 0;
        while other < CELLS {
            if are_peers(cell, other) {
                peers[cell][other / 27] |= 1 << (other % 27);
            }
            other += 1;
        }
        cell += 1;
    }
    peers
}

const fn house_sets() -> [CellSet; HOUSE_COUNT] {
    let mut sets = [[0; 3]; HOUSE_COUNT];
    let mut house = 0;
    while house < HOUSE_COUNT {
        let mut i = 0;
        while i < 9 {
            let cell = HOUSES[house][i];
            sets[house][cell / 27] |= 1 << (cell % 27);
            i += 1;
        }
        house += 1;
    }
    sets
}

const fn arranged() -> [u16; 512] {
    // One of columns 0, 1, 2 for each of three rows: rows are three bits each.
    const CHOICES: [u16; 6] = [0o421, 0o241, 0o412, 0o142, 0o214, 0o124];
    let mut table = [0; 512];
    let mut allowed = 0_u16;
    while allowed < 512 {
        let mut i = 0;
        while i < 6 {
            if CHOICES[i] & !allowed == 0 {
                table[allowed as usize] |= CHOICES[i];
            }
            i += 1;
        }
        allowed += 1;
    }
    table
}

const fn minirows() -> [u8; 512] {
    let mut table = [0; 512];
    let mut row = 0;
    while row < 512 {
        let mut i = 0;
        while i < 3 {
            if row >> (3 * i) & 0b111 != 0 {
                table[row] |= 1 << i;
            }
            i += 1;
        }
        row += 1;
    }
    table
}

const fn spread() -> [Band; 512] {
    let mut table = [0; 512];
    let mut minirows = 0;
    while minirows < 512 {
        let mut i = 0;
        while i < 9 {
            if minirows >> i & 1 == 1 {
                table[minirows] |= 0b111 << (3 * i);
            }
            i += 1;
        }
        minirows += 1;
    }
    table
}
