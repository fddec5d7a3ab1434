//! Taking puzzles in: checked, packed, cut into chunks, compared with what is stored, appended.

use std::ops::Range;

use packing::{Entries, PUZZLE_FORMAT, PuzzleReader, Run, pack_bytes, pack_text};
use proto::v1;
use solver::CELLS;
use store::{Append, Batch, BatchState, CHUNK_PUZZLES_MAX, Chunk, Piece, Store, TenantId};

use crate::{
    batches::Shared,
    limits::{
        APPEND_TRIES_MAX, BATCH_PUZZLES_MAX, CHUNK_GROWTH, CHUNK_PUZZLES_MIN, GRIDS_BYTES_MAX,
        MESSAGE_PUZZLES_MAX,
    },
    status::Refusal,
    wire,
};

/// Bytes of the entry of a puzzle with 32 givens; for the others the room grows.
const ENTRY_BYTES_USUAL: usize = 27;

/// The puzzles of one message, packed.
#[derive(Debug)]
pub(crate) struct PackedPuzzles(Entries);

/// How an append ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Appended {
    /// Puzzles in the batch now.
    pub(crate) next_offset: u64,
    /// Everything was stored before.
    pub(crate) duplicate: bool,
}

impl PackedPuzzles {
    /// Checks a message's limits and packs its puzzles. What is no puzzle is packed as such: its outcome is INVALID.
    pub(crate) fn of(chunk: &v1::PuzzleChunk) -> Result<Self, Refusal> {
        check(chunk)?;
        let puzzles = chunk.grids.len() + chunk.packed_grids.len() / CELLS;
        let mut packed = Entries::with_capacity(puzzles, puzzles * ENTRY_BYTES_USUAL);
        for grid in chunk.grids.iter_bytes() {
            packed.push(|bytes| pack_text(grid, bytes));
        }
        for grid in chunk.packed_grids.chunks_exact(CELLS) {
            packed.push(|bytes| pack_bytes(grid, bytes));
        }
        Ok(Self(packed))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// The puzzles from `place` on, in chunks for the batch's index `offset` and after.
    fn chunks(&self, place: usize, offset: u64) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let (mut place, mut offset) = (place, offset);
        while place < self.len() {
            let end = self.len().min(place + chunk_puzzles(offset));
            chunks.push(Chunk { pieces: self.pieces(place..end, offset) });
            offset += (end - place) as u64;
            place = end;
        }
        chunks
    }

    /// The puzzles at `places` in pieces, the first of them the batch's index `offset`.
    fn pieces(&self, places: Range<usize>, offset: u64) -> Vec<Piece> {
        let mut lo = offset;
        let piece = |run: Run| {
            let hi = lo + run.count as u64;
            Piece { lo: std::mem::replace(&mut lo, hi), hi, data: run.data }
        };
        self.0.pieces(places).map(piece).collect()
    }
}

/// Puzzles of the next chunk of a batch that holds `already`: an eighth of that, within limits.
fn chunk_puzzles(already: u64) -> usize {
    let grown = (already / CHUNK_GROWTH).clamp(CHUNK_PUZZLES_MIN, CHUNK_PUZZLES_MAX as u64);
    usize::try_from(grown).unwrap_or(CHUNK_PUZZLES_MAX)
}

fn check(chunk: &v1::PuzzleChunk) -> Result<(), Refusal> {
    let refuse = |why: String| Err(Refusal::BadArgument { field: "chunk", why });
    let packed = chunk.packed_grids.len();
    if !chunk.grids.is_empty() && packed != 0 {
        return refuse("set grids or packed_grids, not both".to_owned());
    }
    if !packed.is_multiple_of(CELLS) {
        return refuse(format!("packed_grids must be a whole number of 81-byte puzzles, not {packed} bytes"));
    }
    let puzzles = chunk.grids.len() + packed / CELLS;
    if puzzles == 0 {
        return refuse(format!("must hold 1 to {MESSAGE_PUZZLES_MAX} puzzles, not 0"));
    }
    if puzzles > MESSAGE_PUZZLES_MAX {
        return refuse(format!(
            "must hold at most {MESSAGE_PUZZLES_MAX} puzzles, not {puzzles}; send several messages"
        ));
    }
    let bytes = packed + chunk.grids.text_bytes();
    if bytes > GRIDS_BYTES_MAX {
        return refuse(format!(
            "must hold at most {GRIDS_BYTES_MAX} bytes of grids, not {bytes}; send several messages"
        ));
    }
    Ok(())
}

/// Appends at `offset`, or at the end. What is already stored there is compared first, before the batch's state is looked at, so
/// that a repeat of an append succeeds whatever has become of the batch since.
pub(crate) async fn append(
    shared: &Shared,
    tenant: TenantId,
    id: &str,
    offset: Option<u64>,
    puzzles: &PackedPuzzles,
) -> Result<Appended, Refusal> {
    let store = &shared.store;
    let mut line = shared.lines.join((tenant, id.to_owned()), offset);
    let mut tries = 0;
    while tries < APPEND_TRIES_MAX {
        line.arm();
        let batch = shared.batch(tenant, id).await?;
        let offset = offset.unwrap_or(batch.puzzle_count);
        let Some(beyond) = batch.puzzle_count.checked_sub(offset) else {
            // What is before it may be on its way through this server: to wait for that is no try.
            if line.turn(&shared.drain).await? {
                continue;
            }
            return Err(Refusal::OffsetBeyondEnd { next_offset: batch.puzzle_count });
        };
        let known = usize::try_from(beyond).unwrap_or(usize::MAX).min(puzzles.len());
        if known > 0
            && let Err(refusal) = compare(store, &batch, offset, known, puzzles).await
        {
            // The puzzles of a batch that is deleted meanwhile go, and that is no damage.
            store.current(batch.key).await.map_err(|error| Refusal::of_batch(error, id))?;
            return Err(refusal);
        }
        if known == puzzles.len() {
            line.tell(batch.puzzle_count);
            return Ok(Appended { next_offset: batch.puzzle_count, duplicate: true });
        }
        if batch.state != BatchState::Open {
            return Err(Refusal::BatchNotOpen { name: wire::batch_name(id), state: batch.state });
        }
        if offset + puzzles.len() as u64 > BATCH_PUZZLES_MAX {
            return Err(Refusal::BatchFull);
        }
        // After what is stored: a repeat takes no room.
        let leave = shared.admission.admit(tenant, (puzzles.len() - known) as u64)?;
        let from = offset + known as u64;
        let chunks = puzzles.chunks(known, from);
        let tell = shared.bell.tell(batch.key.id(), puzzles.len() - known);
        let appended = store.append_telling(batch.key, from, PUZZLE_FORMAT, chunks, tell).await?;
        if let Append::Stored(next_offset) = appended {
            leave.stored();
            shared.bell.stored(batch.key.id(), tell);
            line.tell(next_offset);
            return Ok(Appended { next_offset, duplicate: false });
        }
        tries += 1;
    }
    Err(Refusal::Contended)
}

/// Compares the first `known` puzzles with those stored from `offset` on.
async fn compare(
    store: &Store,
    batch: &Batch,
    offset: u64,
    known: usize,
    puzzles: &PackedPuzzles,
) -> Result<(), Refusal> {
    let end = offset + known as u64;
    let mut compared = 0;
    for piece in store.puzzles(batch.key, offset, end).await? {
        for (index, stored) in (piece.lo..piece.hi).zip(PuzzleReader::new(piece.format, &piece.data)?) {
            let (entry, _) = stored?;
            if index < offset || index >= end {
                continue;
            }
            let place = usize::try_from(index - offset).unwrap_or(usize::MAX);
            if puzzles.0.entry(place) != entry {
                return Err(Refusal::OffsetTaken { first_index: index });
            }
            compared += 1;
        }
    }
    // Equal is said only of what was read.
    if compared == known { Ok(()) } else { Err(packing::Damaged::Short.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(puzzles: usize) -> v1::PuzzleChunk {
        v1::PuzzleChunk { grids: vec![".".repeat(81); puzzles].into(), ..v1::PuzzleChunk::default() }
    }

    #[test]
    fn chunks_start_small_grow_and_cover_every_puzzle_once() {
        let mut offset = 0;
        let mut lengths = Vec::new();
        for _ in 0..8 {
            let packed = PackedPuzzles::of(&message(MESSAGE_PUZZLES_MAX)).expect("within the limits");
            for chunk in packed.chunks(0, offset) {
                let begin = offset;
                for piece in &chunk.pieces {
                    assert_eq!(piece.lo, offset);
                    assert!(piece.hi > piece.lo);
                    offset = piece.hi;
                }
                lengths.push(offset - begin);
            }
        }
        assert_eq!(offset, 8 * MESSAGE_PUZZLES_MAX as u64);
        assert_eq!(lengths[0], CHUNK_PUZZLES_MIN);
        assert!(lengths.contains(&(CHUNK_PUZZLES_MAX as u64)));
        assert!(lengths.iter().all(|length| *length <= CHUNK_PUZZLES_MAX as u64));
    }

    #[test]
    fn each_limit_of_a_message_is_named_and_holds_to_the_last_one() {
        assert!(PackedPuzzles::of(&message(MESSAGE_PUZZLES_MAX)).is_ok());
        let long = |bytes: usize| v1::PuzzleChunk {
            grids: vec!["1".repeat(bytes)].into(),
            ..v1::PuzzleChunk::default()
        };
        assert!(PackedPuzzles::of(&long(GRIDS_BYTES_MAX)).is_ok());
        let both = v1::PuzzleChunk { grids: vec![""].into(), packed_grids: vec![b'.'; 81].into() };
        let odd = v1::PuzzleChunk { packed_grids: vec![b'.'; 80].into(), ..v1::PuzzleChunk::default() };
        for (chunk, word) in [
            (message(0), "1 to 10000"),
            (message(MESSAGE_PUZZLES_MAX + 1), "10000"),
            (long(GRIDS_BYTES_MAX + 1), "5000000"),
            (both, "both"),
            (odd, "81-byte"),
        ] {
            let refusal = PackedPuzzles::of(&chunk).expect_err(word);
            assert!(
                matches!(&refusal, Refusal::BadArgument { why, .. } if why.contains(word)),
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn zero_and_dot_and_packed_grids_give_the_same_entries() {
        let dots = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
        let zeros = dots.replace('.', "0");
        let strings = v1::PuzzleChunk { grids: vec![dots, &zeros].into(), ..v1::PuzzleChunk::default() };
        let packed =
            v1::PuzzleChunk { packed_grids: zeros.into_bytes().into(), ..v1::PuzzleChunk::default() };
        let strings = PackedPuzzles::of(&strings).expect("good");
        let packed = PackedPuzzles::of(&packed).expect("good");
        assert_eq!(strings.0.entry(0), strings.0.entry(1));
        assert_eq!(strings.0.entry(0), packed.0.entry(0));
    }
}
