//! Chunks: the stored runs of a batch's puzzles.

use crate::{
    BatchKey, Error, Piece, Store, StoredPiece,
    batches::{signed, unsigned},
    pieces::PieceRow,
    shares::{AWAKE_JOBS, HEAD_START, SHORT_LIMIT},
};

/// Puzzles in one chunk, at the most.
pub const CHUNK_PUZZLES_MAX: usize = 4_096;

/// A run of puzzles that is stored together: at most [`CHUNK_PUZZLES_MAX`], its pieces in order and without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl Chunk {
    fn range(&self) -> Option<(i64, i64)> {
        Some((signed(self.pieces.first()?.lo), signed(self.pieces.last()?.hi)))
    }
}

/// How an append ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Append {
    /// Stored; the batch now holds so many puzzles.
    Stored(u64),
    /// Not stored: the batch is not open, or not at that offset. Read it and decide.
    Refused,
}

/// Who is told of an append with its commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell {
    /// Workers, if one of them may be idle.
    Workers,
    /// Nobody, unless the puzzles may take long: call [`Store::notify_waiting`] soon.
    Nobody,
}

#[derive(Default)]
struct Columns {
    chunk_lo: Vec<i64>,
    chunk_hi: Vec<i64>,
    piece_chunk_lo: Vec<i64>,
    piece: Vec<i16>,
    lo: Vec<i64>,
    hi: Vec<i64>,
    data: Vec<Vec<u8>>,
}

impl Columns {
    fn of(chunks: Vec<Chunk>) -> Self {
        let mut columns = Self::default();
        for chunk in chunks {
            let Some((chunk_lo, chunk_hi)) = chunk.range() else { continue };
            columns.chunk_lo.push(chunk_lo);
            columns.chunk_hi.push(chunk_hi);
            for (number, piece) in (0_i16..).zip(chunk.pieces) {
                columns.piece_chunk_lo.push(chunk_lo);
                columns.piece.push(number);
                columns.lo.push(signed(piece.lo));
                columns.hi.push(signed(piece.hi));
                columns.data.push(piece.data);
            }
        }
        columns
    }
}

impl Store {
    /// Adds chunks at an offset, in one statement and one commit. They begin at `offset` and follow without a gap; `format` says
    /// how they are packed. A repeat after a lost answer is refused, never stored twice.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn append(
        &self,
        key: BatchKey,
        offset: u64,
        format: i16,
        chunks: Vec<Chunk>,
    ) -> Result<Append, Error> {
        self.append_telling(key, offset, format, chunks, Tell::Workers).await
    }

    /// [`Store::append`], with a word on who is told.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn append_telling(
        &self,
        key: BatchKey,
        offset: u64,
        format: i16,
        chunks: Vec<Chunk>,
        tell: Tell,
    ) -> Result<Append, Error> {
        let columns = Columns::of(chunks);
        let puzzles = columns.chunk_hi.last().map_or(0, |hi| hi - signed(offset));
        let row = sqlx::query_file!(
            "queries/append.sql",
            key.id,
            signed(offset),
            puzzles,
            &columns.chunk_lo,
            &columns.chunk_hi,
            &columns.piece_chunk_lo,
            &columns.piece,
            &columns.lo,
            &columns.hi,
            format,
            &columns.data,
            HEAD_START,
            SHORT_LIMIT,
            if tell == Tell::Workers { AWAKE_JOBS } else { 0 },
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(match row {
            Some(row) => Append::Stored(unsigned(row.puzzle_count)?),
            None => Append::Refused,
        })
    }

    /// The stored pieces that touch `[lo, hi)`, in order.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn puzzles(&self, key: BatchKey, lo: u64, hi: u64) -> Result<Vec<StoredPiece>, Error> {
        // A chunk that touches the range begins less than a chunk's length before it: that keeps the scan on the key.
        let first_chunk = signed(lo.saturating_sub(CHUNK_PUZZLES_MAX as u64));
        let rows = sqlx::query_as!(
            PieceRow,
            "select lo, hi, format, data from payload
             where part = $1 and batch_id = $2 and chunk_lo >= $3 and chunk_lo < $5 and lo < $5 and hi > $4
             order by lo",
            key.part,
            key.id,
            first_chunk,
            signed(lo),
            signed(hi)
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(StoredPiece::try_from).collect()
    }
}
