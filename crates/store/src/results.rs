//! Results: cursor reads over the finished ranges of a batch.

use crate::{
    BatchKey, CHUNK_PUZZLES_MAX, Error, Store, StoredPiece,
    batches::{signed, unsigned},
    pieces::PieceRow,
};

/// One finished range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResultRange {
    /// Index of its first puzzle.
    pub lo: u64,
    /// Index after its last puzzle.
    pub hi: u64,
    /// Puzzles in it that were cancelled. All of them: the range needs no pieces.
    pub cancelled: u64,
    /// Puzzles in it that failed. All of them: the range needs no pieces.
    pub failed: u64,
}

impl Store {
    /// The finished ranges that reach beyond index `from`, in order of index, at most `ranges_max`. The first may begin before `from`.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn finished(
        &self,
        key: BatchKey,
        from: u64,
        ranges_max: usize,
    ) -> Result<Vec<ResultRange>, Error> {
        // A range is never longer than a chunk: that keeps the scan on the key.
        let lowest = signed(from.saturating_sub(CHUNK_PUZZLES_MAX as u64));
        let limit = i64::try_from(ranges_max).unwrap_or(i64::MAX);
        let rows = sqlx::query!(
            "select lo, hi, cancelled_count, failed_count from result
             where part = $1 and batch_id = $2 and lo >= $3 and hi > $4
             order by lo
             limit $5",
            key.part,
            key.id,
            lowest,
            signed(from),
            limit
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter()
            .map(|row| {
                Ok(ResultRange {
                    lo: unsigned(row.lo)?,
                    hi: unsigned(row.hi)?,
                    cancelled: unsigned(row.cancelled_count.into())?,
                    failed: unsigned(row.failed_count.into())?,
                })
            })
            .collect()
    }

    /// The packed verdicts of indexes `[lo, hi)` in pieces, in order of index: of finished ranges that follow each other, the first of which begins at `first_lo`. One query for all of
    /// them; the first and the last piece may reach beyond.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn verdicts(
        &self,
        key: BatchKey,
        first_lo: u64,
        lo: u64,
        hi: u64,
    ) -> Result<Vec<StoredPiece>, Error> {
        let rows = sqlx::query_as!(
            PieceRow,
            "select lo, hi, format, data from result_piece
             where part = $1 and batch_id = $2 and result_lo >= $3 and result_lo < $5 and hi > $4 and lo < $5
             order by result_lo, piece",
            key.part,
            key.id,
            signed(first_lo),
            signed(lo),
            signed(hi)
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(StoredPiece::try_from).collect()
    }
}
