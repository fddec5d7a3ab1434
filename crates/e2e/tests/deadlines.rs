//! Deadlines: a call ends with its own, the batch does not; what was begun in the database is ended there.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, time::Duration};

use client::{Client, NewBatch, Submit};
use e2e::{ENDLESS, ENDLESS_LIMIT, SEED, Service, run};
use proto::v1::{self, batch_service_client::BatchServiceClient, solver_service_client::SolverServiceClient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt as _;

async fn batches(service: &Service) -> BatchServiceClient<Channel> {
    BatchServiceClient::connect(service.url.clone()).await.unwrap()
}

fn within<T>(milliseconds: u64, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(Duration::from_millis(milliseconds));
    request
}

fn assert_deadline(status: &Status) {
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "DEADLINE_EXCEEDED");
}

fn follow(name: &str, token: &str) -> v1::StreamResultsRequest {
    use v1::stream_results_request::Start;
    let start = (!token.is_empty()).then(|| Start::ResumeToken(token.to_owned()));
    v1::StreamResultsRequest {
        name: name.to_owned(),
        start,
        ordered: true,
        follow: true,
        ..v1::StreamResultsRequest::default()
    }
}

#[tokio::test]
async fn a_deadline_ends_a_stream_and_not_its_batch_and_the_next_stream_brings_the_rest() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    client.append(&name, Some(0), vec![SEED.to_owned(); 500]).await.unwrap();
    client.seal(&name, Some(500)).await.unwrap();
    let (mut seen, mut token, mut deadlines, mut worker) = (BTreeSet::new(), String::new(), 0, None);
    let batch = 'end: loop {
        let mut stream =
            batches.stream_results(within(2_000, follow(&name, &token))).await.unwrap().into_inner();
        loop {
            match stream.message().await {
                Ok(message) => {
                    let message = message.unwrap();
                    if !message.resume_token.is_empty() {
                        token = message.resume_token;
                    }
                    if let Some(results) = message.results {
                        for place in 0..results.outcomes.len() as u64 {
                            assert!(seen.insert(results.start_index.unsigned_abs() + place));
                        }
                    }
                    if let Some(batch) = message.batch {
                        break 'end batch;
                    }
                }
                Err(status) => {
                    assert_deadline(&status);
                    break;
                }
            }
        }
        deadlines += 1;
        // Until the second one there was nobody to solve anything.
        if deadlines == 2 {
            worker = Some(Service::worker(&service.database, &[]));
        }
    };
    assert!(deadlines >= 2 && worker.is_some());
    assert_eq!((seen.len(), batch.state()), (500, v1::batch::State::Succeeded));
}

#[tokio::test]
async fn watches_and_solve_calls_end_with_their_deadline_too() {
    let service = Service::start(0, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    let watch = v1::WatchBatchRequest { name, min_interval: None };
    let mut watched = batches(&service).await.watch_batch(within(2_000, watch)).await.unwrap().into_inner();
    assert!(watched.message().await.unwrap().is_some());
    assert_deadline(&watched.message().await.unwrap_err());

    let mut solver = SolverServiceClient::connect(service.url.clone()).await.unwrap();
    let (sender, receiver) = mpsc::channel(1);
    let mut answers = solver.solve(within(3_000, ReceiverStream::new(receiver))).await.unwrap().into_inner();
    let chunk = v1::PuzzleChunk { grids: vec![SEED; 10].into(), ..v1::PuzzleChunk::default() };
    let request = Some(v1::solve_request::Request::Chunk(chunk));
    sender.send(v1::SolveRequest { request }).await.unwrap();
    let Some(v1::SolveResponse { response: Some(v1::solve_response::Response::Batch(batch)), .. }) =
        answers.message().await.unwrap()
    else {
        panic!("the batch comes first")
    };
    assert_deadline(&answers.message().await.unwrap_err());
    let left = client.get_batch(&batch.name).await.unwrap();
    assert_eq!((left.state(), left.puzzle_count), (v1::batch::State::Open, 10), "it can be gone on with");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unary_call_that_the_database_holds_up_ends_in_time_and_its_work_is_done_all_the_same() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    let held = service.database.locked("payload", "access exclusive");
    let chunk = v1::PuzzleChunk { grids: vec![SEED; 7].into(), ..v1::PuzzleChunk::default() };
    let append = v1::AppendPuzzlesRequest { name: name.clone(), offset: Some(0), chunk: Some(chunk) };
    let status = batches.append_puzzles(within(600, append.clone())).await.unwrap_err();
    assert_deadline(&status);
    drop(held);
    // Whoever asks again finds it stored, or stores it: once.
    let again = batches.append_puzzles(append.clone()).await.unwrap().into_inner();
    assert_eq!(again.next_offset, 7);
    assert!(batches.append_puzzles(append).await.unwrap().into_inner().duplicate);
    assert_eq!(service.database.value("select sum(hi - lo) from payload"), "7");
}

#[tokio::test]
async fn a_submission_with_a_deadline_ends_with_it_and_its_results_can_be_had_later() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let limit = NewBatch { placement_limit: Some(ENDLESS_LIMIT), ..NewBatch::default() };
    let options = Submit { batch: limit, ordered: true, deadline: Some(Duration::from_secs(2)) };
    let mut submission = client.submit([SEED, ENDLESS], options).await.unwrap();
    let mut seen = 0;
    let error = loop {
        match submission.next().await {
            Ok(run) => seen += run.expect("the last puzzle takes minutes").len(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, client::Error::Deadline), "{error:?}");
    let name = submission.name().to_owned();
    assert_eq!(client.get_batch(&name).await.unwrap().puzzle_count, 2);
    assert!(seen <= 1);
    let cancelled = run(&["cancel", &name, "--server", &service.url], &[], "");
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
}
