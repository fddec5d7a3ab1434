//! Prolonging leases and saying how far their searches are, from a thread, a runtime and a connection of its own.

use std::{io, sync::Arc, thread, time::Duration};

use store::{Beat, Durability, Store, WorkerId};
use tokio::sync::oneshot;

use crate::{Config, leases::Leases};

/// Leases are prolonged when this part of them has passed.
const BEATS_PER_LEASE: u32 = 3;
/// But not later than after this: those who watch a long search are told then.
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The heartbeat of one worker.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Heartbeat {
    /// Starts it.
    ///
    /// # Errors
    /// When the system gives no thread or no event queue.
    pub(crate) fn start(config: &Config, id: WorkerId, leases: Arc<Leases>) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let config = config.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = beat(&config, id, &leases) => {}
                    // An error means that the worker is gone: stop as well.
                    _ = stopped => {}
                }
            });
            // Not waited for: a look-up of the database's name may hang for minutes.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn stop(self) {
        // An error means that it has stopped already.
        self.stop.send(()).ok();
        if self.thread.join().is_err() {
            tracing::error!("the heartbeat had ended by a fault of the program");
        }
    }
}

async fn beat(config: &Config, id: WorkerId, leases: &Leases) {
    let interval = (config.lease / BEATS_PER_LEASE).min(INTERVAL_MAX);
    let mut store = connect(config).await;
    loop {
        tokio::time::sleep(interval).await;
        loop {
            let beats = leases.beats();
            if beats.is_empty() {
                break;
            }
            match tokio::time::timeout(interval, store.heartbeat(id, &beats, config.lease)).await {
                Ok(Ok(still_held)) => {
                    // What was completed meanwhile is no longer among the leases, so stopping it does nothing.
                    for Beat { key, .. } in beats.iter().filter(|beat| !still_held.contains(&beat.key)) {
                        leases.lost(*key);
                    }
                    break;
                }
                Ok(Err(error)) => {
                    tracing::warn!(worker.id = %id, %error, "heartbeat failed; trying again");
                    tokio::time::sleep(RETRY_PAUSE.min(interval)).await;
                }
                Err(_) => {
                    // A connection that has died without a word answers nothing for many minutes: another one.
                    tracing::warn!(worker.id = %id, "heartbeat was not answered; connecting anew");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    store = connect(config).await;
                }
            }
        }
    }
}

async fn connect(config: &Config) -> Store {
    let config = store::Config {
        url: config.database_url.clone(),
        connections_max: 1,
        durability: Durability::Asynchronous,
        application_name: "sudoku-batch heartbeat".to_owned(),
        is_pooled: config.is_pooled,
    };
    loop {
        match Store::connect(&config).await {
            Ok(store) => return store,
            Err(error) => {
                tracing::warn!(%error, "the heartbeat cannot connect; trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}
