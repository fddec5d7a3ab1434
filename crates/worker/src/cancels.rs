//! Stopping the searches of batches that are cancelled meanwhile.

use std::{sync::Arc, time::Duration};

use crate::Shared;

/// How often each worker looks, whatever notifications say; with the jitter of a quarter it is half a second at the most.
const LOOK: Duration = Duration::from_millis(400);

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut wakes = shared.waker.cancels();
    loop {
        wakes.wait(LOOK).await;
        wakes.arm();
        let held = shared.leases.held();
        if held.is_empty() {
            continue;
        }
        let batches: Vec<i64> = held.iter().map(|key| key.batch_id).collect();
        match shared.store.cancelled_of(&batches).await {
            Ok(cancelled) => {
                for key in held.into_iter().filter(|key| cancelled.contains(&key.batch_id)) {
                    shared.leases.cancel(key);
                }
            }
            Err(error) => tracing::debug!(%error, "cannot look for cancelled batches; trying again"),
        }
    }
}
