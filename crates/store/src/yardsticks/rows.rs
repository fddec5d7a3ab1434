//! One row a puzzle: a queue as it is usually written, and written well, with a solver that does nothing.
//!
//! A row holds a puzzle and its answer as text, its state, its lease. Inserted by `unnest` in batches; claimed in batches by `for update skip locked`; completed in
//! batches under their fence; every answer is read back. Commits wait for the disk, as they do unless somebody says otherwise.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use sqlx::{Postgres, Row as _, pool::PoolConnection};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};

use super::{Measured, Yardsticks, not_read_back};
use crate::Error;

/// Puzzles that one statement inserts.
const INSERTED: usize = 1_000;
/// Puzzles that one statement claims.
const CLAIMED: i64 = 500;
/// A worker that finds nothing looks again after this.
const IDLE: Duration = Duration::from_millis(1);
/// This part of the puzzles goes through beforehand, unmeasured.
const WARM_UP: usize = 4;

const MAKE: &str = "create table yardstick_puzzle (
        id bigint primary key,
        batch_id bigint not null default 1,
        puzzle text not null,
        state smallint not null default 1,
        attempt integer not null default 0,
        owner integer,
        lease_until timestamptz,
        outcome smallint,
        solution text,
        placements bigint,
        created_at timestamptz not null default now(),
        finished_at timestamptz
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
    create index yardstick_ready on yardstick_puzzle (id) where state = 1;
    create index yardstick_lease on yardstick_puzzle (lease_until) where state = 2;";
const CLEAR: &str = "truncate yardstick_puzzle;";
const DROP: &str = "drop table yardstick_puzzle;";
/// Looks up by the keys: a queue that has run for a while has the statistics for that, a table that was made just now has not.
const PLAN: &str = "set enable_seqscan = off";
const INSERT: &str = "insert into yardstick_puzzle (id, puzzle)
    select id, puzzle from unnest($1::bigint[], $2::text[]) as p (id, puzzle)";
const CLAIM: &str = "with ready as materialized (
        select id from yardstick_puzzle where state = 1 order by id limit $1 for update skip locked
    )
    update yardstick_puzzle set state = 2, attempt = attempt + 1, owner = $2, lease_until = now() + interval '30 s'
    where id = any(array(select id from ready)) returning id, attempt, puzzle";
const COMPLETE: &str = "update yardstick_puzzle p
    set state = 3, owner = null, lease_until = null, outcome = 1, solution = d.solution, placements = 0, finished_at = now()
    from unnest($2::bigint[], $3::integer[], $4::text[]) as d (id, attempt, solution)
    where p.id = d.id and p.owner = $1 and p.attempt = d.attempt";
const READ: &str = "select id, outcome, solution, placements from yardstick_puzzle where id = any($1)";

type Connection = PoolConnection<Postgres>;

/// One worker connection.
struct RowWorker {
    number: i32,
    /// The answer of each puzzle, by its id.
    answers: Arc<Vec<String>>,
    connection: Connection,
    /// Nothing more will be submitted.
    submitted: Arc<AtomicBool>,
    completed: UnboundedSender<Vec<i64>>,
}

impl RowWorker {
    async fn run(mut self) -> Result<(), Error> {
        loop {
            let was_last = self.submitted.load(SeqCst);
            let claim = sqlx::query(CLAIM).bind(CLAIMED).bind(self.number);
            let rows = claim.fetch_all(&mut *self.connection).await?;
            if rows.is_empty() && was_last {
                return Ok(());
            }
            if rows.is_empty() {
                tokio::time::sleep(IDLE).await;
                continue;
            }
            let (mut ids, mut attempts, mut answers) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                let id: i64 = row.try_get(0)?;
                ids.push(id);
                attempts.push(row.try_get::<i32, _>(1)?);
                let place = usize::try_from(id).unwrap_or(usize::MAX);
                answers.push(self.answers.get(place).map(String::as_str).unwrap_or_default());
            }
            let complete = sqlx::query(COMPLETE).bind(self.number).bind(&ids).bind(attempts).bind(answers);
            complete.execute(&mut *self.connection).await?;
            // An error means that the reader has failed: its own error is told.
            self.completed.send(ids).ok();
        }
    }
}

async fn submit(
    mut on: Connection,
    puzzles: Arc<Vec<String>>,
    submitted: Arc<AtomicBool>,
) -> Result<(), Error> {
    let inserted = insert(&mut on, &puzzles).await;
    // Also after a failure: workers wait for nothing then.
    submitted.store(true, SeqCst);
    inserted
}

async fn insert(on: &mut Connection, puzzles: &[String]) -> Result<(), Error> {
    let mut ids = 0_i64..;
    for some in puzzles.chunks(INSERTED) {
        let ids: Vec<i64> = ids.by_ref().take(some.len()).collect();
        sqlx::query(INSERT).bind(ids).bind(some).execute(&mut **on).await?;
    }
    Ok(())
}

async fn read_back(mut on: Connection, mut completed: UnboundedReceiver<Vec<i64>>) -> Result<u64, Error> {
    let mut read = 0;
    while let Some(ids) = completed.recv().await {
        let rows = sqlx::query(READ).bind(&ids).fetch_all(&mut *on).await?;
        for row in &rows {
            read += u64::from(!row.try_get::<&str, _>(2)?.is_empty());
        }
    }
    Ok(read)
}

impl Yardsticks {
    /// Sends so many puzzles through such a queue.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn row_per_puzzle(&self, count: usize) -> Result<Measured, Error> {
        let (puzzles, answers) = (Arc::new(texts(count)), Arc::new(texts(count)));
        let for_warm_up = texts(count / WARM_UP);
        self.execute(MAKE).await?;
        self.row_pass(&Arc::new(for_warm_up), &answers).await?;
        self.execute(CLEAR).await?;
        self.settle().await?;
        let measured = self.row_pass(&puzzles, &answers).await?;
        self.execute(DROP).await?;
        Ok(measured)
    }

    async fn row_pass(
        &self,
        puzzles: &Arc<Vec<String>>,
        answers: &Arc<Vec<String>>,
    ) -> Result<Measured, Error> {
        let submitted = Arc::new(AtomicBool::new(false));
        let (completed, reading) = unbounded_channel();
        let connection = async || -> Result<Connection, Error> {
            let mut connection = self.durable.pool.connections().acquire().await?;
            sqlx::raw_sql(PLAN).execute(&mut *connection).await?;
            Ok(connection)
        };
        let mut workers = Vec::new();
        for number in (0..).take(self.workers as usize) {
            workers.push(RowWorker {
                number,
                answers: Arc::clone(answers),
                connection: connection().await?,
                submitted: Arc::clone(&submitted),
                completed: completed.clone(),
            });
        }
        drop(completed);
        let (submitting, reader) = (connection().await?, connection().await?);
        let began = Instant::now();
        let mut tasks: JoinSet<_> = workers.into_iter().map(RowWorker::run).collect();
        tasks.spawn(submit(submitting, Arc::clone(puzzles), submitted));
        let read = read_back(reader, reading).await?;
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|_| Error::Database(sqlx::Error::WorkerCrashed))??;
        }
        if read != puzzles.len() as u64 {
            return Err(not_read_back());
        }
        Ok(Measured { puzzles: read, took: began.elapsed() })
    }
}

/// As long as a puzzle or a solution, each another one.
fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{number:081}")).collect()
}
