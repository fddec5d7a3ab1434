//! A stream of results: where it begins, how it goes on, and how it ends.

use std::{fmt, time::Instant};

use proto::v1::{self, stream_results_request::Start as From};
use tonic::Streaming;

use crate::{
    Client, Error, PuzzleResult, Run,
    lasting::{Ask, Lasting},
    servers::Route,
};

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

/// Results as they come. A stream that breaks is opened again where it was, as the client's [`Retry`](crate::Retry) says.
pub struct Results {
    stream: Lasting<v1::StreamResultsRequest>,
    deadline: Option<Instant>,
    token: Option<String>,
    end: Option<v1::Batch>,
}

impl Ask for v1::StreamResultsRequest {
    type Message = v1::StreamResultsResponse;

    async fn open(self, client: Client, route: Route) -> Result<Streaming<Self::Message>, Error> {
        client.open_results(self, &route).await
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, deadline, token, end } = self;
        let name = &stream.ask.name;
        formatter
            .debug_struct("Results")
            .field("name", name)
            .field("deadline", deadline)
            .field("token", token)
            .field("end", end)
            .finish()
    }
}

impl Results {
    pub(crate) async fn open(client: Client, name: &str, start: Start) -> Result<Self, Error> {
        let from = match start.position {
            Position::Index(index) => From::StartIndex(i64::try_from(index).unwrap_or(i64::MAX)),
            Position::Token(token) => From::ResumeToken(token),
        };
        let ask = v1::StreamResultsRequest {
            name: name.to_owned(),
            start: Some(from),
            ordered: start.ordered,
            follow: start.follow,
            packed_results: false,
        };
        let stream = Lasting::open(client, ask).await?;
        Ok(Self { stream, deadline: None, token: None, end: None })
    }

    /// Ends with [`Error::Deadline`] at that time. The batch goes on; later the results do so from [`Results::token`].
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// The next run of results, one value a puzzle. `None`: the stream is complete, and [`Results::batch`] has the batch.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends without its last message; [`Error::Deadline`]; [`Error::Status`]; [`Error::Contract`]. After an error that is transient it may be called again.
    pub async fn next(&mut self) -> Result<Option<Vec<PuzzleResult>>, Error> {
        Ok(self.next_columns().await?.map(|run| run.results()))
    }

    /// The next run of results in columns, as they came: nothing is allocated for a puzzle. Otherwise as [`Results::next`]. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Results::next`].
    pub async fn next_columns(&mut self) -> Result<Option<Run>, Error> {
        match self.deadline {
            None => self.next_run().await,
            Some(then) => {
                let next = tokio::time::timeout_at(then.into(), self.next_run()).await;
                next.map_err(|_| Error::Deadline)?
            }
        }
    }

    async fn next_run(&mut self) -> Result<Option<Run>, Error> {
        loop {
            if self.end.is_some() {
                return Ok(None);
            }
            let message = self.stream.message().await?;
            self.end = message.batch;
            if !message.resume_token.is_empty() {
                self.stream.ask.start = Some(From::ResumeToken(message.resume_token.clone()));
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
