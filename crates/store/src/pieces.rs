//! Pieces: packed runs of puzzles or verdicts, each in one row.

use crate::{Error, batches::unsigned};

/// A packed run of puzzles or verdicts that can be read alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Index of its first puzzle in the batch.
    pub lo: u64,
    /// Index after its last puzzle.
    pub hi: u64,
    /// Packed bytes, at most 8,000 (held by a constraint): it must fit a page of the database beside the row's other columns.
    pub data: Vec<u8>,
}

/// A piece as it was stored, with its format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredPiece {
    /// Index of its first puzzle in the batch.
    pub lo: u64,
    /// Index after its last puzzle.
    pub hi: u64,
    /// How `data` is packed.
    pub format: i16,
    /// Packed bytes.
    pub data: Vec<u8>,
}

pub(crate) struct PieceRow {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
    pub(crate) format: i16,
    pub(crate) data: Vec<u8>,
}

impl TryFrom<PieceRow> for StoredPiece {
    type Error = Error;

    fn try_from(row: PieceRow) -> Result<Self, Error> {
        Ok(Self { lo: unsigned(row.lo)?, hi: unsigned(row.hi)?, format: row.format, data: row.data })
    }
}
