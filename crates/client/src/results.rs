//! A stream of results: where it begins, how it goes on, and how it ends.

use std::time::{Duration, Instant};

use proto::v1;
use tonic::Streaming;

use crate::{
    Client, Error, PuzzleResult, Run,
    patience::Patience,
    servers::{Route, StreamPlace},
};

/// A server says that a quiet stream lives every ten seconds: one that is silent for longer than this does not.
const SILENCE_MAX: Duration = Duration::from_secs(35);

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
#[derive(Debug)]
pub struct Results {
    client: Client,
    name: String,
    start: Start,
    stream: Option<Opened<v1::StreamResultsResponse>>,
    patience: Patience,
    deadline: Option<Instant>,
    token: Option<String>,
    end: Option<v1::Batch>,
}

/// A stream, and where it runs.
#[derive(Debug)]
pub(crate) struct Opened<M> {
    pub(crate) stream: Streaming<M>,
    pub(crate) route: Route,
    pub(crate) _place: StreamPlace,
}

impl<M> Opened<M> {
    /// The next message; `None`: the stream has ended by the server's word.
    pub(crate) async fn message(&mut self) -> Result<Option<M>, Error> {
        let message = tokio::time::timeout(SILENCE_MAX, self.stream.message()).await;
        Ok(message.map_err(|_| Error::Silent)??)
    }
}

impl Results {
    pub(crate) async fn open(client: Client, name: &str, start: Start) -> Result<Self, Error> {
        let mut results = Self {
            client,
            name: name.to_owned(),
            start,
            stream: None,
            patience: Patience::default(),
            deadline: None,
            token: None,
            end: None,
        };
        while results.stream.is_none() {
            results.reopen().await?;
        }
        Ok(results)
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
            let Some(opened) = &mut self.stream else {
                self.reopen().await?;
                continue;
            };
            let message = match opened.message().await {
                Ok(message) => message.ok_or(Error::Cut)?,
                Err(error) => {
                    let route = opened.route.clone();
                    self.stream = None;
                    self.client.failed(&mut self.patience, error, &route).await?;
                    continue;
                }
            };
            self.patience.succeeded();
            self.end = message.batch;
            if !message.resume_token.is_empty() {
                self.token = Some(message.resume_token);
            }
            if let Some(results) = message.results {
                return Run::of(results).map(Some);
            }
        }
    }

    /// Opens the stream where it stands; waits if that fails in a way that may pass.
    async fn reopen(&mut self) -> Result<(), Error> {
        use v1::stream_results_request::Start as From;
        let token = self.token.clone().map(Position::Token);
        let from = match token.unwrap_or_else(|| self.start.position.clone()) {
            Position::Index(index) => From::StartIndex(i64::try_from(index).unwrap_or(i64::MAX)),
            Position::Token(token) => From::ResumeToken(token),
        };
        let message = v1::StreamResultsRequest {
            name: self.name.clone(),
            start: Some(from),
            ordered: self.start.ordered,
            follow: self.start.follow,
            packed_results: false,
        };
        let (route, place) = self.client.stream_route();
        match self.client.open_results(message, &route).await {
            Ok(stream) => self.stream = Some(Opened { stream, route, _place: place }),
            Err(error) => self.client.failed(&mut self.patience, error, &route).await?,
        }
        Ok(())
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
