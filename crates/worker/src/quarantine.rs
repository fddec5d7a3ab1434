//! Jobs over which a worker has died, one at a time and alone in this process: if it dies, nothing else was to blame.

use std::time::Duration;

use crate::lane::Lane;

/// How long the lanes are kept from new jobs so that this process is free: their slices take half a second, but a single search may take long. Twice as
/// long after each try in vain, so that blamed jobs have their turn in the end.
const PATIENCE_MIN: Duration = Duration::from_secs(5);

/// Runs until the worker is stopping, or the lane's thread is gone.
pub(crate) async fn run(lane: Lane) {
    let shared = lane.shared();
    let mut patience = PATIENCE_MIN;
    loop {
        tokio::select! {
            () = shared.blamed.notified() => {}
            () = shared.stopping() => return,
        }
        // Alone first, then the lease: so it is not held by a process that something else may end.
        let alone = tokio::select! {
            alone = tokio::time::timeout(patience, shared.room.write()) => alone,
            () = shared.stopping() => return,
        };
        let Ok(_alone) = alone else {
            patience *= 2;
            continue;
        };
        patience = PATIENCE_MIN;
        while !shared.is_stopping() {
            match shared.store.claim_blamed(shared.id, shared.config.lease).await {
                Ok(Some(job)) => {
                    tracing::info!(
                        batch.id = job.key.batch_id,
                        job.lo = job.key.lo,
                        job.hi = job.key.hi,
                        "a job over which a worker has died runs alone"
                    );
                    if !lane.work(job).await {
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(worker.id = %shared.id, %error, "cannot claim blamed jobs; trying again");
                    break;
                }
            }
        }
    }
}
