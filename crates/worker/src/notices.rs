//! Telling waiting streams of new results: of each batch at once, then a few times a second.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use store::Store;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};

/// Least time between two notices of one batch by this process: each takes a lock on every commit of the database.
const PAUSE: Duration = Duration::from_millis(200);
/// Notices that may wait; what does not fit is found by the streams' own look.
const WAITING_MAX: usize = 4_096;

/// The sending side.
#[derive(Debug)]
pub(crate) struct Notices {
    sender: mpsc::Sender<Notice>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
enum Notice {
    /// Of a batch's results.
    Results(i64),
    /// Whatever waits is to be sent now; told when it is.
    Flush(oneshot::Sender<()>),
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
        self.sender.try_send(Notice::Results(batch_id)).ok();
    }

    /// Sends what still waits: for a process that is about to end.
    pub(crate) async fn flush(&self) {
        let (told, done) = oneshot::channel();
        // Errors mean that the task is gone, and its notices with it: the streams look by themselves.
        if self.sender.send(Notice::Flush(told)).await.is_ok() {
            done.await.ok();
        }
    }
}

async fn send(store: Store, mut receiver: mpsc::Receiver<Notice>) {
    let mut told: HashMap<i64, Instant> = HashMap::new();
    let mut waiting: HashSet<i64> = HashSet::new();
    loop {
        let wake = waiting.iter().filter_map(|id| told.get(id)).min().map(|instant| *instant + PAUSE);
        let notice = tokio::select! {
            notice = receiver.recv() => match notice {
                Some(notice) => Some(notice),
                None => return,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => None,
        };
        let now = Instant::now();
        told.retain(|_, instant| now.duration_since(*instant) < PAUSE);
        let flushed = match notice {
            Some(Notice::Results(id)) => {
                waiting.insert(id);
                None
            }
            Some(Notice::Flush(flushed)) => {
                told.clear();
                Some(flushed)
            }
            None => None,
        };
        let due: Vec<i64> = waiting.iter().copied().filter(|id| !told.contains_key(id)).collect();
        if !due.is_empty() {
            if let Err(error) = store.notify_results(&due).await {
                tracing::debug!(%error, "streams could not be told of results; they will look by themselves");
            }
            waiting.retain(|id| !due.contains(id));
            told.extend(due.into_iter().map(|id| (id, now)));
        }
        if let Some(flushed) = flushed {
            // An error means that nobody waits for it any more.
            flushed.send(()).ok();
        }
    }
}
