//! A stream that lasts: when it breaks it is opened again, where it stood.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use tonic::Streaming;

use crate::{
    Client, Error,
    patience::Patience,
    servers::{Route, StreamPlace},
};

/// A server says that a quiet stream lives every ten seconds: one that is silent for longer than this does not.
const SILENCE_MAX: Duration = Duration::from_secs(35);
/// A stream that lived for so long was well; one that broke earlier is not opened again without a pause, whatever it brought.
const WELL: Duration = Duration::from_secs(1);

/// The request of a stream.
pub(crate) trait Ask: Clone + Send + Sync + 'static {
    /// What comes.
    type Message: Send + 'static;

    /// Opens the stream once.
    fn open(
        self,
        client: Client,
        route: Route,
    ) -> impl Future<Output = Result<Streaming<Self::Message>, Error>> + Send;
}

/// A stream that is opened again as its client's [`Retry`](crate::Retry) says.
pub(crate) struct Lasting<A: Ask> {
    client: Client,
    /// What to ask for when it is opened the next time.
    pub(crate) ask: A,
    state: State<A::Message>,
}

enum State<M> {
    /// Not begun, given up or ended.
    Closed,
    /// Kept here, so that whoever drops a wait for a message does not begin the opening anew each time.
    Opening(BoxFuture<'static, Result<Opened<M>, Error>>),
    Open(Box<Opened<M>>),
}

/// A stream, and where it runs.
struct Opened<M> {
    stream: Streaming<M>,
    route: Route,
    patience: Patience,
    since: Instant,
    last_heard: Instant,
    _place: StreamPlace,
}

impl<A: Ask> Lasting<A> {
    /// Opens a stream.
    pub(crate) async fn open(client: Client, ask: A) -> Result<Self, Error> {
        let mut lasting = Self { client, ask, state: State::Closed };
        lasting.opened().await?;
        Ok(lasting)
    }

    /// The next message; [`Error::Cut`] if the stream has ended by the server's word. May be dropped and called again, and also after an error: then it is opened anew.
    pub(crate) async fn message(&mut self) -> Result<A::Message, Error> {
        loop {
            let opened = self.opened().await?;
            let silent = opened.last_heard + SILENCE_MAX;
            let error = match tokio::time::timeout_at(silent.into(), opened.stream.message()).await {
                Ok(Ok(Some(message))) => {
                    opened.heard();
                    return Ok(message);
                }
                Ok(Ok(None)) => {
                    self.state = State::Closed;
                    return Err(Error::Cut);
                }
                Ok(Err(status)) => status.into(),
                Err(_) => Error::Silent,
            };
            if let State::Open(broken) = std::mem::replace(&mut self.state, State::Closed) {
                let failed = (error, broken.route);
                let opening = open(self.client.clone(), self.ask.clone(), broken.patience, Some(failed));
                self.state = State::Opening(Box::pin(opening));
            }
        }
    }

    /// The open stream.
    async fn opened(&mut self) -> Result<&mut Opened<A::Message>, Error> {
        if matches!(self.state, State::Closed) {
            let opening = open(self.client.clone(), self.ask.clone(), Patience::default(), None);
            self.state = State::Opening(Box::pin(opening));
        }
        if let State::Opening(opening) = &mut self.state {
            let opened = opening.await;
            self.state = State::Closed;
            self.state = State::Open(Box::new(opened?));
        }
        match &mut self.state {
            State::Open(opened) => Ok(opened),
            State::Closed | State::Opening(_) => Err(Error::Cut),
        }
    }
}

impl<M> Opened<M> {
    fn heard(&mut self) {
        self.last_heard = Instant::now();
        if self.since.elapsed() >= WELL {
            self.patience.succeeded();
        } else {
            self.patience.progressed();
        }
    }
}

/// Opens a stream, again and again as long as there is patience.
async fn open<A: Ask>(
    client: Client,
    ask: A,
    mut patience: Patience,
    mut failed: Option<(Error, Route)>,
) -> Result<Opened<A::Message>, Error> {
    loop {
        if let Some((error, route)) = failed.take() {
            client.failed(&mut patience, error, &route).await?;
        }
        let (route, place) = client.stream_route();
        match ask.clone().open(client.clone(), route.clone()).await {
            Ok(stream) => {
                let now = Instant::now();
                return Ok(Opened { stream, route, patience, since: now, last_heard: now, _place: place });
            }
            Err(error) => failed = Some((error, route)),
        }
    }
}
