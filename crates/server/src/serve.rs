//! Running the services on a listener until they are told to stop.

use std::{sync::Arc, time::Duration};

use proto::v1::{batch_service_server::BatchServiceServer, solver_service_server::SolverServiceServer};
use store::{Listens, Store, Waker};
use tokio::{net::TcpListener, sync::Semaphore};
use tonic::transport::{Server, server::TcpIncoming};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    admission::{Admission, Quotas},
    batches::{Batches, Shared},
    bell::Bell,
    drain::Drain,
    limits::{
        CONNECTION_WINDOW, DECODED_BYTES_MAX, FRAME_BYTES_MAX, KEEPALIVE_TIMEOUT_SHARE, PARTITIONS_INTERVAL,
        STREAM_READS_MAX, STREAM_WINDOW, STREAM_WRITES_MAX, STREAMS_MAX,
    },
    line::Lines,
    memory::MeterDownload,
    outlet::Streams,
    solve::Solver,
    tenants::Tenants,
    upload::WatchUpload,
};

/// Set-up of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Greatest placement limit that a client may ask for.
    pub placement_limit_max: u64,
    /// How long calls may take to end after the stop signal.
    pub grace: Duration,
    /// How long a client may be silent before it is asked whether it lives; it is given up a third of this later.
    pub keepalive: Duration,
    /// How much may be queued and stored.
    pub quotas: Quotas,
}

/// Why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport failed.
    #[error("the gRPC transport failed: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The reflection descriptors are unreadable: a fault of the build.
    #[error("the descriptor set cannot be served: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves on `listener` until `stop` resolves; then ends every stream with UNAVAILABLE, lets unary calls end, and returns, at the
/// latest after the grace time.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(
    listener: TcpListener,
    store: Store,
    config: Config,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let (drain_start, drain) = Drain::new();
    let shared = Shared {
        waker: Arc::new(Waker::start(store.clone(), Listens::Results)),
        tenants: Arc::new(Tenants::default()),
        admission: Admission::new(config.quotas),
        lines: Lines::default(),
        bell: Arc::new(Bell::default()),
        streams: Streams::new(drain.clone()),
        reads: Arc::new(Semaphore::new(STREAM_READS_MAX)),
        writes: Arc::new(Semaphore::new(STREAM_WRITES_MAX)),
        placement_limit_max: config.placement_limit_max,
        store: store.clone(),
    };
    let (health_reporter, health) = tonic_health::server::health_reporter();
    report(&health_reporter, ServingStatus::Serving).await;
    let partitions = tokio::spawn(keep_partitions(store.clone()));
    let looks = tokio::spawn(Arc::clone(&shared.admission).keep_looking(store.clone()));
    let bell = Arc::clone(&shared.bell);
    let rings = tokio::spawn(async move { bell.ring(store).await });

    let solver =
        SolverServiceServer::new(Solver(shared.clone())).max_decoding_message_size(DECODED_BYTES_MAX);
    let memory = shared.streams.memory.clone();
    let batches = BatchServiceServer::new(Batches(shared)).max_decoding_message_size(DECODED_BYTES_MAX);
    let drained = drain.clone();
    let serving = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .http2_keepalive_interval(Some(config.keepalive))
        .http2_keepalive_timeout(Some(config.keepalive / KEEPALIVE_TIMEOUT_SHARE))
        .add_service(health)
        .add_service(reflection_v1()?)
        .add_service(reflection_v1alpha()?)
        .add_service(MeterDownload { inner: batches, memory: memory.clone() })
        .add_service(MeterDownload { inner: WatchUpload(solver), memory })
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), async move {
            drained.started().await;
        });
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = stop => {
            report(&health_reporter, ServingStatus::NotServing).await;
            end_watches(health_reporter).await;
            drain_start.raise();
            tokio::time::timeout(config.grace, &mut serving).await.unwrap_or_else(|_| {
                tracing::warn!(grace = ?config.grace, "calls were still open after the grace time; they are cut");
                Ok(())
            })
        }
    };
    partitions.abort();
    looks.abort();
    rings.abort();
    Ok(ended?)
}

/// Every service that health is told of; the empty name is the server as a whole.
const SERVICES: [&str; 3] = ["", "sudoku.v1.BatchService", "sudoku.v1.SolverService"];

async fn report(reporter: &HealthReporter, status: ServingStatus) {
    for name in SERVICES {
        reporter.set_service_status(name, status).await;
    }
}

/// Ends the streams of those who watch the health; they would keep the server waiting.
async fn end_watches(mut reporter: HealthReporter) {
    for name in SERVICES {
        reporter.clear_service_status(name).await;
    }
}

fn reflection_v1() -> Result<
    tonic_reflection::server::v1::ServerReflectionServer<impl tonic_reflection::server::v1::ServerReflection>,
    tonic_reflection::server::Error,
> {
    reflection().build_v1()
}

fn reflection_v1alpha() -> Result<
    tonic_reflection::server::v1alpha::ServerReflectionServer<
        impl tonic_reflection::server::v1alpha::ServerReflection,
    >,
    tonic_reflection::server::Error,
> {
    reflection().build_v1alpha()
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        // Each version by itself would list itself alone.
        .include_reflection_service(false)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(proto::DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Makes the partitions of the coming days, again and again, for a server that runs for months.
async fn keep_partitions(store: Store) {
    loop {
        tokio::time::sleep(PARTITIONS_INTERVAL).await;
        if let Err(error) = store.ensure_partitions().await {
            tracing::warn!(%error, "the partitions of the coming days could not be made; trying again later");
        }
    }
}
