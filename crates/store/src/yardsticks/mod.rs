//! Yardsticks for `bench service`: what the same PostgreSQL does without the service, and with a queue of another shape.
//!
//! They work in tables of their own, which they make and drop, so their statements are no part of `.sqlx`. For a private database only.

mod raw;
mod rows;

use std::time::Duration;

use sqlx::{ConnectOptions as _, Row as _};

use crate::{
    CHUNK_PUZZLES_MAX, Config, Durability, Error, Store,
    batches::{signed, unsigned},
};

/// Indexes whose pieces are read at a time.
const PAGE_PUZZLES: u64 = 64 * CHUNK_PUZZLES_MAX as u64;

/// How long something took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Puzzles that went through.
    pub puzzles: u64,
    /// From the first statement to the answer of the last.
    pub took: Duration,
}

/// The stored bytes of a batch, in memory: what a yardstick moves.
#[derive(Debug)]
pub struct Load {
    puzzles: u64,
    payload: Vec<Message>,
    results: Vec<Message>,
}

/// Pieces that one statement writes: as many puzzles as a message of the service has.
#[derive(Default, Debug)]
struct Message {
    numbers: Vec<i16>,
    los: Vec<i64>,
    his: Vec<i64>,
    data: Vec<Vec<u8>>,
}

impl Message {
    fn lo(&self) -> i64 {
        self.los.first().copied().unwrap_or(0)
    }

    fn puzzles(&self) -> u64 {
        u64::try_from(self.his.last().copied().unwrap_or(0) - self.lo()).unwrap_or(0)
    }

    fn push(&mut self, lo: i64, hi: i64, data: Vec<u8>) {
        self.numbers.push(i16::try_from(self.numbers.len()).unwrap_or(i16::MAX));
        self.los.push(lo);
        self.his.push(hi);
        self.data.push(data);
    }
}

impl Load {
    /// Puzzles in it.
    #[must_use]
    pub fn puzzles(&self) -> u64 {
        self.puzzles
    }
}

/// Connections to measure with.
#[derive(Debug)]
pub struct Yardsticks {
    /// For what a submitter must be sure of: commits wait for the disk.
    durable: Store,
    /// For what workers store: commits do not wait, as in the service.
    relaxed: Store,
    workers: u32,
}

impl Yardsticks {
    /// Connects, for as many worker connections as the service had workers.
    ///
    /// # Errors
    /// Those of [`Store::connect`].
    pub async fn connect(url: &str, workers: u32) -> Result<Self, Error> {
        let store = async |connections_max, durability| -> Result<Store, Error> {
            let store = Store::connect(&Config {
                url: url.to_owned(),
                connections_max,
                durability,
                application_name: "sudoku-batch bench".to_owned(),
                is_pooled: false,
            })
            .await?;
            // A statement that takes long here is no news. Nothing is connected yet.
            let options =
                store.pool.connections().connect_options().as_ref().clone().disable_statement_logging();
            store.pool.connections().set_connect_options(options);
            Ok(store)
        };
        // Two more than workers: one submits, one reads the answers back.
        let durable = store(raw::LANES.max(workers + 2), Durability::Synchronous).await?;
        let relaxed = store(raw::LANES, Durability::Asynchronous).await?;
        Ok(Self { durable, relaxed, workers })
    }

    /// Ends the connections. One that is still coming back from its last statement when PostgreSQL stops warns of it.
    pub async fn close(&self) {
        tokio::join!(self.durable.close(), self.relaxed.close());
    }

    /// Brings the database to rest: what earlier work has left for vacuum and for the disk is done now, not while the next thing is measured.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn settle(&self) -> Result<(), Error> {
        let mut connection = self.durable.pool.connections().acquire().await?;
        for statement in
            ["set statement_timeout = 0", "vacuum (analyze)", "checkpoint", "reset statement_timeout"]
        {
            sqlx::raw_sql(statement).execute(&mut *connection).await?;
        }
        Ok(())
    }

    /// Reads the stored pieces of a batch that has ended, those of its first `puzzles_max` puzzles.
    ///
    /// # Errors
    /// [`Error::BatchNotFound`], [`Error::Database`].
    pub async fn load(&self, name: &str, puzzles_max: u64) -> Result<Load, Error> {
        let batch = sqlx::query("select id, part, puzzle_count from batch where name = $1")
            .bind(name)
            .fetch_optional(&self.durable.pool)
            .await?
            .ok_or(Error::BatchNotFound)?;
        let (id, part): (i64, i32) = (batch.try_get(0)?, batch.try_get(1)?);
        let puzzles = unsigned(batch.try_get(2)?)?.min(puzzles_max);
        let payload = "select lo, hi, data from payload
            where part = $1 and batch_id = $2 and chunk_lo >= $3 and chunk_lo < $4 order by lo";
        let results = "select lo, hi, data from result_piece
            where part = $1 and batch_id = $2 and result_lo >= $3 and result_lo < $4 order by lo";
        let payload = self.messages(payload, part, id, puzzles).await?;
        let results = self.messages(results, part, id, puzzles).await?;
        let puzzles = payload.iter().map(Message::puzzles).sum();
        Ok(Load { puzzles, payload, results })
    }

    async fn messages(
        &self,
        select: &'static str,
        part: i32,
        id: i64,
        puzzles: u64,
    ) -> Result<Vec<Message>, Error> {
        let mut messages = Vec::new();
        let mut last = Message::default();
        for page in (0..puzzles).step_by(usize::try_from(PAGE_PUZZLES).unwrap_or(usize::MAX)) {
            let end = puzzles.min(page + PAGE_PUZZLES);
            let query = sqlx::query(select).bind(part).bind(id).bind(signed(page)).bind(signed(end));
            for row in query.fetch_all(&self.durable.pool).await? {
                last.push(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                if last.puzzles() >= CHUNK_PUZZLES_MAX as u64 {
                    messages.push(std::mem::take(&mut last));
                }
            }
        }
        if !last.data.is_empty() {
            messages.push(last);
        }
        Ok(messages)
    }

    async fn execute(&self, statements: &'static str) -> Result<(), Error> {
        sqlx::raw_sql(statements).execute(&self.durable.pool).await?;
        Ok(())
    }
}

/// What was read is not what was written: the database would be at fault.
fn not_read_back() -> Error {
    Error::Database(sqlx::Error::RowNotFound)
}
