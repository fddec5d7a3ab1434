//! Waiting while the service is full: as long as it says, and longer with each time in a row.

use std::{fmt, sync::Arc, time::Duration};

use crate::Error;

/// A wait grows to this many times what the server asks for.
const GROWTH_MAX: u32 = 8;
/// No wait is longer, whatever the server asks for, apart from the jitter of a half.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// None is shorter.
const WAIT_MIN: Duration = Duration::from_millis(50);

type Tell = dyn Fn(&Error) + Send + Sync;

/// Who is told of each wait.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<Tell>>);

impl Listener {
    pub(crate) fn new(tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    fn tell(&self, why: &Error) {
        if let Some(tell) = &self.0 {
            tell(why);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Listener(..)" } else { "Listener(none)" })
    }
}

/// The waits of one call.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    listener: &'a Listener,
    /// Waits in a row so far.
    waits: u32,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(listener: &'a Listener) -> Self {
        Self { listener, waits: 0 }
    }

    /// Waits if the error says that there will be room; gives it back otherwise.
    pub(crate) async fn wait(&mut self, error: Error) -> Result<(), Error> {
        let Some(asked) = error.room_after() else { return Err(error) };
        self.listener.tell(&error);
        let wait = wait(asked, self.waits);
        self.waits = self.waits.saturating_add(1);
        tokio::time::sleep(wait + wait.mul_f64(fastrand::f64() / 2.0)).await;
        Ok(())
    }
}

/// How long to wait after so many waits, without the jitter.
fn wait(asked: Duration, waits: u32) -> Duration {
    let growth = 2_u32.saturating_pow(waits).min(GROWTH_MAX);
    asked.saturating_mul(growth).clamp(WAIT_MIN, WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_what_was_asked_for_and_are_bounded() {
        let second = Duration::from_secs(1);
        let waits: Vec<u64> = (0..6).map(|waits| wait(second, waits).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 8, 8]);
        assert_eq!(wait(Duration::ZERO, 0), WAIT_MIN);
        assert_eq!(wait(10 * second, u32::MAX), WAIT_MAX);
        assert_eq!(wait(Duration::MAX, 9), WAIT_MAX);
    }
}
