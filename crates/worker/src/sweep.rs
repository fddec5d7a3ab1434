//! Removing what nobody wants any more: the jobs of cancelled batches, batches that have expired or were forgotten open, the rows of deleted ones. Apart from
//! upkeep, which must not wait for it; likewise by one worker for all.

use std::{sync::Arc, time::Duration};

use store::{Error, Purged, Round};

use crate::{
    Shared,
    days::Days,
    rounds::{INTERVAL_OWN, Next, Rounds},
    told::Told,
};

/// Cancelled batches looked after in one round.
const CANCELLING_MAX: usize = 100;
/// An open batch to which nothing was appended for so long is cancelled.
const IDLE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Such batches cancelled in one round.
const IDLE_BATCHES_MAX: usize = 100;
/// Batches that expire in one round.
const EXPIRED_BATCHES_MAX: usize = 1_000;
/// Rows of a deleted batch removed by one statement, of each table.
const PURGED_ROWS_MAX: u64 = 2_000;
/// Such statements in one round.
const PURGES_MAX: usize = 20;

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut days = Days::default();
    // What was told of each part.
    let mut told: [Told; 4] = Default::default();
    let mut rounds = Rounds::new(shared.waker.overhear(), shared.id, INTERVAL_OWN);
    loop {
        if rounds.next(|round| round == Round::Sweep).await != Next::Own {
            continue;
        }
        // What fails does not keep the rest from being done.
        let failures = [
            idle(&shared).await.err(),
            expire(&shared).await.err(),
            remove(&shared).await.err(),
            days.round(&shared.durable).await.err(),
        ];
        if failures.iter().all(Option::is_none)
            && let Err(error) = shared.store.notify_round(shared.id, Round::Sweep).await
        {
            tracing::debug!(%error, "a round could not be told; others do theirs");
        }
        rounds.done(INTERVAL_OWN);
        for (told, failure) in told.iter_mut().zip(failures) {
            told.tell("removing what nobody wants failed; trying again", failure);
        }
    }
}

async fn idle(shared: &Shared) -> Result<(), Error> {
    for (id, name) in shared.durable.cancel_idle(IDLE_MAX, IDLE_BATCHES_MAX).await? {
        tracing::info!(batch.id = id, batch.name = name, idle = ?IDLE_MAX, "nothing was appended to an open batch for too long: it is being cancelled");
    }
    Ok(())
}

async fn expire(shared: &Shared) -> Result<(), Error> {
    for id in shared.durable.expire_batches(EXPIRED_BATCHES_MAX).await? {
        tracing::info!(batch.id = id, "batch expired");
    }
    Ok(())
}

async fn remove(shared: &Shared) -> Result<(), Error> {
    let unwanted = shared.durable.unwanted(CANCELLING_MAX).await?;
    for id in unwanted.cancelling {
        shared.drop_cancelled(id).await;
    }
    if unwanted.any_deleted {
        purge(shared).await?;
    }
    Ok(())
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
