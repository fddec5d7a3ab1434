//! `SolverService`: puzzles in and results out on one call, through a durable batch.
//!
//! Reading and answering go on side by side: whatever the client does not read waits in the database, so a client that writes
//! everything before it reads anything is served as well.

use std::sync::Arc;

use futures_util::FutureExt as _;
use proto::v1::{self, solve_request::Request as Asked, solver_service_server::SolverService};
use store::{Created, Progress, TenantId};
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};

use crate::{
    batches::Shared,
    deadline::Deadline,
    delivery::{Delivery, Event, Wanted},
    intake::{self, PackedPuzzles},
    intervals::Delivered,
    limits::APPEND_BYTES_MAX,
    outlet::{Cut, Outgoing, Outlet},
    status::Refusal,
    tokens,
    upload::UploadEnd,
    wire,
};

/// Serves `SolverService`.
#[derive(Clone)]
pub(crate) struct Solver(pub(crate) Shared);

#[tonic::async_trait]
impl SolverService for Solver {
    type SolveStream = Outgoing<v1::SolveResponse>;

    async fn solve(
        &self,
        request: Request<Streaming<v1::SolveRequest>>,
    ) -> Result<Response<Self::SolveStream>, Status> {
        let (metadata, extensions, stream) = request.into_parts();
        let end = extensions.get::<UploadEnd>().cloned().unwrap_or_default();
        let incoming = Incoming { stream, end };
        let (outlet, outgoing) = self.0.streams.open(Deadline::of(&metadata));
        let shared = self.0.clone();
        // The answer's headers go out at once: many clients send nothing before they have them.
        tokio::spawn(async move {
            if let Err(cut) = run(&shared, &metadata, incoming, &outlet).await {
                if matches!(cut, Cut::Gone | Cut::Transport(_)) {
                    tracing::info!("a Solve call was cut; its batch stays as it is");
                }
                outlet.end(cut).await;
            }
        });
        Ok(Response::new(outgoing))
    }
}

fn solve_message(event: Event) -> v1::SolveResponse {
    use v1::solve_response::Response as Outgoing;
    let (response, resume_token) = match event {
        Event::Results(results, token) => (Some(Outgoing::Results(results)), token),
        Event::Quiet => (None, String::new()),
        Event::Batch(batch, token) => (Some(Outgoing::Batch(batch)), token),
    };
    v1::SolveResponse { response, resume_token }
}

/// One call from its first message to its last.
async fn run(
    shared: &Shared,
    metadata: &MetadataMap,
    mut incoming: Incoming,
    outlet: &Outlet<v1::SolveResponse>,
) -> Result<(), Cut> {
    let (config, first_chunk) = match incoming.next(outlet).await? {
        Some(Asked::Config(config)) => (config, None),
        Some(Asked::Chunk(chunk)) => (v1::SolveConfig::default(), Some(chunk)),
        None => (v1::SolveConfig::default(), None),
    };
    let new = wire::solve_batch(config.options, shared.placement_limit_max)?;
    let (creating, metadata, batch) = (shared.clone(), metadata.clone(), new.clone());
    let create = async move {
        let tenant = creating.tenants.creating(&creating.store, &metadata).await?;
        Ok((tenant, creating.store.create_batch(tenant, &batch).await?))
    };
    let (tenant, Created::New(batch)) = shared.written(create).await? else {
        // A fresh random id is never taken.
        return Err(Refusal::BatchExists { name: wire::batch_name(&new.name) }.into());
    };
    tracing::info!(batch.id = batch.key.id(), batch.name, "batch created by a Solve call");
    let wakes = shared.waker.results(batch.key.id());
    let delivered = Delivered::up_to(0);
    let resume_token = tokens::resume(&tokens::owner(&batch), &delivered);
    let begin = Event::Batch(wire::batch(batch.clone(), Progress::default()), resume_token);
    outlet.send(solve_message(begin)).await?;

    let wanted = Wanted { delivered, ordered: config.ordered, follow: true, packed: config.packed_results };
    let message = solve_message;
    let delivery = Delivery { shared, batch, wanted, outlet, message, wakes }.run();
    let intake = take_in(shared, tenant, &new.name, first_chunk, incoming, outlet);
    let (mut delivery, mut intake) = (std::pin::pin!(delivery), std::pin::pin!(intake));
    tokio::select! {
        taken = &mut intake => taken?,
        ended = &mut delivery => return ended,
    }
    delivery.await
}

/// Appends every chunk in order and seals the batch when the client has sent its last.
async fn take_in(
    shared: &Shared,
    tenant: TenantId,
    id: &str,
    first_chunk: Option<v1::PuzzleChunk>,
    mut incoming: Incoming,
    outlet: &Outlet<v1::SolveResponse>,
) -> Result<(), Cut> {
    let mut offset = 0;
    let mut next = match first_chunk {
        Some(chunk) => Ok(Some(Asked::Chunk(chunk))),
        None => incoming.next(outlet).await,
    };
    loop {
        match next? {
            Some(Asked::Chunk(chunk)) => {
                let mut puzzles = PackedPuzzles::of(&chunk)?;
                // It may wait for its turn behind a thousand others.
                drop(chunk);
                let after = join(shared, tenant, &mut puzzles, &mut incoming, outlet);
                offset = append(shared, tenant, id, offset, &Arc::new(puzzles), outlet).await?;
                next = match after {
                    Some(next) => next,
                    None => incoming.next(outlet).await,
                };
            }
            Some(Asked::Config(_)) => {
                let why = "only the first message of a Solve call may hold it".to_owned();
                return Err(Refusal::BadArgument { field: "config", why }.into());
            }
            None => {
                let (sealing, name) = (shared.clone(), id.to_owned());
                let seal = async move { sealing.seal_batch(tenant, &name, Some(offset)).await };
                shared.written(seal).await?;
                return Ok(());
            }
        }
    }
}

/// Adds what has come meanwhile, without waiting for more: a statement and a commit cost about the same for one message and for ten. Gives what comes after it, if that is here and no chunk
/// that can be added.
fn join(
    shared: &Shared,
    tenant: TenantId,
    puzzles: &mut PackedPuzzles,
    incoming: &mut Incoming,
    outlet: &Outlet<v1::SolveResponse>,
) -> Option<Result<Option<Asked>, Cut>> {
    // The message that reaches a quota is the last that is taken.
    while puzzles.bytes() < APPEND_BYTES_MAX && shared.admission.has_room(tenant, puzzles.len() as u64) {
        match incoming.next(outlet).now_or_never()? {
            Ok(Some(Asked::Chunk(chunk))) => {
                if let Err(refusal) = puzzles.add(&chunk) {
                    return Some(Err(refusal.into()));
                }
            }
            other => return Some(other),
        }
    }
    None
}

/// Appends what was taken of some messages; returns the next offset. While a quota is used up nothing more is read, so that the client waits as well; the call goes on, and its
/// results with it.
async fn append(
    shared: &Shared,
    tenant: TenantId,
    id: &str,
    offset: u64,
    puzzles: &Arc<PackedPuzzles>,
    outlet: &Outlet<v1::SolveResponse>,
) -> Result<u64, Cut> {
    loop {
        let (appending, name, puzzles) = (shared.clone(), id.to_owned(), Arc::clone(puzzles));
        let append = async move {
            let line = appending.lines.join((tenant, name.clone()), Some(offset));
            intake::append(&appending, line, tenant, &name, Some(offset), &puzzles).await
        };
        // Its deadline is the call's, which ends the waits for this one: an append that is under way then is stored.
        match shared.written(append).await {
            Ok(appended) => return Ok(appended.next_offset),
            Err(Refusal::Full(_)) => outlet.hold(shared.admission.room(tenant)).await?,
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

/// The client's side of a call.
struct Incoming {
    stream: Streaming<v1::SolveRequest>,
    end: UploadEnd,
}

impl Incoming {
    /// The next message; `None` when the client has sent its last. A client that was cut is gone, not done.
    async fn next(&mut self, outlet: &Outlet<v1::SolveResponse>) -> Result<Option<Asked>, Cut> {
        match outlet.hold(self.stream.message()).await? {
            Ok(Some(v1::SolveRequest { request: Some(request) })) => Ok(Some(request)),
            Ok(Some(v1::SolveRequest { request: None })) => Err(Cut::Refused(Refusal::BadArgument {
                field: "request",
                why: "set config or chunk".to_owned(),
            })),
            Ok(None) if self.end.is_reached() => Ok(None),
            Ok(None) => Err(Cut::Transport(Status::cancelled("the request was cut before its end"))),
            Err(status) => Err(Cut::Transport(status)),
        }
    }
}
