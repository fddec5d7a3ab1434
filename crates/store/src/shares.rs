//! Whose turn it is: start-time fair queueing between tenants, by solver time.
//!
//! Every job has a *tag*, the moment of virtual time at which its turn begins: the greater of where its tenant's queue ends and of the virtual clock. Its turn is over after its
//! cost by the tenant's weight, and there the queue ends then. Jobs are claimed by tag, less the head start of their priority. (Goyal, Vin, Cheng: Start-time Fair Queueing, 1996.)
//! The clock never falls, so an idle tenant saves nothing up and a newcomer waits for nobody's backlog. It goes with the ends of the turns that were claimed, for what a tenant
//! has had is known only while it has jobs that wait; but by a slice at the most for each, so that a dear job does not put newcomers behind all others. Jobs that may take long have
//! lanes, queues and a clock of their own. The unit is a nanosecond of solver time, of which 64 bits hold 292 years of one thread; what puzzles cost is guessed at first and
//! corrected by what they took.

use std::time::Duration;

use crate::{Error, Store};

/// Head start of one step of priority: the cost of a million easy puzzles. Bounded, so that nothing starves.
pub(crate) const HEAD_START: i64 = 1_000_000_000;
/// A correction of what puzzles cost is by this factor at the most.
const REPRICE_FACTOR: i64 = 16;
/// How far behind the clock claims look for jobs: beyond every head start, and what the clock may gain while an append is under way.
pub(crate) const CLOCK_SLACK: i64 = 9 * HEAD_START + 30_000_000_000;
/// How far the clock goes by one job at the most: what a worker gives it before the rest goes back and pays, 250 ms.
pub(crate) const CLOCK_STEP_MAX: i64 = 250_000_000;
/// The greatest placement limit of puzzles that do not take long.
pub(crate) const SHORT_LIMIT: i64 = 100_000_000;
/// With so many waiting jobs no worker is idle: nobody has to be told of more.
pub(crate) const AWAKE_JOBS: i64 = 64;
/// Jobs that were left behind the clock and are brought to it by one statement, as it says too.
const CAUGHT_UP_MAX: i64 = 100;
/// Least time between two corrections of what a batch's puzzles cost: each moves all its waiting jobs.
const REPRICE_PAUSE: Duration = Duration::from_millis(250);
/// The least that a puzzle costs, whatever the solver takes for it: storing it costs as much.
pub const PUZZLE_COST_MIN: Duration = Duration::from_micros(1);
/// The most.
const PUZZLE_COST_MAX: Duration = Duration::from_secs(2);

impl Store {
    /// Corrects what a batch's puzzles are taken to cost, and the turns of its waiting jobs with it; does nothing if that is nearly right (less than twice, more
    /// than a quarter) or was done a moment ago.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn reprice(&self, batch_id: i64, puzzle_cost: Duration) -> Result<(), Error> {
        let cost = puzzle_cost.clamp(PUZZLE_COST_MIN, PUZZLE_COST_MAX);
        let nanoseconds = i64::try_from(cost.as_nanos()).unwrap_or(i64::MAX);
        let least = i64::try_from(PUZZLE_COST_MIN.as_nanos()).unwrap_or(i64::MAX);
        let pause = REPRICE_PAUSE.as_secs_f64();
        sqlx::query_file!(
            "queries/reprice.sql",
            batch_id,
            nanoseconds,
            pause,
            REPRICE_FACTOR,
            least,
            SHORT_LIMIT
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Brings jobs that were left behind the clock to where claims look, at most 100 of them; returns how many.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn catch_up(&self) -> Result<u64, Error> {
        let done =
            sqlx::query_file!("queries/catch_up.sql", CLOCK_SLACK, CAUGHT_UP_MAX).execute(&self.pool).await?;
        Ok(done.rows_affected())
    }
}
