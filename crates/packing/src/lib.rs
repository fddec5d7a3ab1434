//! Solver types to and from the bytes that the database stores, with a format version.
//!
//! A run of entries is cut into *pieces*, each of at most [`PIECE_BYTES_MAX`] bytes and readable alone. A format never changes: a
//! better one gets the next number, and the old one stays readable for as long as rows of it may exist.
//!
//! Puzzle format 1, one entry a puzzle, all numbers little-endian:
//!
//! ```text
//! 11 bytes   bit c (0..81): cell c holds a given; bits 81..87: zero
//! n/2 bytes  the givens' digits in order, two a byte, the first in the high half; a last odd half is zero
//! or, for a puzzle that is none:
//! 11 bytes   bit c: cell c is to blame; bits 81..84: reason (1 length, 2 character, 3 duplicate given); bit 87: one
//!  4 bytes   characters found
//! 16 bytes   FNV-1a hash of the text, so that a repeated append can be told from another one
//! ```
//!
//! Verdict format 1, one entry a puzzle:
//!
//! ```text
//!  1 byte    low half: outcome (1 unique … 7 cancelled, as in sudoku.v1); bit 4: counted; bit 5: over the limit
//! 32 bytes   unique and multiple: the first 8 cells of the first 8 rows, two a byte, the first in the high half: the last row and
//!            column follow, for every house sums up to 45
//!  varint    counted: the placements (LEB128)
//! 15 bytes   invalid: cells, reason and characters found, as in the puzzle
//! ```
#![forbid(unsafe_code)]

mod cursor;
mod pieces;
mod puzzles;
mod solutions;
mod verdicts;

pub use pieces::{Entries, PIECE_BYTES_MAX, Pieces, Run};
pub use puzzles::{PUZZLE_FORMAT, PuzzleReader, pack_bytes, pack_text};
pub use verdicts::{StoredVerdict, VERDICT_FORMAT, VerdictReader, pack_verdict};

/// Stored bytes that cannot be read: damage, or a newer version's format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damaged {
    /// The format has no meaning to this program.
    Format(i16),
    /// The bytes end within an entry.
    Short,
    /// An entry breaks the rules of its format.
    Entry,
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Format(number) => {
                write!(f, "stored bytes of unknown format {number}: written by a newer version?")
            }
            Self::Short => f.write_str("stored bytes end within an entry"),
            Self::Entry => f.write_str("a stored entry breaks the rules of its format"),
        }
    }
}

impl std::error::Error for Damaged {}
