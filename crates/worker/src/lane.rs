//! One lane: claims jobs, has them solved, stores what came of them. While one is solved the next are here already, and several are stored and claimed at once
//! while they take little.

use std::{collections::VecDeque, mem, sync::Arc, time::Duration};

use store::{Completion, Job, JobKey, Rest, Wakes};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    Shared,
    idle::Idle,
    leases::Held,
    rest,
    slice::Slice,
    solver_thread::{Answer, SolverThread},
};

/// Pause after a failure of the database.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// A job is claimed ahead of its time only while jobs take less than this, so that it does not wait here while others are idle.
const AHEAD_JOB_MAX: Duration = Duration::from_millis(25);
/// And it is given back when the one before it has taken this long; what is done is stored then at the latest.
const AHEAD_WAIT_MAX: Duration = Duration::from_millis(50);
/// So many jobs are claimed, and stored, at once as take about this long; what a statement costs is then shared by them.
const AT_ONCE: Duration = Duration::from_millis(8);
/// But no more than this: they are solved by nobody else meanwhile.
const AT_ONCE_MAX: usize = 4;

/// What a lane is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Jobs that do not take long.
    Short,
    /// Jobs whose puzzles may take long, and only those: the process has fewer of these lanes than threads, so that long counts never have all of them.
    Long,
    /// Jobs over which a worker has died, one at a time.
    Blamed,
}

/// A lane with its solver thread.
pub(crate) struct Lane {
    pub(crate) shared: Arc<Shared>,
    thread: SolverThread,
    kind: Kind,
}

/// A claimed job that is not begun.
pub(crate) struct Waiting<'a> {
    job: Job,
    held: Held<'a>,
}

/// A job that is being solved.
pub(crate) struct Running<'a> {
    pub(crate) key: JobKey,
    pub(crate) held: Held<'a>,
    /// Solver time that each of its puzzles was taken to cost.
    pub(crate) cost: Duration,
    slice: Arc<Slice>,
    began: Instant,
    answer: oneshot::Receiver<Answer>,
}

/// A job whose slice has ended, not stored yet.
pub(crate) struct Ended<'a> {
    pub(crate) job: Running<'a>,
    pub(crate) answer: Answer,
}

/// What a lane holds beside the job that is being solved.
#[derive(Default)]
struct Hand<'a> {
    /// To be begun, in this order.
    ahead: VecDeque<Waiting<'a>>,
    /// To be stored.
    done: Vec<Ended<'a>>,
}

/// The thread of a lane is gone, by a fault of the program.
pub(crate) struct Gone;

/// What a lane did between two pauses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Worked {
    /// Jobs that it has solved, or slices of them.
    pub(crate) jobs: u32,
    /// It has looked for more and found none.
    pub(crate) is_dry: bool,
    /// As many jobs as the last of them lets be claimed at once.
    pub(crate) at_once: usize,
}

/// What the puzzles of a slice took, and what they were taken to cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// All of them.
    pub(crate) spent: Duration,
    /// Each of them.
    pub(crate) charged: Duration,
}

impl Lane {
    pub(crate) fn new(shared: Arc<Shared>, thread: SolverThread, kind: Kind) -> Self {
        Self { shared, thread, kind }
    }

    /// Works until the worker is stopping, or its thread is gone.
    pub(crate) async fn run(self) {
        let shared = &self.shared;
        let mut wakes = if self.kind == Kind::Long { shared.waker.long_jobs() } else { shared.waker.jobs() };
        let mut idle = Idle::RESTED;
        let mut at_once = 1;
        while !shared.is_stopping() {
            // Not while a blamed job has the process for itself.
            let together = tokio::select! {
                together = shared.room.read() => together,
                () = shared.stopping() => return,
            };
            wakes.arm();
            match self.claim(at_once).await {
                Ok(jobs) if !jobs.is_empty() => {
                    let Ok(worked) = self.work(jobs).await else {
                        tracing::error!(worker.id = %shared.id, "a solver thread is gone");
                        return;
                    };
                    drop(together);
                    idle = idle.after(worked);
                    at_once = worked.at_once.max(1);
                    // It has looked already. What it was called for since its last claim is kept, so nothing is missed.
                    if worked.is_dry {
                        self.rest(&mut idle, &mut wakes).await;
                    }
                }
                Ok(_) => {
                    drop(together);
                    self.rest(&mut idle, &mut wakes).await;
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

    /// Until it is time to look, or the worker is stopping.
    async fn rest(&self, idle: &mut Idle, wakes: &mut Wakes) {
        tokio::select! {
            () = idle.wait(wakes) => {}
            () = self.shared.stopping() => {}
        }
    }

    async fn claim(&self, at_once: usize) -> Result<Vec<Job>, store::Error> {
        let Shared { store, turns, id, config, .. } = &*self.shared;
        let one = match self.kind {
            Kind::Short => return turns.claim(*id, at_once, config.lease).await,
            Kind::Long => store.claim_long(*id, config.lease).await,
            Kind::Blamed => store.claim_blamed(*id, config.lease).await,
        };
        Ok(one?.into_iter().collect())
    }

    /// From one claimed job to the next, for as long as the queue gives them; other lanes than those for short jobs do just what was claimed.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) async fn work(&self, jobs: Vec<Job>) -> Result<Worked, Gone> {
        let mut worked = Worked::default();
        let mut hand = Hand::default();
        self.take(&mut hand, jobs.into_iter().map(|job| self.hold(job)).collect()).await;
        let Some(first) = hand.ahead.pop_front() else { return Ok(worked) };
        let mut running = self.begin(first).await?;
        loop {
            let Ok(answer) = self.solved(&mut running, &mut hand).await else {
                self.give_back(running.key).await;
                self.clear(&mut hand).await;
                return Err(Gone);
            };
            worked.jobs += 1;
            let goes_on = self.kind == Kind::Short && self.shared.may_go_on();
            if !goes_on {
                self.give_back_ahead(&mut hand).await;
            }
            let mut next = match hand.ahead.pop_front() {
                Some(waiting) => Some(self.begin(waiting).await?),
                None => None,
            };
            let at_once = at_once(answer.spent);
            worked.at_once = at_once;
            let ended = Ended { job: running, answer };
            let may_wait = ended.may_wait();
            hand.done.push(ended);
            // Not before there is little left to do while it is stored.
            if next.is_none() || !may_wait || hand.ahead.len() * 2 < at_once {
                let claim = usize::from(goes_on) * (usize::from(next.is_none()) + at_once);
                let claimed = self.settle(mem::take(&mut hand.done), claim).await;
                self.take(&mut hand, claimed).await;
                if next.is_none() {
                    let Some(waiting) = hand.ahead.pop_front() else {
                        return Ok(Worked { is_dry: goes_on, ..worked });
                    };
                    next = Some(self.begin(waiting).await?);
                }
            }
            let Some(next) = next else { return Ok(worked) };
            running = next;
        }
    }

    /// Holds the lease of a claimed job: at once, for only what is held is prolonged.
    pub(crate) fn hold(&self, job: Job) -> Waiting<'_> {
        let key = job.key;
        let held = self.shared.leases.hold(key);
        tracing::debug!(
            batch.id = key.batch_id,
            job.lo = key.lo,
            job.hi = key.hi,
            lease.attempt = key.attempt,
            "claimed"
        );
        Waiting { job, held }
    }

    /// Takes claimed jobs in hand, as far as they are wanted.
    async fn take<'a>(&self, hand: &mut Hand<'a>, claimed: Vec<Waiting<'a>>) {
        for waiting in claimed {
            hand.ahead.extend(self.wanted(waiting).await);
        }
    }

    /// Puts it back if its batch is being cancelled.
    async fn wanted<'a>(&self, waiting: Waiting<'a>) -> Option<Waiting<'a>> {
        if waiting.job.is_cancelled {
            self.put_back(waiting.job.key).await;
            return None;
        }
        Some(waiting)
    }

    /// Hands a job to the thread; its time runs from here.
    async fn begin<'a>(&self, waiting: Waiting<'a>) -> Result<Running<'a>, Gone> {
        let Waiting { job, held } = waiting;
        let (key, cost) = (job.key, job.puzzle_cost);
        let slice = Arc::new(Slice::new(&held.lease));
        let Some(answer) = self.thread.begin(job, Arc::clone(&slice)) else {
            self.give_back(key).await;
            return Err(Gone);
        };
        Ok(Running { key, held, cost, slice, began: Instant::now(), answer })
    }

    /// Waits for the end of a slice. What is held beside it is stored or given back if that takes long.
    async fn solved<'a>(&'a self, running: &mut Running<'a>, hand: &mut Hand<'_>) -> Result<Answer, Gone> {
        let slice = self.shared.config.slice;
        for (after, step) in [(AHEAD_WAIT_MAX, Step::Alone), (slice, Step::End), (slice * 2, Step::Cut)] {
            tokio::select! {
                answer = &mut running.answer => return answer.map_err(|_| Gone),
                () = tokio::time::sleep_until(running.began + after) => {}
                () = self.shared.stopping(), if step == Step::Alone => {}
            }
            match step {
                Step::Alone => self.clear(hand).await,
                Step::End => running.slice.end(),
                Step::Cut => {
                    if !running.slice.cut() {
                        self.shed(running).await;
                    }
                }
            }
        }
        (&mut running.answer).await.map_err(|_| Gone)
    }

    /// The first puzzle of a job takes long: it goes on, and the others go back to the queue meanwhile.
    async fn shed<'a>(&'a self, running: &mut Running<'a>) {
        let Shared { store, id, leases, .. } = &*self.shared;
        let key = running.key;
        if key.hi - key.lo == 1 || self.kind == Kind::Blamed {
            return;
        }
        let rest =
            rest::of(key.lo + 1, key.hi, 1, running.began.elapsed(), running.cost, self.shared.config.slice);
        let mut is_repeat = false;
        loop {
            match store.shed(*id, key, &rest).await {
                // Refused after a try whose answer was lost: that one has done it, or the lease is gone and the heartbeat stops the search.
                Ok(is_shed) if is_shed || is_repeat => {
                    running.key.hi = key.lo + 1;
                    running.held = leases.hold_on(running.key, &running.held);
                    return;
                }
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(batch.id = key.batch_id, job.lo = key.lo, %error, "what waits behind a long search could not be put back");
                    if !error.is_transient() || self.shared.is_stopping() {
                        return;
                    }
                    is_repeat = true;
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// How the rest of a job goes back.
    pub(crate) fn rest_of(&self, running: &Running<'_>, mid: u64, spent: Duration) -> Rest {
        let key = running.key;
        if mid == key.hi || self.kind == Kind::Blamed {
            return Rest::default();
        }
        let mut rest = rest::of(mid, key.hi, mid - key.lo, spent, running.cost, self.shared.config.slice);
        if running.slice.is_cut() {
            // The search that was cut takes long; nothing should wait behind it.
            rest.ends.retain(|end| *end > mid + 1);
            rest.ends.insert(0, mid + 1);
        }
        rest
    }

    /// Stores what is done and gives back what is not begun.
    async fn clear(&self, hand: &mut Hand<'_>) {
        self.give_back_ahead(hand).await;
        if !hand.done.is_empty() {
            self.settle(mem::take(&mut hand.done), 0).await;
        }
    }

    async fn give_back_ahead(&self, hand: &mut Hand<'_>) {
        for waiting in hand.ahead.drain(..) {
            self.give_back(waiting.job.key).await;
        }
    }
}

impl Ended<'_> {
    /// Whether it may be stored together with what comes: it is done to its end, like any other.
    fn may_wait(&self) -> bool {
        let Ok(Some(completion)) = &self.answer.solved else { return false };
        completion.mid == self.job.key.hi && !self.job.held.lease.is_cancelled() && !is_for_good(completion)
    }
}

/// What says that a puzzle has no answer is for good, so it waits for the disk.
pub(crate) fn is_for_good(completion: &Completion) -> bool {
    completion.counts.undecided + completion.counts.failed > 0
}

/// Jobs to claim at once, where they take this long.
fn at_once(spent: Duration) -> usize {
    if spent >= AHEAD_JOB_MAX {
        return 0;
    }
    let fitting = AT_ONCE.as_nanos() / spent.as_nanos().max(1);
    usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, AT_ONCE_MAX)
}

/// What happens to a slice as its time passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing waits behind it any longer.
    Alone,
    /// It ends with the puzzle it is at.
    End,
    /// That takes long.
    Cut,
}
