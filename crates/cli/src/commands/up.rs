//! `up`: private PostgreSQL, server and workers until stopped.

use std::path::PathBuf;

use local_postgres::{LocalPostgres, Options};

use crate::{
    args::Up,
    commands::serve,
    exit::{Exit, UsageError},
    logging,
    machine::cores,
    output,
    signals::stop,
    stack::{self, Roles, Stack},
};

pub(crate) async fn run(args: Up) -> anyhow::Result<Exit> {
    let stopped = stop(false)?;
    let mut stopped = std::pin::pin!(stopped);
    // Told before PostgreSQL is started for nothing; the server itself listens a moment later.
    drop(serve::listen(&args.listen, Err("`up` is for this machine alone: listen on 127.0.0.1")).await?);
    let workers = args.workers.unwrap_or_else(cores);
    let threads = Roles::threads_each(workers);
    let data_dir = args.data_dir.map_or_else(default_data_dir, Ok)?;
    let options =
        Options { data_dir, durable: true, max_connections: Roles::connections_max(workers, threads) };
    let started = stack::postgres(move || LocalPostgres::start(&options), &mut stopped).await?;
    let Some(postgres) = started else { return Ok(Exit::Done) };
    let roles = Roles {
        listen: args.listen,
        workers,
        threads,
        server_options: args.service.options(),
        log: logging::filter(),
    };
    let mut stack = tokio::select! {
        started = Stack::start(postgres, roles) => started?,
        _ = &mut stopped => return Ok(Exit::Done),
    };
    let failure = if let Err(error) = output::announce(&format!("ready {}", stack.url())) {
        Some(error.into())
    } else {
        tokio::select! {
            error = stack.watch() => Some(error),
            why = &mut stopped => {
                tracing::info!(?why, "stopping");
                None
            }
        }
    };
    stack.stop().await?;
    failure.map_or(Ok(Exit::Done), Err)
}

/// The user's data folder; for root, whose own is closed to the account that PostgreSQL runs as, the system's.
fn default_data_dir() -> anyhow::Result<PathBuf> {
    const NAME: &str = "sudoku-batch";
    if nix::unistd::Uid::effective().is_root() {
        return Ok(PathBuf::from("/var/lib").join(NAME));
    }
    if let Some(data) = std::env::var_os("XDG_DATA_HOME").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(data).join(NAME));
    }
    let home = std::env::var_os("HOME")
        .filter(|value| !value.is_empty())
        .ok_or_else(|| UsageError("there is no HOME; say where with --data-dir DIR".to_owned()))?;
    Ok(PathBuf::from(home).join(".local/share").join(NAME))
}
