//! Jobs over which a worker has died, one at a time and alone in this process: if it dies, nothing else was to blame.
//!
//! Being alone costs all other work of the process, so it is had in turns: a turn ends after a moment, and the lanes have the process for at least as
//! long before the next.

use std::{sync::atomic::Ordering::SeqCst, time::Duration};

use tokio::{
    sync::{RwLockWriteGuard, watch},
    time::Instant,
};

use crate::{Shared, lane::Lane};

/// No further job is begun in a turn that has lasted this long.
const TURN: Duration = Duration::from_secs(1);
/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long the lanes are kept from new jobs so that this process becomes free: their slices take half a second, but a single search may take long. Twice
/// as long after each try in vain, so that blamed jobs have their turn in the end.
const PATIENCE_MIN: Duration = Duration::from_secs(5);
/// But not longer than this.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// Runs until the worker is stopping, or the lane's thread is gone.
pub(crate) async fn run(lane: Lane) {
    let shared = &*lane.shared;
    let mut any_blamed = shared.any_blamed.subscribe();
    let mut patience = PATIENCE_MIN;
    loop {
        let mut pause = Duration::ZERO;
        tokio::select! {
            waits = any_blamed.wait_for(|any| *any) => if waits.is_err() {
                return;
            },
            () = shared.stopping() => return,
        }
        let begun = Instant::now();
        // Alone first, then the lease: so it is not held by a process that something else may end.
        match alone(shared, &mut any_blamed, patience).await {
            Some(_alone) => {
                patience = PATIENCE_MIN;
                match turn(&lane).await {
                    Turn::Taken => {}
                    Turn::Failed => pause = RETRY_PAUSE,
                    Turn::Last => return,
                }
            }
            None => patience = (patience * 2).min(PATIENCE_MAX),
        }
        tokio::select! {
            () = tokio::time::sleep(pause.max(begun.elapsed())) => {}
            () = shared.stopping() => return,
        }
    }
}

/// Keeps the lanes from new jobs until none of them has one. `None`: not within the patience, or there is no blamed job any more, or the worker is stopping.
async fn alone<'a>(
    shared: &'a Shared,
    any_blamed: &mut watch::Receiver<bool>,
    patience: Duration,
) -> Option<RwLockWriteGuard<'a, ()>> {
    shared.is_alone_wanted.store(true, SeqCst);
    let alone = tokio::select! {
        alone = tokio::time::timeout(patience, shared.room.write()) => alone.ok(),
        _ = any_blamed.wait_for(|any| !*any) => None,
        () = shared.stopping() => None,
    };
    shared.is_alone_wanted.store(false, SeqCst);
    alone
}

/// How a turn ended.
enum Turn {
    Taken,
    /// The database gave no job.
    Failed,
    /// The lane's thread is gone.
    Last,
}

/// Works through blamed jobs for a moment.
async fn turn(lane: &Lane) -> Turn {
    let shared = &*lane.shared;
    let begun = Instant::now();
    while begun.elapsed() < TURN && !shared.is_stopping() {
        match shared.store.claim_blamed(shared.id, shared.config.lease).await {
            Ok(Some(job)) => {
                tracing::info!(
                    batch.id = job.key.batch_id,
                    job.lo = job.key.lo,
                    job.hi = job.key.hi,
                    "a job over which a worker has died runs alone"
                );
                if lane.work(vec![job]).await.is_err() {
                    tracing::error!(worker.id = %shared.id, "a solver thread is gone");
                    return Turn::Last;
                }
            }
            Ok(None) => {
                shared.any_blamed.send_replace(false);
                break;
            }
            Err(error) => {
                tracing::warn!(worker.id = %shared.id, %error, "cannot claim blamed jobs; trying again");
                return Turn::Failed;
            }
        }
    }
    Turn::Taken
}
