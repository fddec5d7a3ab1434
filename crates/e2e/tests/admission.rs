//! A service that is full: it refuses by name, its clients wait, and everything is answered in the end.
#![allow(clippy::unwrap_used, reason = "tests")]

use client::Client;
use e2e::{Database, Process, SEED, Service, eventually, run};
use proto::v1::{
    self, batch_service_client::BatchServiceClient, solve_response::Response,
    solver_service_client::SolverServiceClient,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt as _;

fn server(database: &Database, options: &[&str]) -> (Process, String) {
    let args = [&["serve", "--listen", "127.0.0.1:0", "--exit-with-parent"], options].concat();
    let mut server = Process::start(&args, &[("DATABASE_URL", &database.url())]);
    let url = server.line("ready ");
    (server, url)
}

/// A server with these options and no worker.
fn service(options: &[&str]) -> Service {
    let database = Database::fresh();
    let (server, url) = server(&database, options);
    Service { workers: Vec::new(), server, url, database }
}

async fn batches(url: &str) -> BatchServiceClient<Channel> {
    BatchServiceClient::connect(url.to_owned()).await.unwrap()
}

fn create(id: &str) -> v1::CreateBatchRequest {
    v1::CreateBatchRequest { batch_id: id.to_owned(), ..v1::CreateBatchRequest::default() }
}

fn append(id: &str, offset: Option<i64>, puzzles: usize) -> v1::AppendPuzzlesRequest {
    let chunk =
        v1::PuzzleChunk { grids: vec![SEED.to_owned(); puzzles].into(), ..v1::PuzzleChunk::default() };
    v1::AppendPuzzlesRequest { name: format!("batches/{id}"), offset, chunk: Some(chunk) }
}

fn of_tenant<T>(tenant: &'static str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("sudoku-tenant", tenant.parse().unwrap());
    request
}

/// The reason and the subject of a refusal that may be tried again.
fn full(status: &Status) -> (String, String) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let quota = status.get_details_quota_failure().unwrap();
    assert_eq!(quota.violations.len(), 1);
    assert!(!quota.violations[0].description.is_empty());
    assert!(status.get_details_retry_info().unwrap().retry_delay.is_some_and(|delay| !delay.is_zero()));
    (status.get_details_error_info().unwrap().reason, quota.violations[0].subject.clone())
}

/// Appends until that is refused: a server that has just started has not looked yet.
async fn until_refused(url: &str, id: &str) -> Status {
    let mut batches = batches(url).await;
    batches.create_batch(of_tenant("third", create(id))).await.unwrap();
    loop {
        if let Err(status) = batches.append_puzzles(of_tenant("third", append(id, None, 1))).await {
            return status;
        }
    }
}

#[tokio::test]
async fn each_quota_is_refused_by_its_name_and_what_needs_no_room_is_still_done() {
    let service = service(&["--queued-max-tenant", "10"]);
    let mut batches = batches(&service.url).await;
    batches.create_batch(create("full")).await.unwrap();
    batches.append_puzzles(append("full", Some(0), 4)).await.unwrap();
    // The message that reaches the quota is taken whole.
    batches.append_puzzles(append("full", Some(4), 8)).await.unwrap();
    let refused = batches.append_puzzles(append("full", Some(12), 1)).await.unwrap_err();
    assert_eq!(full(&refused), ("QUEUE_FULL".to_owned(), "tenant/queued_puzzles".to_owned()));
    let numbers = refused.get_details_error_info().unwrap().metadata;
    assert_eq!((&*numbers["queued"], &*numbers["queued_max"]), ("12", "10"));
    // A repeat is no more than what is there; a tail is.
    assert!(batches.append_puzzles(append("full", Some(2), 10)).await.unwrap().into_inner().duplicate);
    assert!(batches.append_puzzles(append("full", Some(2), 11)).await.is_err());
    assert_eq!(service.database.value("select puzzle_count from batch"), "12", "nothing of it was added");
    batches.create_batch(create("another")).await.unwrap();
    full(&batches.append_puzzles(append("another", None, 1)).await.unwrap_err());
    batches
        .seal_batch(v1::SealBatchRequest { name: "batches/full".to_owned(), expected_puzzle_count: Some(12) })
        .await
        .unwrap();
    // Other tenants have their own.
    batches.create_batch(of_tenant("other", create("full"))).await.unwrap();
    batches.append_puzzles(of_tenant("other", append("full", Some(0), 9))).await.unwrap();

    // What is queued is counted by every server, by whichever it came in.
    let (_second, url) = server(&service.database, &["--queued-max", "20"]);
    let refused = until_refused(&url, "second").await;
    assert_eq!(full(&refused), ("QUEUE_FULL".to_owned(), "service/queued_puzzles".to_owned()));
    let (_third, url) = server(&service.database, &["--database-bytes-max", "1000"]);
    let refused = until_refused(&url, "third").await;
    assert_eq!(full(&refused), ("DATABASE_FULL".to_owned(), "service/database_bytes".to_owned()));
}

#[test]
fn a_submit_of_more_than_the_queue_takes_waits_says_so_once_and_completes() {
    const PUZZLES: usize = 10_000;
    let mut service = service(&["--queued-max-tenant", "1000"]);
    let puzzles =
        run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "32", "--seed", "3"], &[], "").stdout;
    let mut submit = Process::start(
        &["submit", "-", "--output", "jsonl", "--placement-limit", "off", "--server", &service.url],
        &[],
    );
    submit.write(&puzzles);
    submit.close_stdin();
    submit.logged("waiting: the queue is full");
    // Nobody solves so far: one message was taken.
    let one = client::MESSAGE_PUZZLES.to_string();
    assert_eq!(service.database.value("select puzzle_count from batch"), one);
    service.workers.push(Service::worker(&service.database, &[]));
    assert_eq!(submit.wait(), 0);
    let lines = submit.lines();
    assert_eq!(lines.len(), PUZZLES);
    for (index, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("{{\"index\":{index},\"outcome\":\"unique\"")), "{line}");
    }
    assert_eq!(submit.log().iter().filter(|line| line.contains("waiting")).count(), 1);
}

/// A Solve call with more than the queue takes, held back after its first message.
async fn held_back(service: &Service, puzzles: [usize; 2]) -> tonic::Streaming<v1::SolveResponse> {
    let mut client = SolverServiceClient::connect(service.url.clone()).await.unwrap();
    let (sender, receiver) = mpsc::channel(4);
    let responses = client.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    for puzzles in puzzles {
        let chunk = append("", None, puzzles).chunk.unwrap();
        let request = Some(v1::solve_request::Request::Chunk(chunk));
        sender.send(v1::SolveRequest { request }).await.unwrap();
    }
    let count = format!("select count(*) from batch where puzzle_count = {}", puzzles[0]);
    eventually("the first message is stored", || (service.database.value(&count) != "0").then_some(()));
    responses
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solve_call_waits_for_room_and_is_answered() {
    let mut service = service(&["--queued-max-tenant", "5"]);
    let mut responses = held_back(&service, [6, 9]).await;
    assert_eq!(service.database.value("select puzzle_count from batch"), "6");
    service.workers.push(Service::worker(&service.database, &[]));
    let mut indexes = Vec::new();
    let mut last = None;
    while let Some(message) = responses.message().await.unwrap() {
        match message.response {
            Some(Response::Results(results)) => {
                let first = usize::try_from(results.start_index).unwrap();
                indexes.extend(first..first + results.outcomes.len());
            }
            Some(Response::Batch(batch)) => last = Some(batch),
            None => {}
        }
    }
    indexes.sort_unstable();
    assert_eq!(indexes, (0..15).collect::<Vec<_>>());
    assert_eq!(last.unwrap().state(), v1::batch::State::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solve_call_that_waits_for_room_ends_with_its_client_and_with_its_server() {
    let mut service = service(&["--queued-max-tenant", "5"]);
    drop(held_back(&service, [6, 1]).await);
    service.server.logged("a Solve call was cut");
    // The first call has filled the queue, so this one is held back before its first message is stored.
    let mut client = SolverServiceClient::connect(service.url.clone()).await.unwrap();
    let request = Some(v1::solve_request::Request::Chunk(append("", None, 1).chunk.unwrap()));
    let requests = tokio_stream::iter([v1::SolveRequest { request }]);
    let mut responses = client.solve(requests).await.unwrap().into_inner();
    let Some(Response::Batch(batch)) = responses.message().await.unwrap().unwrap().response else {
        panic!("the batch comes first")
    };
    assert_eq!(service.server.stop(), 0);
    let ended = responses.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    // Its batch is as it was: what was held back can be appended at another server.
    let (server, url) = server(&service.database, &[]);
    (service.server, service.url) = (server, url);
    let client = Client::connect(&service.url).await.unwrap();
    assert_eq!(client.append(&batch.name, Some(0), vec![SEED.to_owned()]).await.unwrap(), 1);
}
