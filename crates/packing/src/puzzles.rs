//! Puzzles to and from bytes.

use solver::{CELLS, DenseGivens, Givens, Puzzle};

use crate::{
    Damaged,
    cursor::{Cursor, MASK_BYTES, is_escape, is_plain, put_invalid},
};

/// The puzzle format that is written.
pub const PUZZLE_FORMAT: i16 = 1;

const HASH_BYTES: usize = 16;

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
#[inline]
fn put_givens(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(text) = <&[u8; CELLS]>::try_from(text) else { return false };
    let Some(DenseGivens { cells, digits }) = DenseGivens::of_text(text) else { return false };
    // As many bytes as there may be, which is a copy of a fixed size, and then those off that there are not.
    let mut entry = [0; MASK_BYTES + DenseGivens::BYTES];
    entry[..16].copy_from_slice(&cells.to_le_bytes());
    entry[MASK_BYTES..].copy_from_slice(&digits);
    let len = out.len() + MASK_BYTES + cells.count_ones().div_ceil(2) as usize;
    out.extend_from_slice(&entry);
    out.truncate(len);
    true
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

    /// Reads the next entry into `puzzle`, and gives the entry's own bytes; `None` at the end. After damage nothing more is read, and `puzzle` says nothing.
    #[inline]
    pub fn next_into(&mut self, puzzle: &mut Puzzle) -> Option<Result<&'a [u8], Damaged>> {
        self.cursor.step(|cursor| read(cursor, puzzle))
    }
}

impl<'a> Iterator for PuzzleReader<'a> {
    type Item = Result<(&'a [u8], Puzzle), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut puzzle = Ok(Givens::NONE);
        let read = self.next_into(&mut puzzle)?;
        Some(read.map(|entry| (entry, puzzle)))
    }
}

#[inline]
fn read<'a>(cursor: &mut Cursor<'a>, puzzle: &mut Puzzle) -> Result<&'a [u8], Damaged> {
    let start = cursor.0;
    let mask = cursor.mask()?;
    if is_escape(mask) {
        let invalid = cursor.invalid(mask)?;
        cursor.take(HASH_BYTES)?;
        *puzzle = Err(invalid);
    } else if is_plain(mask) {
        if puzzle.is_err() {
            *puzzle = Ok(Givens::NONE);
        }
        if let Ok(givens) = puzzle {
            read_givens(cursor, mask, givens)?;
        }
    } else {
        return Err(Damaged::Entry);
    }
    Ok(&start[..start.len() - cursor.0.len()])
}

#[inline]
fn read_givens(cursor: &mut Cursor<'_>, cells: u128, givens: &mut Givens) -> Result<(), Damaged> {
    // Whole words are read, so beyond the entry too, and near the end of the piece from a copy that goes on with zeros.
    let rest = cursor.0;
    let bytes = cursor.take(cells.count_ones().div_ceil(2) as usize)?;
    let is_right = if let Some(digits) = rest.first_chunk() {
        givens.set_dense(cells, digits)
    } else {
        let mut copy = [0; DenseGivens::BYTES];
        copy[..bytes.len()].copy_from_slice(bytes);
        givens.set_dense(cells, &copy)
    };
    if is_right { Ok(()) } else { Err(Damaged::Entry) }
}
