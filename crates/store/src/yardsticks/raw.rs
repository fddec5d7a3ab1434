//! The raw limit: a batch's stored bytes in and out of PostgreSQL, without solver, gRPC or jobs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use sqlx::{Postgres, Row as _, pool::PoolConnection};
use tokio::task::JoinSet;

use super::{Load, Measured, Message, Yardsticks, not_read_back};
use crate::Error;

/// Messages that are under way at a time, each on two connections. Measured on two cores, millions of puzzles a second: 2.5 with one, 5.3 with
/// two, 5.5 with three, 6.2 with four, no more with six or eight.
pub(super) const LANES: u32 = 4;

/// The same columns, storage, constraints and keys as the service's own.
const MAKE: &str = "create table yardstick_payload (like payload including all);
    create table yardstick_result (like result_piece including all);";
/// Waits for the disk, as the end of a batch does: what was committed before is there too.
const END: &str = "comment on table yardstick_result is 'complete';";
const DROP: &str = "drop table yardstick_payload, yardstick_result;";

const PAYLOAD: Statements = Statements {
    insert: "insert into yardstick_payload (part, batch_id, chunk_lo, piece, lo, hi, format, data)
        select 0, $1, $2, unnest($3::smallint[]), unnest($4::bigint[]), unnest($5::bigint[]), 1, unnest($6::bytea[])",
    select: "select lo, hi, format, data from yardstick_payload
        where part = 0 and batch_id = $1 and chunk_lo = $2 order by piece",
};
const RESULTS: Statements = Statements {
    insert: "insert into yardstick_result (part, batch_id, result_lo, piece, lo, hi, format, data)
        select 0, $1, $2, unnest($3::smallint[]), unnest($4::bigint[]), unnest($5::bigint[]), 1, unnest($6::bytea[])",
    select: "select lo, hi, format, data from yardstick_result
        where part = 0 and batch_id = $1 and result_lo = $2 order by piece",
};

struct Statements {
    insert: &'static str,
    select: &'static str,
}

impl Statements {
    async fn insert(
        &self,
        on: &mut PoolConnection<Postgres>,
        pass: i64,
        message: &Message,
    ) -> Result<(), Error> {
        sqlx::query(self.insert)
            .bind(pass)
            .bind(message.lo())
            .bind(&message.numbers)
            .bind(&message.los)
            .bind(&message.his)
            .bind(&message.data)
            .execute(&mut **on)
            .await?;
        Ok(())
    }

    async fn read_back(
        &self,
        on: &mut PoolConnection<Postgres>,
        pass: i64,
        message: &Message,
    ) -> Result<(), Error> {
        let rows = sqlx::query(self.select).bind(pass).bind(message.lo()).fetch_all(&mut **on).await?;
        for (row, written) in rows.iter().zip(&message.data) {
            if row.try_get::<&[u8], _>(3)?.len() != written.len() {
                return Err(not_read_back());
            }
        }
        if rows.len() == message.data.len() { Ok(()) } else { Err(not_read_back()) }
    }
}

/// One message after the other, on connections of its own.
struct RawLane {
    load: Arc<Load>,
    /// Of each kind of message: how many there are to do.
    messages: usize,
    next: Arc<AtomicUsize>,
    pass: i64,
    durable: PoolConnection<Postgres>,
    relaxed: PoolConnection<Postgres>,
}

impl RawLane {
    async fn run(mut self) -> Result<(), Error> {
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= self.messages {
                return Ok(());
            }
            if let Some(message) = self.load.payload.get(number) {
                PAYLOAD.insert(&mut self.durable, self.pass, message).await?;
                PAYLOAD.read_back(&mut self.relaxed, self.pass, message).await?;
            }
            if let Some(message) = self.load.results.get(number) {
                RESULTS.insert(&mut self.relaxed, self.pass, message).await?;
                RESULTS.read_back(&mut self.relaxed, self.pass, message).await?;
            }
        }
    }
}

impl Yardsticks {
    /// Writes and reads back the puzzles (commits wait for the disk) and the results (they do not) of a load, pipelined; `warm_up` puzzles of it
    /// beforehand, unmeasured.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn raw(&self, load: &Arc<Load>, warm_up: u64) -> Result<Measured, Error> {
        self.execute(MAKE).await?;
        let mut covered = 0;
        let for_warm_up = load.payload.iter().take_while(|message| {
            covered += message.puzzles();
            covered <= warm_up
        });
        self.raw_pass(load, 0, for_warm_up.count()).await?;
        self.settle().await?;
        let messages = load.payload.len().max(load.results.len());
        let measured = self.raw_pass(load, 1, messages).await?;
        self.execute(DROP).await?;
        Ok(measured)
    }

    async fn raw_pass(&self, load: &Arc<Load>, pass: i64, messages: usize) -> Result<Measured, Error> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut ready = Vec::new();
        for _ in 0..LANES {
            ready.push(RawLane {
                load: Arc::clone(load),
                messages,
                next: Arc::clone(&next),
                pass,
                durable: self.durable.pool.connections().acquire().await?,
                relaxed: self.relaxed.pool.connections().acquire().await?,
            });
        }
        let began = Instant::now();
        let mut lanes: JoinSet<_> = ready.into_iter().map(RawLane::run).collect();
        while let Some(ended) = lanes.join_next().await {
            ended.map_err(|_| Error::Database(sqlx::Error::WorkerCrashed))??;
        }
        self.execute(END).await?;
        Ok(Measured { puzzles: load.puzzles, took: began.elapsed() })
    }
}
