//! A stream of results: where it begins, how it goes on, and how it ends.

use proto::v1;
use tonic::Streaming;

use crate::{Error, PuzzleResult, Run};

/// Where a stream of results begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// At this index.
    Index(u64),
    /// Where another stream of the same batch was: a token from [`Results::token`].
    Token(String),
}

/// Where a stream of results begins and how it goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Where it begins.
    pub position: Position,
    /// By index; otherwise as they finish.
    pub ordered: bool,
    /// Stay until the batch has ended; otherwise stop at what is there.
    pub follow: bool,
}

impl Start {
    /// By index from `index` on, until the batch has ended.
    #[must_use]
    pub fn ordered(index: u64) -> Self {
        Self { position: Position::Index(index), ordered: true, follow: true }
    }

    /// As they finish, until the batch has ended.
    #[must_use]
    pub fn as_finished() -> Self {
        Self { ordered: false, ..Self::ordered(0) }
    }

    /// The same from another beginning.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self { position, ..self }
    }
}

/// Results as they come.
#[derive(Debug)]
pub struct Results {
    stream: Streaming<v1::StreamResultsResponse>,
    token: Option<String>,
    end: Option<v1::Batch>,
}

impl Results {
    pub(crate) fn new(stream: Streaming<v1::StreamResultsResponse>) -> Self {
        Self { stream, token: None, end: None }
    }

    /// The next run of results, one value a puzzle. `None`: the stream is complete, and [`Results::batch`] has the batch.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends without its last message; [`Error::Status`]; [`Error::Contract`].
    pub async fn next(&mut self) -> Result<Option<Vec<PuzzleResult>>, Error> {
        Ok(self.next_columns().await?.map(|run| run.results()))
    }

    /// The next run of results in columns, as they came: nothing is allocated for a puzzle. Otherwise as [`Results::next`].
    ///
    /// # Errors
    /// As [`Results::next`].
    pub async fn next_columns(&mut self) -> Result<Option<Run>, Error> {
        loop {
            if self.end.is_some() {
                return Ok(None);
            }
            let message = self.stream.message().await?.ok_or(Error::Cut)?;
            self.end = message.batch;
            if !message.resume_token.is_empty() {
                self.token = Some(message.resume_token);
            }
            if let Some(results) = message.results {
                return Run::of(results).map(Some);
            }
        }
    }

    /// What to give to [`Position::Token`] for everything after the runs that came so far: keep it together with them. `None` before the first.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The batch as the stream's last message told it; `None` before that.
    #[must_use]
    pub fn batch(&self) -> Option<&v1::Batch> {
        self.end.as_ref()
    }
}
