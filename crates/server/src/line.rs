//! Appends to one batch that are under way at this server at the same time: one that has come before its turn waits for those before it, and lets the one whose turn it
//! is store its puzzles together with its own, for a statement and a commit cost about the same for one message and for four.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use store::{Batch, TenantId};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

use crate::{
    drain::Drain,
    intake::{Appended, PackedPuzzles},
    limits::{APPEND_WAIT_MAX, GAP_WAIT},
    status::Refusal,
};

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
    /// What those who wait would have stored, by their offsets.
    offers: BTreeMap<u64, Offer>,
    /// The batch as it was last told by one who has left. One that was deleted and made again may end before that.
    batch: Option<Batch>,
    /// How many have told so.
    told: u64,
}

/// Puzzles that somebody else may store. Dropped, they were not: their owner looks for itself.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) puzzles: Arc<PackedPuzzles>,
    reply: oneshot::Sender<Appended>,
}

impl Offer {
    /// Tells the owner.
    pub(crate) fn stored(self, appended: Appended) {
        // Nobody waits any more: its call was cut, like one whose answer is lost.
        self.reply.send(appended).ok();
    }
}

/// What a wait has come to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Another has stored the puzzles.
    Stored(Appended),
    /// Another look at the batch is worth while.
    Look,
    /// This is the batch, unless somebody elsewhere was at it, and it ends at the offset.
    At(Batch),
    /// There was nobody to wait for, or it takes too long.
    Nobody,
}

impl Line {
    /// Where the batch ended by the word of those who have left.
    fn end(&self) -> Option<u64> {
        Some(self.batch.as_ref()?.puzzle_count)
    }

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
        let now = Instant::now();
        let (deadline, gap_deadline) = (now + APPEND_WAIT_MAX, now + GAP_WAIT);
        InLine {
            lines: self.clone(),
            batch,
            line,
            offset,
            deadline,
            gap_deadline,
            armed: Armed::NEVER,
            told: None,
        }
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
    /// One for those who have not come yet, for messages that are under way together arrive in any order.
    gap_deadline: Instant,
    armed: Armed,
    /// The batch as it leaves it.
    told: Option<Batch>,
}

/// The line as it was before the last look at the batch.
#[derive(Clone, Copy, Debug)]
struct Armed {
    is_anyone_before: bool,
    told: u64,
}

impl Armed {
    /// It has not been looked at.
    const NEVER: Self = Self { is_anyone_before: false, told: u64::MAX };
}

impl<K: Eq + Hash> InLine<K> {
    /// What happens from now on is waited for: call it before the look that tells whether to wait.
    pub(crate) fn arm(&mut self) {
        let line = self.line.borrow();
        self.armed = Armed { is_anyone_before: line.is_anyone_before(self.offset), told: line.told };
    }

    /// Waits until somebody before it has stored these puzzles, which it offers, or has told that the batch reaches its offset, or nobody is before it any more. If there
    /// is nobody from the start it waits a moment for them to come.
    ///
    /// # Errors
    /// [`Refusal::Stopping`].
    pub(crate) async fn turn(
        &mut self,
        drain: &Drain,
        puzzles: &Arc<PackedPuzzles>,
    ) -> Result<Turn, Refusal> {
        let (offset, armed) = (self.offset, self.armed);
        let offered = self.offer(puzzles);
        let reaches = |line: &Line| line.told != armed.told && line.end().is_some_and(|end| end >= offset);
        let come = tokio::select! {
            biased;
            come = self.come(reaches) => Ok(come),
            () = drain.started() => Err(Refusal::Stopping),
        };
        if let Some(offered) = offered
            && !self.withdraw(puzzles)
        {
            // It was taken: what comes of that comes soon. If it was not stored, it is for another look.
            return Ok(offered.await.map_or(Turn::Look, Turn::Stored));
        }
        if !come? {
            return Ok(Turn::Nobody);
        }
        let line = self.line.borrow();
        let is_at = reaches(&line) && line.end() == Some(offset);
        Ok(line.batch.clone().filter(|_| is_at).map_or(Turn::Look, Turn::At))
    }

    /// Waits until another look is worth while. `false`: there was nobody to wait for, or it takes too long.
    async fn come(&mut self, reaches: impl Fn(&Line) -> bool) -> bool {
        if Instant::now() >= self.deadline {
            return false;
        }
        let (offset, armed) = (self.offset, self.armed);
        let is_alone = |line: &Line| {
            !armed.is_anyone_before && !line.is_anyone_before(offset) && line.told == armed.told
        };
        let is_first = is_alone(&self.line.borrow());
        if is_first && timeout_at(self.gap_deadline, self.line.wait_for(&reaches)).await.is_ok() {
            return true;
        }
        if is_first && is_alone(&self.line.borrow()) {
            return false;
        }
        let turn = self.line.wait_for(|line| !line.is_anyone_before(offset) || reaches(line));
        timeout_at(self.deadline, turn).await.is_ok_and(|turn| turn.is_ok())
    }

    /// Changes the line without waking anybody.
    fn change<T>(&self, change: impl FnOnce(&mut Line) -> T) -> Option<T> {
        let lines = self.lines.lock();
        let mut changed = None;
        lines.get(&self.batch)?.send_if_modified(|line| {
            changed = Some(change(line));
            false
        });
        changed
    }

    /// `None`: somebody else offers at this offset.
    fn offer(&self, puzzles: &Arc<PackedPuzzles>) -> Option<oneshot::Receiver<Appended>> {
        self.change(|line| {
            let Entry::Vacant(place) = line.offers.entry(self.offset) else { return None };
            let (reply, offered) = oneshot::channel();
            place.insert(Offer { puzzles: Arc::clone(puzzles), reply });
            Some(offered)
        })?
    }

    /// Whether its offer was still there.
    fn withdraw(&self, puzzles: &Arc<PackedPuzzles>) -> bool {
        let is_withdrawn = self.change(|line| {
            let is_own = |offer: &Offer| Arc::ptr_eq(&offer.puzzles, puzzles);
            let is_there = line.offers.get(&self.offset).is_some_and(is_own);
            if is_there {
                line.offers.remove(&self.offset);
            }
            is_there
        });
        is_withdrawn == Some(true)
    }

    /// Takes what is offered at an offset, if `may` agrees.
    pub(crate) fn take<T>(
        &self,
        offset: u64,
        may: impl FnOnce(&PackedPuzzles) -> Option<T>,
    ) -> Option<(Offer, T)> {
        self.change(|line| {
            let agreed = may(&line.offers.get(&offset)?.puzzles)?;
            Some((line.offers.remove(&offset)?, agreed))
        })?
    }

    /// Tells those who stay, when it leaves, how the batch is.
    pub(crate) fn tell(&mut self, batch: Batch) {
        self.told = Some(batch);
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
            // Those whose calls were cut.
            line.offers.retain(|_, offer| !offer.reply.is_closed());
            if let Some(batch) = self.told.take() {
                // Of two that were stored one after the other the earlier may leave last.
                let is_behind =
                    |told: &Batch| told.key == batch.key && told.puzzle_count > batch.puzzle_count;
                if !line.batch.as_ref().is_some_and(is_behind) {
                    line.batch = Some(batch);
                }
                line.told += 1;
            }
        });
        if line.borrow().standing.is_empty() {
            lines.remove(&self.batch);
        }
    }
}

#[cfg(test)]
mod tests;
