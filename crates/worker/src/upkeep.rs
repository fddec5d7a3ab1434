//! Upkeep of the queue, by every worker: put back what dead workers held, drop what was cancelled, end batches, remove deleted ones.

use std::{sync::Arc, time::Duration};

use store::{Error, Expired, Purged};
use tokio::time::Instant;

use crate::{Shared, tell_end};

/// Each worker looks at the latest after this; earlier if a lease ends earlier.
const INTERVAL: Duration = Duration::from_secs(1);
/// But not earlier than this.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// For so long after the database was restarted, or was away for this worker, leases are not taken from workers that may be alive: they prolong them as soon
/// as they are connected again.
const RETURN_GRACE: Duration = Duration::from_secs(5);
/// A round that takes this long counts as the database being away.
const ROUND_MAX: Duration = Duration::from_secs(3);
/// A fault that lasts is told again after this.
const TELL_AGAIN: Duration = Duration::from_secs(60);
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
    let mut upkeep = Upkeep { shared, back_at: None, told_at: None };
    let mut pause = INTERVAL_MIN;
    loop {
        tokio::time::sleep(pause).await;
        pause = upkeep.round().await;
    }
}

struct Upkeep {
    shared: Arc<Shared>,
    /// When the database was last found to be away, or just back.
    back_at: Option<Instant>,
    /// When a failure was last told.
    told_at: Option<Instant>,
}

impl Upkeep {
    /// One round; gives the time until the next. What fails does not keep the rest from being done.
    async fn round(&mut self) -> Duration {
        let begun = Instant::now();
        let acquitted = self.acquit().await;
        let expired = self.expire().await;
        let until_next = self.look().await;
        let finished = self.finish().await;
        let failed = [acquitted.err(), expired.err(), finished.err()];
        let (until_next, failed_look) = match until_next {
            Ok(until_next) => (until_next, None),
            Err(error) => (INTERVAL, Some(error)),
        };
        let failure = failed.into_iter().flatten().chain(failed_look).next();
        if failure.is_some() || begun.elapsed() > ROUND_MAX {
            self.back_at = Some(Instant::now());
        }
        match failure {
            None => self.told_at = None,
            Some(error) if self.told_at.is_none_or(|told| told.elapsed() > TELL_AGAIN) => {
                tracing::warn!(%error, "upkeep failed; trying again");
                self.told_at = Some(Instant::now());
            }
            Some(error) => tracing::debug!(%error, "upkeep still fails"),
        }
        until_next
    }

    /// Takes back deaths that were counted for this worker, whatever it has lost and however: it is alive.
    async fn acquit(&self) -> Result<(), Error> {
        let Shared { store, id, .. } = &*self.shared;
        let jobs = store.acquit(*id).await?;
        if jobs > 0 {
            tracing::info!(worker.id = %id, jobs, "a death was taken back: this worker is alive");
        }
        Ok(())
    }

    async fn expire(&self) -> Result<(), Error> {
        if self.back_at.is_some_and(|back| back.elapsed() < RETURN_GRACE) {
            return Ok(());
        }
        for expired in self.shared.durable.expire(EXPIRED_MAX, RETURN_GRACE).await? {
            tell_expiry(&expired);
            if expired.failed {
                self.shared.notices.results(expired.key.batch_id);
            }
        }
        Ok(())
    }

    /// Sees to what there is to see to; gives the time until the first lease ends, within bounds.
    async fn look(&self) -> Result<Duration, Error> {
        let shared = &self.shared;
        let look = shared.durable.look(CANCELLING_MAX).await?;
        shared.any_blamed.send_if_modified(|any| std::mem::replace(any, look.any_blamed) != look.any_blamed);
        for id in look.cancelling {
            shared.drop_cancelled(id).await;
        }
        if look.any_deleted {
            purge(shared).await?;
        }
        Ok(look.lease_left.unwrap_or(INTERVAL).clamp(INTERVAL_MIN, INTERVAL))
    }

    async fn finish(&self) -> Result<(), Error> {
        for ended in self.shared.durable.finish_any(FINISHED_MAX).await? {
            tell_end(&ended);
            self.shared.notices.results(ended.id);
        }
        Ok(())
    }
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
    let Expired { key, deaths, was_started, failed } = *expired;
    if failed {
        tracing::warn!(
            batch.id = key.batch_id,
            index = key.lo,
            deaths,
            "a puzzle has ended its workers again and again: it is FAILED"
        );
    } else if was_started {
        tracing::warn!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            deaths,
            "a lease has run out; its job is put back"
        );
    } else {
        tracing::info!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            "a job that was held back is ready again"
        );
    }
}
