//! Prolonging leases, from a thread, a runtime and a connection of its own.

use std::{sync::Arc, thread, time::Duration};

use store::{Durability, Store, WorkerId};
use tokio::sync::oneshot;

use crate::{Config, leases::Leases};

/// Leases are prolonged when this part of them has passed.
const BEATS_PER_LEASE: u32 = 3;
/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The heartbeat of one worker.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: oneshot::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Heartbeat {
    pub(crate) fn start(config: &Config, id: WorkerId, leases: Arc<Leases>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let config = config.clone();
        let thread = thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    tracing::error!(%error, "the heartbeat cannot start: leases will run out under long searches");
                    return;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    () = beat(&config, id, &leases) => {}
                    // An error means that the worker is gone: stop as well.
                    _ = stopped => {}
                }
            });
        });
        if let Err(error) = &thread {
            tracing::error!(%error, "the heartbeat cannot start: leases will run out under long searches");
        }
        Self { stop, thread: thread.ok() }
    }

    pub(crate) fn stop(self) {
        // An error means that it has stopped already.
        self.stop.send(()).ok();
        if let Some(thread) = self.thread
            && thread.join().is_err()
        {
            tracing::error!("the heartbeat had ended by a fault of the program");
        }
    }
}

async fn beat(config: &Config, id: WorkerId, leases: &Leases) {
    let store = connect(config).await;
    loop {
        tokio::time::sleep(config.lease / BEATS_PER_LEASE).await;
        let held = leases.held();
        if held.is_empty() {
            continue;
        }
        loop {
            match store.heartbeat(id, &held, config.lease).await {
                Ok(still_held) => {
                    // What was completed meanwhile is no longer among the leases, so stopping it does nothing.
                    for key in held.iter().filter(|key| !still_held.contains(key)) {
                        leases.lost(*key);
                    }
                    break;
                }
                Err(error) => {
                    tracing::warn!(worker.id = %id, %error, "heartbeat failed; trying again");
                    tokio::time::sleep(RETRY_PAUSE).await;
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
