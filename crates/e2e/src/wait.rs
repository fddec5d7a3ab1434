//! Waiting on levels: a condition that becomes true and stays so.

use std::{
    io::Write as _,
    sync::Once,
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come: far longer than it takes, so that only a fault reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value.
///
/// # Panics
/// When it has not within [`PATIENCE`]; `what` says what was waited for.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        thread::sleep(LOOK);
    }
}

/// How long all tests of one process may take together.
const TESTS_MAX: Duration = Duration::from_secs(600);

/// Ends this process if its tests hang; what they started ends with it. Begins once, with the first call.
pub(crate) fn guard_against_hanging() {
    static GUARD: Once = Once::new();
    GUARD.call_once(|| {
        thread::spawn(|| {
            thread::sleep(TESTS_MAX);
            std::io::stderr().write_all(b"these tests have hung: the process is ended\n").ok();
            std::process::abort();
        });
    });
}
