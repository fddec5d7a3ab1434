//! The leases that this process holds, each with the flag that stops its search.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use solver::StopFlag;
use store::JobKey;

/// Shared by the lanes, which hold and drop leases, and the heartbeat, which prolongs them and hears of losses.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    flags: HashMap<JobKey, Arc<StopFlag>>,
    /// All searches were stopped: one that begins now is stopped from the start.
    all_stopped: bool,
}

impl Leases {
    /// Holds a lease until the guard goes, by whatever way; its search must watch the flag.
    pub(crate) fn hold(&self, key: JobKey) -> Held<'_> {
        let flag = Arc::new(StopFlag::new());
        let mut table = self.lock();
        if table.all_stopped {
            flag.raise();
        }
        table.flags.insert(key, Arc::clone(&flag));
        Held { leases: self, key, stop: flag }
    }

    pub(crate) fn held(&self) -> Vec<JobKey> {
        self.lock().flags.keys().copied().collect()
    }

    /// Stops the search of a lease that was lost, or that nobody wants any more.
    pub(crate) fn stop(&self, key: JobKey) {
        if let Some(flag) = self.lock().flags.get(&key) {
            flag.raise();
        }
    }

    /// Stops all searches, now and from now on.
    pub(crate) fn stop_all(&self) {
        let mut table = self.lock();
        table.all_stopped = true;
        for flag in table.flags.values() {
            flag.raise();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A map of flags is sound whatever a panicking holder was about to do.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease while it is held.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    leases: &'a Leases,
    key: JobKey,
    /// Raised when its search must stop.
    pub(crate) stop: Arc<StopFlag>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.leases.lock().flags.remove(&self.key);
    }
}
