//! Cutting a run of entries into pieces.

/// Bytes of one piece, at the most: with its row's other columns it fits a page of the database.
pub const PIECE_BYTES_MAX: usize = 8_000;

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
    /// Adds one entry.
    pub fn push(&mut self, entry: &[u8]) {
        match self.runs.last_mut() {
            Some(run) if run.data.len() + entry.len() <= PIECE_BYTES_MAX => {
                run.count += 1;
                run.data.extend_from_slice(entry);
            }
            _ => {
                let mut data = Vec::with_capacity(PIECE_BYTES_MAX);
                data.extend_from_slice(entry);
                self.runs.push(Run { count: 1, data });
            }
        }
    }

    /// The pieces, in order.
    #[must_use]
    pub fn finish(self) -> Vec<Run> {
        self.runs
    }
}
