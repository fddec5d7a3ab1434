//! How batches end: finished, cancelled, deleted.

use crate::{
    BatchKey, BatchState, Error, JobKey, Store, WorkerId,
    batches::{signed, unsigned},
};

/// A batch that has just ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its number.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Succeeded or cancelled.
    pub state: BatchState,
}

/// How a batch stood when its cancelling began, in puzzles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// Those with a result.
    pub done: u64,
    /// Those in the ranges that workers held.
    pub stopping: u64,
    /// The others: none of them will run.
    pub dropped: u64,
}

/// What nobody wants any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwanted {
    /// Batches that are being cancelled, the first of them.
    pub cancelling: Vec<i64>,
    /// Deleted batches have rows left.
    pub any_deleted: bool,
}

/// What a step of removing deleted batches did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purged {
    /// There is nothing to remove, or others are at it.
    Nothing,
    /// Rows of this batch; there may be more.
    Some(i64),
    /// The last rows of this batch.
    Whole(i64),
}

impl Store {
    /// Ends a sealed or cancelled batch if it has no job left. Call it on a [`crate::Durability::Synchronous`] store: its commit makes all
    /// earlier results durable.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn finish(&self, id: i64) -> Result<Option<Ended>, Error> {
        let row = sqlx::query_file!("queries/finish.sql", id).fetch_optional(&self.pool).await?;
        row.map(|row| Ok(Ended { id: row.id, name: row.name, state: row.state.try_into()? })).transpose()
    }

    /// Ends sealed and cancelled batches that have no job left, at most `batches_max`: those whose last worker died before it could. As
    /// [`Store::finish`] otherwise.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn finish_any(&self, batches_max: usize) -> Result<Vec<Ended>, Error> {
        let limit = i64::try_from(batches_max).unwrap_or(i64::MAX);
        let rows = sqlx::query_file!("queries/finish_any.sql", limit).fetch_all(&self.pool).await?;
        rows.into_iter()
            .map(|row| Ok(Ended { id: row.id, name: row.name, state: row.state.try_into()? }))
            .collect()
    }

    /// Looks for what nobody wants any more; of batches that are being cancelled at most `batches_max`.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn unwanted(&self, batches_max: usize) -> Result<Unwanted, Error> {
        let limit = i64::try_from(batches_max).unwrap_or(i64::MAX);
        let row = sqlx::query_file!("queries/unwanted.sql", limit).fetch_one(&self.pool).await?;
        Ok(Unwanted { cancelling: row.cancelling, any_deleted: row.any_deleted })
    }

    /// Begins to cancel a batch; returns how it stood at that moment. `None`: it had ended, or is being cancelled already. Durable when it returns if the
    /// store is [`crate::Durability::Synchronous`]. Workers look every half second, or when [`Store::notify_cancels`] tells them.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn cancel(&self, key: BatchKey) -> Result<Option<Cancel>, Error> {
        let row = sqlx::query_file!("queries/cancel.sql", key.id).fetch_optional(&self.pool).await?;
        row.map(|row| {
            let (done, stopping) = (unsigned(row.done)?, unsigned(row.held)?);
            let rest = unsigned(row.puzzle_count)?.saturating_sub(done + stopping);
            Ok(Cancel { done, stopping, dropped: rest })
        })
        .transpose()
    }

    /// Turns jobs of a batch that is being cancelled into CANCELLED ranges, as far as nobody holds them, at most `jobs_max`; returns how many. Of any
    /// other batch: none.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn drop_cancelled(&self, id: i64, jobs_max: usize) -> Result<u64, Error> {
        let limit = i64::try_from(jobs_max).unwrap_or(i64::MAX);
        let done = sqlx::query_file!("queries/drop_cancelled.sql", id, limit).execute(&self.pool).await?;
        Ok(done.rows_affected())
    }

    /// Turns a leased job into a CANCELLED range if its batch is being cancelled; returns whether it did. Fenced like a completion.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn drop_held(&self, worker: WorkerId, key: JobKey) -> Result<bool, Error> {
        let done = sqlx::query_file!(
            "queries/drop_held.sql",
            worker.0,
            key.batch_id,
            signed(key.lo),
            signed(key.hi),
            key.attempt
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Which of these batches are being cancelled.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn cancelled_of(&self, batches: &[i64]) -> Result<Vec<i64>, Error> {
        Ok(sqlx::query_file_scalar!("queries/cancelled_of.sql", batches).fetch_all(&self.pool).await?)
    }

    /// Hides a batch at once and frees its name. One that has not ended is cancelled with it if `force` says so. Returns whether it did: `false` if it
    /// is hidden already, or has not ended.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn delete(&self, key: BatchKey, force: bool) -> Result<bool, Error> {
        let row = sqlx::query_file!("queries/delete.sql", key.id, force).fetch_optional(&self.pool).await?;
        Ok(row.is_some())
    }

    /// Removes rows of one deleted batch that has ended, at most `rows_max` of each table.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn purge(&self, rows_max: u64) -> Result<Purged, Error> {
        let row = sqlx::query_file!("queries/purge.sql", signed(rows_max)).fetch_optional(&self.pool).await?;
        Ok(match row {
            None => Purged::Nothing,
            Some(row) if row.is_gone => Purged::Whole(row.id),
            Some(row) => Purged::Some(row.id),
        })
    }
}
