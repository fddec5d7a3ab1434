//! The private service that benches measure: PostgreSQL in a temporary folder, a server, workers; nothing of it stays.

use anyhow::bail;
use local_postgres::LocalPostgres;

use super::plural;
use crate::{
    exit::Exit,
    output,
    stack::{self, Processes, Roles, Stack},
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

/// What was measured, unless one of the processes `before` has ended meanwhile and was started again, or is about to be.
pub(crate) fn unbroken<T>(
    before: &Processes,
    after: anyhow::Result<Processes>,
    measured: anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let Some(measured) = measured? else { return Ok(None) };
    if after.ok().as_ref() != Some(before) {
        bail!("a process has ended and was started again meanwhile: the figures mean nothing");
    }
    Ok(Some(measured))
}

/// What was measured, after the clean-up: its own error comes first, and that of the clean-up is told beside it.
pub(crate) fn cleaned<T>(measured: anyhow::Result<T>, cleaning: anyhow::Result<()>) -> anyhow::Result<T> {
    match (measured, cleaning) {
        (Err(error), Err(also)) => {
            output::complain(&format!("bench: {also:#}"));
            Err(error)
        }
        (measured, cleaning) => cleaning.and(measured),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_was_measured_while_a_process_ended_is_no_figure() {
        let processes = |worker| Processes { server: 2, workers: vec![3, worker], postgres: 1 };
        let told = |after, measured: anyhow::Result<Option<u8>>| {
            unbroken(&processes(4), after, measured).map_err(|error| error.to_string())
        };
        let ended = || Err(anyhow!("worker 2 has ended"));
        assert_eq!(told(Ok(processes(4)), Ok(Some(1))), Ok(Some(1)));
        for after in [Ok(processes(5)), ended()] {
            let error = told(after, Ok(Some(1))).expect_err("no figure");
            assert!(error.ends_with("the figures mean nothing"), "{error}");
        }
        assert_eq!(told(ended(), Ok(None)), Ok(None), "interrupted");
        assert_eq!(told(ended(), Err(anyhow!("real"))), Err("real".to_owned()));
    }

    #[test]
    fn the_error_of_the_clean_up_hides_no_other() {
        let told = |measured: anyhow::Result<u8>, cleaning| {
            cleaned(measured, cleaning).map_err(|error| error.to_string())
        };
        let failed = |why: &str| Err(anyhow!(why.to_owned()));
        assert_eq!(told(Ok(1), Ok(())), Ok(1));
        assert_eq!(told(Ok(1), failed("clean")), Err("clean".to_owned()));
        for cleaning in [Ok(()), failed("clean")] {
            assert_eq!(told(Err(anyhow!("real")), cleaning), Err("real".to_owned()));
        }
    }
}
