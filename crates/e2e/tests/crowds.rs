//! Clients that do not read, and many of them: the server keeps little for each, and serves the others as ever.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests; figures for --nocapture")]

use std::time::{Duration, Instant};

use client::{Client, NewBatch, Start};
use e2e::{SEED, Service, run};
use proto::v1::{self, batch_service_client::BatchServiceClient, solver_service_client::SolverServiceClient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

/// What a server may take beyond what it takes without anything to do.
const BYTES_MORE_MAX: u64 = 50 << 20;

/// Puzzles of which most differ.
fn puzzles(count: usize) -> Vec<String> {
    let made = run(&["generate", "-n", "2000", "--clues", "36", "--seed", "3"], &[], "").stdout;
    made.lines().cycle().take(count).map(str::to_owned).collect()
}

/// A server that has done everything once.
async fn warm(service: &Service) -> u64 {
    let client = Client::connect(&service.url).await.unwrap();
    finished(&client, "warming", 20_000).await;
    let mut results = client.results("batches/warming", Start::ordered(0)).await.unwrap();
    while results.next_columns().await.unwrap().is_some() {}
    service.server.forget_memory_peak();
    service.server.memory_peak()
}

/// A batch of so many puzzles that are answered.
async fn finished(client: &Client, id: &str, count: usize) {
    let new = NewBatch { id: id.to_owned(), placement_limit: Some(0), ..NewBatch::default() };
    let name = client.create_batch(new).await.unwrap().name;
    client.append(&name, Some(0), puzzles(count)).await.unwrap();
    client.seal(&name, Some(count as u64)).await.unwrap();
    let mut watch = client.watch(&name, Some(Duration::from_millis(100))).await.unwrap();
    while watch.next().await.unwrap().is_some() {}
}

fn assert_small(service: &Service, before: u64, what: &str) {
    let peak = service.server.memory_peak();
    let more = peak.saturating_sub(before);
    eprintln!("{what}: {} MiB and {} MiB more", before >> 20, more >> 20);
    assert!(more <= BYTES_MORE_MAX, "{what}: {before} bytes before, {more} more");
}

/// How long unary calls of another client take meanwhile: the median and the longest.
async fn unary_calls(url: &str, count: usize) -> (Duration, Duration) {
    let client = Client::connect(url).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        client.get_batch("batches/warming").await.unwrap();
        times.push(begun.elapsed());
    }
    times.sort();
    (times[count / 2], times[count - 1])
}

fn request(id: &str) -> v1::StreamResultsRequest {
    let name = format!("batches/{id}");
    v1::StreamResultsRequest { name, ordered: true, follow: true, ..v1::StreamResultsRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_puzzles_written_before_anything_is_read_are_all_answered_and_take_little_memory() {
    use v1::{solve_request::Request, solve_response::Response};
    const MESSAGES: usize = 250;
    const MESSAGE: usize = 4_000;
    let service = Service::start(2, &[]);
    let before = warm(&service).await;
    let mut client = SolverServiceClient::connect(service.url.clone()).await.unwrap();
    let (sender, receiver) = mpsc::channel(1);
    let mut responses = client.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    let options = Some(v1::SolveOptions { placement_limit: Some(0) });
    let config = v1::SolveConfig { options, ordered: true, ..v1::SolveConfig::default() };
    sender.send(v1::SolveRequest { request: Some(Request::Config(config)) }).await.unwrap();
    let grids: proto::Grids = puzzles(MESSAGE).into();
    for _ in 0..MESSAGES {
        let chunk = v1::PuzzleChunk { grids: grids.clone(), ..v1::PuzzleChunk::default() };
        sender.send(v1::SolveRequest { request: Some(Request::Chunk(chunk)) }).await.unwrap();
    }
    drop(sender);
    // All of it is taken and solved, and nothing is read.
    let state = "select coalesce(max(state), 0) from batch where puzzle_count = 1000000";
    e2e::eventually("the batch is solved", || (service.database.value(state) == "3").then_some(()));
    assert_small(&service, before, "a million puzzles written and nothing read");
    let (mut next, mut last) = (0, None);
    while let Some(message) = responses.message().await.unwrap() {
        match message.response {
            Some(Response::Results(results)) => {
                assert_eq!(results.start_index, next, "by index");
                next += i64::try_from(results.outcomes.len()).unwrap();
            }
            Some(Response::Batch(batch)) => last = Some(batch),
            None => {}
        }
    }
    let last = last.unwrap();
    assert_eq!((next, last.state()), (1_000_000, v1::batch::State::Succeeded));
    assert_small(&service, before, "and read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_streams_that_nobody_reads_take_little_memory_and_others_are_served() {
    const CONNECTIONS: usize = 40;
    const STREAMS: usize = 25;
    let service = Service::start(2, &[]);
    let before = warm(&service).await;
    let client = Client::connect(&service.url).await.unwrap();
    finished(&client, "unread", 500_000).await;
    service.server.forget_memory_peak();
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        let channel = Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
        for _ in 0..STREAMS {
            let mut batches = BatchServiceClient::new(channel.clone());
            kept.push(batches.stream_results(request("unread")).await.unwrap().into_inner());
        }
    }
    let times = unary_calls(&service.url, 200).await;
    eprintln!("unary calls beside unread streams: {times:?}");
    // Another client's stream still brings everything.
    let mut results = client.results("batches/unread", Start::ordered(0)).await.unwrap();
    let (mut seen, begun) = (0, Instant::now());
    while let Some(run) = results.next_columns().await.unwrap() {
        seen += run.len();
    }
    assert_eq!(seen, 500_000);
    eprintln!("500,000 results beside unread streams: {:?}", begun.elapsed());
    assert_small(&service, before, "a thousand unread streams of results");
    drop(kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_streams_of_every_kind_that_wait_take_little_memory_and_others_are_served() {
    const CONNECTIONS: usize = 40;
    let service = Service::start(1, &[]);
    let before = warm(&service).await;
    let client = Client::connect(&service.url).await.unwrap();
    let open = client.create_batch(NewBatch { id: "open".to_owned(), ..NewBatch::default() }).await.unwrap();
    let (mut followers, mut watchers, mut solvers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let channel = Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
        let mut batches = BatchServiceClient::new(channel.clone());
        let mut solver = SolverServiceClient::new(channel);
        for _ in 0..9 {
            followers.push(batches.stream_results(request("open")).await.unwrap().into_inner());
        }
        for _ in 0..8 {
            let watch = v1::WatchBatchRequest { name: open.name.clone(), min_interval: None };
            watchers.push(batches.watch_batch(watch).await.unwrap().into_inner());
        }
        for _ in 0..8 {
            let (sender, receiver) = mpsc::channel(4);
            let answers = solver.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
            let chunk = v1::PuzzleChunk { grids: vec![SEED; 10].into(), ..v1::PuzzleChunk::default() };
            let request = Some(v1::solve_request::Request::Chunk(chunk));
            sender.send(v1::SolveRequest { request }).await.unwrap();
            solvers.push((sender, answers));
        }
    }
    let times = unary_calls(&service.url, 200).await;
    eprintln!("unary calls beside streams that wait: {times:?}");
    client.append(&open.name, Some(0), vec![SEED.to_owned(); 100]).await.unwrap();
    client.seal(&open.name, Some(100)).await.unwrap();
    for stream in &mut followers {
        let mut seen = 0;
        while let Some(message) = stream.message().await.unwrap() {
            seen += message.results.map_or(0, |results| results.outcomes.len());
        }
        assert_eq!(seen, 100);
    }
    for (sender, mut answers) in solvers {
        drop(sender);
        let mut seen = 0;
        while let Some(message) = answers.message().await.unwrap() {
            if let Some(v1::solve_response::Response::Results(results)) = message.response {
                seen += results.outcomes.len();
            }
        }
        assert_eq!(seen, 10);
    }
    assert_small(&service, before, "a thousand streams of every kind");
    drop(watchers);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_solve_calls_that_write_and_do_not_read_take_little_memory_and_are_all_answered() {
    const CONNECTIONS: usize = 40;
    const CALLS: usize = 25;
    const PUZZLES: usize = 20;
    let service = Service::start(2, &[]);
    let before = warm(&service).await;
    let grids: proto::Grids = puzzles(PUZZLES).into();
    let mut kept = Vec::new();
    for _ in 0..CONNECTIONS {
        let channel = Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
        for _ in 0..CALLS {
            let chunk = v1::PuzzleChunk { grids: grids.clone(), ..v1::PuzzleChunk::default() };
            let request = v1::SolveRequest { request: Some(v1::solve_request::Request::Chunk(chunk)) };
            let mut solver = SolverServiceClient::new(channel.clone());
            kept.push(solver.solve(tokio_stream::once(request)).await.unwrap().into_inner());
        }
    }
    let times = unary_calls(&service.url, 200).await;
    eprintln!("unary calls beside solve calls: {times:?}");
    let ended = "select count(*) from batch where state = 3";
    e2e::eventually("all are solved", || (service.database.value(ended) == "1001").then_some(()));
    assert_small(&service, before, "a thousand unread solve calls");
    for mut answers in kept {
        let mut seen = 0;
        while let Some(message) = answers.message().await.unwrap() {
            if let Some(v1::solve_response::Response::Results(results)) = message.response {
                seen += results.outcomes.len();
            }
        }
        assert_eq!(seen, PUZZLES);
    }
}
