//! One connection to a server, and the unary calls.

use std::{collections::HashMap, time::Duration};

use proto::{
    Grids,
    v1::{self, batch_service_client::BatchServiceClient},
};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use crate::{
    Appender, Error, MESSAGE_BYTES, MESSAGE_PUZZLES,
    error::root_cause,
    patience::{Listener, Patience},
    results::{Position, Results, Start},
    watch::Watch,
};

const TENANT_KEY: &str = "sudoku-tenant";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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

/// A connected client; cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    batches: BatchServiceClient<Channel>,
    tenant: Option<MetadataValue<Ascii>>,
    waits: Listener,
}

impl Client {
    /// Connects to a server such as `http://127.0.0.1:50051`.
    ///
    /// # Errors
    /// [`Error::BadUrl`], [`Error::Unreachable`].
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::BadUrl { url: url.to_owned(), reason };
        if !url.starts_with("http://") {
            return Err(bad("it must begin with http://".to_owned()));
        }
        let endpoint = Endpoint::from_shared(url.to_owned())
            .map_err(|error| bad(root_cause(&error)))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME_BYTES_MAX)
            // Who drops a stream gets what was under way for it all the same. HTTP/2 holds that against the peer, and ends the connection, with all calls on
            // it, after a thousand: a server is not to blame for what its client does.
            .http2_max_local_error_reset_streams(None)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT);
        let channel = endpoint
            .connect()
            .await
            .map_err(|error| Error::Unreachable { url: url.to_owned(), reason: root_cause(&error) })?;
        Ok(Self { batches: BatchServiceClient::new(channel), tenant: None, waits: Listener::default() })
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

    /// Tells of each wait of [`Client::append`] for a service that is full: with its error, before it waits.
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

    /// Opens a batch; with an id, the same call again gives the same batch.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn create_batch(&mut self, new: NewBatch) -> Result<v1::Batch, Error> {
        let placement_limit = new.placement_limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let batch = v1::Batch {
            options: Some(v1::SolveOptions { placement_limit }),
            priority: new.priority.into(),
            display_name: new.display_name,
            labels: new.labels,
            ..v1::Batch::default()
        };
        let message =
            v1::CreateBatchRequest { batch_id: new.id, batch: Some(batch), request_id: String::new() };
        Ok(self.batches.create_batch(self.request(message)).await?.into_inner())
    }

    /// Adds puzzles at an offset (`None`: at the end), in messages of at most [`MESSAGE_PUZZLES`] and [`MESSAGE_BYTES`]; returns the next offset. With an offset
    /// it may be repeated freely.
    ///
    /// While the service is full (`RESOURCE_EXHAUSTED` with the time after which to try again), it waits, for as long as that lasts, and goes on.
    ///
    /// # Errors
    /// [`Error::Status`]; what was sent before stays.
    pub async fn append(
        &mut self,
        name: &str,
        offset: Option<u64>,
        puzzles: Vec<String>,
    ) -> Result<u64, Error> {
        self.append_grids(name, offset, puzzles.into()).await
    }

    /// The same for puzzles that are not a value each: for millions of them.
    ///
    /// # Errors
    /// As [`Client::append`].
    pub async fn append_grids(
        &mut self,
        name: &str,
        offset: Option<u64>,
        puzzles: Grids,
    ) -> Result<u64, Error> {
        if let Some(offset) = offset {
            let mut appender = self.appender(name, offset);
            appender.push(puzzles).await?;
            return appender.finish().await;
        }
        let mut next = 0;
        for grids in messages(puzzles) {
            let message = v1::AppendPuzzlesRequest {
                name: name.to_owned(),
                offset: None,
                chunk: Some(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() }),
            };
            let response = self.append_message(&message).await?;
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

    /// Sends one message, and again while the service is full.
    pub(crate) async fn append_message(
        &mut self,
        message: &v1::AppendPuzzlesRequest,
    ) -> Result<v1::AppendPuzzlesResponse, Error> {
        let waits = self.waits.clone();
        let mut patience = Patience::new(&waits);
        loop {
            match self.batches.append_puzzles(self.request(message.clone())).await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => patience.wait(status.into()).await?,
            }
        }
    }

    /// Says that no more will come; checks the count if one is given. May be repeated.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn seal(&mut self, name: &str, expected: Option<u64>) -> Result<v1::Batch, Error> {
        let expected_puzzle_count = expected.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let message = v1::SealBatchRequest { name: name.to_owned(), expected_puzzle_count };
        Ok(self.batches.seal_batch(self.request(message)).await?.into_inner())
    }

    /// Reads a batch with its progress.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn get_batch(&mut self, name: &str) -> Result<v1::Batch, Error> {
        let message = v1::GetBatchRequest { name: name.to_owned() };
        Ok(self.batches.get_batch(self.request(message)).await?.into_inner())
    }

    /// Streams a batch's results.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn results(&mut self, name: &str, start: Start) -> Result<Results, Error> {
        let from = match start.position {
            Position::Index(index) => {
                v1::stream_results_request::Start::StartIndex(i64::try_from(index).unwrap_or(i64::MAX))
            }
            Position::Token(token) => v1::stream_results_request::Start::ResumeToken(token),
        };
        let message = v1::StreamResultsRequest {
            name: name.to_owned(),
            start: Some(from),
            ordered: start.ordered,
            follow: start.follow,
            packed_results: false,
        };
        let stream = self.batches.stream_results(self.request(message)).await?.into_inner();
        Ok(Results::new(stream))
    }

    /// Batches, newest first: those in one of `states` (none: in any), at most `batches_max`; and the token of the next page, if there are more.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn list_batches(
        &mut self,
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
            let page = self.batches.list_batches(self.request(message)).await?.into_inner();
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
    pub async fn watch(&mut self, name: &str, interval: Option<Duration>) -> Result<Watch, Error> {
        let min_interval = interval.map(|interval| prost_types::Duration {
            seconds: i64::try_from(interval.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(interval.subsec_nanos()).unwrap_or(0),
        });
        let message = v1::WatchBatchRequest { name: name.to_owned(), min_interval };
        let stream = self.batches.watch_batch(self.request(message)).await?.into_inner();
        Ok(Watch::new(stream))
    }

    /// Cancels what has not run yet; says how much that was. May be repeated.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn cancel_batch(&mut self, name: &str) -> Result<v1::CancelBatchResponse, Error> {
        let message = v1::CancelBatchRequest { name: name.to_owned() };
        Ok(self.batches.cancel_batch(self.request(message)).await?.into_inner())
    }

    /// Removes a batch with its results; with `force` also one that has not ended.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub async fn delete_batch(&mut self, name: &str, force: bool) -> Result<(), Error> {
        let message = v1::DeleteBatchRequest { name: name.to_owned(), force };
        self.batches.delete_batch(self.request(message)).await?;
        Ok(())
    }
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
