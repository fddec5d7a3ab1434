//! What becomes of a job: stored, given back, held back.

use std::{sync::Arc, time::Duration};

use store::{Done, JobKey, Turn, Turned};
use tokio::time::Instant;

use crate::{
    lane::{Lane, Price, Running, Waiting},
    solver_thread::Answer,
};

/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a job that cannot be done is left alone.
const HOLD_BACK: Duration = Duration::from_secs(60);
/// How long results are kept for a database that is away.
const KEPT_MAX: Duration = Duration::from_secs(600);
/// How long giving a lease back may take once the worker is stopping.
pub(crate) const GIVE_BACK_MAX: Duration = Duration::from_millis(1_500);
/// What took less, and was taken to, says little about what the puzzles of a batch cost.
const TELLING: Duration = Duration::from_millis(5);

impl Lane {
    /// Stores what is done of a job and gives the rest back; in the same statement, claims so many jobs, which it gives.
    pub(crate) async fn settle(
        &self,
        running: Running<'_>,
        answer: Answer,
        claim: usize,
    ) -> Vec<Waiting<'_>> {
        let shared = &self.shared;
        let key = running.key;
        let jobs = match answer.solved {
            Ok(Some(completion)) => {
                let rest = self.rest_of(&running, completion.mid, answer.spent);
                let price = Price { spent: answer.spent, charged: running.cost };
                self.complete(Done { key, completion, rest }, price, claim).await
            }
            Ok(None) => {
                self.put_back(key).await;
                self.go_on(claim).await
            }
            Err(error) => {
                tracing::error!(batch.id = key.batch_id, job.lo = key.lo, %error, "a job's puzzles cannot be read");
                self.hold_back(key).await;
                self.go_on(claim).await
            }
        };
        if running.held.lease.is_cancelled() {
            // What was put back is not wanted by anyone.
            shared.drop_cancelled(key.batch_id).await;
        }
        jobs
    }

    /// Claims with nothing to store.
    async fn go_on(&self, claim: usize) -> Vec<Waiting<'_>> {
        let shared = &self.shared;
        if claim == 0 {
            return Vec::new();
        }
        match shared.turns.claim(shared.id, claim, shared.config.lease).await {
            Ok(jobs) => jobs.into_iter().map(|job| self.hold(job)).collect(),
            Err(error) => {
                tracing::warn!(worker.id = %shared.id, %error, "cannot claim; trying again");
                Vec::new()
            }
        }
    }

    /// Stores what is done; keeps trying while the database is away, for the work is worth more than the wait, and while it is away nobody else can take the job.
    async fn complete(&self, done: Done, price: Price, claim: usize) -> Vec<Waiting<'_>> {
        let shared = &self.shared;
        let (key, counts) = (done.key, done.completion.counts);
        // What says that a puzzle has no answer is for good, so it waits for the disk.
        let for_good = counts.undecided + counts.failed > 0;
        let store = if for_good { &shared.durable } else { &shared.turns };
        let turn = Turn { done: Some(&done), claim };
        let give_up = Instant::now() + KEPT_MAX;
        let mut is_repeat = false;
        let turned = loop {
            match store.turn(shared.id, shared.config.lease, &turn).await {
                Ok(turned) => break turned,
                Err(error) if error.is_transient() && Instant::now() < give_up && !shared.is_stopping() => {
                    tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "cannot store results; trying again");
                    is_repeat = true;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(batch.id = key.batch_id, job.lo = key.lo, %error, "results could not be stored; the job will be solved again");
                    if error.is_transient() {
                        self.give_back(key).await;
                    } else {
                        self.hold_back(key).await;
                    }
                    return self.go_on(claim).await;
                }
            }
        };
        let may_be_last = turned.may_be_last || (is_repeat && done.completion.mid == key.hi);
        let is_refused = self.is_refused(key, &turned, is_repeat);
        // Before anything else: from here on they are prolonged.
        let claimed = turned.jobs.into_iter().map(|job| self.hold(job)).collect();
        if !is_refused {
            self.tell(key, may_be_last).await;
            self.correct_price(&done, price);
        }
        claimed
    }

    /// Whether the lease was lost and the work with it; told to the log.
    fn is_refused(&self, key: JobKey, turned: &Turned, is_repeat: bool) -> bool {
        let worker = self.shared.id;
        match (turned.is_stored, is_repeat) {
            (true, _) => false,
            (false, true) => {
                // The first try may have been stored although its answer was lost: tell the streams, they will see.
                tracing::info!(
                    batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, lease.attempt = key.attempt, worker.id = %worker,
                    "results were stored by an earlier try, or their lease was lost"
                );
                false
            }
            (false, false) => {
                self.shared.leases.lost(key);
                tracing::warn!(
                    batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, lease.attempt = key.attempt, worker.id = %worker,
                    "a late completion was refused: the lease was lost, the work is thrown away"
                );
                true
            }
        }
    }

    /// Tells of results that are stored: of their batch's end, if this was it, and of them otherwise.
    async fn tell(&self, key: JobKey, may_be_last: bool) {
        if !(may_be_last && self.shared.finish(key.batch_id).await) {
            self.shared.notices.results(key.batch_id);
        }
    }

    /// Corrects what the batch's puzzles are taken to cost, if they have cost far more or less. Apart from the lane, which has other things to do than to wait.
    fn correct_price(&self, done: &Done, price: Price) {
        let batch_id = done.key.batch_id;
        let puzzles = u32::try_from(done.completion.mid - done.key.lo).unwrap_or(u32::MAX).max(1);
        let cost = (price.spent / puzzles).max(store::PUZZLE_COST_MIN);
        let is_off = cost > price.charged * 2 || cost < price.charged / 4;
        if is_off && price.spent.max(price.charged * puzzles) >= TELLING {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                if let Err(error) = shared.store.reprice(batch_id, cost).await {
                    tracing::debug!(batch.id = batch_id, %error, "what its puzzles cost could not be corrected");
                }
            });
        }
    }

    /// Leaves a job that cannot be done just now alone for a while: given back, it would be claimed again at once, before all others.
    async fn hold_back(&self, key: JobKey) {
        if let Err(error) = self.shared.store.hold_back(self.shared.id, key, HOLD_BACK).await {
            tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "a job could not be held back; its lease will run out");
        }
    }

    /// A lease of which nothing was done: dropped if its batch is being cancelled, otherwise given back. A worker that is stopping has no time to ask.
    pub(crate) async fn put_back(&self, key: JobKey) {
        let shared = &self.shared;
        if shared.is_stopping() {
            return self.give_back(key).await;
        }
        match shared.durable.drop_held(shared.id, key).await {
            Ok(true) => {
                self.tell(key, true).await;
            }
            Ok(false) => self.give_back(key).await,
            Err(error) => {
                tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "cannot look whether a batch is being cancelled");
                self.give_back(key).await;
            }
        }
    }

    pub(crate) async fn give_back(&self, key: JobKey) {
        let shared = &self.shared;
        let released = tokio::time::timeout(GIVE_BACK_MAX, shared.store.release(shared.id, &[key])).await;
        match released {
            Ok(Ok(0)) => {
                shared.leases.lost(key);
                tracing::warn!(
                    batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, lease.attempt = key.attempt, worker.id = %shared.id,
                    "a lease was lost before anything of it was done"
                );
            }
            Ok(Ok(_)) => {
                tracing::info!(batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, worker.id = %shared.id, "lease given back");
            }
            Ok(Err(error)) => {
                tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "a lease could not be given back; it will run out");
            }
            Err(_) => {
                tracing::warn!(
                    batch.id = key.batch_id,
                    job.lo = key.lo,
                    "a lease could not be given back in time; it will run out"
                );
            }
        }
    }
}
