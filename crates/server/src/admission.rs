//! Admission: how much may be queued, for one tenant and in all, and how large the database may become.
//!
//! No counter is kept in the database, for every append would write it. Each server asks about once a second what is queued, and adds what it has taken in
//! since: that is never too little for its own appends, and for those of the other servers by what they take in until the next look.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use store::{Error, Store, TenantId};
use tokio::sync::watch;

use crate::{
    limits::{DATABASE_LOOK, QUEUE_LOOK, QUEUE_LOOK_MAX, QUEUE_LOOK_SHARE},
    status::Refusal,
};

/// How much a service takes; `serve` has a setting for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quotas {
    /// Puzzles of one tenant that wait or are being solved.
    pub queued_max_tenant: u64,
    /// Puzzles of all tenants that wait or are being solved.
    pub queued_max: u64,
    /// Bytes of the database on disk; 0: any number.
    pub database_bytes_max: u64,
}

/// A quota that is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// The tenant's part of the queue.
    Tenant { queued: u64, queued_max: u64 },
    /// The queue. What others have in it is not told.
    Queue { queued_max: u64 },
    /// The database.
    Database { bytes_max: u64 },
}

/// Decides on appends.
#[derive(Debug)]
pub(crate) struct Admission {
    quotas: Quotas,
    figures: Mutex<Figures>,
    /// Changes with each look.
    looked: watch::Sender<()>,
}

/// Puzzles of each tenant, and their sum.
#[derive(Default, Debug)]
struct Counts {
    by_tenant: HashMap<TenantId, u64>,
    sum: u64,
}

impl Counts {
    fn of(&self, tenant: TenantId) -> u64 {
        self.by_tenant.get(&tenant).copied().unwrap_or(0)
    }

    fn add(&mut self, tenant: TenantId, puzzles: u64) {
        *self.by_tenant.entry(tenant).or_default() += puzzles;
        self.sum += puzzles;
    }

    /// Takes away what was added before.
    fn take(&mut self, tenant: TenantId, puzzles: u64) {
        if let Some(count) = self.by_tenant.get_mut(&tenant) {
            *count = count.saturating_sub(puzzles);
            if *count == 0 {
                self.by_tenant.remove(&tenant);
            }
        }
        self.sum = self.sum.saturating_sub(puzzles);
    }
}

impl FromIterator<(TenantId, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (TenantId, u64)>>(counts: I) -> Self {
        let mut all = Self::default();
        for (tenant, puzzles) in counts {
            all.add(tenant, puzzles);
        }
        all
    }
}

#[derive(Default, Debug)]
struct Figures {
    /// What the last look found.
    queued: Counts,
    /// Being appended now: a look may or may not see it.
    under_way: Counts,
    /// Stored since the look that is under way began: it may or may not see it.
    stored: Counts,
    /// Stored before that look began and after the one before: it sees it.
    stored_before: Counts,
    database_bytes: u64,
}

impl Figures {
    fn all(&self) -> [&Counts; 4] {
        [&self.queued, &self.under_way, &self.stored, &self.stored_before]
    }

    /// Whether a quota is used up, with so many puzzles more of the tenant.
    fn full(&self, quotas: &Quotas, tenant: TenantId, more: u64) -> Option<Full> {
        let Quotas { queued_max_tenant, queued_max, database_bytes_max } = *quotas;
        let queued = more + self.all().map(|counts| counts.of(tenant)).iter().sum::<u64>();
        let in_all = more + self.all().iter().map(|counts| counts.sum).sum::<u64>();
        if queued >= queued_max_tenant {
            Some(Full::Tenant { queued, queued_max: queued_max_tenant })
        } else if in_all >= queued_max {
            Some(Full::Queue { queued_max })
        } else if database_bytes_max != 0 && self.database_bytes >= database_bytes_max {
            Some(Full::Database { bytes_max: database_bytes_max })
        } else {
            None
        }
    }
}

/// The leave to append so many puzzles. Dropped without [`Leave::stored`], nothing was appended.
#[derive(Debug)]
pub(crate) struct Leave<'a> {
    admission: &'a Admission,
    tenant: TenantId,
    puzzles: u64,
}

impl Leave<'_> {
    /// They are stored.
    pub(crate) fn stored(self) {
        self.admission.lock().stored.add(self.tenant, self.puzzles);
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.admission.lock().under_way.take(self.tenant, self.puzzles);
    }
}

impl Admission {
    pub(crate) fn new(quotas: Quotas) -> Arc<Self> {
        Arc::new(Self { quotas, figures: Mutex::default(), looked: watch::Sender::new(()) })
    }

    /// Leave to append, as long as no quota is used up: the message that reaches one is taken whole, so that a quota smaller than a message keeps none out for ever.
    pub(crate) fn admit(&self, tenant: TenantId, puzzles: u64) -> Result<Leave<'_>, Refusal> {
        let mut figures = self.lock();
        if let Some(full) = figures.full(&self.quotas, tenant, 0) {
            return Err(Refusal::Full(full));
        }
        figures.under_way.add(tenant, puzzles);
        Ok(Leave { admission: self, tenant, puzzles })
    }

    /// Whether the tenant may append after so many puzzles more.
    pub(crate) fn has_room(&self, tenant: TenantId, more: u64) -> bool {
        self.lock().full(&self.quotas, tenant, more).is_none()
    }

    /// Waits until the tenant may append. Others may be faster then.
    pub(crate) async fn room(&self, tenant: TenantId) {
        let mut looked = self.looked.subscribe();
        while self.lock().full(&self.quotas, tenant, 0).is_some() {
            // No error: the sender is this one's.
            looked.changed().await.ok();
        }
    }

    /// Looks at the database now.
    async fn look(&self, store: &Store, and_size: bool) -> Result<(), Error> {
        {
            let mut figures = self.lock();
            // What an earlier look that failed has left is still to be seen.
            let stored = std::mem::take(&mut figures.stored);
            for (tenant, puzzles) in stored.by_tenant {
                figures.stored_before.add(tenant, puzzles);
            }
        }
        let queued = store.queued().await?.into_iter().collect();
        let size = if and_size { Some(store.database_bytes().await?) } else { None };
        let mut figures = self.lock();
        figures.queued = queued;
        figures.stored_before = Counts::default();
        if let Some(size) = size {
            figures.database_bytes = size;
        }
        drop(figures);
        self.looked.send_replace(());
        Ok(())
    }

    /// Looks again and again, until it is aborted.
    pub(crate) async fn keep_looking(self: Arc<Self>, store: Store) {
        let mut size_looked: Option<Instant> = None;
        let mut is_failing = false;
        loop {
            let begun = Instant::now();
            let and_size = self.quotas.database_bytes_max != 0
                && size_looked.is_none_or(|looked| looked.elapsed() >= DATABASE_LOOK);
            match self.look(&store, and_size).await {
                Ok(()) => {
                    is_failing = false;
                    if and_size {
                        size_looked = Some(begun);
                    }
                }
                Err(error) if !is_failing => {
                    is_failing = true;
                    tracing::warn!(%error, "cannot look how much is queued; going by what was known");
                }
                Err(error) => tracing::debug!(%error, "cannot look how much is queued"),
            }
            tokio::time::sleep(pause_after(begun.elapsed())).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        // Plain numbers are sound whatever a panicking holder was about to do.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look that takes long is made more seldom.
fn pause_after(look: Duration) -> Duration {
    (look * QUEUE_LOOK_SHARE).clamp(QUEUE_LOOK, QUEUE_LOOK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_takes_long_is_made_more_seldom() {
        let pauses = [1, 50, 200, 5_000].map(|look| pause_after(Duration::from_millis(look)).as_secs());
        assert_eq!(pauses, [1, 1, 4, 30]);
    }
}
