//! A worker's turn: what is done of jobs is stored, further ones are claimed, in one statement.

use std::time::Duration;

use sqlx::PgExecutor;

use crate::{
    Completion, Error, Job, JobKey, Store, WorkerId,
    batches::{signed, unsigned},
    pieces::PieceRow,
    shares::{CLOCK_SLACK, CLOCK_STEP_MAX},
};

/// Jobs of one claim at the most, as its statement says too.
const CLAIMED_MAX: usize = 32;

/// What is done of a job, and how the rest goes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// The lease under which it was done.
    pub key: JobKey,
    /// The verdicts.
    pub completion: Completion,
    /// What becomes of the rest.
    pub rest: Rest,
}

/// How what is left of a job goes back to the queue.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rest {
    /// Where its parts end, ascending; the last of them at the job's end. None: it stays one part.
    pub ends: Vec<u64>,
    /// Solver time that was spent on what is done, beyond what those puzzles were taken to cost: its tenant's turn comes later by that.
    pub excess: Duration,
    /// Solver time that each puzzle that is left is expected to take.
    pub puzzle_cost: Duration,
}

/// What a worker has done and wants to do; each part may be left out.
#[derive(Clone, Copy, Default, Debug)]
pub struct Turn<'a> {
    /// Stored, as far as their leases are still held: at most 32 jobs.
    pub done: &'a [Done],
    /// Jobs to claim, at most 32: ready ones that no death is blamed on and that do not take long. From then on they are blamed if their owner dies.
    pub claim: usize,
}

/// What came of a turn.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Turned {
    /// The leases under which work was stored. The others were lost: throw their work away.
    pub stored: Vec<JobKey>,
    /// Batches of which these jobs may have been the last: see whether they have ended ([`Store::finish`]).
    pub maybe_ended: Vec<i64>,
    /// Claimed, in the queue's order.
    pub jobs: Vec<Job>,
}

/// One piece of a claimed job, with the job.
struct ClaimRow {
    batch_id: i64,
    job_lo: i64,
    job_hi: i64,
    attempt: i32,
    place: i64,
    placement_limit: i64,
    puzzle_cost: i32,
    cancelled: bool,
    piece_lo: Option<i64>,
    piece_hi: Option<i64>,
    format: Option<i16>,
    data: Option<Vec<u8>>,
}

impl ClaimRow {
    fn order(&self) -> (i64, i64, i64, Option<i64>) {
        (self.place, self.batch_id, self.job_lo, self.piece_lo)
    }
}

/// The jobs of a claim. They are sorted here: the database would copy their bytes for that.
fn jobs(mut rows: Vec<ClaimRow>) -> Result<Vec<Job>, Error> {
    rows.sort_unstable_by_key(ClaimRow::order);
    let mut jobs: Vec<Job> = Vec::new();
    for row in rows {
        let key = JobKey {
            batch_id: row.batch_id,
            lo: unsigned(row.job_lo)?,
            hi: unsigned(row.job_hi)?,
            attempt: row.attempt,
        };
        if jobs.last().is_none_or(|job| job.key != key) {
            jobs.push(Job {
                key,
                placement_limit: unsigned(row.placement_limit)?,
                puzzle_cost: Duration::from_nanos(unsigned(row.puzzle_cost.into())?),
                is_cancelled: row.cancelled,
                pieces: Vec::new(),
            });
        }
        if let (Some(lo), Some(hi), Some(format), Some(data), Some(job)) =
            (row.piece_lo, row.piece_hi, row.format, row.data, jobs.last_mut())
        {
            job.pieces.push(PieceRow { lo, hi, format, data }.try_into()?);
        }
    }
    Ok(jobs)
}

/// What is done of jobs, in columns for complete.sql: a row a job, and a row a piece.
#[derive(Default)]
struct Columns<'a> {
    keys: Vec<JobKey>,
    batch_ids: Vec<i64>,
    los: Vec<i64>,
    his: Vec<i64>,
    attempts: Vec<i32>,
    counts: [Vec<i32>; 8],
    placements: Vec<i64>,
    /// Which of the jobs each piece is of, from 1.
    piece_jobs: Vec<i64>,
    pieces: Pieces<'a>,
    format: Option<i16>,
}

impl<'a> Columns<'a> {
    fn of(done: impl Iterator<Item = &'a Done>) -> Self {
        let mut columns = Self::default();
        for (number, Done { key, completion, .. }) in (1..).zip(done) {
            columns.keys.push(*key);
            columns.batch_ids.push(key.batch_id);
            columns.los.push(signed(key.lo));
            columns.his.push(signed(key.hi));
            columns.attempts.push(key.attempt);
            for (column, count) in columns.counts.iter_mut().zip(counts(completion)) {
                column.push(count);
            }
            columns.placements.push(signed(completion.counts.placements));
            columns.pieces.add(completion);
            columns.piece_jobs.resize(columns.pieces.data.len(), number);
            columns.format = Some(completion.format);
        }
        columns
    }
}

/// Pieces of verdicts in columns.
#[derive(Default)]
struct Pieces<'a> {
    numbers: Vec<i16>,
    los: Vec<i64>,
    his: Vec<i64>,
    data: Vec<&'a [u8]>,
}

impl<'a> Pieces<'a> {
    /// Adds those of a job, which are numbered from 0.
    fn add(&mut self, completion: &'a Completion) {
        for (number, piece) in (0_i16..).zip(&completion.pieces) {
            self.numbers.push(number);
            self.los.push(signed(piece.lo));
            self.his.push(signed(piece.hi));
            self.data.push(&piece.data);
        }
    }
}

/// In the order of the statements.
fn counts(completion: &Completion) -> [i32; 8] {
    let counts = completion.counts;
    [
        counts.unique,
        counts.multiple,
        counts.no_solution,
        counts.invalid,
        counts.undecided,
        counts.failed,
        counts.cancelled,
        counts.over_limit,
    ]
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn count(jobs: usize) -> i64 {
    i64::try_from(jobs.min(CLAIMED_MAX)).unwrap_or(i64::MAX)
}

impl Done {
    fn is_whole(&self) -> bool {
        self.completion.mid == self.key.hi
    }
}

/// Claims, by `queries/claim.sql`.
async fn claim(
    on: impl PgExecutor<'_>,
    worker: WorkerId,
    jobs_max: usize,
    lease: Duration,
) -> Result<Vec<Job>, Error> {
    let rows = sqlx::query_file_as!(
        ClaimRow,
        "queries/claim.sql",
        worker.0,
        lease.as_secs_f64(),
        count(jobs_max),
        CLOCK_SLACK,
        CLOCK_STEP_MAX,
    )
    .fetch_all(on)
    .await?;
    jobs(rows)
}

/// Completes whole jobs and claims, by `queries/complete.sql`.
async fn complete(
    on: impl PgExecutor<'_>,
    worker: WorkerId,
    lease: Duration,
    done: Columns<'_>,
    format: i16,
    claim: usize,
) -> Result<Turned, Error> {
    let [unique, multiple, no_solution, invalid, undecided, failed, cancelled, over_limit] = &done.counts;
    let rows = sqlx::query_file!(
        "queries/complete.sql",
        worker.0,
        lease.as_secs_f64(),
        &done.batch_ids,
        &done.los,
        &done.his,
        &done.attempts,
        unique,
        multiple,
        no_solution,
        invalid,
        undecided,
        failed,
        cancelled,
        over_limit,
        &done.placements,
        &done.piece_jobs,
        &done.pieces.numbers,
        &done.pieces.los,
        &done.pieces.his,
        format,
        &done.pieces.data as _,
        count(claim),
        CLOCK_SLACK,
        CLOCK_STEP_MAX,
    )
    .fetch_all(on)
    .await?;
    let (stored, maybe_ended) = rows.first().map_or((&[][..], &[][..]), |row| {
        (row.stored.as_deref().unwrap_or_default(), row.maybe_ended.as_deref().unwrap_or_default())
    });
    let stored = stored.iter().map(|number| done.keys.get(usize::try_from(*number - 1).ok()?).copied());
    let (stored, maybe_ended) = (stored.flatten().collect(), maybe_ended.to_vec());
    let claimed = rows.into_iter().filter_map(|row| {
        Some(ClaimRow {
            batch_id: row.batch_id?,
            job_lo: row.job_lo?,
            job_hi: row.job_hi?,
            attempt: row.attempt?,
            place: row.place?,
            placement_limit: row.placement_limit?,
            puzzle_cost: row.puzzle_cost?,
            cancelled: row.cancelled?,
            piece_lo: row.piece_lo,
            piece_hi: row.piece_hi,
            format: row.format,
            data: row.data,
        })
    });
    Ok(Turned { stored, maybe_ended, jobs: jobs(claimed.collect())? })
}

impl Store {
    /// Takes a worker's turn: one statement that stores what is done of whole jobs and claims further ones, and one more for each job of which something is left,
    /// which goes back to the queue with it. An error says nothing of what was stored. It may be repeated: what was stored already is then told as lost, and what was
    /// claimed for nobody runs out.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn turn(&self, worker: WorkerId, lease: Duration, turn: &Turn<'_>) -> Result<Turned, Error> {
        let mut stored = Vec::new();
        for done in turn.done.iter().filter(|done| !done.is_whole()) {
            if self.put_back(worker, done).await? {
                stored.push(done.key);
            }
        }
        let columns = Columns::of(turn.done.iter().filter(|done| done.is_whole()));
        let mut turned = match (columns.format, turn.claim) {
            (None, 0) => Turned::default(),
            (None, claim) => Turned { jobs: self.claim(worker, claim, lease).await?, ..Turned::default() },
            (Some(format), claim) => complete(&self.pool, worker, lease, columns, format, claim).await?,
        };
        turned.stored.append(&mut stored);
        Ok(turned)
    }

    /// Runs the statements of a turn with nothing to do on so many connections, which then have them parsed and planned: that takes as long as a hundred turns, and
    /// the first job would wait for it. Nothing where a connection keeps no plans.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn rehearse(&self, connections: u32) -> Result<(), Error> {
        if !self.pool.has_sessions() {
            return Ok(());
        }
        let mut held = Vec::new();
        for _ in 0..connections {
            held.push(self.pool.connections().acquire().await?);
        }
        for connection in &mut held {
            let worker = WorkerId::fresh();
            claim(&mut **connection, worker, 0, Duration::ZERO).await?;
            complete(&mut **connection, worker, Duration::ZERO, Columns::default(), 0, 0).await?;
        }
        Ok(())
    }

    /// Stores what is done of a job and gives the rest back; returns whether its lease was still held.
    async fn put_back(&self, worker: WorkerId, Done { key, completion, rest }: &Done) -> Result<bool, Error> {
        let [unique, multiple, no_solution, invalid, undecided, failed, cancelled, over_limit] =
            counts(completion);
        let mut pieces = Pieces::default();
        pieces.add(completion);
        let whole = [key.hi];
        let ends = if rest.ends.is_empty() { &whole[..] } else { &rest.ends };
        let ends: Vec<i64> = ends.iter().copied().map(signed).collect();
        let row = sqlx::query_file!(
            "queries/put_back.sql",
            worker.0,
            key.batch_id,
            signed(key.lo),
            signed(key.hi),
            key.attempt,
            signed(completion.mid),
            unique,
            multiple,
            no_solution,
            invalid,
            undecided,
            failed,
            cancelled,
            over_limit,
            signed(completion.counts.placements),
            &pieces.numbers,
            &pieces.los,
            &pieces.his,
            completion.format,
            &pieces.data as _,
            ends[0],
            &ends[..ends.len() - 1],
            &ends[1..],
            nanoseconds(rest.excess),
            nanoseconds(rest.puzzle_cost),
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.is_some())
    }

    /// Leases up to `jobs_max` ready jobs (32 at the most) that no death is blamed on and that do not take long.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn claim(&self, worker: WorkerId, jobs_max: usize, lease: Duration) -> Result<Vec<Job>, Error> {
        claim(&self.pool, worker, jobs_max, lease).await
    }

    /// Leases a ready job that may take long.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn claim_long(&self, worker: WorkerId, lease: Duration) -> Result<Option<Job>, Error> {
        let rows = sqlx::query_file_as!(
            ClaimRow,
            "queries/claim_long.sql",
            1,
            worker.0,
            lease.as_secs_f64(),
            CLOCK_STEP_MAX
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(jobs(rows)?.pop())
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

    /// Leaves a lease nothing but the first puzzle of its job and gives the others back, as `rest` says, which begins with the second. Returns whether it was
    /// still held; its range then ends after that puzzle.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn shed(&self, worker: WorkerId, key: JobKey, rest: &Rest) -> Result<bool, Error> {
        let his: Vec<i64> = rest.ends.iter().copied().map(signed).collect();
        let los: Vec<i64> =
            std::iter::once(signed(key.lo + 1)).chain(his.iter().copied()).take(his.len()).collect();
        let rows = sqlx::query_file!(
            "queries/shed.sql",
            worker.0,
            key.batch_id,
            signed(key.lo),
            signed(key.hi),
            key.attempt,
            &los,
            &his,
            nanoseconds(rest.puzzle_cost),
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.len() == 1)
    }

    /// Stores the verdicts of the head of a job's range and gives the rest, if any, back to the queue as it is.
    ///
    /// # Errors
    /// [`Error::LeaseLost`]: nothing was changed, throw the verdicts away. [`Error::Database`].
    pub async fn complete(&self, worker: WorkerId, key: JobKey, completion: Completion) -> Result<(), Error> {
        let done = [Done { key, completion, rest: Rest::default() }];
        let turned = self.turn(worker, Duration::ZERO, &Turn { done: &done, claim: 0 }).await?;
        if turned.stored.is_empty() { Err(Error::LeaseLost) } else { Ok(()) }
    }
}
