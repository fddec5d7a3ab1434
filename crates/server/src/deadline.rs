//! Deadlines: the time that a client gives a call, applied in the handlers.
//!
//! The transport's own timer ends at the headers of an answer, and calls what it ends CANCELLED. Here a call ends with its proper status and its details, streams too, and a little
//! before the client's own timer does: then the client gets these words instead of none.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use crate::limits::{DEADLINE_LEAD_MAX, DEADLINE_LEAD_SHARE};

const METADATA_KEY: &str = "grpc-timeout";
/// Digits of a timeout, by the protocol.
const DIGITS_MAX: usize = 8;

/// When a call is over; it may have no end.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// That of a call which has just come. What is no timeout by the protocol is none, as elsewhere.
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        let timeout = metadata.get(METADATA_KEY).and_then(|value| timeout(value.to_str().ok()?));
        Self(timeout.and_then(|timeout| Instant::now().checked_add(before_clients(timeout))))
    }

    /// Resolves when it has come; never if there is none.
    pub(crate) async fn passed(self) {
        match self.0 {
            Some(then) => tokio::time::sleep_until(then).await,
            None => std::future::pending().await,
        }
    }
}

/// A client's timeout, less the lead.
fn before_clients(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / DEADLINE_LEAD_SHARE).min(DEADLINE_LEAD_MAX))
}

/// Reads a `grpc-timeout`: up to eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > DIGITS_MAX || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        let seconds = |text| timeout(text).map(|timeout| timeout.as_secs_f64());
        assert_eq!(
            ["2H", "3M", "4S", "500m", "250000u", "1000000n", "0S"].map(seconds),
            [7_200.0, 180.0, 4.0, 0.5, 0.25, 0.001, 0.0].map(Some)
        );
        assert_eq!(seconds("99999999H"), Some(99_999_999.0 * 3_600.0));
        for text in ["", "S", "5", "5s", "+5S", "-5S", "123456789S", "5 S", "5ä", "ä"] {
            assert_eq!(timeout(text), None, "{text:?}");
        }
    }

    #[tokio::test]
    async fn a_deadline_comes_a_little_before_the_clients_and_none_never() {
        let at = |text: &'static str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(METADATA_KEY, text.parse().expect("text"));
            let before = Instant::now();
            let then = Deadline::of(&metadata).0.expect("there is one");
            (then.duration_since(before), then.duration_since(Instant::now()))
        };
        let (latest, earliest) = at("2S");
        let led = before_clients(Duration::from_secs(2));
        assert_eq!(led, Duration::from_millis(1_960));
        assert!(earliest <= led && led <= latest, "{earliest:?} {latest:?}");
        assert!(at("100m").1 <= Duration::from_millis(95));
        assert!(Deadline::of(&MetadataMap::new()).0.is_none());
        Deadline(Some(Instant::now())).passed().await;
    }
}
