//! Telling waiting streams of new results: at once, then a few times a second.

use std::{collections::HashSet, time::Duration};

use store::Store;
use tokio::{sync::mpsc, task::JoinHandle};

/// Least time between two notifications of this process: each takes a lock on every commit of the database.
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
    while let Some(first) = receiver.recv().await {
        let mut batches = HashSet::from([first]);
        while let Ok(more) = receiver.try_recv() {
            batches.insert(more);
        }
        let batches: Vec<i64> = batches.into_iter().collect();
        if let Err(error) = store.notify_results(&batches).await {
            tracing::debug!(%error, "streams could not be told of results; they will look by themselves");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
