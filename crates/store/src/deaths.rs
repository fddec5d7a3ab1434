//! What is left when a worker falls silent: its leases run out, and whoever had begun a job is counted as dead over it.
//!
//! A death blames every job that its process had begun, guilty or not. A blamed job is cut into ever smaller parts and runs alone in its process
//! ([`Store::claim_blamed`]), so that the next deaths find the one puzzle that causes them; that one is FAILED and all others are answered. A worker that was only
//! silent takes its death back ([`Store::acquit`]).

use std::time::Duration;

use crate::{Error, JobKey, Store, WorkerId, batches::unsigned};

/// Jobs of one expiry at the most, as its statement says too.
const EXPIRED_MAX: usize = 1_000;
/// Parts that a job is cut into after the first death over it.
const PARTS: i64 = 64;
/// Deaths over a puzzle, the last of them while it alone was leased, after which it is FAILED.
const DEATHS_MAX: i16 = 3;

/// A job whose lease has run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// Its range as it was leased, with the attempt that was lost.
    pub key: JobKey,
    /// Owners that died over it so far.
    pub deaths: i16,
    /// Its owner was at it; otherwise it was only held back.
    pub was_started: bool,
    /// It was a single puzzle's last chance: the puzzle is FAILED, the job gone.
    pub failed: bool,
}

/// What there is to see to.
#[derive(Clone, PartialEq, Debug)]
pub struct Look {
    /// Jobs wait for a process that has no other lease.
    pub any_blamed: bool,
    /// Until the first lease ends, if there is any.
    pub lease_left: Option<Duration>,
}

impl Store {
    /// Puts back the jobs whose lease has ended, at most `jobs_max` and 1,000, cut smaller if their owner had begun them; fails those that are a single puzzle at its
    /// third death. Does nothing in the first moments (`restart_grace`) of a database that was restarted: while it was away no lease could be
    /// prolonged. Call it on a [`crate::Durability::Synchronous`] store: FAILED is for good.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn expire(&self, jobs_max: usize, restart_grace: Duration) -> Result<Vec<Expired>, Error> {
        let limit = i64::try_from(jobs_max.min(EXPIRED_MAX)).unwrap_or(i64::MAX);
        let grace = restart_grace.as_secs_f64();
        let rows = sqlx::query_file!("queries/expire.sql", limit, grace, PARTS, DEATHS_MAX)
            .fetch_all(&self.pool)
            .await?;
        rows.into_iter()
            .map(|row| {
                let (lo, hi) = (unsigned(row.lo)?, unsigned(row.hi)?);
                let key = JobKey { batch_id: row.batch_id, lo, hi, attempt: row.attempt };
                Ok(Expired { key, deaths: row.deaths, was_started: row.started, failed: row.failed })
            })
            .collect()
    }

    /// Takes back what deaths were counted for a worker: it is alive, whatever it has lost and however. Returns how many jobs had one.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn acquit(&self, worker: WorkerId) -> Result<u64, Error> {
        let done = sqlx::query_file!("queries/acquit.sql", worker.0).execute(&self.pool).await?;
        Ok(done.rows_affected())
    }

    /// Looks what there is to see to.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn look(&self) -> Result<Look, Error> {
        let row = sqlx::query_file!("queries/look.sql").fetch_one(&self.pool).await?;
        Ok(Look {
            any_blamed: row.any_blamed,
            lease_left: row.lease_left.map(|left| Duration::try_from_secs_f64(left).unwrap_or_default()),
        })
    }
}
