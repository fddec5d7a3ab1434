//! The leases that this process holds, each with the flags that stop its search and with how far that is.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use solver::{RunningPlacements, StopFlag};
use store::{Beat, JobKey};

/// One lease, as its lane, its search and those who may stop it share it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lease {
    /// Raised when its search must stop.
    pub(crate) stop: Arc<StopFlag>,
    /// How far its search is.
    pub(crate) running: Arc<RunningPlacements>,
    is_cancelled: Arc<AtomicBool>,
}

impl Lease {
    /// Whether it was stopped because its batch is being cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(SeqCst)
    }
}

/// Shared by the lanes, which hold and drop leases, and the heartbeat, which prolongs them and hears of losses.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    table: Mutex<Table>,
    any_lost: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    leases: HashMap<JobKey, Lease>,
    /// All searches were stopped: one that begins now is stopped from the start.
    all_stopped: bool,
}

impl Leases {
    /// Holds a lease until the guard goes, by whatever way; its search must watch the flag that stops it.
    pub(crate) fn hold(&self, key: JobKey) -> Held<'_> {
        let lease = Lease::default();
        let mut table = self.lock();
        if table.all_stopped {
            lease.stop.raise();
        }
        table.leases.insert(key, lease.clone());
        Held { leases: self, key, lease }
    }

    /// Holds a lease whose range has changed; whatever stops the other stops this.
    pub(crate) fn hold_on(&self, key: JobKey, other: &Held<'_>) -> Held<'_> {
        let lease = other.lease.clone();
        self.lock().leases.insert(key, lease.clone());
        Held { leases: self, key, lease }
    }

    pub(crate) fn held(&self) -> Vec<JobKey> {
        self.lock().leases.keys().copied().collect()
    }

    /// What is to be said of the leases.
    pub(crate) fn beats(&self) -> Vec<Beat> {
        let table = self.lock();
        let beat =
            |(key, lease): (&JobKey, &Lease)| Beat { key: *key, running_placements: lease.running.get() };
        table.leases.iter().map(beat).collect()
    }

    /// Whether a lease was lost since that was last forgotten.
    pub(crate) fn any_lost(&self) -> bool {
        self.any_lost.load(SeqCst)
    }

    pub(crate) fn remember_lost(&self) {
        self.any_lost.store(true, SeqCst);
    }

    pub(crate) fn forget_lost(&self) {
        self.any_lost.store(false, SeqCst);
    }

    /// Remembers that a lease was lost, and stops its search if there is one.
    pub(crate) fn lost(&self, key: JobKey) {
        self.remember_lost();
        if let Some(lease) = self.lock().leases.get(&key) {
            lease.stop.raise();
        }
    }

    /// Stops the search of a lease whose batch is being cancelled.
    pub(crate) fn cancel(&self, key: JobKey) {
        if let Some(lease) = self.lock().leases.get(&key) {
            lease.is_cancelled.store(true, SeqCst);
            lease.stop.raise();
        }
    }

    /// Stops all searches, now and from now on.
    pub(crate) fn stop_all(&self) {
        let mut table = self.lock();
        table.all_stopped = true;
        for lease in table.leases.values() {
            lease.stop.raise();
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
    pub(crate) lease: Lease,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.leases.lock().leases.remove(&self.key);
    }
}
