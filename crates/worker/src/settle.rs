//! What becomes of a job: stored, given back, held back.

use std::{collections::BTreeMap, slice, sync::Arc, time::Duration};

use store::{Done, JobKey, Turn, Turned};
use tokio::time::Instant;

use crate::lane::{Ended, Lane, Price, Waiting, is_for_good};

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

/// What is stored of one batch at once.
#[derive(Clone, Copy, Default, Debug)]
struct Share {
    puzzles: u32,
    /// Solver time of all of them.
    spent: Duration,
    /// What they were taken to cost.
    charged: Duration,
    /// Its last jobs may be among them.
    may_be_last: bool,
}

impl Lane {
    /// Stores what is done of jobs and gives the rest back; with that, claims so many jobs, which it gives.
    pub(crate) async fn settle(&self, ended: Vec<Ended<'_>>, claim: usize) -> Vec<Waiting<'_>> {
        let shared = &self.shared;
        let (mut done, mut held) = (Vec::new(), Vec::new());
        for Ended { job, answer } in ended {
            let key = job.key;
            match answer.solved {
                Ok(Some(completion)) => {
                    let rest = self.rest_of(&job, completion.mid, answer.spent);
                    let price = Price { spent: answer.spent, charged: job.cost };
                    done.push((Done { key, completion, rest }, price));
                }
                Ok(None) => self.put_back(key).await,
                Err(error) => {
                    tracing::error!(batch.id = key.batch_id, job.lo = key.lo, %error, "a job's puzzles cannot be read");
                    self.hold_back(key).await;
                }
            }
            held.push((key, job.held));
        }
        let (done, prices): (Vec<Done>, Vec<Price>) = done.into_iter().unzip();
        let jobs = if done.is_empty() {
            self.go_on(claim).await
        } else {
            self.complete(&done, &prices, claim).await
        };
        for (key, held) in held {
            if held.lease.is_cancelled() {
                // What was put back is not wanted by anyone.
                shared.drop_cancelled(key.batch_id).await;
            }
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

    /// Stores what is done; keeps trying while the database is away, for the work is worth more than the wait, and while it is away nobody else can take the jobs.
    async fn complete(&self, done: &[Done], prices: &[Price], claim: usize) -> Vec<Waiting<'_>> {
        let shared = &self.shared;
        let for_good = done.iter().any(|done| is_for_good(&done.completion));
        let store = if for_good { &shared.durable } else { &shared.turns };
        let give_up = Instant::now() + KEPT_MAX;
        let mut is_repeat = false;
        let turned = loop {
            match store.turn(shared.id, shared.config.lease, &Turn { done, claim }).await {
                Ok(turned) => break turned,
                Err(error) if error.is_transient() && Instant::now() < give_up && !shared.is_stopping() => {
                    tracing::warn!(jobs = done.len(), %error, "cannot store results; trying again");
                    is_repeat = true;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => {
                    self.give_up(done, prices, &error).await;
                    return self.go_on(claim).await;
                }
            }
        };
        let Turned { stored, maybe_ended, jobs } = turned;
        // Before anything else: from here on they are prolonged.
        let claimed = jobs.into_iter().map(|job| self.hold(job)).collect();
        self.account(done, prices, &stored, &maybe_ended, is_repeat).await;
        claimed
    }

    /// What could not be stored is solved again: at once if the database was away, and otherwise later. One of several may be all that is wrong, so each is tried by
    /// itself before that.
    async fn give_up(&self, done: &[Done], prices: &[Price], error: &store::Error) {
        if done.len() > 1 && !error.is_transient() {
            for (done, price) in done.iter().zip(prices) {
                Box::pin(self.complete(slice::from_ref(done), slice::from_ref(price), 0)).await;
            }
            return;
        }
        for Done { key, .. } in done {
            tracing::error!(batch.id = key.batch_id, job.lo = key.lo, %error, "results could not be stored; the job will be solved again");
            if error.is_transient() {
                self.give_back(*key).await;
            } else {
                self.hold_back(*key).await;
            }
        }
    }

    /// Tells of what is stored, batch by batch, and corrects what their puzzles are taken to cost.
    async fn account(
        &self,
        done: &[Done],
        prices: &[Price],
        stored: &[JobKey],
        maybe_ended: &[i64],
        is_repeat: bool,
    ) {
        let mut batches = BTreeMap::<i64, Share>::new();
        for (Done { key, completion, .. }, price) in done.iter().zip(prices) {
            if self.is_refused(*key, stored.contains(key), is_repeat) {
                continue;
            }
            let share = batches.entry(key.batch_id).or_default();
            let puzzles = u32::try_from(completion.mid - key.lo).unwrap_or(u32::MAX);
            share.puzzles += puzzles;
            share.spent += price.spent;
            share.charged += price.charged * puzzles;
            share.may_be_last |=
                maybe_ended.contains(&key.batch_id) || (is_repeat && completion.mid == key.hi);
        }
        for (batch_id, share) in batches {
            self.tell(batch_id, share.may_be_last).await;
            self.correct_price(batch_id, share);
        }
    }

    /// Whether the lease was lost and the work with it; told to the log.
    fn is_refused(&self, key: JobKey, is_stored: bool, is_repeat: bool) -> bool {
        let worker = self.shared.id;
        match (is_stored, is_repeat) {
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
    async fn tell(&self, batch_id: i64, may_be_last: bool) {
        if !(may_be_last && self.shared.finish(batch_id).await) {
            self.shared.notices.results(batch_id);
        }
    }

    /// Corrects what the batch's puzzles are taken to cost, if they have cost far more or less. Apart from the lane, which has other things to do than to wait.
    fn correct_price(&self, batch_id: i64, Share { puzzles, spent, charged, .. }: Share) {
        let puzzles = puzzles.max(1);
        let cost = (spent / puzzles).max(store::PUZZLE_COST_MIN);
        let charged_each = charged / puzzles;
        let is_off = cost > charged_each * 2 || cost < charged_each / 4;
        if is_off && spent.max(charged) >= TELLING {
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
                self.tell(key.batch_id, true).await;
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
