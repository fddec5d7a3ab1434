//! Removing what nobody wants any more: the jobs of cancelled batches, the rows of deleted ones. Apart from upkeep, which must not wait for it.

use std::{sync::Arc, time::Duration};

use store::{Error, Purged};

use crate::{Shared, told::Told};

/// How often each worker looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Cancelled batches looked after in one round.
const CANCELLING_MAX: usize = 100;
/// Rows of a deleted batch removed by one statement, of each table.
const PURGED_ROWS_MAX: u64 = 2_000;
/// Such statements in one round.
const PURGES_MAX: usize = 20;

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut told = Told::default();
    loop {
        tokio::time::sleep(INTERVAL).await;
        told.tell("removing what nobody wants failed; trying again", round(&shared).await.err());
    }
}

async fn round(shared: &Shared) -> Result<(), Error> {
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
