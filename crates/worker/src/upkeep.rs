//! Upkeep of the queue, by every worker: put back what dead workers held, end finished batches.

use std::{sync::Arc, time::Duration};

use crate::Shared;

/// How often each worker looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Jobs put back by one statement, at the most.
const EXPIRED_MAX: usize = 200;

/// Batches ended by one statement, at the most.
const FINISHED_MAX: usize = 100;

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut was_failing = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        match round(&shared).await {
            Ok(()) => was_failing = false,
            Err(error) if was_failing => tracing::debug!(%error, "upkeep still fails"),
            Err(error) => {
                was_failing = true;
                tracing::warn!(%error, "upkeep failed; trying again");
            }
        }
    }
}

async fn round(shared: &Shared) -> Result<(), store::Error> {
    for key in shared.durable.expire(EXPIRED_MAX).await? {
        tracing::warn!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            "a lease has run out; its job is put back"
        );
    }
    for (id, name) in shared.durable.finish_any(FINISHED_MAX).await? {
        tracing::info!(batch.id = id, batch.name = name, "batch finished");
        shared.notices.results(id);
    }
    Ok(())
}
