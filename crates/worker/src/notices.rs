//! Telling waiting streams of new results: of each batch at once, then a few times a second.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use store::Store;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

/// Least time between two notices of one batch by this process: each takes a lock on every commit of the database.
const PAUSE: Duration = Duration::from_millis(200);
/// Notices that may wait; what does not fit is found by the streams' own look.
const WAITING_MAX: usize = 4_096;

/// The sending side.
#[derive(Debug)]
pub(crate) struct Notices {
    sender: mpsc::Sender<i64>,
    task: JoinHandle<()>,
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Notices {
    pub(crate) fn start(store: Store) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self { sender, task: tokio::spawn(send(store, receiver)) }
    }

    /// This batch has new results, or ended.
    pub(crate) fn results(&self, batch_id: i64) {
        // Full: the streams look by themselves.
        self.sender.try_send(batch_id).ok();
    }
}

async fn send(store: Store, mut receiver: mpsc::Receiver<i64>) {
    let mut told: HashMap<i64, Instant> = HashMap::new();
    let mut waiting: HashSet<i64> = HashSet::new();
    loop {
        let wake = waiting.iter().filter_map(|id| told.get(id)).min().map(|instant| *instant + PAUSE);
        tokio::select! {
            id = receiver.recv() => match id {
                Some(id) => waiting.insert(id),
                None => return,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => false,
        };
        while let Ok(more) = receiver.try_recv() {
            waiting.insert(more);
        }
        let now = Instant::now();
        told.retain(|_, instant| now.duration_since(*instant) < PAUSE);
        let due: Vec<i64> = waiting.iter().copied().filter(|id| !told.contains_key(id)).collect();
        if due.is_empty() {
            continue;
        }
        if let Err(error) = store.notify_results(&due).await {
            tracing::debug!(%error, "streams could not be told of results; they will look by themselves");
        }
        for id in due {
            waiting.remove(&id);
            told.insert(id, now);
        }
    }
}
