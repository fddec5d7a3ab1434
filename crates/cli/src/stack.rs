//! The whole service on this machine: private PostgreSQL, one server, worker processes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use local_postgres::LocalPostgres;

use crate::{children::Child, machine::cores};

/// How often the children are looked after.
const LOOK: Duration = Duration::from_millis(200);
/// First pause before a dead worker is started again; doubles with each death.
const RESTART_PAUSE_MIN: Duration = Duration::from_millis(500);
/// Greatest such pause.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);
/// A worker that lived this long begins again with the first pause.
const STEADY: Duration = Duration::from_secs(60);

/// Starts PostgreSQL; `None` when `stopped` resolves first: then it has been stopped again, for its programs must not be left running.
pub(crate) async fn postgres(
    start: impl FnOnce() -> Result<LocalPostgres, local_postgres::Error> + Send + 'static,
    stopped: impl Future,
) -> anyhow::Result<Option<LocalPostgres>> {
    let mut starting = tokio::task::spawn_blocking(start);
    tokio::select! {
        started = &mut starting => return Ok(Some(started.context("starting PostgreSQL failed")??)),
        _ = stopped => {}
    }
    // A start that fails has left nothing to stop.
    if let Ok(Ok(postgres)) = starting.await {
        stop_postgres(postgres).await?;
    }
    Ok(None)
}

async fn stop_postgres(postgres: LocalPostgres) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || postgres.stop()).await.context("stopping PostgreSQL failed")??;
    Ok(())
}

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    pub(crate) listen: String,
    /// Worker processes.
    pub(crate) workers: u32,
    /// Log filter of the children.
    pub(crate) log: String,
}

/// All of it, running.
pub(crate) struct Stack {
    workers: Vec<Worker>,
    server: Child,
    roles: Roles,
    threads: u32,
    /// Last, so that it is dropped last.
    postgres: LocalPostgres,
}

struct Worker {
    number: u32,
    /// `None`: dead, to be started again.
    child: Option<Child>,
    started: Instant,
    pause: Duration,
}

impl Stack {
    /// Starts the server and the workers on a running PostgreSQL.
    pub(crate) async fn start(postgres: LocalPostgres, roles: Roles) -> anyhow::Result<Self> {
        let url = postgres.url();
        let environment = [("DATABASE_URL", &*url), ("SUDOKU_BATCH_LOG", &*roles.log)];
        let server =
            Child::start("the server".to_owned(), &["serve", "--listen", &roles.listen], &environment)
                .await?;
        let threads = (cores() / roles.workers).max(1);
        let mut stack = Self { workers: Vec::new(), server, roles, threads, postgres };
        for number in 1..=stack.roles.workers {
            let child = stack.start_worker(number).await?;
            stack.workers.push(Worker {
                number,
                child: Some(child),
                started: Instant::now(),
                pause: RESTART_PAUSE_MIN,
            });
        }
        Ok(stack)
    }

    async fn start_worker(&self, number: u32) -> anyhow::Result<Child> {
        let url = self.postgres.url();
        let environment = [("DATABASE_URL", &*url), ("SUDOKU_BATCH_LOG", &*self.roles.log)];
        let threads = self.threads.to_string();
        Child::start(format!("worker {number}"), &["work", "--threads", &threads], &environment).await
    }

    /// Where the server listens.
    pub(crate) fn url(&self) -> &str {
        self.server.ready()
    }

    /// Looks after the children: starts dead workers again; returns only with the error of what cannot be mended.
    pub(crate) async fn watch(&mut self) -> anyhow::Error {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(error) = self.look().await {
                return error;
            }
        }
    }

    async fn look(&mut self) -> anyhow::Result<()> {
        if self.postgres.has_exited()? {
            bail!("PostgreSQL has ended; its log is {}", self.postgres.log_file().display());
        }
        if let Some(status) = self.server.ended()? {
            bail!("{} has ended ({status})", self.server.name());
        }
        for place in 0..self.workers.len() {
            self.look_after(place).await?;
        }
        Ok(())
    }

    async fn look_after(&mut self, place: usize) -> anyhow::Result<()> {
        let worker = &mut self.workers[place];
        if let Some(child) = &mut worker.child {
            let Some(status) = child.ended()? else { return Ok(()) };
            let lived = worker.started.elapsed();
            worker.pause = if lived >= STEADY { RESTART_PAUSE_MIN } else { worker.pause };
            tracing::warn!(worker = worker.number, status, pause = ?worker.pause, "a worker has ended; it is started again");
            worker.child = None;
            worker.started = Instant::now();
        }
        if worker.started.elapsed() < worker.pause {
            return Ok(());
        }
        worker.pause = (worker.pause * 2).min(RESTART_PAUSE_MAX);
        let number = worker.number;
        let started = self.start_worker(number).await;
        let worker = &mut self.workers[place];
        worker.started = Instant::now();
        match started {
            Ok(child) => worker.child = Some(child),
            Err(error) => {
                tracing::warn!(
                    worker = number,
                    error = format!("{error:#}"),
                    "a worker could not be started"
                );
            }
        }
        Ok(())
    }

    /// Ends everything in order: workers, so that they give their leases back; the server; PostgreSQL.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let mut workers: Vec<Child> = self.workers.into_iter().filter_map(|worker| worker.child).collect();
        for worker in &mut workers {
            worker.tell_to_end();
        }
        for worker in workers {
            worker.end().await;
        }
        self.server.end().await;
        let postgres = self.postgres;
        tokio::task::spawn_blocking(move || postgres.stop())
            .await
            .context("stopping PostgreSQL failed")??;
        Ok(())
    }
}
