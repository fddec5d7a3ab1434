//! Upkeep of the queue, by one worker for all, whichever comes first: put back what dead workers held, end batches that are done.

use std::{sync::Arc, time::Duration};

use store::{Error, Expired, Round};
use tokio::time::Instant;

use crate::{
    Shared,
    rounds::{INTERVAL_OWN, Next, Rounds},
    tell_end,
    told::Told,
};

/// The least time between two rounds: one comes earlier than others if a lease ends earlier.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// For so long after the database was restarted, or was away for this worker, leases are not taken from workers that may be alive: they prolong them as soon
/// as they are connected again.
const RETURN_GRACE: Duration = Duration::from_secs(5);
/// An answer that takes this long counts as the database being away.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// How often jobs are looked for that were left behind the clock of the queue.
const CATCH_UP: Duration = Duration::from_secs(10);
/// A worker that leaves the rounds to others looks this often whether deaths were counted for it; earlier when it has lost a lease.
const ACQUIT: Duration = Duration::from_secs(5);
/// Jobs put back by one statement, at the most.
const EXPIRED_MAX: usize = 200;
/// Batches ended by one statement, at the most.
const FINISHED_MAX: usize = 100;
/// Such statements in one round.
const FINISHES_MAX: usize = 10;

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut rounds = Rounds::new(shared.waker.overhear(), shared.id, INTERVAL_MIN);
    let now = Instant::now();
    let mut upkeep =
        Upkeep { shared, back_at: None, told: Default::default(), caught_up_at: now, acquitted_at: now };
    loop {
        match rounds.next(|round| matches!(round, Round::Upkeep { .. })).await {
            Next::Own => rounds.done(upkeep.round().await),
            Next::Other(Round::Upkeep { any_blamed }) => upkeep.others_round(any_blamed).await,
            Next::Other(Round::Sweep) => {}
        }
    }
}

struct Upkeep {
    shared: Arc<Shared>,
    /// When the database was last found to be away, or just back.
    back_at: Option<Instant>,
    /// What was told of each part.
    told: [Told; 5],
    /// When jobs behind the clock were last looked for.
    caught_up_at: Instant,
    /// When deaths that were counted for this worker were last looked for.
    acquitted_at: Instant,
}

impl Upkeep {
    /// One round, which is told to the others if nothing failed; gives the time until the next. What fails does not keep the rest from being done.
    async fn round(&mut self) -> Duration {
        let begun = Instant::now();
        let acquitted = self.acquit().await;
        // The first statement of a round says whether the database is there.
        let is_away = acquitted.as_ref().is_err_and(Error::is_transient) || begun.elapsed() > ANSWER_MAX;
        if is_away {
            self.back_at = Some(Instant::now());
        }
        let expired = self.expire().await;
        let looked = self.look().await;
        let finished = self.finish().await;
        let caught_up = self.catch_up().await;
        let (until_next, failed_look) = match looked {
            Ok(until_next) => (until_next, None),
            Err(error) => (INTERVAL_OWN, Some(error)),
        };
        let failures = [acquitted.err(), expired.err(), failed_look, finished.err(), caught_up.err()];
        if failures.iter().all(Option::is_none) && !self.spares_leases() {
            self.tell_others().await;
        }
        for (told, failure) in self.told.iter_mut().zip(failures) {
            told.tell("upkeep failed; trying again", failure);
        }
        until_next
    }

    /// Another worker has done a round: what is left is what each does for itself.
    async fn others_round(&mut self, any_blamed: bool) {
        self.blamed_wait(any_blamed);
        if self.acquitted_at.elapsed() >= ACQUIT || self.shared.leases.any_lost() {
            let failure = self.acquit().await.err();
            self.told[0].tell("upkeep failed; trying again", failure);
        }
    }

    async fn tell_others(&self) {
        let Shared { store, id, any_blamed, .. } = &*self.shared;
        let round = Round::Upkeep { any_blamed: *any_blamed.borrow() };
        if let Err(error) = store.notify_round(*id, round).await {
            tracing::debug!(%error, "a round could not be told; others do theirs");
        }
    }

    /// Whether the database was away a moment ago.
    fn spares_leases(&self) -> bool {
        self.back_at.is_some_and(|back| back.elapsed() < RETURN_GRACE)
    }

    /// Takes back deaths that were counted for this worker, whatever it has lost and however: it is alive.
    async fn acquit(&mut self) -> Result<(), Error> {
        self.shared.leases.forget_lost();
        self.acquitted_at = Instant::now();
        let Shared { store, id, .. } = &*self.shared;
        let acquitted = store.acquit(*id).await;
        if acquitted.is_err() {
            self.shared.leases.remember_lost();
        }
        let jobs = acquitted?;
        if jobs > 0 {
            tracing::info!(worker.id = %id, jobs, "a death was taken back: this worker is alive");
        }
        Ok(())
    }

    async fn expire(&self) -> Result<(), Error> {
        if self.spares_leases() {
            return Ok(());
        }
        // What is beyond that is seen by the look: the next round comes soon.
        for expired in self.shared.durable.expire(EXPIRED_MAX, RETURN_GRACE).await? {
            tell_expiry(&expired);
            if expired.failed {
                self.shared.notices.results(expired.key.batch_id);
            }
        }
        Ok(())
    }

    /// Looks whether blamed jobs wait; gives the time until the first lease ends, within bounds.
    async fn look(&self) -> Result<Duration, Error> {
        let look = self.shared.durable.look().await?;
        self.blamed_wait(look.any_blamed);
        Ok(look.lease_left.unwrap_or(INTERVAL_OWN).clamp(INTERVAL_MIN, INTERVAL_OWN))
    }

    /// Tells the quarantine whether blamed jobs wait.
    fn blamed_wait(&self, any_blamed: bool) {
        self.shared.any_blamed.send_if_modified(|any| std::mem::replace(any, any_blamed) != any_blamed);
    }

    /// From time to time: looking takes long where an old snapshot keeps what is dead.
    async fn catch_up(&mut self) -> Result<(), Error> {
        if self.caught_up_at.elapsed() >= CATCH_UP {
            self.caught_up_at = Instant::now();
            while self.shared.store.catch_up().await? > 0 {
                tracing::info!("jobs that were left behind have caught up");
            }
        }
        Ok(())
    }

    async fn finish(&self) -> Result<(), Error> {
        // One worker for all: what many would have ended in a round is ended in steps.
        for _ in 0..FINISHES_MAX {
            let all_ended = self.shared.durable.finish_any(FINISHED_MAX).await?;
            for ended in &all_ended {
                tell_end(ended);
                self.shared.notices.ended(ended.id);
            }
            if all_ended.len() < FINISHED_MAX {
                break;
            }
        }
        Ok(())
    }
}

fn tell_expiry(expired: &Expired) {
    let Expired { key, deaths, was_started, failed } = *expired;
    if failed {
        tracing::warn!(
            batch.id = key.batch_id,
            index = key.lo,
            deaths,
            "a puzzle has ended its workers again and again: it is FAILED"
        );
    } else if was_started {
        tracing::warn!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            deaths,
            "a lease has run out; its job is put back"
        );
    } else {
        tracing::info!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            "a job that was held back is ready again"
        );
    }
}
