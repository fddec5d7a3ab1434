//! Cutting a run of entries into pieces.

/// Bytes of one piece, at the most: with its row's other columns it fits a page of the database.
pub const PIECE_BYTES_MAX: usize = 8_000;
/// Bytes of one entry, at the most: a puzzle of 81 givens.
const ENTRY_BYTES_MAX: usize = 52;

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

/// An empty piece, with room for the entry that does not fit any more.
fn piece() -> Vec<u8> {
    Vec::with_capacity(PIECE_BYTES_MAX + ENTRY_BYTES_MAX)
}
