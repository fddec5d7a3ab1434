//! Every row of the table of statuses in `proto/README.md`, with its details decoded.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use e2e::{Database, Process, SEED, Service};
use nix::sys::signal::Signal;
use proto::v1::{self, batch_service_client::BatchServiceClient};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_types::{ErrorDetails, StatusExt as _};

const OTHER: &str = "..43..2.9..5..9..1.7..6..43..6..2.8719...74...5..83...6.....1.5..35.869..4291.3..";

async fn batches(url: &str) -> BatchServiceClient<Channel> {
    BatchServiceClient::connect(url.to_owned()).await.unwrap()
}

fn name(id: &str) -> String {
    format!("batches/{id}")
}

fn create(id: &str) -> v1::CreateBatchRequest {
    v1::CreateBatchRequest { batch_id: id.to_owned(), ..v1::CreateBatchRequest::default() }
}

fn append(id: &str, offset: i64, grids: Vec<String>) -> v1::AppendPuzzlesRequest {
    let chunk = Some(v1::PuzzleChunk { grids: grids.into(), ..v1::PuzzleChunk::default() });
    v1::AppendPuzzlesRequest { name: name(id), offset: Some(offset), chunk }
}

fn seeds(count: usize) -> Vec<String> {
    vec![SEED.to_owned(); count]
}

/// A refusal that keeps all rules for refusals; gives its details.
fn refused<T>(result: Result<Response<T>, Status>, code: Code, reason: &str) -> ErrorDetails {
    let status = result.err().expect("it is refused");
    assert_eq!(status.code(), code, "{status:?}");
    assert!(!status.message().is_empty() && status.message().len() < 1_024);
    assert!(status.message().len() + status.details().len() < 4_096);
    let details = status.get_error_details();
    let info = details.error_info().expect("every refusal has ErrorInfo");
    assert_eq!((&*info.domain, &*info.reason), ("sudoku-batch", reason));
    details
}

/// The fields that a refusal names, and that each says why.
fn fields<T>(result: Result<Response<T>, Status>) -> Vec<String> {
    let details = refused(result, Code::InvalidArgument, "BAD_ARGUMENT");
    let violations = &details.bad_request().unwrap().field_violations;
    assert!(violations.len() <= 20 && violations.iter().all(|violation| !violation.description.is_empty()));
    violations.iter().map(|violation| violation.field.clone()).collect()
}

fn assert_try_again(details: &ErrorDetails) {
    let delay = details.retry_info().and_then(|info| info.retry_delay);
    assert!(delay.is_some_and(|delay| !delay.is_zero()), "{details:?}");
}

/// What stands in the way, by its type.
fn precondition(details: &ErrorDetails) -> (&str, &str) {
    let violation = &details.precondition_failure().unwrap().violations[0];
    assert!(!violation.description.is_empty());
    (&violation.r#type, &violation.subject)
}

#[tokio::test]
async fn repeats_are_answered_and_other_puzzles_or_options_are_refused() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service.url).await;
    let made = batches.create_batch(create("mine")).await.unwrap().into_inner();
    assert_eq!(batches.create_batch(create("mine")).await.unwrap().into_inner(), made);
    for is_repeat in [false, true] {
        let taken = batches.append_puzzles(append("mine", 0, seeds(3))).await.unwrap().into_inner();
        assert_eq!((taken.next_offset, taken.duplicate), (3, is_repeat));
    }
    let others = vec![SEED.to_owned(), OTHER.to_owned()];
    let taken =
        refused(batches.append_puzzles(append("mine", 1, others)).await, Code::AlreadyExists, "OFFSET_TAKEN");
    assert_eq!(taken.error_info().unwrap().metadata["first_index"], "2");
    let options = |batch| v1::CreateBatchRequest { batch: Some(batch), ..create("mine") };
    for other in [
        v1::Batch { priority: 1, ..v1::Batch::default() },
        v1::Batch { display_name: "another".to_owned(), ..v1::Batch::default() },
        v1::Batch { labels: HashMap::from([("k".to_owned(), "v".to_owned())]), ..v1::Batch::default() },
        v1::Batch { options: Some(v1::SolveOptions { placement_limit: Some(1) }), ..v1::Batch::default() },
    ] {
        let exists = refused(batches.create_batch(options(other)).await, Code::AlreadyExists, "BATCH_EXISTS");
        assert_eq!(exists.resource_info().unwrap().resource_name, "batches/mine");
    }
    let beyond = batches.append_puzzles(append("mine", 4, seeds(1))).await;
    let beyond = refused(beyond, Code::OutOfRange, "OFFSET_BEYOND_END");
    assert_eq!(beyond.error_info().unwrap().metadata["next_offset"], "3");
}

#[tokio::test]
async fn each_bad_field_is_named_and_all_of_a_request_at_once() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service.url).await;
    batches.create_batch(create("limits")).await.unwrap();
    let puzzles = |grids| append("limits", 0, grids);
    assert_eq!(fields(batches.append_puzzles(puzzles(seeds(10_001))).await), ["chunk"]);
    assert_eq!(fields(batches.append_puzzles(puzzles(vec!["1".repeat(5_000_001)])).await), ["chunk"]);
    assert_eq!(fields(batches.append_puzzles(puzzles(Vec::new())).await), ["chunk"]);
    assert_eq!(fields(batches.append_puzzles(append("limits", -1, seeds(1))).await), ["offset"]);
    let list =
        v1::ListBatchesRequest { page_size: -1, states: vec![77], ..v1::ListBatchesRequest::default() };
    assert_eq!(fields(batches.list_batches(list).await), ["page_size", "states"]);
    let labels = (0..17).map(|number| ("\u{7}".repeat(number), "x".repeat(300))).collect();
    let request = v1::CreateBatchRequest {
        batch_id: "No".to_owned(),
        request_id: "no uuid".to_owned(),
        batch: Some(v1::Batch {
            options: Some(v1::SolveOptions { placement_limit: Some(-1) }),
            priority: 10,
            display_name: format!("{}\0", "long".repeat(100)),
            labels,
            ..v1::Batch::default()
        }),
    };
    let named = fields(batches.create_batch(request).await);
    let first = [
        "batch_id",
        "request_id",
        "batch.options.placement_limit",
        "batch.priority",
        "batch.display_name",
        "batch.display_name",
        "batch.labels",
    ];
    assert_eq!(named[..7], first);
    assert_eq!(named.len(), 20, "twenty at the most");
    let named = fields(
        batches
            .watch_batch(v1::WatchBatchRequest {
                name: name("limits"),
                min_interval: Some(prost_types::Duration { seconds: 61, nanos: 0 }),
            })
            .await,
    );
    assert_eq!(named, ["min_interval"]);
}

#[tokio::test]
async fn what_a_batch_has_come_to_stands_in_the_way_by_its_name() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service.url).await;
    for id in ["sealed", "cancelled", "open"] {
        batches.create_batch(create(id)).await.unwrap();
        batches.append_puzzles(append(id, 0, seeds(2))).await.unwrap();
    }
    let seal = |id: &str, count| v1::SealBatchRequest { name: name(id), expected_puzzle_count: Some(count) };
    batches.seal_batch(seal("sealed", 2)).await.unwrap();
    batches.cancel_batch(v1::CancelBatchRequest { name: name("cancelled") }).await.unwrap();
    for id in ["sealed", "cancelled"] {
        let closed = batches.append_puzzles(append(id, 2, seeds(1))).await;
        let closed = refused(closed, Code::FailedPrecondition, "BATCH_NOT_OPEN");
        assert_eq!(precondition(&closed), ("BATCH_STATE", &*name(id)));
        assert!(batches.append_puzzles(append(id, 0, seeds(2))).await.unwrap().into_inner().duplicate);
    }
    let cancelled = batches.seal_batch(seal("cancelled", 2)).await;
    refused(cancelled, Code::FailedPrecondition, "BATCH_NOT_OPEN");
    let miscounted =
        refused(batches.seal_batch(seal("open", 3)).await, Code::FailedPrecondition, "COUNT_MISMATCH");
    assert_eq!(precondition(&miscounted), ("PUZZLE_COUNT", "expected_puzzle_count"));
    let delete = v1::DeleteBatchRequest { name: name("sealed"), force: false };
    let unended = refused(batches.delete_batch(delete).await, Code::FailedPrecondition, "BATCH_NOT_ENDED");
    assert_eq!(precondition(&unended), ("BATCH_STATE", "batches/sealed"));

    let mut theirs = Request::new(v1::GetBatchRequest { name: name("sealed") });
    theirs.metadata_mut().insert("sudoku-tenant", "somebody-else".parse().unwrap());
    let hidden = refused(batches.get_batch(theirs).await, Code::NotFound, "BATCH_NOT_FOUND");
    let resource = hidden.resource_info().unwrap();
    assert_eq!(
        (&*resource.resource_type, &*resource.resource_name),
        ("sudoku.example.com/Batch", "batches/sealed")
    );
}

#[tokio::test]
async fn a_quota_that_is_used_up_says_which_and_when_to_try_again() {
    let database = Database::fresh();
    let mut server = Process::start(
        &["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--queued-max-tenant", "10"],
        &[("DATABASE_URL", &database.url())],
    );
    let mut batches = batches(&server.line("ready ")).await;
    batches.create_batch(create("full")).await.unwrap();
    batches.append_puzzles(append("full", 0, seeds(10))).await.unwrap();
    let full = batches.append_puzzles(append("full", 10, seeds(1))).await;
    let full = refused(full, Code::ResourceExhausted, "QUEUE_FULL");
    assert_eq!(full.quota_failure().unwrap().violations[0].subject, "tenant/queued_puzzles");
    assert_try_again(&full);
}

#[tokio::test]
async fn a_server_that_stops_and_a_database_that_is_away_say_when_to_try_again() {
    let mut database = Database::on_its_own_postgres();
    let (server, url) = Service::server(&database);
    let server = server.allowing(&[" WARN "]);
    let mut batches = batches(&url).await;
    batches.create_batch(create("stays")).await.unwrap();
    let request =
        v1::StreamResultsRequest { name: name("stays"), follow: true, ..v1::StreamResultsRequest::default() };
    let mut open = batches.stream_results(request).await.unwrap().into_inner();
    database.stop_postgres();
    let away = batches.get_batch(v1::GetBatchRequest { name: name("stays") }).await;
    assert_try_again(&refused(away, Code::Unavailable, "DATABASE_UNAVAILABLE"));
    // A stream finds out when it looks.
    let away = open.message().await.map(Response::new);
    assert_try_again(&refused(away, Code::Unavailable, "DATABASE_UNAVAILABLE"));
    database.start_postgres();
    let request =
        v1::StreamResultsRequest { name: name("stays"), follow: true, ..v1::StreamResultsRequest::default() };
    let mut open = loop {
        if let Ok(open) = batches.stream_results(request.clone()).await {
            break open.into_inner();
        }
    };
    server.signal(Signal::SIGTERM);
    let stopping = open.message().await.map(Response::new);
    assert_try_again(&refused(stopping, Code::Unavailable, "SERVER_STOPPING"));
}
