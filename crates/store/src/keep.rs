//! How long batches stay, and how what has expired goes: hidden batch by batch, removed day by day.

use std::time::Duration;

use crate::{Error, Store, batches::signed};

const DAY: Duration = Duration::from_secs(86_400);
/// For so long the rows of an expired batch wait for its day to be dropped whole. The batches of a day end at different times, but hardly further apart.
const DAY_WAIT: Duration = Duration::from_secs(2 * 86_400);

/// For how long a batch stays after its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// When it has succeeded.
    pub succeeded: Duration,
    /// When it was cancelled.
    pub cancelled: Duration,
}

impl Default for Keep {
    /// A week, and a day.
    fn default() -> Self {
        Self { succeeded: 7 * DAY, cancelled: DAY }
    }
}

/// A day that is over, in which no batch lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PastDay {
    /// Days since 1970-01-01 UTC.
    pub day: i32,
    /// There are partitions to drop; otherwise only the rows of its hidden batches are left.
    pub has_partitions: bool,
}

/// How the drop of a day went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DayDrop {
    /// Its partitions are gone.
    Dropped,
    /// A batch lives in it, or it is not over.
    InUse,
    /// Somebody is at its tables, or at the partitions: nothing was changed, try again later.
    Busy,
}

impl Store {
    /// Hides batches that have ended and expired, as a delete does, at most `batches_max`; returns their numbers.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn expire_batches(&self, batches_max: usize) -> Result<Vec<i64>, Error> {
        let limit = limit(batches_max);
        let rows = sqlx::query_file!("queries/expire_batches.sql", limit, DAY_WAIT.as_secs_f64())
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    /// Begins to cancel open batches to which nothing was appended for `idle`, at most `batches_max`; returns their numbers and names.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn cancel_idle(&self, idle: Duration, batches_max: usize) -> Result<Vec<(i64, String)>, Error> {
        let limit = limit(batches_max);
        let rows = sqlx::query_file!("queries/cancel_idle.sql", limit, idle.as_secs_f64())
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
    }

    /// The days that are over and in which no batch lives, oldest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn past_days(&self) -> Result<Vec<PastDay>, Error> {
        Ok(sqlx::query_file_as!(PastDay, "queries/past_days.sql").fetch_all(&self.pool).await?)
    }

    /// Drops the partitions of a day, unless it is in use. All of them or none, whatever happens; waits for nobody longer than some tenths of a second.
    ///
    /// # Errors
    /// [`Error::Database`], also when this role may not drop the tables.
    pub async fn drop_day(&self, day: i32) -> Result<DayDrop, Error> {
        let word =
            sqlx::query_scalar!(r#"select drop_day($1) as "word!""#, day).fetch_one(&self.pool).await?;
        Ok(match &*word {
            "dropped" => DayDrop::Dropped,
            "in use" => DayDrop::InUse,
            _ => DayDrop::Busy,
        })
    }

    /// Removes rows of the hidden batches of a day whose partitions are dropped, at most `rows_max`; returns how many.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn purge_day(&self, day: i32, rows_max: u64) -> Result<u64, Error> {
        let done =
            sqlx::query_file!("queries/purge_day.sql", day, signed(rows_max)).execute(&self.pool).await?;
        Ok(done.rows_affected())
    }
}

fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
