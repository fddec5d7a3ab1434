//! Cutting a run of entries into pieces: as they are written, or later.

use std::ops::Range;

use solver::DenseGivens;

use crate::cursor::MASK_BYTES;

/// Bytes of one piece, at the most: with its row's other columns it fits a page of the database.
pub const PIECE_BYTES_MAX: usize = 8_000;
/// Bytes that one entry takes while it is written, at the most: a puzzle's mask and room for all its digits.
const ENTRY_ROOM: usize = MASK_BYTES + DenseGivens::BYTES;

/// A run of entries in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Entries in it.
    pub count: usize,
    /// Their bytes, at most [`PIECE_BYTES_MAX`].
    pub data: Vec<u8>,
}

/// Collects entries into pieces.
#[derive(Clone, Default, Debug)]
pub struct Pieces {
    runs: Vec<Run>,
}

impl Pieces {
    /// Adds one entry: `write` appends it to the bytes of a piece.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.runs.is_empty() {
            self.runs.push(Run { count: 0, data: piece() });
        }
        let Some(run) = self.runs.last_mut() else { return };
        let end = run.data.len();
        write(&mut run.data);
        if run.data.len() <= PIECE_BYTES_MAX {
            run.count += 1;
            return;
        }
        // Written beyond the end of the piece, it is the first of the next one.
        let mut data = piece();
        data.extend_from_slice(&run.data[end..]);
        run.data.truncate(end);
        self.runs.push(Run { count: 1, data });
    }

    /// The pieces, in order.
    #[must_use]
    pub fn finish(self) -> Vec<Run> {
        self.runs
    }
}

/// Entries end to end and where each ends: for those that are compared or counted before they are cut.
#[derive(Clone, Default, Debug)]
pub struct Entries {
    bytes: Vec<u8>,
    /// Where each entry ends in `bytes`.
    ends: Vec<usize>,
}

impl Entries {
    /// Has room for so many entries of so many bytes in all.
    #[must_use]
    pub fn with_capacity(entries: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(entries) }
    }

    /// Adds one entry: `write` appends it to the bytes.
    #[inline]
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Entries in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of the entry at a place.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn entry(&self, place: usize) -> &[u8] {
        &self.bytes[self.start(place)..self.ends[place]]
    }

    /// Where the entry at a place begins.
    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The entries at `places` in pieces, in order: each is one copy.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn pieces(&self, places: Range<usize>) -> impl Iterator<Item = Run> {
        let (mut start, mut ends) = (self.start(places.start), &self.ends[places]);
        std::iter::from_fn(move || {
            // One entry always fits.
            let count = ends.partition_point(|end| end - start <= PIECE_BYTES_MAX).max(1);
            let (own, rest) = ends.split_at_checked(count)?;
            let end = *own.last()?;
            let data = self.bytes[start..end].to_vec();
            (start, ends) = (end, rest);
            Some(Run { count, data })
        })
    }
}

/// An empty piece, with room for the entry that does not fit any more.
fn piece() -> Vec<u8> {
    Vec::with_capacity(PIECE_BYTES_MAX + ENTRY_ROOM)
}
