//! Upkeep of the queue, by every worker: put back what dead workers held, drop what was cancelled, end batches, remove deleted ones.

use std::{sync::Arc, time::Duration};

use store::{Error, Expired, Purged};

use crate::{Shared, tell_end};

/// Each worker looks at the latest after this; earlier if a lease ends earlier.
const INTERVAL: Duration = Duration::from_secs(1);
/// But not earlier than this.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// For so long after a restart of the database leases are not taken from workers that may be alive: they prolong them as soon as they are connected again.
const RESTART_GRACE: Duration = Duration::from_secs(5);
/// Jobs put back by one statement, at the most.
const EXPIRED_MAX: usize = 200;
/// Batches ended by one statement, at the most.
const FINISHED_MAX: usize = 100;
/// Cancelled batches looked after in one round.
const CANCELLING_MAX: usize = 100;
/// Rows of a deleted batch removed by one statement, of each table.
const PURGED_ROWS_MAX: u64 = 2_000;
/// Such statements in one round.
const PURGES_MAX: usize = 20;

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut was_failing = false;
    let mut pause = INTERVAL_MIN;
    loop {
        tokio::time::sleep(pause).await;
        match round(&shared).await {
            Ok(until_next) => {
                was_failing = false;
                pause = until_next;
            }
            Err(error) => {
                if was_failing {
                    tracing::debug!(%error, "upkeep still fails");
                } else {
                    tracing::warn!(%error, "upkeep failed; trying again");
                }
                was_failing = true;
                pause = INTERVAL;
            }
        }
    }
}

/// One round; gives the time until the next.
async fn round(shared: &Shared) -> Result<Duration, Error> {
    for expired in shared.durable.expire(EXPIRED_MAX, RESTART_GRACE).await? {
        tell_expiry(&expired);
        if expired.failed {
            shared.notices.results(expired.key.batch_id);
        }
    }
    let look = shared.durable.look(CANCELLING_MAX).await?;
    if look.any_blamed {
        shared.blamed.notify_one();
    }
    for id in look.cancelling {
        shared.drop_cancelled(id).await;
    }
    for ended in shared.durable.finish_any(FINISHED_MAX).await? {
        tell_end(&ended);
        shared.notices.results(ended.id);
    }
    if look.any_deleted {
        purge(shared).await?;
    }
    Ok(look.lease_left.unwrap_or(INTERVAL).clamp(INTERVAL_MIN, INTERVAL))
}

async fn purge(shared: &Shared) -> Result<(), Error> {
    for _ in 0..PURGES_MAX {
        match shared.durable.purge(PURGED_ROWS_MAX).await? {
            Purged::Nothing => break,
            Purged::Some(_) => {}
            Purged::Whole(id) => tracing::info!(batch.id = id, "deleted batch removed"),
        }
    }
    Ok(())
}

fn tell_expiry(expired: &Expired) {
    let Expired { key, deaths, failed } = *expired;
    if failed {
        tracing::warn!(
            batch.id = key.batch_id,
            index = key.lo,
            deaths,
            "a puzzle has ended its workers again and again: it is FAILED"
        );
    } else {
        tracing::warn!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            deaths,
            "a lease has run out; its job is put back"
        );
    }
}
