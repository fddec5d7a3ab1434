//! Dropping days: what is left of the batches of a past day in which none lives goes with its partitions.
//!
//! The workers do it, not the servers: they remove everything else, and there is a queue without a server but none without a worker. Whoever sweeps looks, and who
//! drops does it under a lock that others do not wait for.

use std::time::Duration;

use store::{DayDrop, Error, Store};
use tokio::time::Instant;

/// How often each worker looks.
const INTERVAL: Duration = Duration::from_secs(10);
/// Days dropped in one round: each drop keeps everyone from the tables for a moment.
const DAYS_MAX: usize = 8;
/// Rows of batches removed by one statement.
const ROWS_MAX: u64 = 2_000;
/// Such statements for one day in one round.
const STEPS_MAX: usize = 50;

/// A day that could not be dropped for so long is told of, and again after as long: somebody's transaction is forgotten open.
const BUSY_TOLD: Duration = Duration::from_secs(3_600);

/// When to look.
#[derive(Default, Debug)]
pub(crate) struct Days {
    /// `None`: never so far.
    looked: Option<Instant>,
    /// Since when a day could not be dropped, or was last told of. It may be another worker that is at it.
    busy: Option<Instant>,
}

impl Days {
    /// Looks if it is time to.
    pub(crate) async fn round(&mut self, store: &Store) -> Result<(), Error> {
        if self.looked.is_some_and(|looked| looked.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let mut is_busy = false;
        for past in store.past_days().await?.into_iter().take(DAYS_MAX) {
            if past.has_partitions {
                match store.drop_day(past.day).await? {
                    DayDrop::Dropped => {
                        tracing::info!(day = past.day, "the partitions of a past day are dropped");
                    }
                    DayDrop::InUse => continue,
                    // The next one's tables have the same parents.
                    DayDrop::Busy => {
                        is_busy = true;
                        break;
                    }
                }
            }
            purge(store, past.day).await?;
        }
        self.tell(is_busy);
        Ok(())
    }

    fn tell(&mut self, is_busy: bool) {
        if !is_busy {
            self.busy = None;
        } else if self.busy.get_or_insert_with(Instant::now).elapsed() >= BUSY_TOLD {
            tracing::warn!("a past day cannot be dropped: somebody holds its tables, see pg_locks");
            self.busy = Some(Instant::now());
        }
    }
}

/// Removes the rows of the batches of a day that is dropped, in steps.
async fn purge(store: &Store, day: i32) -> Result<(), Error> {
    for _ in 0..STEPS_MAX {
        if store.purge_day(day, ROWS_MAX).await? == 0 {
            break;
        }
    }
    Ok(())
}
