//! A thread that does nothing but solve, so that the async runtime never waits for a search.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use nix::time::{ClockId, clock_gettime};
use packing::Damaged;
use solver::{Solver, Width};
use store::{Completion, Job};
use tokio::sync::oneshot;

use crate::slice::{self, Slice};

/// What came of a slice: `None` if nothing was done.
pub(crate) type Solved = Result<Option<Completion>, Damaged>;

/// A slice as its thread gives it back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) solved: Solved,
    /// CPU time that the thread has spent on it: where more threads are busy than there are cores, a puzzle costs no more than elsewhere.
    pub(crate) spent: Duration,
}

struct Task {
    job: Job,
    slice: Arc<Slice>,
    reply: oneshot::Sender<Answer>,
}

/// The sending side of a solver thread; the thread ends with it.
#[derive(Debug)]
pub(crate) struct SolverThread {
    tasks: mpsc::Sender<Task>,
}

impl SolverThread {
    /// Starts one. What it solves with is made at once, or with the first job: a process has more threads than are ever busy at once.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(number: u32, width: Width, at_once: bool) -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel::<Task>();
        thread::Builder::new().name(format!("solver-{number}")).spawn(move || {
            let mut made = at_once.then(|| Solver::new(width));
            for task in inbox {
                let began = cpu_time();
                let solver = made.get_or_insert_with(|| Solver::new(width));
                let done = slice::solve(&task.job, &task.slice, solver);
                // An error means that the lane is gone: the lease runs out or was given back.
                task.reply.send(Answer { solved: done, spent: cpu_time().saturating_sub(began) }).ok();
            }
        })?;
        Ok(Self { tasks })
    }

    /// Begins one slice of a job. `None`, or no answer: the thread is gone.
    pub(crate) fn begin(&self, job: Job, slice: Arc<Slice>) -> Option<oneshot::Receiver<Answer>> {
        let (reply, answer) = oneshot::channel();
        self.tasks.send(Task { job, slice, reply }).ok()?;
        Some(answer)
    }
}

/// That of the calling thread so far.
fn cpu_time() -> Duration {
    // It cannot fail: every system that this is built for has the clock.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
