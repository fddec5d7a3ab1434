//! Puzzles to and from bytes.

use solver::{CELLS, Givens, Grid, Puzzle};

use crate::{
    Damaged,
    cursor::{Cursor, cells, is_escape, is_plain, put_invalid, put_mask},
};

/// The puzzle format that is written.
pub const PUZZLE_FORMAT: i16 = 1;

const HASH_BYTES: usize = 16;

/// Appends a puzzle's entry to `out`. `text` is what it was read from; texts of the same puzzle give the same bytes, for `0` and `.`
/// are both empty.
pub fn pack_puzzle(text: &[u8], puzzle: &Puzzle, out: &mut Vec<u8>) {
    match puzzle {
        Ok(givens) => put_givens(givens.grid(), out),
        Err(invalid) => {
            put_invalid(invalid, out);
            out.extend_from_slice(&text_hash(text).to_le_bytes());
        }
    }
}

fn put_givens(grid: &Grid, out: &mut Vec<u8>) {
    let digits = &grid.0;
    let mask = (0..CELLS).filter(|&cell| digits[cell] != 0).fold(0_u128, |mask, cell| mask | (1 << cell));
    put_mask(mask, out);
    let mut half = None;
    for &digit in digits.iter().filter(|&&digit| digit != 0) {
        half = match half {
            None => Some(digit << 4),
            Some(high) => {
                out.push(high | digit);
                None
            }
        };
    }
    out.extend(half);
}

/// FNV-1a, 128 bits (Fowler, Noll, Vo; draft-eastlake-fnv), with `0` read as `.`.
fn text_hash(text: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.iter().fold(OFFSET, |hash, &byte| {
        let byte = if byte == b'0' { b'.' } else { byte };
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    })
}

/// Reads a piece of puzzles from the front. Each item is the entry's own bytes, which compare as the puzzles do, and the puzzle.
#[derive(Clone, Debug)]
pub struct PuzzleReader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> PuzzleReader<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`Damaged::Format`] for a format that this program does not know.
    pub fn new(format: i16, data: &'a [u8]) -> Result<Self, Damaged> {
        if format != PUZZLE_FORMAT {
            return Err(Damaged::Format(format));
        }
        Ok(Self { cursor: Cursor(data) })
    }
}

fn read<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], Puzzle), Damaged> {
    let start = cursor.0;
    let mask = cursor.mask()?;
    let puzzle = if is_escape(mask) {
        let invalid = cursor.invalid(mask)?;
        cursor.take(HASH_BYTES)?;
        Err(invalid)
    } else if is_plain(mask) {
        Ok(givens(cursor, mask)?)
    } else {
        return Err(Damaged::Entry);
    };
    Ok((&start[..start.len() - cursor.0.len()], puzzle))
}

fn givens(cursor: &mut Cursor<'_>, mask: u128) -> Result<Givens, Damaged> {
    let count = mask.count_ones() as usize;
    let bytes = cursor.take(count.div_ceil(2))?;
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut grid = Grid::EMPTY;
    for (cell, digit) in cells(mask).zip(digits) {
        if !(1..=9).contains(&digit) {
            return Err(Damaged::Entry);
        }
        grid.0[usize::from(cell)] = digit;
    }
    Givens::new(grid).map_err(|_| Damaged::Entry)
}

impl<'a> Iterator for PuzzleReader<'a> {
    type Item = Result<(&'a [u8], Puzzle), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.step(read)
    }
}
