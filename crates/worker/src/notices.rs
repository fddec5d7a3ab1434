//! Telling waiting streams of new results: of each batch at once, then now and then, and at once again when it has ended. Streams that get results look for more
//! by themselves; a notice is for those that have waited for a while.

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

/// Least time between two notices of one batch by this process: each takes a lock on every commit of the database, and wakes every process. Twice as long after each,
/// while its results keep coming.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// But not longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(2);
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
    /// Of a batch's end.
    End(i64),
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

    /// This batch has ended.
    pub(crate) fn ended(&self, batch_id: i64) {
        // Full: the streams look by themselves.
        self.sender.try_send(Notice::End(batch_id)).ok();
    }

    /// This batch has new results.
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

/// When a batch was last told of.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    /// How long it is not told of again.
    pause: Duration,
}

/// What was told, and what waits to be.
#[derive(Default, Debug)]
struct Batches {
    told: HashMap<i64, Last>,
    waiting: HashSet<i64>,
}

impl Batches {
    /// When the next of those that wait may be told.
    fn next(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|id| self.told.get(id)).map(|last| last.at + last.pause).min()
    }

    /// Takes those that may be told now.
    fn due(&mut self, now: Instant) -> Vec<i64> {
        // A batch of which nothing came for a while begins anew.
        self.told.retain(|_, last| now.duration_since(last.at) < last.pause * 2);
        let Self { told, waiting } = self;
        let due: Vec<i64> = waiting
            .extract_if(|id| told.get(id).is_none_or(|last| now.duration_since(last.at) >= last.pause))
            .collect();
        for id in &due {
            let pause = told.get(id).map_or(PAUSE_MIN, |last| (last.pause * 2).min(PAUSE_MAX));
            told.insert(*id, Last { at: now, pause });
        }
        due
    }
}

async fn send(store: Store, mut receiver: mpsc::Receiver<Notice>) {
    let mut batches = Batches::default();
    loop {
        let wake = batches.next();
        let notice = tokio::select! {
            notice = receiver.recv() => match notice {
                Some(notice) => Some(notice),
                None => return,
            },
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => None,
        };
        let mut flushed = None;
        match notice {
            Some(Notice::Results(id)) => {
                batches.waiting.insert(id);
            }
            Some(Notice::End(id)) => {
                batches.told.remove(&id);
                batches.waiting.insert(id);
            }
            Some(Notice::Flush(sender)) => {
                batches.told.clear();
                flushed = Some(sender);
            }
            None => {}
        }
        let due = batches.due(Instant::now());
        if !due.is_empty()
            && let Err(error) = store.notify_results(&due).await
        {
            tracing::debug!(%error, "streams could not be told of results; they will look by themselves");
        }
        if let Some(flushed) = flushed {
            // An error means that nobody waits for it any more.
            flushed.send(()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_told_of_at_once_then_ever_less_often_and_anew_after_a_rest() {
        let mut batches = Batches::default();
        let begin = Instant::now();
        let mut told_at = Vec::new();
        for step in 0..600 {
            let now = begin + Duration::from_millis(10) * step;
            batches.waiting.insert(7);
            if batches.due(now) == [7] {
                told_at.push(step * 10);
            }
        }
        assert_eq!(told_at, [0, 200, 600, 1_400, 3_000, 5_000]);
        assert_eq!(batches.next(), Some(begin + Duration::from_secs(7)));
        let later = begin + Duration::from_secs(60);
        assert_eq!(batches.due(later), [7]);
        batches.waiting.insert(7);
        assert_eq!(batches.next(), Some(later + PAUSE_MIN));
    }
}
