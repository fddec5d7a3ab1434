//! Appends to one batch that are under way at this server at the same time: one that has come before its turn waits for those before it.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use store::TenantId;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{drain::Drain, limits::APPEND_WAIT_MAX, status::Refusal};

/// All lines, each for as long as anybody stands in it. A batch is named by its tenant and its id.
#[derive(Clone, Debug)]
pub(crate) struct Lines<K: Eq + Hash = (TenantId, String)>(Arc<Mutex<HashMap<K, watch::Sender<Line>>>>);

impl<K: Eq + Hash> Default for Lines<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Those who stand in one line, and what those who have left have told.
#[derive(Default, Debug)]
struct Line {
    /// How many stand at each offset.
    standing: BTreeMap<u64, usize>,
    /// Where the batch ended by the word of those who have left.
    end: u64,
    /// How many have told so. A batch that was deleted and made again may end before that.
    told: u64,
}

impl Line {
    fn is_anyone_before(&self, offset: u64) -> bool {
        self.standing.first_key_value().is_some_and(|(first, _)| *first < offset)
    }
}

impl<K: Clone + Eq + Hash> Lines<K> {
    /// Stands in the line of a batch until the guard goes: at an offset, or before everybody, for what is appended without one may fill any gap. It wakes nobody.
    pub(crate) fn join(&self, batch: K, offset: Option<u64>) -> InLine<K> {
        let offset = offset.unwrap_or(0);
        let line = {
            let mut lines = self.lock();
            let line = lines.entry(batch.clone()).or_default();
            line.send_if_modified(|line| {
                *line.standing.entry(offset).or_default() += 1;
                false
            });
            line.subscribe()
        };
        let deadline = Instant::now() + APPEND_WAIT_MAX;
        InLine { lines: self.clone(), batch, line, offset, deadline, armed: Armed::default(), end: None }
    }
}

impl<K: Eq + Hash> Lines<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<Line>>> {
        // A map of counts is sound whatever a panicking holder was about to do.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line.
#[derive(Debug)]
pub(crate) struct InLine<K: Eq + Hash = (TenantId, String)> {
    lines: Lines<K>,
    batch: K,
    line: watch::Receiver<Line>,
    offset: u64,
    /// One for all waits, however often it is woken.
    deadline: Instant,
    armed: Armed,
    /// Where the batch ends as it leaves.
    end: Option<u64>,
}

/// The line as it was before the last look at the batch.
#[derive(Clone, Copy, Default, Debug)]
struct Armed {
    is_anyone_before: bool,
    told: u64,
}

impl<K: Eq + Hash> InLine<K> {
    /// What happens from now on is waited for: call it before the look that tells whether to wait.
    pub(crate) fn arm(&mut self) {
        let line = self.line.borrow();
        self.armed = Armed { is_anyone_before: line.is_anyone_before(self.offset), told: line.told };
    }

    /// Waits until another look is worth while: somebody has told that the batch reaches its offset, or nobody is before it any more. `false`: there was nobody to
    /// wait for, or it takes too long.
    ///
    /// # Errors
    /// [`Refusal::Stopping`].
    pub(crate) async fn turn(&mut self, drain: &Drain) -> Result<bool, Refusal> {
        let (offset, armed) = (self.offset, self.armed);
        let is_alone = {
            let line = self.line.borrow();
            !armed.is_anyone_before && !line.is_anyone_before(offset) && line.told == armed.told
        };
        if is_alone || Instant::now() >= self.deadline {
            return Ok(false);
        }
        let has_come =
            |line: &Line| !line.is_anyone_before(offset) || (line.told != armed.told && line.end >= offset);
        let turn = async { self.line.wait_for(has_come).await.is_ok() };
        tokio::select! {
            turn = timeout_at(self.deadline, turn) => Ok(turn.unwrap_or(false)),
            () = drain.started() => Err(Refusal::Stopping),
        }
    }

    /// Tells those who stay, when it leaves, where the batch ends.
    pub(crate) fn tell(&mut self, end: u64) {
        self.end = Some(end);
    }
}

impl<K: Eq + Hash> Drop for InLine<K> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get(&self.batch) else { return };
        line.send_modify(|line| {
            if let Some(count) = line.standing.get_mut(&self.offset) {
                *count -= 1;
                if *count == 0 {
                    line.standing.remove(&self.offset);
                }
            }
            if let Some(end) = self.end {
                line.end = line.end.max(end);
                line.told += 1;
            }
        });
        if line.borrow().standing.is_empty() {
            lines.remove(&self.batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        sync::atomic::{AtomicBool, Ordering::SeqCst},
        task::{Context, Poll, Wake, Waker},
    };

    use super::*;

    /// Stands in the only line, with a first look at a batch that does not reach the offset.
    fn stand(lines: &Lines<()>, offset: u64) -> InLine<()> {
        let mut place = lines.join((), Some(offset));
        place.arm();
        place
    }

    fn leave(mut place: InLine<()>, end: u64) {
        place.tell(end);
    }

    /// What a wait has come to by now, for one that began before.
    fn now<T>(wait: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        wait.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Whether a place would still wait if it began now.
    fn waits(place: &mut InLine<()>, drain: &Drain) -> bool {
        now(pin!(place.turn(drain))).is_pending()
    }

    #[tokio::test]
    async fn a_gap_waits_for_nobody_behind_it_nor_beside_it() {
        let (_start, drain) = Drain::new();
        let lines = Lines::default();
        let mut places = [8, 8, 16].map(|offset| stand(&lines, offset));
        assert!(matches!(places[0].turn(&drain).await, Ok(false)));
        assert!(matches!(places[1].turn(&drain).await, Ok(false)));
        assert!(waits(&mut places[2], &drain));
    }

    #[tokio::test]
    async fn only_the_one_whose_turn_it_is_looks_again_and_a_join_wakes_nobody() {
        let (_start, drain) = Drain::new();
        let lines = Lines::default();
        let mut places: Vec<_> = (0..32).map(|number| stand(&lines, number * 10)).collect();
        let mut first = places.remove(0);
        assert!(matches!(first.turn(&drain).await, Ok(false)), "nobody is before it");
        leave(first, 10);
        let waiting: Vec<bool> = places.iter_mut().map(|place| waits(place, &drain)).collect();
        assert_eq!(waiting.iter().position(|waits| *waits), Some(1));
        assert!(waiting[1..].iter().all(|waits| *waits));

        let mut last = places.pop().expect("31 of them");
        let mut wait = pin!(last.turn(&drain));
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let joined = stand(&lines, 5);
        assert!(!flag.0.load(SeqCst));
        leave(joined, 310);
        assert!(flag.0.load(SeqCst));
        assert!(matches!(now(wait), Poll::Ready(Ok(true))), "the batch reaches its offset by another way");
    }

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    #[tokio::test]
    async fn those_who_wait_look_again_when_the_last_before_them_has_left_without_success() {
        let (_start, drain) = Drain::new();
        let lines = Lines::default();
        let (first, mut second, mut third) = (stand(&lines, 0), stand(&lines, 10), stand(&lines, 20));
        assert!(waits(&mut second, &drain) && waits(&mut third, &drain));
        drop(first);
        assert!(matches!(second.turn(&drain).await, Ok(true)));
        assert!(waits(&mut third, &drain), "the second may still fill the gap");
        second.arm();
        assert!(matches!(second.turn(&drain).await, Ok(false)), "it looked in vain");
        drop(second);
        assert!(matches!(third.turn(&drain).await, Ok(true)));
        drop(third);
        assert!(lines.lock().is_empty(), "nothing is kept of a line in which nobody stands");
    }

    #[tokio::test]
    async fn one_deadline_bounds_all_waits_and_a_drain_ends_them() {
        let (start, drain) = Drain::new();
        let lines = Lines::default();
        let (_first, mut second) = (stand(&lines, 0), stand(&lines, 10));
        start.raise();
        assert!(matches!(second.turn(&drain).await, Err(Refusal::Stopping)));
        second.deadline = Instant::now();
        assert!(matches!(second.turn(&drain).await, Ok(false)));
        // What is stored elsewhere in the line prolongs nothing.
        leave(stand(&lines, 5), 7);
        assert!(matches!(second.turn(&drain).await, Ok(false)));
    }
}
