//! A worker's turn: what is done of a job is stored, further ones are claimed, in one statement.

use std::time::Duration;

use crate::{
    Completion, Error, Job, JobKey, Piece, Store, WorkerId,
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

/// What one statement does for a worker; each part may be left out.
#[derive(Clone, Copy, Default, Debug)]
pub struct Turn<'a> {
    /// Stored, if the lease is still held.
    pub done: Option<&'a Done>,
    /// Jobs to claim, at most 32: ready ones that no death is blamed on and that do not take long. From then on they are blamed if their owner dies.
    pub claim: usize,
}

/// What came of a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turned {
    /// What was done is stored; otherwise its lease was lost: throw the work away.
    pub is_stored: bool,
    /// It was a whole job, and maybe the last one of its batch: see whether that has ended ([`Store::finish`]).
    pub may_be_last: bool,
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

/// The columns of what is done, for the statement; all of them null if nothing is.
#[derive(Default)]
struct Columns<'a> {
    key: Option<JobKey>,
    mid: Option<i64>,
    counts: [Option<i32>; 8],
    placements: Option<i64>,
    numbers: Vec<i16>,
    los: Vec<i64>,
    his: Vec<i64>,
    format: Option<i16>,
    data: Vec<&'a [u8]>,
    first_end: Option<i64>,
    rest_los: Vec<i64>,
    rest_his: Vec<i64>,
    excess: i64,
    puzzle_cost: i64,
}

impl<'a> Columns<'a> {
    fn of(done: &'a Done) -> Self {
        let Done { key, completion, rest } = done;
        let Completion { mid, counts, format, pieces } = completion;
        let column = |of: fn(&Piece) -> u64| pieces.iter().map(|piece| signed(of(piece))).collect();
        let whole = [key.hi];
        let ends = if rest.ends.is_empty() { &whole[..] } else { &rest.ends };
        Self {
            key: Some(*key),
            mid: Some(signed(*mid)),
            counts: [
                counts.unique,
                counts.multiple,
                counts.no_solution,
                counts.invalid,
                counts.undecided,
                counts.failed,
                counts.cancelled,
                counts.over_limit,
            ]
            .map(Some),
            placements: Some(signed(counts.placements)),
            numbers: (0_i16..).take(pieces.len()).collect(),
            los: column(|piece| piece.lo),
            his: column(|piece| piece.hi),
            format: Some(*format),
            data: pieces.iter().map(|piece| &*piece.data).collect(),
            first_end: ends.first().copied().map(signed),
            rest_los: ends.iter().copied().map(signed).take(ends.len() - 1).collect(),
            rest_his: ends.iter().copied().map(signed).skip(1).collect(),
            excess: nanoseconds(rest.excess),
            puzzle_cost: nanoseconds(rest.puzzle_cost),
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn count(jobs: usize) -> i64 {
    i64::try_from(jobs.min(CLAIMED_MAX)).unwrap_or(i64::MAX)
}

impl Store {
    /// Takes a worker's turn, by `queries/turn.sql`: all of it or, by an error, maybe nothing. It may be repeated: what was stored already is then told as lost, and
    /// what was claimed for nobody runs out.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn turn(&self, worker: WorkerId, lease: Duration, turn: &Turn<'_>) -> Result<Turned, Error> {
        let done = turn.done.map(Columns::of).unwrap_or_default();
        let key = done.key;
        let [unique, multiple, no_solution, invalid, undecided, failed, cancelled, over_limit] = done.counts;
        let rows = sqlx::query_file!(
            "queries/turn.sql",
            worker.0,
            lease.as_secs_f64(),
            key.map(|key| key.batch_id),
            key.map(|key| signed(key.lo)),
            key.map(|key| signed(key.hi)),
            key.map(|key| key.attempt),
            done.mid,
            unique,
            multiple,
            no_solution,
            invalid,
            undecided,
            failed,
            cancelled,
            over_limit,
            done.placements,
            &done.numbers,
            &done.los,
            &done.his,
            done.format,
            &done.data as _,
            done.first_end,
            &done.rest_los,
            &done.rest_his,
            done.excess,
            done.puzzle_cost,
            count(turn.claim),
            CLOCK_SLACK,
            CLOCK_STEP_MAX,
        )
        .fetch_all(&self.pool)
        .await?;
        let (is_stored, may_be_last) =
            rows.first().map_or((false, false), |row| (row.held == 1, row.may_be_last));
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
        Ok(Turned { is_stored, may_be_last, jobs: jobs(claimed.collect())? })
    }

    /// Leases up to `jobs_max` ready jobs (32 at the most) that no death is blamed on and that do not take long.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn claim(&self, worker: WorkerId, jobs_max: usize, lease: Duration) -> Result<Vec<Job>, Error> {
        let turn = Turn { claim: jobs_max, ..Turn::default() };
        Ok(self.turn(worker, lease, &turn).await?.jobs)
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
        let done = Done { key, completion, rest: Rest::default() };
        let turn = Turn { done: Some(&done), ..Turn::default() };
        let turned = self.turn(worker, Duration::ZERO, &turn).await?;
        if turned.is_stored { Ok(()) } else { Err(Error::LeaseLost) }
    }
}
