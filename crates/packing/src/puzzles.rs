//! Puzzles to and from bytes.

use solver::{CELLS, Clashes, Givens, Puzzle};

use crate::{
    Damaged,
    cursor::{Cursor, MASK_BYTES, is_escape, is_plain, put_invalid},
};

/// The puzzle format that is written.
pub const PUZZLE_FORMAT: i16 = 1;

const HASH_BYTES: usize = 16;
/// Digits of a word, half a byte each.
const WORD_DIGITS: u32 = 16;
/// Bytes of 81 digits, up to a whole word.
const DIGITS_BYTES: usize = 48;

/// Appends the entry of a puzzle, or of what is none, to `out`. Texts of the same puzzle give the same bytes, for `0` and `.` are both empty.
///
/// `text` is UTF-8 whose characters count; what is no UTF-8 is taken as [`pack_bytes`] takes it.
#[inline]
pub fn pack_text(text: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    let text = text.as_ref();
    if !put_givens(text, out) {
        let puzzle = str::from_utf8(text).map_or_else(|_| Givens::parse_bytes(text), Givens::parse);
        put_refused(text, puzzle, out);
    }
}

/// The same of one-byte characters: every byte counts as one.
#[inline]
pub fn pack_bytes(text: &[u8], out: &mut Vec<u8>) {
    if !put_givens(text, out) {
        put_refused(text, Givens::parse_bytes(text), out);
    }
}

/// Packs what [`put_givens`] has found to be no puzzle, with the reason. It knows the same puzzles as the solver: an entry that was not written
/// would shift all others.
#[cold]
fn put_refused(text: &[u8], puzzle: Puzzle, out: &mut Vec<u8>) {
    let invalid = puzzle.expect_err("a puzzle was not packed as one");
    put_invalid(&invalid, out);
    out.extend_from_slice(&text_hash(text).to_le_bytes());
}

/// Checks and packs in one pass; writes nothing and returns false if the text is no puzzle.
fn put_givens(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(text) = <&[u8; CELLS]>::try_from(text) else { return false };
    let Some(halves) = given_cells(text) else { return false };
    let mut entry = [0; MASK_BYTES + DIGITS_BYTES];
    entry[..8].copy_from_slice(&halves[0].to_le_bytes());
    entry[8..MASK_BYTES].copy_from_slice(&halves[1].to_le_bytes()[..MASK_BYTES - 8]);
    let mut words = entry[MASK_BYTES..].chunks_exact_mut(8);
    let mut clashes = Clashes::default();
    let (mut word, mut count) = (0_u64, 0_u32);
    for (mut half, first) in halves.into_iter().zip([0, 64]) {
        while half != 0 {
            let cell = first + half.trailing_zeros() as usize;
            half &= half - 1;
            let digit = text[cell] & 15;
            clashes.place(cell, digit);
            word = word << 4 | u64::from(digit);
            count += 1;
            if count.is_multiple_of(WORD_DIGITS)
                && let Some(bytes) = words.next()
            {
                bytes.copy_from_slice(&word.to_be_bytes());
            }
        }
    }
    if clashes.any() {
        return false;
    }
    let last = count % WORD_DIGITS;
    if last != 0
        && let Some(bytes) = words.next()
    {
        bytes.copy_from_slice(&(word << (4 * (WORD_DIGITS - last))).to_be_bytes());
    }
    out.extend_from_slice(&entry[..MASK_BYTES + count.div_ceil(2) as usize]);
    true
}

/// The cells that hold a digit, the first 64 and the others; `None` if a character is none of a puzzle's.
fn given_cells(text: &[u8; CELLS]) -> Option<[u64; 2]> {
    // A byte a cell, in a form that compilers turn into vectors; then a bit a cell.
    let mut are_given = [0_u8; 88];
    let mut is_wrong = 0;
    for (is_given, &byte) in are_given.iter_mut().zip(text) {
        *is_given = u8::from(byte.wrapping_sub(b'1') < 9);
        let is_empty = u8::from(byte == b'.') | u8::from(byte == b'0');
        is_wrong |= 1 ^ (*is_given | is_empty);
    }
    if is_wrong != 0 {
        return None;
    }
    let mut halves = [0; 2];
    for (place, eight) in are_given.chunks_exact(8).enumerate() {
        halves[place / 8] |= low_bits(eight.try_into().unwrap_or_default()) << (place % 8 * 8);
    }
    Some(halves)
}

/// The lowest bit of each of eight bytes, of which nothing else is set.
fn low_bits(bytes: [u8; 8]) -> u64 {
    // The product moves the bit of byte `i` from place 8 i to place 56 + i; no two of its terms meet.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
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

#[inline]
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

#[inline]
fn givens(cursor: &mut Cursor<'_>, mask: u128) -> Result<Givens, Damaged> {
    // Whole words are read, so beyond the entry too, and near the end of the piece from a copy that goes on with zeros.
    let rest = cursor.0;
    let mut copy = [0; DIGITS_BYTES];
    let bytes = cursor.take(mask.count_ones().div_ceil(2) as usize)?;
    let digits = rest.first_chunk().unwrap_or_else(|| {
        copy[..bytes.len()].copy_from_slice(bytes);
        &copy
    });
    let mut words = digits.chunks_exact(8);
    let (mut word, mut left) = (0_u64, 0);
    let next_digit = || {
        if left == 0 {
            word = words.next().map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap_or_default()));
            left = WORD_DIGITS;
        }
        left -= 1;
        word = word.rotate_left(4);
        word.to_le_bytes()[0] & 15
    };
    Givens::of_cells(mask, next_digit).ok_or(Damaged::Entry)
}

impl<'a> Iterator for PuzzleReader<'a> {
    type Item = Result<(&'a [u8], Puzzle), Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.step(read)
    }
}
