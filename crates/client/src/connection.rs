//! A client of one or several servers, and the calls that are answered at once.

use std::{collections::HashMap, sync::Arc, time::Duration};

use proto::{
    Grids,
    v1::{self, batch_service_client::BatchServiceClient},
};
use tonic::{
    Request, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::Endpoint,
};
use uuid::Uuid;

use crate::{
    Appender, Error, MESSAGE_BYTES, MESSAGE_PUZZLES, Retry,
    error::root_cause,
    patience::{Listener, Patience},
    results::{Results, Start},
    servers::{Route, Servers, StreamPlace},
    watch::Watch,
};

const TENANT_KEY: &str = "sudoku-tenant";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one try of a call may take, where the caller does not say.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a window: a stream's, and a connection's for 32 of them and one call more.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 33 * STREAM_WINDOW;
/// Bytes of an HTTP/2 frame, at the most: few frames to a message instead of one for each 16 KiB.
const FRAME_BYTES_MAX: u32 = 1 << 20;

/// What to create.
#[derive(Clone, Default, Debug)]
pub struct NewBatch {
    /// 4 to 63 of `[a-z0-9-]`; empty: the server makes one.
    pub id: String,
    /// Placements to count at the most for one puzzle; 0: none; `None`: the server's default.
    pub placement_limit: Option<u64>,
    /// 0 to 9.
    pub priority: u8,
    /// For people.
    pub display_name: String,
    /// For programs.
    pub labels: HashMap<String, String>,
}

/// Makes a call, and makes it again as long as it fails in a way that may pass.
macro_rules! retried {
    ($client:expr, $message:expr, $method:ident) => {
        retried!($client, $message, $method, |_tried: &Patience, error| Err(error))
    };
    // `$refused` sees what cannot be helped by another try.
    ($client:expr, $message:expr, $method:ident, $refused:expr) => {{
        let client: &Client = $client;
        let mut patience = Patience::default();
        loop {
            let route = client.servers.route();
            let mut request = client.request($message.clone());
            request.set_timeout(client.call_timeout);
            let mut batches = BatchServiceClient::new(route.channel.clone());
            let error: Error = match batches.$method(request).await {
                Ok(response) => break Ok(response.into_inner()),
                Err(status) => status.into(),
            };
            if let Err(error) = client.failed(&mut patience, error, &route).await {
                break $refused(&patience, error);
            }
        }
    }};
}

/// A connected client; cheap to clone.
///
/// Each of its calls may be repeated, and it repeats them itself ([`Retry`]): whatever the server has done of a call whose answer was lost is found done.
#[derive(Clone, Debug)]
pub struct Client {
    servers: Arc<Servers>,
    tenant: Option<MetadataValue<Ascii>>,
    retry: Retry,
    call_timeout: Duration,
    waits: Listener,
}

impl Client {
    /// Connects to a server such as `http://127.0.0.1:50051`, or to one of several of the same service, with commas in between: when one goes, the calls and streams of this client go on
    /// at the next.
    ///
    /// # Errors
    /// [`Error::BadUrl`], [`Error::Unreachable`].
    pub async fn connect(urls: &str) -> Result<Self, Error> {
        let endpoints = urls.split(',').map(|url| endpoint(url.trim())).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            servers: Arc::new(Servers::connect(endpoints).await?),
            tenant: None,
            retry: Retry::default(),
            call_timeout: CALL_TIMEOUT,
            waits: Listener::default(),
        })
    }

    /// Speaks for a tenant other than the default one.
    ///
    /// # Errors
    /// [`Error::BadTenant`] for a name that cannot travel as metadata.
    pub fn with_tenant(mut self, name: &str) -> Result<Self, Error> {
        let value = name.parse().map_err(|_| Error::BadTenant(name.to_owned()))?;
        self.tenant = Some(value);
        Ok(self)
    }

    /// Tries again in this way.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Gives each try of a call so long, instead of half a minute; the server knows of it. It is not for streams, which have [`Results::until`].
    #[must_use]
    pub fn with_call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Tells of each failure after which it tries again, before it waits: of a service that is full ([`Error::room_after`]), and of one that is away.
    #[must_use]
    pub fn telling_waits(mut self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.waits = Listener::new(tell);
        self
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(tenant) = &self.tenant {
            request.metadata_mut().insert(TENANT_KEY, tenant.clone());
        }
        request
    }

    /// Waits, if another try may go better.
    pub(crate) async fn failed(
        &self,
        patience: &mut Patience,
        error: Error,
        route: &Route,
    ) -> Result<(), Error> {
        patience.wait(error, self.retry, &self.waits, (&self.servers, route)).await
    }

    /// Opens a batch; with an id, the same call again gives the same batch.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn create_batch(&self, new: NewBatch) -> Result<v1::Batch, Error> {
        let placement_limit = new.placement_limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let batch = v1::Batch {
            options: Some(v1::SolveOptions { placement_limit }),
            priority: new.priority.into(),
            display_name: new.display_name,
            labels: new.labels,
            ..v1::Batch::default()
        };
        // So that another try finds what one whose answer was lost has made.
        let request_id = if new.id.is_empty() { Uuid::new_v4().to_string() } else { String::new() };
        let message = v1::CreateBatchRequest { batch_id: new.id, batch: Some(batch), request_id };
        retried!(self, message, create_batch)
    }

    /// Adds puzzles at an offset (`None`: at the end), in messages of at most [`MESSAGE_PUZZLES`] and [`MESSAGE_BYTES`]; returns the next offset. With an offset
    /// it may be repeated freely; without one it is not tried again when its answer is lost.
    ///
    /// While the service is full (`RESOURCE_EXHAUSTED` with the time after which to try again), it waits, for as long as that lasts, and goes on.
    ///
    /// # Errors
    /// [`Error::Status`]; what was sent before stays.
    pub async fn append(&self, name: &str, offset: Option<u64>, puzzles: Vec<String>) -> Result<u64, Error> {
        self.append_grids(name, offset, puzzles.into()).await
    }

    /// The same for puzzles that are not a value each: for millions of them.
    ///
    /// # Errors
    /// As [`Client::append`].
    pub async fn append_grids(&self, name: &str, offset: Option<u64>, puzzles: Grids) -> Result<u64, Error> {
        if let Some(offset) = offset {
            let mut appender = self.appender(name, offset);
            appender.push(puzzles).await?;
            return appender.finish().await;
        }
        // Who cannot say where its puzzles belong cannot say twice that they do.
        let once = self.clone().with_retry(Retry::never());
        let mut next = 0;
        for grids in messages(puzzles) {
            let message = v1::AppendPuzzlesRequest {
                name: name.to_owned(),
                offset: None,
                chunk: Some(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() }),
            };
            let response = once.append_message(&message).await?;
            next = u64::try_from(response.next_offset)
                .map_err(|_| Error::Contract("next_offset is negative"))?;
        }
        Ok(next)
    }

    /// Adds puzzles from an offset on, with several messages under way: for millions of them.
    #[must_use]
    pub fn appender(&self, name: &str, offset: u64) -> Appender {
        Appender::new(self.clone(), name, offset)
    }

    /// Sends one message, and again while the service is full or away.
    pub(crate) async fn append_message(
        &self,
        message: &v1::AppendPuzzlesRequest,
    ) -> Result<v1::AppendPuzzlesResponse, Error> {
        retried!(self, message, append_puzzles)
    }

    /// Says that no more will come; checks the count if one is given. May be repeated.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn seal(&self, name: &str, expected: Option<u64>) -> Result<v1::Batch, Error> {
        let expected_puzzle_count = expected.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let message = v1::SealBatchRequest { name: name.to_owned(), expected_puzzle_count };
        retried!(self, message, seal_batch)
    }

    /// Reads a batch with its progress.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn get_batch(&self, name: &str) -> Result<v1::Batch, Error> {
        let message = v1::GetBatchRequest { name: name.to_owned() };
        retried!(self, message, get_batch)
    }

    /// Streams a batch's results. A stream that breaks is gone on with, at the next server if there are several: nothing comes twice and nothing is missing.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn results(&self, name: &str, start: Start) -> Result<Results, Error> {
        Results::open(self.clone(), name, start).await
    }

    /// Opens a stream of results on one connection, once.
    pub(crate) async fn open_results(
        &self,
        message: v1::StreamResultsRequest,
        route: &Route,
    ) -> Result<Streaming<v1::StreamResultsResponse>, Error> {
        let mut batches = BatchServiceClient::new(route.channel.clone());
        self.opened(batches.stream_results(self.request(message))).await
    }

    /// Likewise a watch.
    pub(crate) async fn open_watch(
        &self,
        message: v1::WatchBatchRequest,
        route: &Route,
    ) -> Result<Streaming<v1::WatchBatchResponse>, Error> {
        let mut batches = BatchServiceClient::new(route.channel.clone());
        self.opened(batches.watch_batch(self.request(message))).await
    }

    /// The headers of a stream, which come at once.
    async fn opened<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, Error> {
        let answer = tokio::time::timeout(self.call_timeout, call).await.map_err(|_| Error::Silent)?;
        Ok(answer?.into_inner())
    }

    /// A place for a stream.
    pub(crate) fn stream_route(&self) -> (Route, StreamPlace) {
        self.servers.stream_route()
    }

    /// Batches, newest first: those in one of `states` (none: in any), at most `batches_max`; and the token of the next page, if there are more.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn list_batches(
        &self,
        states: &[v1::batch::State],
        batches_max: usize,
    ) -> Result<(Vec<v1::Batch>, Option<String>), Error> {
        let mut batches = Vec::new();
        let mut page_token = String::new();
        while batches.len() < batches_max {
            let message = v1::ListBatchesRequest {
                page_size: i32::try_from(batches_max - batches.len()).unwrap_or(i32::MAX),
                page_token,
                states: states.iter().map(|state| (*state).into()).collect(),
            };
            let page: Result<v1::ListBatchesResponse, Error> = retried!(self, message, list_batches);
            let page = page?;
            batches.extend(page.batches);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        Ok((batches, Some(page_token).filter(|token| !token.is_empty())))
    }

    /// Streams a batch at each change of its state or progress, but not more often than `interval` (100 ms to 60 s; `None`: 1 s), until it has ended.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn watch(&self, name: &str, interval: Option<Duration>) -> Result<Watch, Error> {
        let min_interval = interval.map(|interval| prost_types::Duration {
            seconds: i64::try_from(interval.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(interval.subsec_nanos()).unwrap_or(0),
        });
        let message = v1::WatchBatchRequest { name: name.to_owned(), min_interval };
        Watch::open(self.clone(), message).await
    }

    /// Cancels what has not run yet; says how much that was. May be repeated.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn cancel_batch(&self, name: &str) -> Result<v1::CancelBatchResponse, Error> {
        let message = v1::CancelBatchRequest { name: name.to_owned() };
        retried!(self, message, cancel_batch)
    }

    /// Removes a batch with its results; with `force` also one that has not ended.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn delete_batch(&self, name: &str, force: bool) -> Result<(), Error> {
        let message = v1::DeleteBatchRequest { name: name.to_owned(), force };
        retried!(self, message, delete_batch, |patience: &Patience, error: Error| {
            // The try before, whose answer was lost, has removed it.
            let is_gone = patience.is_maybe_done() && error.reason().as_deref() == Some("BATCH_NOT_FOUND");
            if is_gone { Ok(()) } else { Err(error) }
        })
    }
}

/// How a server is connected to.
fn endpoint(url: &str) -> Result<Endpoint, Error> {
    let bad = |reason: String| Error::BadUrl { url: url.to_owned(), reason };
    if !url.starts_with("http://") {
        return Err(bad("it must begin with http://".to_owned()));
    }
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| bad(root_cause(&error)))?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_BYTES_MAX)
        // Who drops a stream gets what was under way for it all the same. HTTP/2 holds that against the peer, and ends the connection, with all calls on
        // it, after a thousand: a server is not to blame for what its client does.
        .http2_max_local_error_reset_streams(None)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT))
}

/// Cuts puzzles into messages, each within the limits of both numbers; each is made when its turn comes.
pub(crate) fn messages(puzzles: Grids) -> impl Iterator<Item = Grids> {
    let mut rest = Some(puzzles).filter(|puzzles| !puzzles.is_empty());
    let mut start = 0;
    std::iter::from_fn(move || {
        let puzzles = rest.as_ref()?;
        let mut bytes = 0;
        let fitting = (start..puzzles.len()).take(MESSAGE_PUZZLES).take_while(|place| {
            bytes += puzzles.bytes(*place).unwrap_or_default().len();
            bytes <= MESSAGE_BYTES
        });
        // One that is too long is left to the server to refuse.
        let end = start + fitting.count().max(1);
        if start == 0 && end == puzzles.len() {
            return rest.take();
        }
        let message = puzzles.slice(start..end);
        start = end;
        if end == puzzles.len() {
            rest = None;
        }
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_both_limits_and_every_puzzle_in_order() {
        let puzzles: Vec<String> =
            (0..10_000).map(|number: usize| number.to_string().repeat(number % 700)).collect();
        let cut: Vec<Grids> = messages(puzzles.iter().collect()).collect();
        assert!(cut.len() > 3);
        for message in &cut {
            assert!(!message.is_empty() && message.len() <= MESSAGE_PUZZLES);
            assert!(message.text_bytes() <= MESSAGE_BYTES);
        }
        assert_eq!(cut.iter().flat_map(Grids::iter).collect::<Grids>(), puzzles[..]);
        let count = |puzzles: Vec<String>| messages(puzzles.into()).count();
        assert_eq!(count(vec!["1".repeat(MESSAGE_BYTES + 1)]), 1, "left to the server to refuse");
        assert_eq!(
            (
                count(vec![".".repeat(81); MESSAGE_PUZZLES * 2 + 1]),
                count(vec![".".repeat(81)]),
                count(vec![])
            ),
            (3, 1, 0)
        );
    }
}
