//! Jobs: claim under a lease, prolong it, complete under its fence, give it back.

use std::{fmt, time::Duration};

use uuid::Uuid;

use crate::{
    Error, Piece, Store, StoredPiece,
    batches::{signed, unsigned},
    pieces::PieceRow,
};

/// Jobs of one claim at the most, as its statement says too.
const CLAIMED_MAX: usize = 32;

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

/// A claimed job with its puzzles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The lease.
    pub key: JobKey,
    /// Placements counted at the most for one puzzle; 0: none.
    pub placement_limit: u64,
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

/// One piece of a claimed job, with the job.
struct ClaimRow {
    batch_id: i64,
    job_lo: i64,
    job_hi: i64,
    attempt: i32,
    placement_limit: i64,
    cancelled: bool,
    piece_lo: Option<i64>,
    piece_hi: Option<i64>,
    format: Option<i16>,
    data: Option<Vec<u8>>,
}

/// The jobs of a claim; the rows of one follow each other.
fn jobs(rows: Vec<ClaimRow>) -> Result<Vec<Job>, Error> {
    let mut jobs: Vec<Job> = Vec::new();
    for row in rows {
        let key = JobKey {
            batch_id: row.batch_id,
            lo: unsigned(row.job_lo)?,
            hi: unsigned(row.job_hi)?,
            attempt: row.attempt,
        };
        if jobs.last().is_none_or(|job| job.key != key) {
            let placement_limit = unsigned(row.placement_limit)?;
            jobs.push(Job { key, placement_limit, is_cancelled: row.cancelled, pieces: Vec::new() });
        }
        if let (Some(lo), Some(hi), Some(format), Some(data), Some(job)) =
            (row.piece_lo, row.piece_hi, row.format, row.data, jobs.last_mut())
        {
            job.pieces.push(PieceRow { lo, hi, format, data }.try_into()?);
        }
    }
    Ok(jobs)
}

impl Store {
    /// Leases up to `jobs_max` ready jobs (32 at the most) that no death is blamed on, by `queries/claim.sql`.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn claim(&self, worker: WorkerId, jobs_max: usize, lease: Duration) -> Result<Vec<Job>, Error> {
        let limit = i64::try_from(jobs_max.min(CLAIMED_MAX)).unwrap_or(i64::MAX);
        let rows = sqlx::query_file_as!(ClaimRow, "queries/claim.sql", limit, worker.0, lease.as_secs_f64())
            .fetch_all(&self.pool)
            .await?;
        jobs(rows)
    }

    /// Leases a ready job whose owner has died over it. Call it only while the process holds no other lease.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn claim_blamed(&self, worker: WorkerId, lease: Duration) -> Result<Option<Job>, Error> {
        let rows =
            sqlx::query_file_as!(ClaimRow, "queries/claim_blamed.sql", 1, worker.0, lease.as_secs_f64())
                .fetch_all(&self.pool)
                .await?;
        Ok(jobs(rows)?.pop())
    }

    /// Prolongs leases; returns those that are still held. The others were lost: stop their jobs.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn heartbeat(
        &self,
        worker: WorkerId,
        held: &[JobKey],
        lease: Duration,
    ) -> Result<Vec<JobKey>, Error> {
        let (batches, los, attempts) = columns(held);
        let rows = sqlx::query_file!(
            "queries/heartbeat.sql",
            worker.0,
            lease.as_secs_f64(),
            &batches,
            &los,
            &attempts
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(held
            .iter()
            .filter(|key| {
                rows.iter().any(|row| {
                    (row.batch_id, row.lo, row.attempt) == (key.batch_id, signed(key.lo), key.attempt)
                })
            })
            .copied()
            .collect())
    }

    /// Stores the verdicts of the head of a job's range and gives the rest, if any, back to the queue: one statement, fenced.
    ///
    /// # Errors
    /// [`Error::LeaseLost`]: nothing was changed, throw the verdicts away. [`Error::Database`].
    pub async fn complete(&self, worker: WorkerId, key: JobKey, completion: Completion) -> Result<(), Error> {
        let Completion { mid, counts, format, pieces } = completion;
        let (numbers, los, his, data) = piece_columns(pieces);
        let held = sqlx::query_file_scalar!(
            "queries/complete.sql",
            key.batch_id,
            signed(key.lo),
            signed(key.hi),
            key.attempt,
            worker.0,
            signed(mid),
            counts.unique,
            counts.multiple,
            counts.no_solution,
            counts.invalid,
            counts.undecided,
            counts.failed,
            counts.cancelled,
            counts.over_limit,
            signed(counts.placements),
            &numbers,
            &los,
            &his,
            format,
            &data,
        )
        .fetch_one(&self.pool)
        .await?;
        if held == 1 { Ok(()) } else { Err(Error::LeaseLost) }
    }

    /// Gives leases back untouched; returns how many were still held.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn release(&self, worker: WorkerId, held: &[JobKey]) -> Result<u64, Error> {
        let (batches, los, attempts) = columns(held);
        let done = sqlx::query_file!("queries/release.sql", worker.0, &batches, &los, &attempts)
            .execute(&self.pool)
            .await?;
        if done.rows_affected() > 0 {
            self.notify_jobs().await?;
        }
        Ok(done.rows_affected())
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

type PieceColumns = (Vec<i16>, Vec<i64>, Vec<i64>, Vec<Vec<u8>>);

fn piece_columns(pieces: Vec<Piece>) -> PieceColumns {
    let numbers = (0_i16..).take(pieces.len()).collect();
    let los = pieces.iter().map(|piece| signed(piece.lo)).collect();
    let his = pieces.iter().map(|piece| signed(piece.hi)).collect();
    let data = pieces.into_iter().map(|piece| piece.data).collect();
    (numbers, los, his, data)
}
