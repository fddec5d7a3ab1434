//! A worker process: claims jobs, solves them on threads apart from the async runtime, completes them under their fence.
//!
//! Who does what: one *lane* a solver thread claims and hands over (`lane.rs`) and settles what came of it (`settle.rs`); the *heartbeat* prolongs leases, and says how far their searches are, from a thread
//! and a connection of its own, so that neither solving nor a slow statement can starve it (`heartbeat.rs`); *upkeep* puts back what
//! dead workers held and ends batches (`upkeep.rs`); *sweep* removes what was cancelled or deleted or has expired (`sweep.rs`, `days.rs`); *quarantine* has jobs over which workers have died run alone (`quarantine.rs`);
//! *cancels* stops what nobody wants any more (`cancels.rs`); *notices* tell waiting streams, a few times a second (`notices.rs`). Of many workers one does the rounds of upkeep and sweep for all (`rounds.rs`); *idle* says when a lane without work
//! looks again (`idle.rs`).
#![forbid(unsafe_code)]

mod cancels;
mod days;
mod heartbeat;
#[cfg(debug_assertions)]
mod hooks;
mod idle;
mod lane;
mod leases;
mod notices;
mod quarantine;
mod rest;
mod rounds;
mod settle;
mod slice;
mod solver_thread;
mod sweep;
mod told;
mod upkeep;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use solver::Width;
use store::{BatchState, Durability, Ended, Error, Listens, Store, Waker, WorkerId};
use tokio::{
    sync::{RwLock, watch},
    task::JoinSet,
};

use crate::{
    heartbeat::Heartbeat,
    lane::{Kind, Lane},
    leases::Leases,
    notices::Notices,
    solver_thread::SolverThread,
};

/// Connections beyond one a lane for what lanes do beside turns: the listener, the notices and the look for cancels.
const CONNECTIONS_EXTRA: u32 = 3;
/// Jobs of a cancelled batch that one statement drops.
const DROPPED_MAX: u32 = 10_000;
/// How long telling the streams of the last results may take.
const FLUSH_MAX: Duration = Duration::from_millis(300);
/// Connections for what must be durable at once: upkeep, sweeping, and the ends of batches.
const DURABLE_CONNECTIONS: u32 = 4;

/// Set-up of a worker.
#[derive(Clone)]
pub struct Config {
    /// How to reach the database.
    pub database_url: String,
    /// A pooler is in between: see [`store::Config::is_pooled`].
    pub is_pooled: bool,
    /// Solver threads, 1 or more.
    pub threads: u32,
    /// How wide the solver's vectors are.
    pub width: Width,
    /// How long a lease lasts without a heartbeat.
    pub lease: Duration,
    /// How long running searches may go on after the stop signal, before their leases are given back.
    pub grace: Duration,
    /// How long a job is solved before what is done of it is stored and the rest goes back to the queue; a single search that takes longer
    /// goes on.
    pub slice: Duration,
}

/// How a worker is told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Running searches may go on for the grace time.
    Graceful,
    /// Running searches are stopped now.
    AtOnce,
}

/// A worker that is connected and about to claim.
pub struct Worker {
    config: Config,
    id: WorkerId,
    store: Store,
    turns: Store,
    durable: Store,
}

/// The lanes of a process of so many threads. Long counts have one thread less than there are, so that they never have all of them; where there is but one they share
/// its core. The quarantine solves only while the others do not.
fn lanes(threads: u32) -> impl Iterator<Item = Kind> {
    let of = |kind, number| std::iter::repeat_n(kind, usize::try_from(number).unwrap_or(usize::MAX));
    of(Kind::Short, threads).chain(of(Kind::Long, (threads - 1).max(1))).chain([Kind::Blamed])
}

/// What the parts of a worker share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) id: WorkerId,
    /// Commits are reported at once: a job whose result a crash loses is still in place.
    pub(crate) store: Store,
    /// The same, for the turns of the short lanes alone, a connection each: planning their statement takes a connection more than a hundred runs of it do.
    pub(crate) turns: Store,
    /// Commits are reported when they are on disk: for the end of a batch.
    pub(crate) durable: Store,
    pub(crate) waker: Waker,
    pub(crate) leases: Arc<Leases>,
    pub(crate) notices: Notices,
    /// Read by every lane while it has a job; written by the quarantine, which thereby is alone.
    pub(crate) room: RwLock<()>,
    /// The quarantine waits for that: no lane goes on to another job.
    pub(crate) is_alone_wanted: AtomicBool,
    /// Whether blamed jobs wait.
    pub(crate) any_blamed: watch::Sender<bool>,
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Worker {
    /// Connects, and brings the schema up to date if nobody has yet.
    ///
    /// # Errors
    /// Those of [`Store::connect`] and [`Store::migrate`].
    pub async fn connect(config: Config) -> Result<Self, Error> {
        let connect = |connections_max, durability| store::Config {
            url: config.database_url.clone(),
            connections_max,
            durability,
            application_name: "sudoku-batch work".to_owned(),
            is_pooled: config.is_pooled,
        };
        let durable = Store::connect(&connect(DURABLE_CONNECTIONS, Durability::Synchronous)).await?;
        durable.migrate().await?;
        let turns = Store::connect(&connect(config.threads, Durability::Asynchronous)).await?;
        if let Err(error) = turns.rehearse(config.threads).await {
            // It saves time only. What is wrong the lanes find as well, and they try again.
            tracing::debug!(%error, "the statements of a turn could not be tried");
        }
        let others = lanes(config.threads).filter(|kind| *kind != Kind::Short).count();
        let connections = u32::try_from(others).unwrap_or(u32::MAX) + CONNECTIONS_EXTRA;
        let store = Store::connect(&connect(connections, Durability::Asynchronous)).await?;
        Ok(Self { config, id: WorkerId::fresh(), store, turns, durable })
    }

    /// This start's identity: what the database shows as a job's owner.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Works until `stop` resolves; then claims nothing more, lets what runs end within the grace time, gives the rest back and returns.
    ///
    /// # Errors
    /// [`WorkError`]: a part of the worker has ended by itself, and the others were stopped.
    pub async fn run(self, stop: impl Future<Output = Stop>) -> Result<(), WorkError> {
        let Self { config, id, store, turns, durable } = self;
        let mut threads = Vec::new();
        for (number, kind) in (0..).zip(lanes(config.threads)) {
            let thread = SolverThread::start(number, config.width, kind == Kind::Short);
            let thread = thread.map_err(WorkError::Thread)?;
            threads.push((kind, thread));
        }
        let (stop_sender, stopping) = watch::channel(false);
        let leases = Arc::new(Leases::default());
        let heartbeat = Heartbeat::start(&config, id, Arc::clone(&leases)).map_err(WorkError::Thread)?;
        let waker = Waker::start(store.clone(), Listens::Work);
        let shared = Arc::new(Shared {
            notices: Notices::start(store.clone(), waker.overhear()),
            waker,
            leases,
            config,
            id,
            store,
            turns,
            durable,
            room: RwLock::new(()),
            is_alone_wanted: AtomicBool::new(false),
            any_blamed: watch::Sender::new(false),
            stopping,
        });
        tracing::info!(worker.id = %id, threads = shared.config.threads, database = shared.store.database(), "working");

        let mut lanes = JoinSet::new();
        for (kind, thread) in threads {
            let lane = Lane::new(Arc::clone(&shared), thread, kind);
            match kind {
                Kind::Blamed => lanes.spawn(quarantine::run(lane)),
                Kind::Short | Kind::Long => lanes.spawn(lane.run()),
            };
        }
        let mut others = JoinSet::new();
        others.spawn(upkeep::run(Arc::clone(&shared)));
        others.spawn(sweep::run(Arc::clone(&shared)));
        others.spawn(cancels::run(Arc::clone(&shared)));
        let (grace, ended) = tokio::select! {
            stop = stop => match stop {
                Stop::Graceful => (shared.config.grace, Ok(())),
                Stop::AtOnce => (Duration::ZERO, Ok(())),
            },
            _ = lanes.join_next() => (shared.config.grace, Err(WorkError::Lane)),
        };
        tracing::info!(worker.id = %id, ?grace, "stopping");
        stop_sender.send_replace(true);
        shared.end(&mut lanes, grace).await;
        if tokio::time::timeout(FLUSH_MAX, shared.notices.flush()).await.is_err() {
            tracing::debug!("streams could not be told of the last results; they will look by themselves");
        }
        others.abort_all();
        heartbeat.stop();
        ended
    }
}

/// Why a worker ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The system gave no thread.
    #[error("a thread could not be started: {0}")]
    Thread(std::io::Error),
    /// A lane ended by a fault of the program; its log says which.
    #[error("a part of the worker ended by a fault of the program; the log says more")]
    Lane,
}

impl Shared {
    /// Waits for the lanes; stops their searches when the grace time is over.
    async fn end(&self, lanes: &mut JoinSet<()>, grace: Duration) {
        let join = async |lanes: &mut JoinSet<()>| while lanes.join_next().await.is_some() {};
        if tokio::time::timeout(grace, join(lanes)).await.is_ok() {
            return;
        }
        self.leases.stop_all();
        // Searches look at their flag every few milliseconds; the wait is for the database, which may be away.
        if tokio::time::timeout(settle::GIVE_BACK_MAX, join(lanes)).await.is_err() {
            tracing::warn!(worker.id = %self.id, "leases could not be given back; they will run out");
        }
    }

    /// Ends the batch if it has no job left, and tells of it; returns whether it did. Upkeep does the same later if this fails.
    pub(crate) async fn finish(&self, batch_id: i64) -> bool {
        match self.durable.finish(batch_id).await {
            Ok(None) => false,
            Ok(Some(ended)) => {
                tell_end(&ended);
                self.notices.ended(ended.id);
                true
            }
            Err(error) => {
                tracing::warn!(batch.id = batch_id, %error, "cannot look whether the batch is finished");
                false
            }
        }
    }

    /// If the batch is being cancelled: drops what nobody holds of it, and ends it if that was all. The sweep does the same later if this fails.
    pub(crate) async fn drop_cancelled(&self, batch_id: i64) {
        let mut dropped_in_all = 0;
        loop {
            match self.durable.drop_cancelled(batch_id, DROPPED_MAX as usize).await {
                Ok(dropped) => {
                    dropped_in_all += dropped;
                    if dropped < DROPPED_MAX.into() {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(batch.id = batch_id, %error, "the jobs of a cancelled batch could not be dropped; the sweep tries again");
                    return;
                }
            }
        }
        if dropped_in_all > 0 {
            tracing::info!(batch.id = batch_id, jobs = dropped_in_all, "jobs of a cancelled batch dropped");
            if !self.finish(batch_id).await {
                self.notices.results(batch_id);
            }
        }
    }

    /// Whether a lane may go on to another job.
    pub(crate) fn may_go_on(&self) -> bool {
        !self.is_stopping() && !self.is_alone_wanted.load(SeqCst)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves once the worker is stopping.
    pub(crate) async fn stopping(&self) {
        let mut stopping = self.stopping.clone();
        // An error means that the worker is gone altogether: stop as well.
        stopping.wait_for(|stopping| *stopping).await.ok();
    }
}

pub(crate) fn tell_end(ended: &Ended) {
    if ended.state == BatchState::Cancelled {
        tracing::info!(batch.id = ended.id, batch.name = ended.name, "batch cancelled");
    } else {
        tracing::info!(batch.id = ended.id, batch.name = ended.name, "batch finished");
    }
}
