//! How far a count is, as other threads may see it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The placements that are counted so far in the count that is running: written by the thread that counts, read by any
/// other. 0 while none is running.
///
/// It is written where the count looks at its [`StopFlag`](crate::StopFlag), so it is well under a millisecond old. While
/// a count runs it never falls, and is never above what the count comes to, nor above its limit. But placements are not
/// counted in the recipe's order: it says how much is done, not where the recipe would stand, and not how much is left.
// It fills cache lines of its own: whoever writes beside it would slow the count down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct RunningPlacements(AtomicU64);

impl RunningPlacements {
    /// No count is running.
    #[must_use]
    pub const fn new() -> RunningPlacements {
        RunningPlacements(AtomicU64::new(0))
    }

    /// So many are counted by now.
    #[must_use]
    pub fn get(&self) -> u64 {
        // Nothing else is published through it, so no ordering is needed.
        self.0.load(Ordering::Relaxed)
    }

    /// So many are counted by now.
    pub(crate) fn show(&self, placed: u64) {
        self.0.store(placed, Ordering::Relaxed);
    }
}
