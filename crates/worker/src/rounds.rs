//! Periodic work that one process of a fleet does for all: whoever has done a round tells the others, whose own rounds then come later. Nothing relies on that: who
//! hears nothing does its rounds.

use std::time::Duration;

use store::{Overheard, Round, WorkerId, jitter};
use tokio::time::Instant;

/// Who has done a round does the next after this, earlier than the others would, so that its connection keeps the plans of the statements.
pub(crate) const INTERVAL_OWN: Duration = Duration::from_millis(700);
/// After this the others come,
const INTERVAL_OTHERS: Duration = Duration::from_millis(800);
/// one by one within so much: if who did them is gone, another does one a second after the last at the latest.
const SPREAD: Duration = Duration::from_millis(200);

/// When rounds of one kind are due for one process.
pub(crate) struct Rounds {
    overheard: Overheard,
    worker: WorkerId,
    due: Due,
}

/// What happened first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// A round of this process is due.
    Own,
    /// Another one has told of a round.
    Other(Round),
}

impl Rounds {
    pub(crate) fn new(overheard: Overheard, worker: WorkerId, first: Duration) -> Self {
        Self { overheard, worker, due: Due(Instant::now() + first) }
    }

    /// This process has done a round; the next one is due after this.
    pub(crate) fn done(&mut self, next: Duration) {
        self.due = Due(Instant::now() + next);
    }

    /// Waits for what comes first. A round of another process that `counts` is as good as one of this.
    pub(crate) async fn next(&mut self, counts: fn(Round) -> bool) -> Next {
        loop {
            let (worker, round) = tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.due.0) => return Next::Own,
                told = self.overheard.round() => told,
            };
            if worker != self.worker && counts(round) {
                self.due = Due::after_another(Instant::now(), jitter(SPREAD));
                return Next::Other(round);
            }
        }
    }
}

/// When the next round is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due(Instant);

impl Due {
    /// Another process has told of its round now; `lot` is a part of the spread.
    fn after_another(now: Instant, lot: Duration) -> Self {
        Self(now + INTERVAL_OTHERS + lot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A notice is heard after this.
    const HEARD: Duration = Duration::from_millis(2);

    #[test]
    fn one_of_many_does_the_rounds_and_when_it_dies_another_does_one_a_second_after_its_last() {
        let begin = Instant::now();
        let mut fleet = [Due(begin); 64];
        let mut alive = fleet.len();
        let (mut now, mut told) = (begin, 0);
        while alive > 1 {
            // Who is due first does ten rounds and dies.
            let doer = (0..alive).min_by_key(|worker| fleet[*worker]).expect("some live");
            assert!(fleet[doer].0 <= now + Duration::from_secs(1) + HEARD);
            for _ in 0..10 {
                now = now.max(fleet[doer].0);
                told += 1;
                fleet = fleet.map(|_| Due::after_another(now + HEARD, jitter(SPREAD)));
                fleet[doer] = Due(now + INTERVAL_OWN);
                assert!((0..alive).all(|other| fleet[doer] <= fleet[other]), "others leave it theirs");
            }
            alive -= 1;
            fleet.swap(doer, alive);
        }
        assert_eq!(told, 630);
    }
}
