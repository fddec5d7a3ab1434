//! Telling a failure that goes on: at its beginning, and again from time to time.

use std::time::Duration;

use store::Error;
use tokio::time::Instant;

/// A failure that lasts is told again after this.
const AGAIN: Duration = Duration::from_secs(60);

/// What was told of one kind of work.
#[derive(Default, Debug)]
pub(crate) struct Told(Option<Instant>);

impl Told {
    /// One try has failed, or not.
    pub(crate) fn tell(&mut self, what: &str, failure: Option<Error>) {
        match failure {
            None => self.0 = None,
            Some(error) if self.0.is_none_or(|told| told.elapsed() > AGAIN) => {
                tracing::warn!(%error, "{what}");
                self.0 = Some(Instant::now());
            }
            Some(error) => tracing::debug!(%error, "{what}"),
        }
    }
}
