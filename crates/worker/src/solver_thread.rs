//! A thread that does nothing but solve, so that the async runtime never waits for a search.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
};

use packing::Damaged;
use solver::{Solver, Width};
use store::{Completion, Job};
use tokio::sync::oneshot;

use crate::slice::{self, Slice};

/// What came of a slice: `None` if nothing was done.
pub(crate) type Solved = Result<Option<Completion>, Damaged>;

struct Task {
    job: Job,
    slice: Arc<Slice>,
    reply: oneshot::Sender<Solved>,
}

/// The sending side of a solver thread; the thread ends with it.
#[derive(Debug)]
pub(crate) struct SolverThread {
    tasks: mpsc::Sender<Task>,
}

impl SolverThread {
    /// Starts one.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(number: u32, width: Width) -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel::<Task>();
        thread::Builder::new().name(format!("solver-{number}")).spawn(move || {
            let mut solver = Solver::new(width);
            for task in inbox {
                let done = slice::solve(&task.job, &task.slice, &mut solver);
                // An error means that the lane is gone: the lease runs out or was given back.
                task.reply.send(done).ok();
            }
        })?;
        Ok(Self { tasks })
    }

    /// Solves one slice of a job. `None`: the thread is gone.
    pub(crate) async fn solve(&self, job: Job, slice: Arc<Slice>) -> Option<Solved> {
        let (reply, answer) = oneshot::channel();
        self.tasks.send(Task { job, slice, reply }).ok()?;
        answer.await.ok()
    }
}
