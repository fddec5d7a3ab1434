//! The whole service on this machine: private PostgreSQL, one server, worker processes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use local_postgres::LocalPostgres;
use tokio::task::JoinHandle;

use crate::{children::Child, machine::cores};

/// How often the children are looked after.
const LOOK: Duration = Duration::from_millis(200);
/// First pause before a dead child is started again; doubles with each death.
const RESTART_PAUSE_MIN: Duration = Duration::from_millis(500);
/// Greatest such pause.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a start that is under way is waited for when everything is to end.
const STARTING_MAX: Duration = Duration::from_secs(3);
/// One that lived this long begins again with the first pause.
const STEADY: Duration = Duration::from_secs(60);

/// Connections of the private PostgreSQL, at the least.
const CONNECTIONS_MIN: u32 = 200;
/// Connections that one worker process may use beside two for each of its threads.
const CONNECTIONS_A_WORKER: u32 = 10;
/// Connections that the server may use, and some for people.
const CONNECTIONS_SERVER: u32 = 30;

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

/// Stops PostgreSQL.
pub(crate) async fn stop_postgres(postgres: LocalPostgres) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || postgres.stop()).await.context("stopping PostgreSQL failed")??;
    Ok(())
}

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    pub(crate) listen: String,
    /// Worker processes.
    pub(crate) workers: u32,
    /// Solver threads of each of them.
    pub(crate) threads: u32,
    /// For the server, beside where it listens.
    pub(crate) server_options: Vec<String>,
    /// Log filter of the children.
    pub(crate) log: String,
}

impl Roles {
    /// Solver threads of each of so many workers that share this machine.
    pub(crate) fn threads_each(workers: u32) -> u32 {
        (cores() / workers).max(1)
    }

    /// Connections that PostgreSQL has to allow for so many workers of so many threads.
    pub(crate) fn connections_max(workers: u32, threads: u32) -> u32 {
        CONNECTIONS_MIN.max(workers * (threads * 2 + CONNECTIONS_A_WORKER) + CONNECTIONS_SERVER)
    }
}

/// The processes of a stack, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Processes {
    pub(crate) server: u32,
    pub(crate) workers: Vec<u32>,
    /// The one that all others of PostgreSQL are children of.
    pub(crate) postgres: u32,
}

/// All of it, running.
pub(crate) struct Stack {
    workers: Vec<Role>,
    server: Role,
    /// Where the server listens, also after it was started again.
    url: String,
    environment: Environment,
    /// Last, so that it is dropped last.
    postgres: LocalPostgres,
}

/// What the children are told by variables.
struct Environment {
    database_url: String,
    log: String,
}

/// A process that is started again when it dies.
struct Role {
    name: String,
    args: Vec<String>,
    /// `None`: dead, to be started again.
    child: Option<Child>,
    /// The start that is under way: the others are looked after meanwhile.
    starting: Option<JoinHandle<anyhow::Result<Child>>>,
    started: Instant,
    pause: Duration,
}

impl Role {
    async fn start(name: String, args: Vec<String>, environment: &Environment) -> anyhow::Result<Self> {
        let mut role = Self {
            name,
            args,
            child: None,
            starting: None,
            started: Instant::now(),
            pause: RESTART_PAUSE_MIN,
        };
        role.child = Some(role.spawn(environment).await?);
        Ok(role)
    }

    fn spawn(
        &self,
        environment: &Environment,
    ) -> impl Future<Output = anyhow::Result<Child>> + Send + 'static + use<> {
        let (name, args) = (self.name.clone(), self.args.clone());
        let (url, log) = (environment.database_url.clone(), environment.log.clone());
        async move {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            // The private PostgreSQL has no pooler before it, whatever the user's own has.
            let variables =
                [("DATABASE_URL", &*url), ("SUDOKU_BATCH_PGBOUNCER", "false"), ("SUDOKU_BATCH_LOG", &*log)];
            Child::start(name, &args, &variables).await
        }
    }

    /// Starts it again if it has died and its pause is over. Does not wait until it is ready.
    async fn look_after(&mut self, environment: &Environment) -> anyhow::Result<()> {
        if let Some(starting) = self.starting.take_if(|starting| starting.is_finished()) {
            self.started = Instant::now();
            match starting.await? {
                Ok(child) => self.child = Some(child),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(role = self.name, error, "a child could not be started");
                }
            }
        }
        if self.starting.is_some() {
            return Ok(());
        }
        if let Some(child) = &mut self.child {
            let Some(status) = child.ended()? else { return Ok(()) };
            let lived = self.started.elapsed();
            self.pause = if lived >= STEADY { RESTART_PAUSE_MIN } else { self.pause };
            tracing::warn!(role = self.name, status, pause = ?self.pause, "a child has ended; it is started again");
            self.child = None;
            self.started = Instant::now();
        }
        if self.started.elapsed() >= self.pause {
            self.pause = (self.pause * 2).min(RESTART_PAUSE_MAX);
            self.starting = Some(tokio::spawn(self.spawn(environment)));
        }
        Ok(())
    }

    /// Its child, if it has one. A start that is under way is waited for, since the child may hold leases to give back; but not for long.
    async fn into_child(self) -> Option<Child> {
        let Some(mut starting) = self.starting else { return self.child };
        match tokio::time::timeout(STARTING_MAX, &mut starting).await {
            Ok(Ok(Ok(child))) => Some(child),
            Ok(_) => None,
            Err(_) => {
                // What it has started is killed with it.
                starting.abort();
                None
            }
        }
    }
}

impl Stack {
    /// Starts the server and the workers on a running PostgreSQL.
    pub(crate) async fn start(postgres: LocalPostgres, roles: Roles) -> anyhow::Result<Self> {
        let environment = Environment { database_url: postgres.url(), log: roles.log };
        let server_args = |listen: &str| {
            let fixed = ["serve", "--listen", listen].map(str::to_owned);
            [&fixed[..], &roles.server_options].concat()
        };
        let first: Vec<String> = server_args(&roles.listen);
        let mut server = Role::start("the server".to_owned(), first, &environment).await?;
        let url = server.child.as_ref().map(|child| child.ready().to_owned()).unwrap_or_default();
        // The port that it was given, if any would do.
        let listen = url.trim_start_matches("http://").to_owned();
        server.args = server_args(&listen);
        let threads = roles.threads.to_string();
        let mut stack = Self { workers: Vec::new(), server, url, environment, postgres };
        for number in 1..=roles.workers {
            let name = format!("worker {number}");
            let args = ["work", "--threads", &threads].map(str::to_owned).to_vec();
            let worker = Role::start(name, args, &stack.environment).await?;
            stack.workers.push(worker);
        }
        Ok(stack)
    }

    /// Where the server listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// PostgreSQL under it.
    pub(crate) fn postgres(&self) -> &LocalPostgres {
        &self.postgres
    }

    /// Its processes, if none of them has ended.
    pub(crate) fn processes(&self) -> anyhow::Result<Processes> {
        let pid = |role: &Role| {
            let child = role.child.as_ref().and_then(Child::pid);
            child.with_context(|| format!("{} has ended", role.name))
        };
        Ok(Processes {
            server: pid(&self.server)?,
            workers: self.workers.iter().map(pid).collect::<anyhow::Result<_>>()?,
            postgres: self.postgres.server_pid(),
        })
    }

    /// Looks after the children: starts dead ones again; returns only with the error of what cannot be mended.
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
        for role in std::iter::once(&mut self.server).chain(&mut self.workers) {
            role.look_after(&self.environment).await?;
        }
        Ok(())
    }

    /// Ends everything in order: workers, so that they give their leases back; the server; PostgreSQL.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        stop_postgres(self.stop_roles().await).await
    }

    /// Ends all but PostgreSQL, which it gives back.
    pub(crate) async fn stop_roles(self) -> LocalPostgres {
        let mut workers = Vec::new();
        for role in self.workers {
            workers.extend(role.into_child().await);
        }
        for worker in &mut workers {
            worker.tell_to_end();
        }
        for worker in workers {
            worker.end().await;
        }
        if let Some(server) = self.server.into_child().await {
            server.end().await;
        }
        self.postgres
    }
}
