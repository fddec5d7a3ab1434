//! What streams carry: small messages whatever the batch, signs of life, counts that add up; and what tools ask a server about itself.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use client::{Client, NewBatch, Start};
use e2e::{ENDLESS, ENDLESS_LIMIT, SEED, Service};
use proto::v1::{self, batch_service_client::BatchServiceClient, solver_service_client::SolverServiceClient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt as _;

/// What a client in any language reads by default.
const DEFAULT_MESSAGE_MAX: usize = 4 << 20;

async fn channel(service: &Service) -> Channel {
    Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap()
}

fn follow(name: &str) -> v1::StreamResultsRequest {
    v1::StreamResultsRequest { name: name.to_owned(), follow: true, ..v1::StreamResultsRequest::default() }
}

#[tokio::test]
async fn sixty_thousand_puzzles_in_one_message_are_refused_and_their_results_come_in_small_messages() {
    const PUZZLES: usize = 60_000;
    let service = Service::start(2, &[]);
    let mut batches = BatchServiceClient::new(channel(&service).await);
    let create = v1::CreateBatchRequest { batch_id: "large".to_owned(), ..v1::CreateBatchRequest::default() };
    let name = batches.create_batch(create).await.unwrap().into_inner().name;
    let append = |offset, count, text: &str| v1::AppendPuzzlesRequest {
        name: name.clone(),
        offset: Some(offset),
        chunk: Some(v1::PuzzleChunk { grids: vec![text; count].into(), ..v1::PuzzleChunk::default() }),
    };
    let refused = batches.append_puzzles(append(0, PUZZLES, SEED)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("10000"), "the limit is named: {}", refused.message());
    // Beyond what is decoded at all it is the transport that refuses.
    let refused = batches.append_puzzles(append(0, 110_000, SEED)).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    let info = refused.get_details_error_info().unwrap();
    assert_eq!((&*info.reason, &*info.metadata["bytes_max"]), ("MESSAGE_TOO_LARGE", "8388608"));
    assert!(refused.message().contains("8388608"), "the limit is named: {}", refused.message());
    for offset in (0..PUZZLES).step_by(10_000) {
        batches.append_puzzles(append(i64::try_from(offset).unwrap(), 10_000, SEED)).await.unwrap();
    }
    batches
        .seal_batch(v1::SealBatchRequest { name: name.clone(), expected_puzzle_count: None })
        .await
        .unwrap();
    let mut stream = batches.stream_results(follow(&name)).await.unwrap().into_inner();
    let mut seen = 0;
    while let Some(message) = stream.message().await.unwrap() {
        assert!(prost::Message::encoded_len(&message) < DEFAULT_MESSAGE_MAX / 4);
        seen += message.results.map_or(0, |results| results.outcomes.len());
    }
    assert_eq!(seen, PUZZLES);
}

#[tokio::test]
async fn a_hundred_thousand_bad_lines_and_a_label_without_end_leave_the_connection_usable() {
    const BAD: usize = 100_000;
    let service = Service::start(1, &[]);
    let channel = channel(&service).await;
    let mut batches = BatchServiceClient::new(channel.clone());
    let labels = [("k".to_owned(), "x".repeat(20_000)), ("y".repeat(20_000), String::new())];
    let batch = Some(v1::Batch { labels: labels.into_iter().collect(), ..v1::Batch::default() });
    let labelled = v1::CreateBatchRequest { batch, ..v1::CreateBatchRequest::default() };
    let refused = batches.create_batch(labelled).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().len() < 1_024 && refused.details().len() < 4_096);
    assert_eq!(refused.get_details_bad_request().unwrap().field_violations.len(), 2);

    let name = batches.create_batch(v1::CreateBatchRequest::default()).await.unwrap().into_inner().name;
    for offset in (0..BAD).step_by(10_000) {
        let grids = (0..10_000).map(|place| format!("bad line {}", offset + place)).collect();
        let append = v1::AppendPuzzlesRequest {
            name: name.clone(),
            offset: Some(i64::try_from(offset).unwrap()),
            chunk: Some(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() }),
        };
        batches.append_puzzles(append).await.unwrap();
    }
    let seal = v1::SealBatchRequest { name: name.clone(), expected_puzzle_count: Some(100_000) };
    batches.seal_batch(seal).await.unwrap();
    let mut stream = batches.stream_results(follow(&name)).await.unwrap().into_inner();
    let mut invalid = 0;
    while let Some(message) = stream.message().await.unwrap() {
        invalid += message.results.map_or(0, |results| results.invalid.len());
    }
    assert_eq!(invalid, BAD);
}

#[tokio::test]
async fn a_search_of_minutes_is_not_silence_on_any_stream() {
    let service = Service::start(1, &[]);
    let channel = channel(&service).await;
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { placement_limit: Some(ENDLESS_LIMIT), ..NewBatch::default() };
    let name = client.create_batch(new).await.unwrap().name;
    client.append(&name, Some(0), vec![ENDLESS.to_owned()]).await.unwrap();
    client.seal(&name, Some(1)).await.unwrap();
    let mut batches = BatchServiceClient::new(channel.clone());
    let mut results = batches.stream_results(follow(&name)).await.unwrap().into_inner();
    let watch = v1::WatchBatchRequest { name: name.clone(), min_interval: None };
    let mut watched = batches.watch_batch(watch).await.unwrap().into_inner();
    let (sender, receiver) = mpsc::channel(1);
    let mut solver = SolverServiceClient::new(channel);
    let mut answers = solver.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    // A call without a puzzle is quiet too.
    let config = Some(v1::solve_request::Request::Config(v1::SolveConfig::default()));
    sender.send(v1::SolveRequest { request: config }).await.unwrap();

    let quiet = results.message().await.unwrap().unwrap();
    assert_eq!((quiet.results, quiet.batch, &*quiet.resume_token), (None, None, ""));
    let first = watched.message().await.unwrap().unwrap().batch.unwrap();
    let again = watched.message().await.unwrap().unwrap().batch.unwrap();
    assert_eq!((first.state(), again.state()), (v1::batch::State::Sealed, v1::batch::State::Sealed));
    answers.message().await.unwrap().unwrap();
    let quiet = answers.message().await.unwrap().unwrap();
    assert_eq!((quiet.response, &*quiet.resume_token), (None, ""));
    client.cancel_batch(&name).await.unwrap();
}

#[tokio::test]
async fn the_counts_of_every_outcome_add_up_to_the_total() {
    let service = Service::start(2, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { placement_limit: Some(ENDLESS_LIMIT), ..NewBatch::default() };
    let name = client.create_batch(new).await.unwrap().name;
    let none = "...45678.1........2........3........9............................................";
    let puzzles = [SEED, &".".repeat(81), none, "short", &"x".repeat(81), ENDLESS, SEED];
    for (index, puzzle) in (0..).zip(puzzles) {
        client.append(&name, Some(index), vec![puzzle.to_owned()]).await.unwrap();
    }
    client.seal(&name, Some(7)).await.unwrap();
    let mut watch = client.watch(&name, Some(std::time::Duration::from_millis(100))).await.unwrap();
    let mut last = None;
    while let Some(batch) = watch.next().await.unwrap() {
        let progress = batch.progress.unwrap();
        assert!(progress.done_count <= batch.puzzle_count);
        if progress.done_count == 6 {
            client.cancel_batch(&name).await.unwrap();
        }
        last = Some(batch);
    }
    let last = last.unwrap();
    let counts = last.progress.unwrap();
    let sums = [
        counts.unique_count,
        counts.multiple_count,
        counts.no_solution_count,
        counts.invalid_count,
        counts.undecided_count,
        counts.failed_count,
        counts.cancelled_count,
    ];
    assert_eq!(sums, [2, 1, 1, 2, 0, 0, 1]);
    assert_eq!((counts.done_count, last.puzzle_count), (7, 7));
}

#[tokio::test]
async fn a_reader_that_takes_its_time_gets_everything() {
    const PUZZLES: u64 = 30_000;
    let service = Service::start(2, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    client.append(&name, Some(0), vec![SEED.to_owned(); 30_000]).await.unwrap();
    client.seal(&name, Some(PUZZLES)).await.unwrap();
    let mut slow = client.results(&name, Start::ordered(0)).await.unwrap();
    let first = slow.next_columns().await.unwrap().unwrap().len() as u64;
    // Others read all of it meanwhile, by the same connection.
    for _ in 0..20 {
        let mut other = client.results(&name, Start::as_finished()).await.unwrap();
        while other.next_columns().await.unwrap().is_some() {}
    }
    let mut next = first;
    while let Some(run) = slow.next_columns().await.unwrap() {
        assert_eq!(run.start_index(), next);
        next += run.len() as u64;
    }
    assert_eq!(next, PUZZLES);
}

#[tokio::test]
async fn reflection_lists_every_service_in_both_versions_and_health_knows_each() {
    use tonic_reflection::pb::{v1 as new, v1alpha as old};
    let service = Service::start(0, &[]);
    let channel = channel(&service).await;
    // Two sets of types of one shape.
    macro_rules! listed {
        ($version:ident) => {{
            use $version::{
                server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
            };
            let request = $version::ServerReflectionRequest {
                message_request: Some(MessageRequest::ListServices(String::new())),
                ..$version::ServerReflectionRequest::default()
            };
            let mut client = $version::server_reflection_client::ServerReflectionClient::new(channel.clone());
            let answers = client.server_reflection_info(tokio_stream::once(request)).await;
            let answer = answers.unwrap().into_inner().message().await.unwrap().unwrap();
            let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
                panic!("a list")
            };
            list.service.into_iter().map(|service| service.name).collect::<BTreeSet<String>>()
        }};
    }
    let (newer, older) = (listed!(new), listed!(old));
    let all = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "sudoku.v1.BatchService",
        "sudoku.v1.SolverService",
    ];
    let all: BTreeSet<String> = all.map(str::to_owned).into();
    assert!(all == newer && all == older, "{newer:?} {older:?}");

    let mut health = HealthClient::new(channel);
    for name in ["", "sudoku.v1.BatchService", "sudoku.v1.SolverService"] {
        let request = HealthCheckRequest { service: name.to_owned() };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{name:?}");
    }
    let request = HealthCheckRequest { service: "sudoku.v1.Nothing".to_owned() };
    assert_eq!(health.check(request).await.unwrap_err().code(), Code::NotFound);
}
