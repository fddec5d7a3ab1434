//! Jobs and their leases: prolong them, give them back. `turn.rs` claims and completes.

use std::{fmt, time::Duration};

use uuid::Uuid;

use crate::{Error, Piece, Store, StoredPiece, batches::signed};

/// A worker process, by the uuid of its start: never used again, so no later process inherits its leases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WorkerId(pub(crate) Uuid);

impl WorkerId {
    /// A fresh one.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A lease on a job: which range, and the attempt that fences it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JobKey {
    /// The batch's number.
    pub batch_id: i64,
    /// Index of the first puzzle.
    pub lo: u64,
    /// Index after the last one.
    pub hi: u64,
    /// The fencing token: how often the job had been claimed when this lease was given.
    pub attempt: i32,
}

/// What a heartbeat says of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beat {
    /// It is held.
    pub key: JobKey,
    /// Placements so far in its search; 0 if none is running.
    pub running_placements: u64,
}

/// A claimed job with its puzzles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The lease.
    pub key: JobKey,
    /// Placements counted at the most for one puzzle; 0: none.
    pub placement_limit: u64,
    /// Solver time that one of its puzzles is taken to cost.
    pub puzzle_cost: Duration,
    /// Its batch is being cancelled: nothing of it is wanted any more.
    pub is_cancelled: bool,
    /// The stored pieces that touch the range, in order; they may reach beyond it on both sides.
    pub pieces: Vec<StoredPiece>,
}

/// How many puzzles of a range ended how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[allow(missing_docs, reason = "the fields are the outcomes, by their names")]
pub struct OutcomeCounts {
    pub unique: i32,
    pub multiple: i32,
    pub no_solution: i32,
    pub invalid: i32,
    pub undecided: i32,
    pub failed: i32,
    pub cancelled: i32,
    /// Puzzles whose placements were over the limit.
    pub over_limit: i32,
    /// Placements of all the puzzles that were counted to the end.
    pub placements: u64,
}

/// The verdicts of the head of a job's range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Index after the last puzzle that is done; above the job's `lo`, at most its `hi`.
    pub mid: u64,
    /// How they ended; sums up to `mid - lo`.
    pub counts: OutcomeCounts,
    /// How the pieces are packed.
    pub format: i16,
    /// The packed verdicts of `[lo, mid)`, in order and without gaps.
    pub pieces: Vec<Piece>,
}

impl Store {
    /// Prolongs leases and says how far their searches are; returns those that are still held. The others were lost: stop their jobs.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn heartbeat(
        &self,
        worker: WorkerId,
        beats: &[Beat],
        lease: Duration,
    ) -> Result<Vec<JobKey>, Error> {
        let held: Vec<JobKey> = beats.iter().map(|beat| beat.key).collect();
        let (batches, los, attempts) = columns(&held);
        let placements: Vec<i64> = beats.iter().map(|beat| signed(beat.running_placements)).collect();
        let rows = sqlx::query_file!(
            "queries/heartbeat.sql",
            worker.0,
            lease.as_secs_f64(),
            &batches,
            &los,
            &attempts,
            &placements
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(held
            .into_iter()
            .filter(|key| {
                rows.iter().any(|row| {
                    (row.batch_id, row.lo, row.attempt) == (key.batch_id, signed(key.lo), key.attempt)
                })
            })
            .collect())
    }

    /// Gives leases back untouched; returns how many were still held.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn release(&self, worker: WorkerId, held: &[JobKey]) -> Result<u64, Error> {
        let (batches, los, attempts) = columns(held);
        let done = sqlx::query_file!("queries/release.sql", worker.0, &batches, &los, &attempts)
            .fetch_all(&self.pool)
            .await?;
        Ok(done.len() as u64)
    }

    /// Keeps a job that cannot be done just now from everyone for a while, and blames nobody for it; returns whether it was still held.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn hold_back(&self, worker: WorkerId, key: JobKey, pause: Duration) -> Result<bool, Error> {
        let done = sqlx::query_file!(
            "queries/hold_back.sql",
            worker.0,
            pause.as_secs_f64(),
            key.batch_id,
            signed(key.lo),
            key.attempt
        )
        .execute(&self.pool)
        .await?;
        Ok(done.rows_affected() == 1)
    }
}

fn columns(keys: &[JobKey]) -> (Vec<i64>, Vec<i64>, Vec<i32>) {
    let batches = keys.iter().map(|key| key.batch_id).collect();
    let los = keys.iter().map(|key| signed(key.lo)).collect();
    let attempts = keys.iter().map(|key| key.attempt).collect();
    (batches, los, attempts)
}
