//! Trying again: while the service is full, for as long as that lasts; while it is away, for a bounded time, and first at the other servers.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Error,
    servers::{Route, Servers},
};

/// A wait grows to this many times what the server asks for.
const GROWTH_MAX: u32 = 8;
/// No wait is longer, whatever the server asks for, apart from the jitter of a half.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// None is shorter.
const WAIT_MIN: Duration = Duration::from_millis(50);
/// No wait for a service that is away is longer: it may be back at any moment.
const AWAY_WAIT_MAX: Duration = Duration::from_secs(2);

/// Of a server that stops, one call may hear the word and another only the break. This long the other waits for the first to be told, before it takes the break for a break.
const WORD_WAIT: Duration = Duration::from_millis(200);

/// What a client does when a call fails in a way that may pass: the connection breaks, the server stops, its database is away.
///
/// It tries again, at the next server if it knows several, with growing pauses of what the server asks for. A service that is full is waited for without an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retry {
    /// How long it goes on failing, at the most, before the last error is given to the caller. Zero: at once.
    pub patience: Duration,
    /// Also when a connection breaks without a word of the server. Otherwise, with one server that has not told another call either, that is told at once.
    pub when_broken: bool,
}

impl Default for Retry {
    /// Half a minute, whatever the reason.
    fn default() -> Self {
        Self { patience: Duration::from_secs(30), when_broken: true }
    }
}

impl Retry {
    /// For so long, whatever the reason.
    #[must_use]
    pub fn patient(patience: Duration) -> Self {
        Self { patience, ..Self::default() }
    }

    /// Never, but while the service is full.
    #[must_use]
    pub fn never() -> Self {
        Self { patience: Duration::ZERO, when_broken: false }
    }

    /// The same, but a connection to the only server that breaks without its word is told at once.
    #[must_use]
    pub fn unless_broken(self) -> Self {
        Self { when_broken: false, ..self }
    }
}

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

/// The failures in a row of one call or stream.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Failures in a row so far.
    failures: u32,
    /// When the first of them was, of those that are not of a full service.
    since: Option<Instant>,
    is_maybe_done: bool,
}

impl Patience {
    /// Whether a try has failed that may have done its work all the same.
    pub(crate) fn is_maybe_done(&self) -> bool {
        self.is_maybe_done
    }

    /// It went well.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// It went on: there is patience for as long as before, but no haste.
    pub(crate) fn progressed(&mut self) {
        self.since = None;
    }

    /// Waits if another try may go better; gives the error back otherwise.
    pub(crate) async fn wait(
        &mut self,
        error: Error,
        retry: Retry,
        listener: &Listener,
        (servers, route): (&Servers, &Route),
    ) -> Result<(), Error> {
        // What the service itself refuses it has not done.
        self.is_maybe_done |= error.reason().is_none();
        let wait = if let Some(asked) = error.room_after() {
            self.since = None;
            wait(asked, self.failures)
        } else {
            if !error.is_transient() {
                return Err(error);
            }
            if error.says_away() {
                servers.has_said(route);
            }
            let is_told = error.reason().is_some() || servers.len() > 1 || self.since.is_some();
            if !is_told && !retry.when_broken && !heard_elsewhere(servers, route, retry.patience).await {
                return Err(error);
            }
            let since = *self.since.get_or_insert_with(Instant::now);
            let left = retry.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(error);
            }
            servers.leave(route);
            // Each of the others once, before any wait.
            if (self.failures as usize) < servers.len() - 1 {
                self.failures += 1;
                listener.tell(&error);
                return Ok(());
            }
            let asked = error.retry_after().unwrap_or(WAIT_MIN);
            wait(asked, self.failures).min(AWAY_WAIT_MAX).min(left)
        };
        listener.tell(&error);
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(wait + wait.mul_f64(fastrand::f64() / 2.0)).await;
        Ok(())
    }
}

/// Whether another call has heard from the server that it is going.
async fn heard_elsewhere(servers: &Servers, route: &Route, patience: Duration) -> bool {
    if !patience.is_zero() && !servers.has_said_within(route, patience) {
        tokio::time::sleep(WORD_WAIT).await;
    }
    servers.has_said_within(route, patience)
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
