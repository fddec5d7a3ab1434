//! Telling waiting streams of new results: of each batch at once, then now and then, and at once again when it has ended. Streams that get results look for more
//! by themselves; a notice is for those that have waited for a while. What another process tells of a batch counts as told: a fleet tells as often as one does.

use std::{collections::HashMap, time::Duration};

use store::{Overheard, Store};
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
/// Time that a process leaves to others, at the most.
const GRACE_MAX: Duration = Duration::from_millis(100);
/// A notice is heard by all within this: what was stored longer ago was there for all who were woken by it.
const HEARD_WITHIN: Duration = Duration::from_millis(100);
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
    pub(crate) fn start(store: Store, overheard: Overheard) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        Self { sender, task: tokio::spawn(send(store, receiver, overheard)) }
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

/// When a batch was last told of, by whomever.
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
    /// Since when.
    waiting: HashMap<i64, Instant>,
    /// This process leaves others so much time beyond each pause to tell before it: drawn by lot, so that not all of them do.
    grace: Duration,
}

impl Batches {
    /// When the next of those that wait may be told.
    fn next(&self) -> Option<Instant> {
        let told = self.waiting.keys().filter_map(|id| self.told.get(id));
        told.map(|last| last.at + last.pause + self.grace).min()
    }

    /// Takes those that may be told now.
    fn due(&mut self, now: Instant) -> Vec<i64> {
        // A batch of which nothing came for a while begins anew.
        self.told.retain(|_, last| now.duration_since(last.at) < last.pause * 2);
        let Self { told, waiting, grace } = self;
        let may_be_told =
            |id: &i64| told.get(id).is_none_or(|last| now.duration_since(last.at) >= last.pause + *grace);
        let due: Vec<i64> = waiting.extract_if(|id, _| may_be_told(id)).map(|(id, _)| id).collect();
        for id in &due {
            self.tell(*id, now);
        }
        due
    }

    /// This batch is told of now.
    fn tell(&mut self, id: i64, now: Instant) {
        let pause = self.told.get(&id).map_or(PAUSE_MIN, |last| (last.pause * 2).min(PAUSE_MAX));
        self.told.insert(id, Last { at: now, pause });
    }

    /// This batch was told of by some process; it may have been this one.
    fn heard(&mut self, id: i64, now: Instant) {
        if self.told.get(&id).is_none_or(|last| now.duration_since(last.at) >= last.pause) {
            self.tell(id, now);
        }
        self.waiting.retain(|waiting, since| *waiting != id || now.duration_since(*since) < HEARD_WITHIN);
    }
}

async fn send(store: Store, mut receiver: mpsc::Receiver<Notice>, mut overheard: Overheard) {
    let mut batches = Batches { grace: store::jitter(GRACE_MAX), ..Batches::default() };
    loop {
        let wake = batches.next();
        let notice = tokio::select! {
            notice = receiver.recv() => match notice {
                Some(notice) => Some(notice),
                None => return,
            },
            batch = overheard.batch() => {
                batches.heard(batch, Instant::now());
                continue;
            }
            () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => None,
        };
        let mut flushed = None;
        match notice {
            Some(Notice::Results(id)) => {
                batches.waiting.entry(id).or_insert_with(Instant::now);
            }
            Some(Notice::End(id)) => {
                batches.told.remove(&id);
                batches.waiting.insert(id, Instant::now());
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
            batches.waiting.entry(7).or_insert(now);
            if batches.due(now) == [7] {
                told_at.push(step * 10);
            }
        }
        assert_eq!(told_at, [0, 200, 600, 1_400, 3_000, 5_000]);
        assert_eq!(batches.next(), Some(begin + Duration::from_secs(7)));
        let later = begin + Duration::from_secs(60);
        assert_eq!(batches.due(later), [7]);
        batches.waiting.insert(7, later);
        assert_eq!(batches.next(), Some(later + PAUSE_MIN));
    }

    #[test]
    fn many_processes_tell_hardly_more_often_than_one() {
        let begin = Instant::now();
        let mut fleet: Vec<Batches> =
            (0..64).map(|number| Batches { grace: GRACE_MAX * number / 64, ..Batches::default() }).collect();
        let mut told = 0;
        for step in 0..600 {
            let now = begin + Duration::from_millis(10) * step;
            for teller in 0..fleet.len() {
                fleet[teller].waiting.entry(7).or_insert(now);
                for id in fleet[teller].due(now) {
                    told += 1;
                    for hearer in &mut fleet {
                        hearer.heard(id, now);
                    }
                }
            }
        }
        assert_eq!(told, 6);
    }

    #[test]
    fn what_was_stored_right_before_a_notice_still_waits_after_it() {
        let mut batches = Batches::default();
        let begin = Instant::now();
        batches.waiting.insert(7, begin);
        batches.heard(7, begin + HEARD_WITHIN / 2);
        assert_eq!(batches.next(), Some(begin + HEARD_WITHIN / 2 + PAUSE_MIN));
        batches.heard(7, begin + HEARD_WITHIN);
        assert_eq!(batches.next(), None);
    }
}
