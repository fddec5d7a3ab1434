//! One row a puzzle: a queue as it is usually written, and written well, with a solver that does nothing.
//!
//! Inserted by `unnest` in batches with commits that wait for the disk; claimed in batches under a lease by `for update skip locked`; completed by one
//! statement that deletes and inserts; commits of the workers do not wait; every answer is read back.

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

use super::{Load, Measured, Message, Yardsticks, not_read_back};
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
        puzzle bytea not null,
        attempt smallint not null default 0,
        owner integer,
        lease_until timestamptz
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
    create index yardstick_ready on yardstick_puzzle (id) where lease_until is null;
    create table yardstick_answer (id bigint primary key, attempt smallint not null, answer bytea not null);";
const CLEAR: &str = "truncate yardstick_puzzle, yardstick_answer;";
const DROP: &str = "drop table yardstick_puzzle, yardstick_answer;";
/// Looks up by the keys: a queue that has run for a while has the statistics for that, a table that was made just now has not.
const PLAN: &str = "set enable_seqscan = off";
const INSERT: &str = "insert into yardstick_puzzle (id, puzzle)
    select id, puzzle from unnest($1::bigint[], $2::bytea[]) as p (id, puzzle)";
const CLAIM: &str = "with ready as materialized (
        select id from yardstick_puzzle where lease_until is null order by id limit $1 for update skip locked
    )
    update yardstick_puzzle set attempt = attempt + 1, owner = $2, lease_until = now() + interval '30 s'
    where id = any(array(select id from ready)) returning id, attempt, puzzle";
const COMPLETE: &str = "with gone as (
        delete from yardstick_puzzle where id = any($2) and owner = $1 returning id, attempt
    )
    insert into yardstick_answer (id, attempt, answer)
    select id, attempt, answer
    from unnest($2::bigint[], $3::smallint[], $4::bytea[]) as d (id, attempt, answer) join gone using (id, attempt)";
const READ: &str = "select id, attempt, answer from yardstick_answer where id = any($1)";

type Connection = PoolConnection<Postgres>;

/// One worker connection.
struct RowWorker {
    number: i32,
    /// The answer of each puzzle, by its id.
    answers: Arc<Vec<Vec<u8>>>,
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
                attempts.push(row.try_get::<i16, _>(1)?);
                let place = usize::try_from(id).unwrap_or(usize::MAX);
                answers.push(self.answers.get(place).map(Vec::as_slice).unwrap_or_default());
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
    puzzles: Arc<Vec<Vec<u8>>>,
    submitted: Arc<AtomicBool>,
) -> Result<(), Error> {
    let inserted = insert(&mut on, &puzzles).await;
    // Also after a failure: workers wait for nothing then.
    submitted.store(true, SeqCst);
    inserted
}

async fn insert(on: &mut Connection, puzzles: &[Vec<u8>]) -> Result<(), Error> {
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
            read += u64::from(!row.try_get::<&[u8], _>(2)?.is_empty());
        }
    }
    Ok(read)
}

impl Yardsticks {
    /// Sends up to `puzzles_max` puzzles of a load through such a queue.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn row_per_puzzle(&self, load: &Load, puzzles_max: usize) -> Result<Measured, Error> {
        let puzzles = entries(&load.payload, puzzles_max);
        let answers = entries(&load.results, puzzles.len());
        let for_warm_up = puzzles[..puzzles.len() / WARM_UP].to_vec();
        let (puzzles, answers) = (Arc::new(puzzles), Arc::new(answers));
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
        puzzles: &Arc<Vec<Vec<u8>>>,
        answers: &Arc<Vec<Vec<u8>>>,
    ) -> Result<Measured, Error> {
        let submitted = Arc::new(AtomicBool::new(false));
        let (completed, reading) = unbounded_channel();
        let connection = async || -> Result<Connection, Error> {
            let mut connection = self.relaxed.pool.acquire().await?;
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
        let (submitting, reader) = (self.durable.pool.acquire().await?, connection().await?);
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

/// The bytes of single puzzles, as many as they have on average in their pieces.
fn entries(messages: &[Message], count: usize) -> Vec<Vec<u8>> {
    let mut entries = Vec::with_capacity(count);
    for message in messages {
        for ((lo, hi), data) in message.los.iter().zip(&message.his).zip(&message.data) {
            let puzzles = usize::try_from(hi - lo).unwrap_or(1).max(1);
            let some = data.chunks_exact((data.len() / puzzles).max(1)).take(puzzles);
            entries.extend(some.map(<[u8]>::to_vec));
            if entries.len() >= count {
                entries.truncate(count);
                return entries;
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_puzzle_of_a_piece_gets_its_share_of_the_bytes() {
        let mut message = Message::default();
        message.push(0, 3, vec![1; 10]);
        message.push(3, 5, vec![2; 4]);
        let lengths =
            |count| entries(std::slice::from_ref(&message), count).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(9), [3, 3, 3, 2, 2]);
        assert_eq!(lengths(4), [3, 3, 3, 2]);
    }
}
