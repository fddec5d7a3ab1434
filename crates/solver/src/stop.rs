//! The cooperative stop: how another thread ends a search or a count.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raised by one thread, looked at by those that solve. It cannot be lowered again.
///
/// A search looks at it every few hundred nodes and a count before each walk of up to 128 states through a row: both
/// well under a millisecond.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// A flag that is not raised.
    #[must_use]
    pub const fn new() -> StopFlag {
        StopFlag(AtomicBool::new(false))
    }

    /// Asks all who look at this flag to stop.
    pub fn raise(&self) {
        // Nothing else is published through the flag, so no ordering is needed.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`StopFlag::raise`] was called.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The stop flag was raised before there was an answer: nothing is known about the puzzle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped before there was an answer")
    }
}

impl Error for Stopped {}
