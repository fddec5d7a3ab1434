//! Appends to one batch that are under way at this server at the same time: one that has come before its turn waits for the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use store::TenantId;
use tokio::sync::watch;

/// How long an append waits for those before it.
const WAIT_MAX: Duration = Duration::from_secs(5);

type Key = (TenantId, String);

/// All lines, each with how many appends stand in it; a change says that one has left.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lines(Arc<Mutex<HashMap<Key, watch::Sender<usize>>>>);

impl Lines {
    /// Stands in the line of a batch until the guard goes.
    pub(crate) fn join(&self, tenant: TenantId, id: &str) -> InLine {
        let key = (tenant, id.to_owned());
        let others = {
            let mut lines = self.lock();
            let line = lines.entry(key.clone()).or_insert_with(|| watch::Sender::new(0));
            line.send_modify(|length| *length += 1);
            line.subscribe()
        };
        InLine { lines: self.clone(), key, others }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Sender<usize>>> {
        // A map of counts is sound whatever a panicking holder was about to do.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line.
#[derive(Debug)]
pub(crate) struct InLine {
    lines: Lines,
    key: Key,
    others: watch::Receiver<usize>,
}

impl InLine {
    /// What happens from now on is waited for: call it before the look that tells whether to wait.
    pub(crate) fn arm(&mut self) {
        self.others.mark_unchanged();
    }

    /// Waits until another has left since the line was armed. `false`: there is none to wait for, or it takes too long.
    pub(crate) async fn wait(&mut self) -> bool {
        if *self.others.borrow() <= 1 && !self.others.has_changed().unwrap_or(false) {
            return false;
        }
        tokio::time::timeout(WAIT_MAX, self.others.changed()).await.is_ok_and(|changed| changed.is_ok())
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get(&self.key) else { return };
        line.send_modify(|length| *length -= 1);
        if *line.borrow() == 0 {
            lines.remove(&self.key);
        }
    }
}
