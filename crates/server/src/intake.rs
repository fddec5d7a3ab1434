//! Taking puzzles in: checked, packed, cut into chunks, compared with what is stored, appended.

use std::{ops::Range, sync::Arc};

use packing::{Entries, PUZZLE_FORMAT, PuzzleReader, Run, pack_bytes, pack_text};
use proto::v1;
use solver::CELLS;
use store::{Append, Batch, BatchState, CHUNK_PUZZLES_MAX, Chunk, Piece, Store, TenantId};

use crate::{
    batches::Shared,
    limits::{
        APPEND_BYTES_MAX, APPEND_TRIES_MAX, BATCH_PUZZLES_MAX, CHUNK_GROWTH, CHUNK_PUZZLES_MIN,
        GRIDS_BYTES_MAX, MESSAGE_PUZZLES_MAX,
    },
    line::{InLine, Turn},
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
        let mut packed = Self(Entries::with_capacity(puzzles, puzzles * ENTRY_BYTES_USUAL));
        packed.pack(chunk);
        Ok(packed)
    }

    /// Adds the puzzles of a message that follows. Of one that is refused, nothing.
    pub(crate) fn add(&mut self, chunk: &v1::PuzzleChunk) -> Result<(), Refusal> {
        check(chunk)?;
        self.pack(chunk);
        Ok(())
    }

    fn pack(&mut self, chunk: &v1::PuzzleChunk) {
        for grid in chunk.grids.iter_bytes() {
            self.0.push(|bytes| pack_text(grid, bytes));
        }
        for grid in chunk.packed_grids.chunks_exact(CELLS) {
            self.0.push(|bytes| pack_bytes(grid, bytes));
        }
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    pub(crate) fn len(&self) -> usize {
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
/// that a repeat of an append succeeds whatever has become of the batch since. `line` is its place among the appends to the batch.
pub(crate) async fn append(
    shared: &Shared,
    mut line: InLine,
    tenant: TenantId,
    id: &str,
    offset: Option<u64>,
    puzzles: &Arc<PackedPuzzles>,
) -> Result<Appended, Refusal> {
    let store = &shared.store;
    // While others are before it there is nothing to look at.
    let mut turn =
        if offset.is_some() { line.turn(&shared.streams.drain, puzzles).await? } else { Turn::Look };
    let mut tries = 0;
    while tries < APPEND_TRIES_MAX {
        let batch = match turn {
            Turn::Stored(appended) => return Ok(appended),
            Turn::At(batch) => batch,
            Turn::Look | Turn::Nobody => {
                line.arm();
                shared.batch(tenant, id).await?
            }
        };
        let offset = offset.unwrap_or(batch.puzzle_count);
        let Some(beyond) = batch.puzzle_count.checked_sub(offset) else {
            // What is before it may be on its way through this server: to wait for that is no try.
            turn = line.turn(&shared.streams.drain, puzzles).await?;
            if matches!(turn, Turn::Nobody) {
                return Err(Refusal::OffsetBeyondEnd { next_offset: batch.puzzle_count });
            }
            continue;
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
            let next_offset = batch.puzzle_count;
            line.tell(batch);
            return Ok(Appended { next_offset, duplicate: true });
        }
        if batch.state != BatchState::Open {
            return Err(Refusal::BatchNotOpen { name: wire::batch_name(id), state: batch.state });
        }
        if offset + puzzles.len() as u64 > BATCH_PUZZLES_MAX {
            return Err(Refusal::BatchFull);
        }
        // Refused: another append or a seal came first. Look again.
        if let Some(next_offset) = add(shared, tenant, batch, &mut line, puzzles, known).await? {
            return Ok(Appended { next_offset, duplicate: false });
        }
        turn = Turn::Look;
        tries += 1;
    }
    Err(Refusal::Contended)
}

/// Adds a message's puzzles beyond the first `known` at the end of a batch, and with them what others in the line have ready for behind them, in one statement. Gives where the first of these messages
/// ends; `None`: the batch does not end there any more, or is not open.
async fn add(
    shared: &Shared,
    tenant: TenantId,
    batch: Batch,
    line: &mut InLine,
    puzzles: &PackedPuzzles,
    known: usize,
) -> Result<Option<u64>, Refusal> {
    let Shared { store, admission, bell, .. } = shared;
    let count = (puzzles.len() - known) as u64;
    // After what is stored: a repeat takes no room.
    let leave = admission.admit(tenant, count)?;
    let from = batch.puzzle_count;
    let mut chunks = puzzles.chunks(known, from);
    let own_end = from + count;
    let (mut end, mut bytes) = (own_end, puzzles.0.bytes());
    let mut others = Vec::new();
    let may = |end: u64, bytes: usize, next: &PackedPuzzles| {
        let next_end = end + next.len() as u64;
        let fits = bytes + next.0.bytes() <= APPEND_BYTES_MAX && next_end <= BATCH_PUZZLES_MAX;
        if !fits {
            return None;
        }
        Some((admission.admit(tenant, next.len() as u64).ok()?, next_end))
    };
    while let Some((offer, (leave, next_end))) = line.take(end, |next| may(end, bytes, next)) {
        chunks.append(&mut offer.puzzles.chunks(0, end));
        (end, bytes) = (next_end, bytes + offer.puzzles.0.bytes());
        others.push((offer, leave, end));
    }
    let tell = bell.tell(batch.key.id(), usize::try_from(end - from).unwrap_or(usize::MAX));
    let appended = store.append_telling(batch.key, from, PUZZLE_FORMAT, chunks, tell).await?;
    let Append::Stored(next_offset) = appended else { return Ok(None) };
    leave.stored();
    bell.stored(batch.key.id(), tell);
    for (offer, leave, next_offset) in others {
        leave.stored();
        offer.stored(Appended { next_offset, duplicate: false });
    }
    line.tell(Batch { puzzle_count: next_offset, ..batch });
    Ok(Some(own_end))
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
