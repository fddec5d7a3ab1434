//! `BatchService`: durable batches.

use std::sync::Arc;

use proto::v1::{self, batch_service_server::BatchService};
use store::{Batch, BatchState, Created, Progress, Store, TenantId, Waker};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status, metadata::MetadataMap};

use crate::{
    admission::Admission,
    bell::Bell,
    deadline::Deadline,
    delivery::{Delivery, Event, Wanted},
    intake::{self, PackedPuzzles},
    intervals::Delivered,
    limits::TURN_WAIT_MAX,
    line::Lines,
    outlet::{Outgoing, Streams},
    status::Refusal,
    tenants::Tenants,
    tokens, wire,
};

/// Tries of a seal against appends at the same time.
const SEAL_TRIES_MAX: usize = 16;

/// What all services share; cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) waker: Arc<Waker>,
    pub(crate) tenants: Arc<Tenants>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) lines: Lines,
    pub(crate) bell: Arc<Bell>,
    pub(crate) streams: Streams,
    /// For what streams read in the database,
    pub(crate) reads: Arc<Semaphore>,
    /// and for what Solve calls write.
    pub(crate) writes: Arc<Semaphore>,
    pub(crate) placement_limit_max: u64,
}

/// Serves `BatchService`.
#[derive(Clone)]
pub(crate) struct Batches(pub(crate) Shared);

impl Shared {
    /// The caller's number, for calls that name a batch of theirs.
    pub(crate) async fn owner(&self, metadata: &MetadataMap, name: &str) -> Result<TenantId, Refusal> {
        let tenant = self.tenants.existing(&self.store, metadata).await?;
        tenant.ok_or_else(|| Refusal::BatchNotFound { name: name.to_owned() })
    }

    /// A batch with its progress, by its id.
    pub(crate) async fn full(&self, tenant: TenantId, id: &str) -> Result<v1::Batch, Refusal> {
        let batch = self.batch(tenant, id).await?;
        self.full_again(&batch).await
    }

    /// A batch that was found before, as it is now.
    pub(crate) async fn full_again(&self, batch: &Batch) -> Result<v1::Batch, Refusal> {
        let found = self.store.batch_progress(batch.key).await;
        let (batch, progress) = found.map_err(|error| Refusal::of_batch(error, &batch.name))?;
        Ok(wire::batch(batch, progress))
    }

    /// Runs database work that neither a dropped call nor its deadline may cut in the middle: it is done all the same, and a repeat of the call finds it done.
    pub(crate) async fn shielded<T: Send + 'static>(
        &self,
        deadline: Deadline,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        if self.streams.drain.is_started() {
            return Err(Refusal::Stopping);
        }
        tokio::select! {
            done = tokio::spawn(work) => done?,
            () = deadline.passed() => Err(Refusal::DeadlineExceeded),
        }
    }

    /// Waits for a stream's turn to read in the database: a thousand streams leave connections for other calls.
    pub(crate) async fn turn(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        turn(&self.reads).await
    }

    /// Does something in the database in a stream's turn.
    pub(crate) async fn in_turn<T, E: Into<Refusal>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Refusal> {
        let _turn = self.turn().await?;
        work.await.map_err(Into::into)
    }

    /// Writes for a Solve call, in its turn and shielded. Reading does not wait for writing: what is written may be held up by a lock.
    pub(crate) async fn written<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = turn(&self.writes).await?;
        let work = async move {
            let done = work.await;
            // Not before: the work goes on although its call was cut.
            drop(turn);
            done
        };
        self.shielded(Deadline::default(), work).await
    }

    async fn create(
        &self,
        metadata: &MetadataMap,
        request: v1::CreateBatchRequest,
    ) -> Result<v1::Batch, Refusal> {
        let new = wire::new_batch(request, self.placement_limit_max)?;
        let tenant = self.tenants.creating(&self.store, metadata).await?;
        match self
            .store
            .create_batch(tenant, &new)
            .await
            .map_err(|error| Refusal::of_batch(error, &new.name))?
        {
            Created::New(batch) => {
                tracing::info!(batch.id = batch.key.id(), batch.name, "batch created");
                Ok(wire::batch(batch, Progress::default()))
            }
            Created::Existing(batch) => self.full_again(&batch).await,
            Created::Taken(batch) => Err(Refusal::BatchExists { name: wire::batch_name(&batch.name) }),
        }
    }

    async fn append(
        &self,
        metadata: &MetadataMap,
        request: v1::AppendPuzzlesRequest,
    ) -> Result<v1::AppendPuzzlesResponse, Refusal> {
        let id = wire::batch_id(&request.name)?;
        let offset = request.offset.map(|offset| wire::unsigned("offset", offset)).transpose()?;
        let tenant = self.owner(metadata, &request.name).await?;
        // It stands there before its puzzles are packed: one that comes after it may be done with that first.
        let line = self.lines.join((tenant, id.to_owned()), offset);
        let puzzles = Arc::new(PackedPuzzles::of(&request.chunk.unwrap_or_default())?);
        let appended = intake::append(self, line, tenant, id, offset, &puzzles).await?;
        Ok(v1::AppendPuzzlesResponse {
            next_offset: wire::signed(appended.next_offset),
            duplicate: appended.duplicate,
        })
    }

    async fn seal(
        &self,
        metadata: &MetadataMap,
        request: v1::SealBatchRequest,
    ) -> Result<v1::Batch, Refusal> {
        let id = wire::batch_id(&request.name)?;
        let expected = request
            .expected_puzzle_count
            .map(|count| wire::unsigned("expected_puzzle_count", count))
            .transpose()?;
        let tenant = self.owner(metadata, &request.name).await?;
        self.seal_batch(tenant, id, expected).await
    }

    /// Seals a batch at its present count, if that is the expected one; sealing again is no error.
    pub(crate) async fn seal_batch(
        &self,
        tenant: TenantId,
        id: &str,
        expected: Option<u64>,
    ) -> Result<v1::Batch, Refusal> {
        for _ in 0..SEAL_TRIES_MAX {
            let batch = self.batch(tenant, id).await?;
            let found = batch.puzzle_count;
            if matches!(batch.state, BatchState::Cancelling | BatchState::Cancelled) {
                return Err(Refusal::BatchNotOpen { name: wire::batch_name(id), state: batch.state });
            }
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return Err(Refusal::CountMismatch { expected, found });
            }
            if batch.state != BatchState::Open {
                return self.full_again(&batch).await;
            }
            if self.store.seal(batch.key, found).await? {
                tracing::info!(batch.id = batch.key.id(), batch.name, puzzles = found, "batch sealed");
                // All its jobs may be done already: then this is its end.
                self.store.finish(batch.key.id()).await?;
                self.store.notify_results(&[batch.key.id()]).await?;
                return self.full_again(&batch).await;
            }
        }
        Err(Refusal::Contended)
    }

    /// A batch by its id.
    pub(crate) async fn batch(&self, tenant: TenantId, id: &str) -> Result<Batch, Refusal> {
        self.store.batch(tenant, id).await.map_err(|error| Refusal::of_batch(error, id))
    }

    async fn get(&self, metadata: &MetadataMap, request: v1::GetBatchRequest) -> Result<v1::Batch, Refusal> {
        let id = wire::batch_id(&request.name)?;
        let tenant = self.owner(metadata, &request.name).await?;
        self.full(tenant, id).await
    }

    async fn stream(
        &self,
        metadata: &MetadataMap,
        request: v1::StreamResultsRequest,
    ) -> Result<Outgoing<v1::StreamResultsResponse>, Refusal> {
        use v1::stream_results_request::Start;
        let deadline = Deadline::of(metadata);
        let id = wire::batch_id(&request.name)?;
        let tenant = self.owner(metadata, &request.name).await?;
        let batch = self.batch(tenant, id).await?;
        let delivered = match request.start {
            None => Delivered::up_to(0),
            Some(Start::StartIndex(index)) => Delivered::up_to(wire::unsigned("start_index", index)?),
            Some(Start::ResumeToken(token)) => tokens::read_resume(&token, &tokens::owner(&batch))?,
        };
        let wanted = Wanted {
            delivered,
            ordered: request.ordered,
            follow: request.follow,
            packed: request.packed_results,
        };
        let (outlet, outgoing) = self.streams.open(deadline);
        let shared = self.clone();
        tokio::spawn(async move {
            let wakes = shared.waker.results(batch.key.id());
            let message = stream_message;
            let delivery = Delivery { shared: &shared, batch, wanted, outlet: &outlet, message, wakes };
            if let Err(cut) = delivery.run().await {
                outlet.end(cut).await;
            }
        });
        Ok(outgoing)
    }
}

async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let turn = tokio::time::timeout(TURN_WAIT_MAX, Arc::clone(turns).acquire_owned()).await;
    // The other error means that turns were closed, which nobody does.
    turn.ok().and_then(Result::ok).ok_or(Refusal::Crowded)
}

fn stream_message(event: Event) -> v1::StreamResultsResponse {
    let (results, batch, resume_token) = match event {
        Event::Results(results, token) => (Some(results), None, token),
        Event::Quiet => (None, None, String::new()),
        Event::Batch(batch, token) => (None, Some(batch), token),
    };
    v1::StreamResultsResponse { results, resume_token, batch }
}

/// Runs one call shielded, with its metadata.
macro_rules! call {
    ($shared:expr, $request:expr, $method:ident) => {{
        let shared = $shared.clone();
        let (metadata, _, message) = $request.into_parts();
        let deadline = Deadline::of(&metadata);
        let work = async move { shared.$method(&metadata, message).await };
        Ok(Response::new($shared.shielded(deadline, work).await?))
    }};
}

#[tonic::async_trait]
impl BatchService for Batches {
    type WatchBatchStream = Outgoing<v1::WatchBatchResponse>;
    type StreamResultsStream = Outgoing<v1::StreamResultsResponse>;

    async fn create_batch(
        &self,
        request: Request<v1::CreateBatchRequest>,
    ) -> Result<Response<v1::Batch>, Status> {
        call!(self.0, request, create)
    }

    async fn append_puzzles(
        &self,
        request: Request<v1::AppendPuzzlesRequest>,
    ) -> Result<Response<v1::AppendPuzzlesResponse>, Status> {
        call!(self.0, request, append)
    }

    async fn seal_batch(
        &self,
        request: Request<v1::SealBatchRequest>,
    ) -> Result<Response<v1::Batch>, Status> {
        call!(self.0, request, seal)
    }

    async fn get_batch(&self, request: Request<v1::GetBatchRequest>) -> Result<Response<v1::Batch>, Status> {
        call!(self.0, request, get)
    }

    async fn stream_results(
        &self,
        request: Request<v1::StreamResultsRequest>,
    ) -> Result<Response<Self::StreamResultsStream>, Status> {
        call!(self.0, request, stream)
    }

    async fn list_batches(
        &self,
        request: Request<v1::ListBatchesRequest>,
    ) -> Result<Response<v1::ListBatchesResponse>, Status> {
        call!(self.0, request, list)
    }

    async fn watch_batch(
        &self,
        request: Request<v1::WatchBatchRequest>,
    ) -> Result<Response<Self::WatchBatchStream>, Status> {
        call!(self.0, request, watch)
    }

    async fn cancel_batch(
        &self,
        request: Request<v1::CancelBatchRequest>,
    ) -> Result<Response<v1::CancelBatchResponse>, Status> {
        call!(self.0, request, cancel)
    }

    async fn delete_batch(&self, request: Request<v1::DeleteBatchRequest>) -> Result<Response<()>, Status> {
        call!(self.0, request, delete)
    }
}
