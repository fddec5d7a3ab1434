//! Servers that stop or die while others run: their clients go on elsewhere, and the callers of the client library do not notice.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, time::Duration};

use client::{Client, Error, NewBatch, Retry, Start, Submission, Submit};
use e2e::{Process, SEED, Service, eventually, limit_for, run, with_long_searches};
use nix::sys::signal::Signal;
use proto::v1::{self, batch_service_client::BatchServiceClient, solver_service_client::SolverServiceClient};
use tokio::sync::mpsc;
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

/// Two servers, and both their addresses as a client takes them.
fn two_servers(workers: usize) -> (Service, Process, String) {
    let service = Service::start(workers, &[]);
    let (second, second_url) = Service::server(&service.database);
    let urls = format!("{},{second_url}", service.url);
    (service, second, urls)
}

/// How a stream that was cut ended.
async fn end<M>(mut stream: Streaming<M>) -> Status {
    loop {
        match stream.message().await {
            Ok(message) => assert!(message.is_some(), "no stream looks complete"),
            Err(status) => return status,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_open_streams_all_hear_that_the_server_stops_and_it_ends_well() {
    const STREAMS: usize = 25;
    let mut service = Service::start(0, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    client.append(&name, Some(0), vec![SEED.to_owned(); 100]).await.unwrap();
    let (mut ends, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let channel = Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
        let mut batches = BatchServiceClient::new(channel.clone());
        let mut solver = SolverServiceClient::new(channel);
        for number in 0..STREAMS {
            match number % 3 {
                0 => {
                    let request = v1::StreamResultsRequest {
                        name: name.clone(),
                        follow: true,
                        ..v1::StreamResultsRequest::default()
                    };
                    let stream = batches.stream_results(request).await.unwrap().into_inner();
                    ends.push(tokio::spawn(end(stream)));
                }
                1 => {
                    let request = v1::WatchBatchRequest { name: name.clone(), min_interval: None };
                    let stream = batches.watch_batch(request).await.unwrap().into_inner();
                    ends.push(tokio::spawn(end(stream)));
                }
                _ => {
                    let (sender, receiver) = mpsc::channel(1);
                    let stream = solver.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
                    let chunk = v1::PuzzleChunk { grids: vec![SEED].into(), ..v1::PuzzleChunk::default() };
                    let request = Some(v1::solve_request::Request::Chunk(chunk));
                    sender.send(v1::SolveRequest { request }).await.unwrap();
                    ends.push(tokio::spawn(end(stream)));
                    kept.push(sender);
                }
            }
        }
    }
    service.server.signal(Signal::SIGTERM);
    assert_eq!(ends.len(), 50);
    for stream in ends {
        let status = stream.await.unwrap();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!(status.get_details_error_info().unwrap().reason, "SERVER_STOPPING");
        assert!(status.get_details_retry_info().unwrap().retry_delay.is_some());
    }
    // A grace time that runs out would be told by a warning, and fail this test.
    let code = tokio::task::block_in_place(|| service.server.wait());
    assert_eq!(code, 0);
}

/// Takes every result of a submission; `at` is called once so many are there.
async fn take_all(mut submission: Submission, at: usize, act: impl FnOnce()) -> BTreeSet<u64> {
    let (mut seen, mut act) = (BTreeSet::new(), Some(act));
    while let Some(run) = submission.next().await.unwrap() {
        for result in run {
            assert!(seen.insert(result.index), "{} came twice", result.index);
        }
        if seen.len() >= at
            && let Some(act) = act.take()
        {
            act();
        }
    }
    assert!(act.is_none() && submission.batch().is_some());
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_goes_on_at_the_other_server_when_its_own_stops_or_dies() {
    const PUZZLES: usize = 20_000;
    let made = run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "36"], &[], "").stdout;
    let text = with_long_searches(&made, 40);
    let limit = limit_for(Duration::from_millis(50));
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let (mut service, _second, urls) = two_servers(2);
        let client = Client::connect(&urls).await.unwrap();
        let batch = NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let options = Submit { batch, ordered: signal == Signal::SIGTERM, ..Submit::default() };
        let submission = client.submit(lines, options).await.unwrap();
        let seen = take_all(submission, 500, || service.server.signal(signal)).await;
        assert_eq!(seen.len(), PUZZLES);
        let code = tokio::task::block_in_place(|| service.server.wait());
        assert_eq!(code, if signal == Signal::SIGTERM { 0 } else { -9 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_finds_the_server_that_is_left_and_a_lost_answer_is_found_done() {
    let (mut service, _second, urls) = two_servers(1);
    let client = Client::connect(&urls).await.unwrap();
    let named = |id: &str| NewBatch { id: id.to_owned(), ..NewBatch::default() };
    let name = client.create_batch(named("lasting")).await.unwrap().name;
    client.append(&name, Some(0), vec![SEED.to_owned(); 10]).await.unwrap();
    let mut watch = client.watch(&name, None).await.unwrap();
    assert!(watch.next().await.unwrap().is_some());
    service.server.signal(Signal::SIGKILL);
    tokio::task::block_in_place(|| service.server.wait());
    client.append(&name, Some(10), vec![SEED.to_owned(); 10]).await.unwrap();
    client.seal(&name, Some(20)).await.unwrap();
    while watch.next().await.unwrap().is_some() {}
    assert_eq!(client.list_batches(&[], 10).await.unwrap().0.len(), 1);
    client.delete_batch(&name, false).await.unwrap();
    client.create_batch(named("another")).await.unwrap();
    client.cancel_batch("batches/another").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_one_server_waits_until_it_is_back_and_gives_up_in_time_if_it_is_told_to() {
    let mut service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    client.append(&name, Some(0), vec![SEED.to_owned(); 10]).await.unwrap();
    let mut results = client.results(&name, Start::ordered(0)).await.unwrap();
    let first = results.next().await.unwrap().unwrap();
    assert_eq!(first[0].index, 0);
    let mut seen = first.len();
    let listen = service.url.trim_start_matches("http://").to_owned();
    assert_eq!(tokio::task::block_in_place(|| service.server.stop()), 0);
    let impatient = client.clone().with_retry(Retry::never());
    let error = impatient.get_batch(&name).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    let going_on = tokio::spawn(async move {
        while let Some(run) = results.next().await.unwrap() {
            seen += run.len();
        }
        seen
    });
    (service.server, _) = tokio::task::block_in_place(|| Service::server_at(&service.database, &listen));
    client.seal(&name, Some(10)).await.unwrap();
    assert_eq!(going_on.await.unwrap(), 10);
}

#[tokio::test]
async fn a_client_has_more_streams_than_one_connection_takes() {
    const STREAMS: usize = 100;
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        // On one connection the 33rd would wait for ever.
        streams.push(client.results(&name, Start::ordered(0)).await.unwrap());
    }
    client.append(&name, Some(0), vec![SEED.to_owned(); 40]).await.unwrap();
    client.seal(&name, Some(40)).await.unwrap();
    for stream in &mut streams {
        let mut seen = 0;
        while let Some(run) = stream.next_columns().await.unwrap() {
            seen += run.len();
        }
        assert_eq!(seen, 40);
    }
}

#[tokio::test]
async fn puzzles_of_a_stream_are_sent_as_they_come_and_answered_one_by_one() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let (sender, receiver) = mpsc::channel(1);
    let puzzles = ReceiverStream::<String>::new(receiver);
    let options = Submit { ordered: true, ..Submit::default() };
    let submission = client.submit_stream(puzzles, options.clone()).await.unwrap();
    let mut results = Box::pin(submission.into_stream());
    for index in 0..3 {
        sender.send(SEED.to_owned()).await.unwrap();
        let result = results.next().await.unwrap().unwrap();
        assert_eq!((result.index, result.outcome), (index, v1::Outcome::Unique), "before the next is sent");
    }
    drop(sender);
    assert!(results.next().await.is_none());

    // Many that are there go in messages as long as may be.
    let lasting = client.submit(vec![SEED; 10_000], Submit::default()).await.unwrap();
    let name = lasting.name().to_owned();
    let sealed = async {
        let mut watch = client.watch(&name, None).await.unwrap();
        while watch.next().await.unwrap().is_some_and(|batch| batch.state() == v1::batch::State::Open) {}
    };
    sealed.await;
    let chunks = format!(
        "select count(distinct lo) from payload where batch_id = (select id from batch where name = '{}')",
        name.trim_start_matches("batches/")
    );
    let chunks: u32 = service.database.value(&chunks).parse().unwrap();
    assert!(chunks < 200, "in messages of 32 it would be 313 chunks: {chunks}");
    drop(lasting);

    // What cannot be sent is told where results are awaited, also while the puzzles go on coming.
    let puzzles = tokio_stream::once("1".repeat(5_000_001)).chain(tokio_stream::pending());
    let mut refused = client.submit_stream(puzzles, options).await.unwrap();
    let error = refused.next().await.unwrap_err();
    assert!(matches!(&error, Error::Status(_)) && !error.is_transient(), "{error:?}");
}

#[test]
fn a_command_goes_on_when_its_server_stops_and_is_started_again_or_another_is_named() {
    const PUZZLES: usize = 5_000;
    let made = run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "36"], &[], "").stdout;
    let text = with_long_searches(&made, 40);
    let limited = ["--placement-limit", &limit_for(Duration::from_millis(50)).to_string()];
    let quiet = run(&[&["solve", "-", "--output", "jsonl"], &limited[..]].concat(), &[], &text).stdout;
    for is_alone in [true, false] {
        let (mut service, second, urls) = two_servers(2);
        let server = if is_alone { &service.url } else { &urls };
        let args = [&["submit", "-", "--output", "jsonl", "--server", server], &limited[..]].concat();
        let mut submit = Process::start(&args, &[]);
        submit.write(&text);
        submit.close_stdin();
        eventually("some results", || (!submit.lines().is_empty()).then_some(()));
        let listen = service.url.trim_start_matches("http://").to_owned();
        assert_eq!(service.server.stop(), 0);
        if is_alone {
            drop(second);
            (service.server, _) = Service::server_at(&service.database, &listen);
        }
        assert_eq!(submit.wait(), 0, "{:#?}", submit.log());
        assert!(submit.stdout() == quiet, "the bytes of a quiet run");
    }
}

/// The word of a server that stops reaches whichever calls are under way. Another one, that only saw the connection break, gave up: `submit` sent its puzzles in one call while the other,
/// with the results, waited for the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_told_one_call_that_it_stops_is_waited_for_by_all() {
    let mut service = Service::start(0, &[]);
    let listen = service.url.trim_start_matches("http://").to_owned();
    let (told, mut hears) = mpsc::unbounded_channel();
    let client = Client::connect(&service.url)
        .await
        .unwrap()
        .with_retry(Retry::patient(e2e::PATIENCE).unless_broken())
        .telling_waits(move |why| told.send(why.to_string()).unwrap());
    let batch = client.create_batch(NewBatch::default()).await.unwrap().name;
    let mut watch = client.watch(&batch, None).await.unwrap();
    watch.next().await.unwrap().unwrap();
    let watching = tokio::spawn(async move { watch.next().await });
    assert_eq!(service.server.stop(), 0);
    assert!(hears.recv().await.unwrap().contains("this server is stopping"));

    // There is nobody at the address now.
    let other = client.clone();
    let name = batch.clone();
    let asking = tokio::spawn(async move { other.get_batch(&name).await });
    while !hears.recv().await.unwrap().contains("refused") {}
    (service.server, _) = Service::server_at(&service.database, &listen);
    assert_eq!(asking.await.unwrap().unwrap().name, batch);
    assert_eq!(watching.await.unwrap().unwrap().unwrap().name, batch);
}
