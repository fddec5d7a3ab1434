//! One lane: claim a job, have it solved, complete it, again.

use std::{sync::Arc, time::Duration};

use store::{Completion, Error, Job, JobKey};
use tokio::time::Instant;

use crate::{
    Shared,
    slice::Slice,
    solver_thread::{Solved, SolverThread},
};

/// An idle lane looks again after this, whatever notifications say.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a job that cannot be done is left alone.
const HOLD_BACK: Duration = Duration::from_secs(60);
/// How long results are kept for a database that is away.
const KEPT_MAX: Duration = Duration::from_secs(600);
/// How long giving a lease back may take once the worker is stopping.
pub(crate) const GIVE_BACK_MAX: Duration = Duration::from_millis(1_500);

pub(crate) struct Lane {
    shared: Arc<Shared>,
    thread: SolverThread,
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>, thread: SolverThread) -> Self {
        Self { shared, thread }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Works until the worker is stopping, or its thread is gone.
    pub(crate) async fn run(self) {
        let shared = &self.shared;
        let mut wakes = shared.waker.jobs();
        while !shared.is_stopping() {
            // Not while a blamed job has the process for itself.
            let together = tokio::select! {
                together = shared.room.read() => together,
                () = shared.stopping() => return,
            };
            wakes.arm();
            match shared.store.claim(shared.id, 1, shared.config.lease).await {
                Ok(jobs) if jobs.is_empty() => {
                    drop(together);
                    tokio::select! {
                        _ = wakes.wait(IDLE_POLL) => {}
                        () = shared.stopping() => {}
                    }
                }
                Ok(jobs) => {
                    for job in jobs {
                        if !self.work(job).await {
                            return;
                        }
                    }
                }
                Err(error) => {
                    drop(together);
                    tracing::warn!(worker.id = %shared.id, %error, "cannot claim; trying again");
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_PAUSE) => {}
                        () = shared.stopping() => {}
                    }
                }
            }
        }
    }

    /// One lease, from claim to its end. Returns whether the lane can go on.
    pub(crate) async fn work(&self, job: Job) -> bool {
        let shared = &self.shared;
        let key = job.key;
        let held = shared.leases.hold(key);
        tracing::debug!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            "claimed"
        );
        if job.is_cancelled {
            self.put_back(key).await;
            return true;
        }
        match self.solve(job, Slice::new(Arc::clone(&held.lease.stop))).await {
            Some(Ok(Some(completion))) => self.complete(key, completion).await,
            Some(Ok(None)) => self.put_back(key).await,
            Some(Err(error)) => {
                tracing::error!(batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, %error, "a job's puzzles cannot be read");
                self.hold_back(key).await;
            }
            None => {
                tracing::error!(worker.id = %shared.id, "a solver thread is gone");
                self.give_back(key).await;
                return false;
            }
        }
        if held.lease.is_cancelled() {
            // What was put back is not wanted by anyone.
            shared.drop_cancelled(key.batch_id).await;
        }
        true
    }

    /// One slice of a job; `None`: the thread is gone.
    async fn solve(&self, job: Job, slice: Slice) -> Option<Solved> {
        let slice = Arc::new(slice);
        let mut solving = std::pin::pin!(self.thread.solve(job, Arc::clone(&slice)));
        for step in [Slice::end, Slice::cut] {
            tokio::select! {
                solved = &mut solving => return solved,
                () = tokio::time::sleep(self.shared.config.slice) => step(&slice),
            }
        }
        solving.await
    }

    /// Stores what is done; keeps trying while the database is away, for the work is worth more than the wait, and while it is away nobody else can take the job.
    async fn complete(&self, key: JobKey, completion: Completion) {
        let shared = &self.shared;
        let whole = completion.mid == key.hi;
        let give_up = Instant::now() + KEPT_MAX;
        let mut is_repeat = false;
        // What says that a puzzle has no answer is for good, so it waits for the disk.
        let for_good = completion.counts.undecided + completion.counts.failed > 0;
        let store = if for_good { &shared.durable } else { &shared.store };
        loop {
            match store.complete(shared.id, key, completion.clone()).await {
                Ok(()) => break,
                Err(Error::LeaseLost) if is_repeat => {
                    // The first try may have been stored although its answer was lost: tell the streams, they will see.
                    tracing::info!(
                        batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, lease.attempt = key.attempt, worker.id = %shared.id,
                        "results were stored by an earlier try, or their lease was lost"
                    );
                    break;
                }
                Err(Error::LeaseLost) => {
                    tracing::warn!(
                        batch.id = key.batch_id, job.lo = key.lo, job.hi = key.hi, lease.attempt = key.attempt, worker.id = %shared.id,
                        "a late completion was refused: the lease was lost, the work is thrown away"
                    );
                    return;
                }
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
                    return;
                }
            }
        }
        if whole {
            shared.finish(key.batch_id).await;
        }
        // Once, after the end if this was it: the next notice of the same batch may be held back for a moment.
        shared.notices.results(key.batch_id);
    }

    /// Leaves a job that cannot be done just now alone for a while: given back, it would be claimed again at once, before all others.
    async fn hold_back(&self, key: JobKey) {
        if let Err(error) = self.shared.store.hold_back(self.shared.id, key, HOLD_BACK).await {
            tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "a job could not be held back; its lease will run out");
        }
    }

    /// A lease of which nothing was done: dropped if its batch is being cancelled, otherwise given back. A worker that is stopping has no time to ask.
    async fn put_back(&self, key: JobKey) {
        let shared = &self.shared;
        if shared.is_stopping() {
            return self.give_back(key).await;
        }
        match shared.durable.drop_held(shared.id, key).await {
            Ok(true) => {
                shared.finish(key.batch_id).await;
                shared.notices.results(key.batch_id);
            }
            Ok(false) => self.give_back(key).await,
            Err(error) => {
                tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "cannot look whether a batch is being cancelled");
                self.give_back(key).await;
            }
        }
    }

    async fn give_back(&self, key: JobKey) {
        let shared = &self.shared;
        let released = tokio::time::timeout(GIVE_BACK_MAX, shared.store.release(shared.id, &[key])).await;
        match released {
            Ok(Ok(0)) => {
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
