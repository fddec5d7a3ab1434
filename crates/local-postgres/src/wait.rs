//! Waits for a condition, looking again and again up to a limit.
use std::{
    thread,
    time::{Duration, Instant},
};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `look` until it gives a value or fails, for at most `limit`; `None` when the limit has passed.
pub(crate) fn poll<T, E>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    loop {
        if let Some(value) = look()? {
            return Ok(Some(value));
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}
