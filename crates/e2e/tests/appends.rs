//! Appends with several messages under way: stored in order whatever comes first, and never beside another's puzzles.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    thread,
};

use client::{Client, MESSAGE_PUZZLES, NewBatch};
use e2e::{Finished, Held, Process, SEED, Service, run};
use nix::sys::signal::Signal;
use proto::v1::{self, batch_service_client::BatchServiceClient};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Code, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service as HttpService, http},
    server::NamedService,
    transport::Channel,
};

/// A statement by which an append looks at its batch.
const LOOK: &str = "where tenant_id = $1 and name = $2 and deleted_at is null";
/// The statement by which it stores.
const STORE: &str = "Adds chunks at an offset";
/// A statement by which it compares.
const COMPARE: &str = "from payload";

type Appended = Result<Response<v1::AppendPuzzlesResponse>, Status>;

/// A service whose statements may wait for the locks of a test, which is told as slowness.
fn service(workers: usize) -> Service {
    let slow = |process: Process| process.allowing(&["slow statement"]);
    let Service { workers, server, url, database } = Service::start(workers, &[]);
    Service { workers: workers.into_iter().map(slow).collect(), server: slow(server), url, database }
}

/// Different for each seed.
fn puzzles(count: usize, seed: u32) -> String {
    run(&["generate", "-n", &count.to_string(), "--clues", "30", "--seed", &seed.to_string()], &[], "").stdout
}

fn solved(text: &str) -> String {
    run(&["solve", "-", "--output", "jsonl"], &[], text).stdout
}

fn messages(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(MESSAGE_PUZZLES).map(|some| some.iter().flat_map(|line| [*line, "\n"]).collect()).collect()
}

fn submit(url: &str, id: &str, text: &str) -> Finished {
    run(&["submit", "-", "--id", id, "--output", "jsonl", "--server", url], &[], text)
}

/// Opens a batch by its id.
async fn open(service: &Service, id: &str) -> (Client, String) {
    let client = Client::connect(&service.url).await.unwrap();
    let batch = client.create_batch(NewBatch { id: id.to_owned(), ..NewBatch::default() }).await.unwrap();
    (client, batch.name)
}

/// Sends one message, and goes on.
fn send(
    batches: &BatchServiceClient<Channel>,
    name: &str,
    offset: usize,
    grid: String,
) -> JoinHandle<Appended> {
    let chunk = Some(v1::PuzzleChunk { grids: vec![grid].into(), ..v1::PuzzleChunk::default() });
    let offset = Some(i64::try_from(offset).unwrap());
    let message = v1::AppendPuzzlesRequest { name: name.to_owned(), offset, chunk };
    let mut batches = batches.clone();
    tokio::spawn(async move { batches.append_puzzles(message).await })
}

async fn assert_holds(client: &Client, name: &str, grids: &[String]) {
    let count = grids.len() as u64;
    assert_eq!(client.get_batch(name).await.unwrap().puzzle_count, i64::try_from(count).unwrap());
    // What is stored is compared with what is sent.
    assert_eq!(client.append(name, Some(0), grids.to_vec()).await.unwrap(), count);
    assert_eq!(client.get_batch(name).await.unwrap().puzzle_count, i64::try_from(count).unwrap());
}

#[test]
fn a_longer_input_under_the_id_of_an_open_batch_is_refused_and_adds_nothing_to_it() {
    let service = service(1);
    let (mine, other) = (puzzles(3 * MESSAGE_PUZZLES, 1), puzzles(6 * MESSAGE_PUZZLES, 2));
    let two: Vec<String> = mine.lines().take(2 * MESSAGE_PUZZLES).map(str::to_owned).collect();
    let begun = async {
        let (client, name) = open(&service, "begun").await;
        client.append(&name, Some(0), two).await.unwrap();
    };
    tokio::runtime::Runtime::new().unwrap().block_on(begun);
    let refused = submit(&service.url, "begun", &other);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("index 0") && refused.stderr.contains("begun"), "{}", refused.stderr);
    assert_eq!(service.database.value("select puzzle_count from batch"), (2 * MESSAGE_PUZZLES).to_string());
    let done = submit(&service.url, "begun", &mine);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout == solved(&mine));
}

#[test]
fn of_two_inputs_under_one_new_id_at_the_same_time_one_wins_with_its_puzzles_alone() {
    let service = service(2);
    let inputs = [1, 2].map(|seed| puzzles(5 * MESSAGE_PUZZLES, seed));
    for round in 0..3 {
        let id = format!("fresh-{round}");
        let done = thread::scope(|scope| {
            let both = inputs.each_ref().map(|text| scope.spawn(|| submit(&service.url, &id, text)));
            both.map(|one| one.join().unwrap())
        });
        let won = usize::from(done[0].code != Some(0));
        let (winner, loser) = (&done[won], &done[1 - won]);
        assert_eq!((winner.code, loser.code, &*loser.stdout), (Some(0), Some(1), ""), "{}", loser.stderr);
        assert!(loser.stderr.contains("index 0"), "{}", loser.stderr);
        assert!(winner.stdout == solved(&inputs[won]));
    }
}

#[tokio::test]
async fn after_a_refusal_nothing_that_follows_counts() {
    let service = service(0);
    let (client, name) = open(&service, "refused").await;
    let mine: Vec<String> = puzzles(6, 1).lines().map(str::to_owned).collect();
    client.append(&name, Some(0), mine.clone()).await.unwrap();
    let mut appender = client.appender(&name, 0);
    appender.push(mine[..2].to_vec().into()).await.unwrap();
    appender.push(vec![SEED.to_owned(); 2].into()).await.unwrap();
    let refused = appender.push(mine[4..].to_vec().into()).await.unwrap_err();
    assert_eq!(refused.reason().as_deref(), Some("OFFSET_TAKEN"));
    assert!(appender.acknowledged() == 2 && !appender.is_busy());
    // It is begun again where it was refused.
    appender.push(mine[4..].to_vec().into()).await.unwrap();
    assert!(appender.settled().await.is_err());
    appender.push(mine[2..].to_vec().into()).await.unwrap();
    assert_eq!(appender.finish().await.unwrap(), 6);
    assert_holds(&client, &name, &mine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_before_the_one_before_it_is_stored_after_it() {
    let service = service(0);
    let (client, name) = open(&service, "early").await;
    let batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let grids: Vec<String> = puzzles(2, 1).lines().map(str::to_owned).collect();
    let locked = service.database.locked("batch", "access exclusive");
    let second = send(&batches, &name, 1, grids[1].clone());
    service.database.blocked(1, LOOK);
    let first = send(&batches, &name, 0, grids[0].clone());
    service.database.blocked(2, LOOK);
    drop(locked);
    for (sent, next_offset) in [(first, 1), (second, 2)] {
        let stored = sent.await.unwrap().unwrap().into_inner();
        assert_eq!((stored.next_offset, stored.duplicate), (next_offset, false));
    }
    assert_holds(&client, &name, &grids).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_appends_at_once_in_reversed_order_are_all_stored() {
    const APPENDS: usize = 32;
    let service = service(0);
    let (client, name) = open(&service, "reversed").await;
    let grids: Vec<String> = puzzles(1 + APPENDS, 1).lines().map(str::to_owned).collect();
    client.append(&name, Some(0), grids[..1].to_vec()).await.unwrap();
    // A repeat of what is stored stands before them all until it may compare.
    let comparing = service.database.locked("payload", "access exclusive");
    let batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let repeat = send(&batches, &name, 0, grids[0].clone());
    service.database.blocked(1, COMPARE);
    // A connection takes 32 calls at a time.
    let batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let sent: Vec<_> =
        (1..=APPENDS).rev().map(|offset| send(&batches, &name, offset, grids[offset].clone())).collect();
    // Those that have come wait without a look; the others come when those are stored or waiting. Each is stored, whichever it is.
    drop(comparing);
    assert!(repeat.await.unwrap().unwrap().into_inner().duplicate);
    for one in sent {
        assert!(!one.await.unwrap().unwrap().into_inner().duplicate);
    }
    assert_holds(&client, &name, &grids).await;
}

#[tokio::test]
async fn a_gap_with_nobody_before_it_is_refused_whoever_stands_behind_it() {
    let service = service(0);
    let (_client, name) = open(&service, "gaps").await;
    let batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    // Each waits for those before it at the most, and the first of them for nobody.
    let sent: Vec<_> = (1..=8).rev().map(|offset| send(&batches, &name, offset, SEED.to_owned())).collect();
    for one in sent {
        assert_eq!(one.await.unwrap().unwrap_err().code(), Code::OutOfRange);
    }
}

/// Passes each call on to the next of some servers.
#[derive(Clone)]
struct Alternating {
    servers: Arc<Vec<Channel>>,
    calls: Arc<AtomicUsize>,
}

impl NamedService for Alternating {
    const NAME: &'static str = "sudoku.v1.BatchService";
}

impl HttpService<http::Request<Body>> for Alternating {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let number = self.calls.fetch_add(1, Relaxed);
        let mut server = self.servers[number % self.servers.len()].clone();
        Box::pin(async move {
            std::future::poll_fn(|context| server.poll_ready(context)).await.unwrap();
            Ok(server.call(request).await.unwrap())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_of_one_batch_that_alternate_between_two_servers_are_stored_in_order() {
    let service = service(0);
    let (_second, second_url) = Service::server(&service.database);
    let mut servers = Vec::new();
    for url in [service.url.clone(), second_url] {
        servers.push(Channel::from_shared(url).unwrap().connect().await.unwrap());
    }
    let alternating = Alternating { servers: Arc::new(servers), calls: Arc::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::clone(&alternating.calls);
    let router = tonic::transport::Server::builder().add_service(alternating);
    let serving = tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));

    let (client, name) = open(&service, "both").await;
    let grids: Vec<String> = puzzles(200, 1).lines().map(str::to_owned).collect();
    let mut appender = Client::connect(&url).await.unwrap().appender(&name, 0);
    for some in grids.chunks(5) {
        appender.push(some.to_vec().into()).await.unwrap();
    }
    assert_eq!(appender.finish().await.unwrap(), 200);
    assert!(calls.load(Relaxed) >= 40);
    assert_holds(&client, &name, &grids).await;
    serving.abort();
}

/// A submit of five messages, of which the first is stored and four are under way: they wait for a lock that is given back.
fn four_under_way(service: &Service, id: &str, text: &str) -> (Process, Held) {
    let messages = messages(text);
    assert_eq!(messages.len(), 5);
    let args = ["submit", "-", "--id", id, "--output", "jsonl", "--server", &service.url];
    let mut submit = Process::start(&args, &[]);
    submit.write(&messages[0]);
    submit.line(&format!("{{\"index\":{},", MESSAGE_PUZZLES - 1));
    let looking = service.database.locked("batch", "access exclusive");
    submit.write(&messages[1..].concat());
    service.database.blocked(4, LOOK);
    (submit, looking)
}

#[test]
fn a_batch_cancelled_with_four_messages_under_way_takes_none_of_them() {
    let service = service(1);
    let text = puzzles(5 * MESSAGE_PUZZLES, 1);
    let (mut submit, looking) = four_under_way(&service, "stopped", &text);
    let storing = service.database.locked("payload", "share");
    drop(looking);
    service.database.blocked(1, STORE);
    assert_eq!(service.run(&["cancel", "stopped"], "").code, Some(0));
    drop(storing);
    assert_eq!(submit.wait(), 4);
    assert_eq!(service.database.value("select puzzle_count from batch"), MESSAGE_PUZZLES.to_string());
    assert!(submit.stdout() == solved(&messages(&text)[0]), "each index of what it holds, once");
}

#[test]
fn a_server_killed_with_four_messages_under_way_and_started_again_is_given_every_index() {
    let mut service = service(1);
    let text = puzzles(5 * MESSAGE_PUZZLES, 1);
    let (mut first, looking) = four_under_way(&service, "carried-on", &text);
    service.server.signal(Signal::SIGKILL);
    assert_eq!(service.server.wait(), -9);
    assert_eq!(first.wait(), 4);
    first.logged("--id");
    drop(looking);
    let (server, url) = Service::server_at(&service.database, service.url.trim_start_matches("http://"));
    assert_eq!(url, service.url);
    service.server = server;
    let done = submit(&url, "carried-on", &text);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout == solved(&text));
}
