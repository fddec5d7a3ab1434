//! The private service that benches measure: PostgreSQL in a temporary folder, a server, workers; nothing of it stays.

use local_postgres::LocalPostgres;

use crate::{
    exit::Exit,
    output,
    stack::{self, Roles, Stack},
};

/// Connections beside those of the service: the yardsticks', before its workers are stopped.
const CONNECTIONS_EXTRA: u32 = 10;

/// Starts it; `None` when `stopped` resolves first: then nothing of it is left.
pub(crate) async fn start(
    workers: u32,
    threads: u32,
    stopped: &mut (impl Future + Unpin),
) -> anyhow::Result<Option<Stack>> {
    output::complain(&format!(
        "bench: a private PostgreSQL in a temporary folder, one server, {workers} worker{} of {threads} thread{}; all of it goes at the end",
        plural(workers),
        plural(threads)
    ));
    let connections = Roles::connections_max(workers, threads) + CONNECTIONS_EXTRA;
    let start = move || LocalPostgres::start_temporary_for(true, connections);
    let Some(postgres) = stack::postgres(start, &mut *stopped).await? else { return Ok(None) };
    let roles = Roles {
        listen: "127.0.0.1:0".to_owned(),
        workers,
        threads,
        server_options: Vec::new(),
        log: "warn".to_owned(),
    };
    tokio::select! {
        started = Stack::start(postgres, roles) => Ok(Some(started?)),
        _ = stopped => Ok(None),
    }
}

/// The end of a bench that was stopped.
pub(crate) fn interrupted() -> Exit {
    output::complain("bench: interrupted; everything is stopped");
    Exit::NotFinished
}

/// The ending of a word for so many.
pub(crate) fn plural(number: u32) -> &'static str {
    if number == 1 { "" } else { "s" }
}
