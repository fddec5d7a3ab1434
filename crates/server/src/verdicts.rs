//! Reading stored verdicts for one stream: several ranges by one query, and from their bytes into a message's columns.

use packing::{Damaged, VerdictReader};
use solver::{CELLS, Outcome};
use store::{BatchKey, ResultRange, Store, StoredPiece};

use crate::{
    limits::VERDICTS_READ_MAX,
    memory::{Held, Memory},
    wire::ResultColumns,
};

/// The outcome of a range that was given it as a whole: then it has no pieces.
pub(crate) fn bare(range: ResultRange) -> Option<Outcome> {
    let puzzles = range.hi - range.lo;
    if range.cancelled == puzzles {
        Some(Outcome::Cancelled)
    } else if range.failed == puzzles {
        Some(Outcome::Failed)
    } else {
        None
    }
}

/// How much is read at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// Whole ranges, several where they follow each other: the next message finds its verdicts here.
    Ahead,
    /// These indexes, of one range.
    Within(u64, u64),
}

/// The pieces of puzzles that follow each other without a gap.
#[derive(Default)]
pub(crate) struct ReadAhead {
    lo: u64,
    hi: u64,
    pieces: Vec<StoredPiece>,
    /// What they take.
    _held: Option<Held>,
}

impl ReadAhead {
    /// Reads pieces of the first of `ranges`, and of as many after it as `is_wanted` and as are within limits, unless they are here already.
    pub(crate) async fn read(
        &mut self,
        store: &Store,
        memory: &Memory,
        key: BatchKey,
        ranges: &[ResultRange],
        extent: Extent,
        is_wanted: impl Fn(&ResultRange) -> bool,
    ) -> Result<(), store::Error> {
        let Some((first, later)) = ranges.split_first() else { return Ok(()) };
        let (lo, mut hi) = match extent {
            Extent::Ahead => (first.lo, first.hi),
            Extent::Within(lo, hi) => (lo, hi),
        };
        if self.lo <= lo && hi <= self.hi {
            return Ok(());
        }
        if matches!(extent, Extent::Ahead) {
            for range in later {
                let follows = range.lo == hi && range.hi - first.lo <= VERDICTS_READ_MAX;
                if !follows || bare(*range).is_some() || !is_wanted(range) {
                    break;
                }
                hi = range.hi;
            }
        }
        // What was read before is not kept beside it.
        *self = Self::default();
        let pieces = store.verdicts(key, first.lo, lo, hi).await?;
        let held = memory.hold(pieces.iter().map(|piece| piece.data.len()).sum());
        *self = Self { lo, hi, pieces, _held: Some(held) };
        Ok(())
    }

    /// Adds the verdicts of `[lo, hi)` to the columns, as far as they are here without a gap.
    ///
    /// # Errors
    /// [`Damaged`]: what is stored cannot be read.
    pub(crate) fn fill(&self, columns: &mut ResultColumns, lo: u64, hi: u64) -> Result<(), Damaged> {
        let mut next = lo;
        let mut solution = [0; CELLS];
        for piece in self.pieces.iter().filter(|piece| piece.lo < hi && lo < piece.hi) {
            let mut entries = VerdictReader::new(piece.format, &piece.data)?;
            for index in piece.lo..piece.hi {
                let Some(verdict) = entries.next_into(&mut solution) else { break };
                let verdict = verdict?;
                if index == next && index < hi {
                    columns.push(&verdict, &solution);
                    next += 1;
                }
            }
        }
        Ok(())
    }
}
