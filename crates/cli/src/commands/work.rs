//! `work`: one worker process.

use std::time::Duration;

use worker::{Config, Worker};

use crate::{
    args::Work,
    exit::Exit,
    machine::cores,
    output,
    signals::{Stop, stop},
};

/// How long a job is solved before what is done of it is stored.
const SLICE: Duration = Duration::from_millis(250);

pub(crate) async fn run(args: Work) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(args.exit_with_parent)?);
    let threads = args.threads.unwrap_or_else(cores);
    let config = Config {
        database_url: args.database.database_url,
        is_pooled: args.database.pgbouncer,
        threads,
        width: args.width.get(),
        lease: args.lease,
        grace: args.grace,
        slice: SLICE,
    };
    let worker = tokio::select! {
        connected = Worker::connect(config) => connected?,
        _ = &mut stopped => return Ok(Exit::Done),
    };
    output::announce(&format!("ready worker {}", worker.id()))?;
    worker
        .run(async move {
            match stopped.await {
                Stop::Signal => worker::Stop::Graceful,
                // The database may be going with the parent: give back at once.
                Stop::Parent => worker::Stop::AtOnce,
            }
        })
        .await?;
    Ok(Exit::Done)
}
