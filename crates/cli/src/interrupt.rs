//! Commands that print results as they come, and can be interrupted at any moment without losing their place.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::oneshot;

/// How long a command may take to end after a signal: it may hang in a write that nobody reads.
const END_MAX: Duration = Duration::from_secs(1);

/// The user's own stop, as an error.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// How far the printing of a stream of results has come; shared between who prints and who has to say how to go on.
#[derive(Clone, Default, Debug)]
pub(crate) struct Standing(Arc<Mutex<Stand>>);

/// See [`Standing`].
#[derive(Clone, Default, Debug)]
pub(crate) struct Stand {
    /// Goes on after what was printed; `None` before the first result.
    pub(crate) token: Option<String>,
    /// Results printed so far.
    pub(crate) printed: u64,
    /// It began after the first result: what was printed is not all that there is before the token.
    pub(crate) is_rest: bool,
    /// Puzzles in all, as far as is known.
    pub(crate) total: u64,
    /// The batch has all its puzzles.
    pub(crate) is_sealed: bool,
}

impl Standing {
    /// Changes it.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Stand)) {
        change(&mut self.lock());
    }

    /// As it is now.
    pub(crate) fn get(&self) -> Stand {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Stand> {
        // Plain values are sound whatever a panicking holder was about to do.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a command's work apart from the thread that hears of signals, since a write to standard output may hang. After a signal the work ends at
/// its next wait, between two runs of results, and gives [`Interrupted`].
pub(crate) async fn interruptible<T: Send + 'static>(
    work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    stopped: impl Future,
) -> anyhow::Result<T> {
    let (stop, stopping) = oneshot::channel::<()>();
    let mut task = tokio::spawn(async move {
        tokio::select! {
            ended = work => ended,
            _ = stopping => Err(Interrupted.into()),
        }
    });
    tokio::select! {
        ended = &mut task => return ended?,
        _ = stopped => {}
    }
    // An error means that the work has ended at the same moment.
    stop.send(()).ok();
    match tokio::time::timeout(END_MAX, task).await {
        Ok(ended) => ended?,
        Err(_) => Err(Interrupted.into()),
    }
}
