//! Commands that print results as they come, and can be interrupted at any moment without losing their place.

use std::{
    error::Error,
    io,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::sync::oneshot;

/// How long a command may take to end after a signal: it may hang in a write that nobody reads.
const END_MAX: Duration = Duration::from_secs(1);

/// The user's own stop, as an error.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Whether an error says that the user wanted it so.
pub(crate) fn is_interrupted(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Interrupted>()
            || cause
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
                .is_some_and(<dyn Error + Send + Sync>::is::<Interrupted>)
    })
}

/// Says that nothing more is to be written.
#[derive(Clone, Default, Debug)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// How far the printing of a stream of results has come; shared between who prints and who has to say how to go on.
#[derive(Clone, Default, Debug)]
pub(crate) struct Standing {
    stand: Arc<Mutex<Stand>>,
    stop: StopFlag,
}

/// See [`Standing`].
#[derive(Clone, Default, Debug)]
pub(crate) struct Stand {
    /// Stands for all runs that were printed whole; `None` before the first.
    pub(crate) token: Option<String>,
    /// What was printed of the run after them.
    pub(crate) part: Option<Range<u64>>,
    /// Indexes that an earlier command had printed beyond its token, as far as they have not come again.
    pub(crate) skip: Vec<Range<u64>>,
    /// Results printed so far.
    pub(crate) printed: u64,
    /// Puzzles in all, as far as is known.
    pub(crate) total: u64,
    /// It began after the first result: what was printed is not all that there is before the token.
    pub(crate) is_rest: bool,
    /// The batch has all its puzzles.
    pub(crate) is_sealed: bool,
}

impl Stand {
    /// The indexes that were printed and that the token does not stand for.
    pub(crate) fn printed_beyond(&self) -> Vec<Range<u64>> {
        let part = self.part.clone().unwrap_or(0..0);
        let others = self.skip.iter().filter(|range| !(part.start <= range.start && range.end <= part.end));
        others.cloned().chain(self.part.clone()).collect()
    }

    /// A run was printed whole: its token stands for it from now on.
    pub(crate) fn end_run(&mut self, run: &Range<u64>, token: Option<String>) {
        self.token = token;
        self.part = None;
        let rest = |range: &Range<u64>| {
            let before = range.start..range.end.min(run.start);
            let behind = range.start.max(run.end)..range.end;
            [before, behind]
        };
        self.skip = self.skip.iter().flat_map(rest).filter(|range| !range.is_empty()).collect();
        self.total = self.total.max(run.end);
    }
}

impl Standing {
    /// Changes it.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Stand)) {
        change(&mut self.lock());
    }

    /// The flag that ends the printing.
    pub(crate) fn stop_flag(&self) -> StopFlag {
        self.stop.clone()
    }

    /// As it is now.
    pub(crate) fn get(&self) -> Stand {
        self.lock().clone()
    }

    /// Whether an earlier command has printed this result.
    pub(crate) fn has_printed(&self, index: u64) -> bool {
        self.lock().skip.iter().any(|range| range.contains(&index))
    }

    fn lock(&self) -> MutexGuard<'_, Stand> {
        // Plain values are sound whatever a panicking holder was about to do.
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a command's work until it ends or a signal comes. After a signal the work ends at its next wait or write, and gives [`Interrupted`]; work that hangs in a write to
/// a terminal is left behind. (What waits for a reader keeps nothing else of the process from running: `output.rs`.)
pub(crate) async fn interruptible<T: Send + 'static>(
    standing: &Standing,
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
    standing.stop.0.store(true, SeqCst);
    // An error means that the work has ended at the same moment.
    stop.send(()).ok();
    match tokio::time::timeout(END_MAX, task).await {
        Ok(ended) => ended?,
        Err(_) => Err(Interrupted.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_beyond_the_token_is_known_whatever_the_next_runs_are() {
        let mut stand = Stand { skip: vec![10..20, 30..40], ..Stand::default() };
        let standing = Standing::default();
        standing.set(|other| *other = stand.clone());
        assert!(standing.has_printed(19) && !standing.has_printed(20));
        let beyond = |stand: &Stand| {
            stand.printed_beyond().iter().map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        // A part of a run that holds one of them, which is not printed again.
        stand.part = Some(10..25);
        assert_eq!(beyond(&stand), [(30, 40), (10, 25)]);
        stand.end_run(&(10..28), Some("a".to_owned()));
        assert_eq!((beyond(&stand), stand.token.as_deref()), (vec![(30, 40)], Some("a")));
        // Cut elsewhere than before: the rest of it is still known.
        stand.end_run(&(28..33), Some("b".to_owned()));
        assert_eq!(beyond(&stand), [(33, 40)]);
        stand.end_run(&(35..36), Some("c".to_owned()));
        assert_eq!(beyond(&stand), [(33, 35), (36, 40)]);
        stand.end_run(&(33..50), Some("d".to_owned()));
        assert_eq!((beyond(&stand), stand.total), (vec![], 50));
    }
}
