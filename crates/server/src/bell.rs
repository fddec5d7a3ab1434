//! Telling workers of new jobs: at once of a batch that begins, a moment later of what goes on coming.
//!
//! Each notice wakes every process, whatever it waits for. Workers that have just run out of jobs look again by themselves, so what follows closely on what was told
//! needs no notice of its own; one for all of it follows, if it still waits then. A few puzzles are not part of a flow: somebody may wait for them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use store::{Store, Tell};
use tokio::sync::Notify;

use crate::limits::{FLOW_PAUSE, FLOW_PUZZLES_MIN, FLOWING_BATCHES_MAX, RING_PAUSE_MAX, RING_PAUSE_MIN};

/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// One a server.
#[derive(Default, Debug)]
pub(crate) struct Bell {
    /// When each batch was last appended to, of those to which that was a moment ago.
    stored: Mutex<HashMap<i64, Instant>>,
    untold: Notify,
}

impl Bell {
    /// Who is told of an append of so many puzzles to this batch together with it.
    pub(crate) fn tell(&self, batch_id: i64, puzzles: usize) -> Tell {
        let flows = puzzles >= FLOW_PUZZLES_MIN && self.lock().get(&batch_id).is_some_and(is_recent);
        if flows { Tell::Nobody } else { Tell::Workers }
    }

    /// Such an append is stored, and that was told. One that is refused must not count: nobody was told of it.
    pub(crate) fn stored(&self, batch_id: i64, told: Tell) {
        let mut stored = self.lock();
        if stored.len() >= FLOWING_BATCHES_MAX {
            stored.retain(|_, last| is_recent(last));
        }
        if stored.len() >= FLOWING_BATCHES_MAX {
            // Workers are then told of each once more.
            stored.clear();
        }
        stored.insert(batch_id, Instant::now());
        if told == Tell::Nobody {
            self.untold.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        // A map of instants is sound whatever a panicking holder was about to do.
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of those, until it is aborted.
    pub(crate) async fn ring(&self, store: Store) {
        let mut pause = RING_PAUSE_MIN;
        loop {
            if tokio::time::timeout(FLOW_PAUSE, self.untold.notified()).await.is_err() {
                pause = RING_PAUSE_MIN;
                self.untold.notified().await;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RING_PAUSE_MAX);
            if let Err(error) = store.notify_waiting().await {
                tracing::debug!(%error, "workers could not be told of jobs; trying again");
                self.untold.notify_one();
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

fn is_recent(last: &Instant) -> bool {
    last.elapsed() < FLOW_PAUSE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An append of a flow that is stored: who was told.
    fn append(bell: &Bell, batch_id: i64) -> Tell {
        let told = bell.tell(batch_id, FLOW_PUZZLES_MIN);
        bell.stored(batch_id, told);
        told
    }

    #[test]
    fn a_batch_is_told_of_at_once_and_what_follows_closely_is_not() {
        let bell = Bell::default();
        assert_eq!([append(&bell, 1), append(&bell, 2)], [Tell::Workers; 2]);
        assert_eq!([append(&bell, 1), append(&bell, 2)], [Tell::Nobody; 2]);
        let rested = Instant::now().checked_sub(FLOW_PAUSE).expect("the clock has run for longer");
        bell.lock().insert(1, rested);
        assert_eq!(append(&bell, 1), Tell::Workers);
    }

    #[test]
    fn a_few_puzzles_are_told_of_at_once_however_closely_they_follow() {
        let bell = Bell::default();
        append(&bell, 1);
        assert_eq!(bell.tell(1, FLOW_PUZZLES_MIN - 1), Tell::Workers);
        assert_eq!(bell.tell(1, FLOW_PUZZLES_MIN), Tell::Nobody);
    }

    #[test]
    fn an_append_that_was_refused_does_not_count_as_told() {
        let bell = Bell::default();
        assert_eq!(bell.tell(1, FLOW_PUZZLES_MIN), Tell::Workers);
        assert_eq!(bell.tell(1, FLOW_PUZZLES_MIN), Tell::Workers, "the first was not stored");
    }

    #[test]
    fn the_batches_that_are_remembered_are_bounded() {
        let bell = Bell::default();
        for batch in 0..3 * FLOWING_BATCHES_MAX {
            assert_eq!(append(&bell, i64::try_from(batch).expect("few")), Tell::Workers);
            assert!(bell.lock().len() <= FLOWING_BATCHES_MAX);
        }
    }
}
