//! Calls that are given up at any moment, and clients that vanish: nothing is left half written, nothing stays open.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use client::{Client, NewBatch, Start};
use e2e::{Database, Numbers, Process, SEED, Service, binary, eventually};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use proto::v1::{self, batch_service_client::BatchServiceClient, solver_service_client::SolverServiceClient};
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;

const PUZZLES: u16 = 300;

fn chunk(count: usize) -> v1::PuzzleChunk {
    v1::PuzzleChunk { grids: vec![SEED; count].into(), ..v1::PuzzleChunk::default() }
}

/// One submit, as three calls; what of it was acknowledged is told on the way.
async fn submit(mut batches: BatchServiceClient<Channel>, id: String, acknowledged: &mut (bool, i64, bool)) {
    let create = v1::CreateBatchRequest { batch_id: id.clone(), ..v1::CreateBatchRequest::default() };
    let name = batches.create_batch(create).await.unwrap().into_inner().name;
    acknowledged.0 = true;
    for offset in [0, 100, 200] {
        let append =
            v1::AppendPuzzlesRequest { name: name.clone(), offset: Some(offset), chunk: Some(chunk(100)) };
        acknowledged.1 = batches.append_puzzles(append).await.unwrap().into_inner().next_offset;
    }
    let seal = v1::SealBatchRequest { name, expected_puzzle_count: Some(PUZZLES.into()) };
    batches.seal_batch(seal).await.unwrap();
    acknowledged.2 = true;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_submits_given_up_at_random_moments_leave_nothing_half_written() {
    const CUTS: usize = 500;
    let service = Service::start(1, &[]);
    let batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let client = Client::connect(&service.url).await.unwrap();
    // How long a whole one takes here, so that the cuts fall all over it.
    let mut whole = u64::MAX;
    for number in 0..10 {
        let begun = Instant::now();
        submit(batches.clone(), format!("measured-{number}"), &mut Default::default()).await;
        whole = whole.min(u64::try_from(begun.elapsed().as_micros()).unwrap());
    }
    let mut numbers = Numbers::of(17);
    let mut unfinished = 0;
    for cut in 0..CUTS {
        let id = format!("given-up-{cut}");
        let mut acknowledged = (false, 0, false);
        let after = Duration::from_micros(numbers.below(whole));
        let is_whole =
            tokio::time::timeout(after, submit(batches.clone(), id.clone(), &mut acknowledged)).await.is_ok();
        unfinished += usize::from(!is_whole);
        let name = format!("batches/{id}");
        let found = match client.get_batch(&name).await {
            Ok(batch) => batch,
            Err(error) => {
                assert_eq!(error.reason().as_deref(), Some("BATCH_NOT_FOUND"), "{error}");
                assert!(!acknowledged.0, "what was acknowledged is there");
                continue;
            }
        };
        assert!(found.puzzle_count >= acknowledged.1 && found.puzzle_count % 100 == 0, "{found:?}");
        assert!(!acknowledged.2 || found.state() != v1::batch::State::Open);
        // Whatever it came to, the same submit again makes it whole.
        submit(batches.clone(), id, &mut acknowledged).await;
        assert_eq!(client.get_batch(&name).await.unwrap().puzzle_count, i64::from(PUZZLES));
    }
    assert!(unfinished > CUTS / 2, "{unfinished} of {CUTS}, each within {whole} µs");
    let stored = "select count(*) from batch b where puzzle_count <> (select coalesce(sum(hi - lo), 0) from payload p where p.batch_id = b.id)";
    assert_eq!(service.database.value(stored), "0", "batches hold what they say");
    let idle = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
    assert_eq!(service.database.value(idle), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_solve_calls_given_up_at_random_moments_leave_batches_that_can_be_gone_on_with() {
    const CUTS: usize = 100;
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let mut numbers = Numbers::of(19);
    let mut names = Vec::new();
    for _ in 0..CUTS {
        let mut solver = SolverServiceClient::connect(service.url.clone()).await.unwrap();
        let requests =
            (0..5).map(|_| v1::SolveRequest { request: Some(v1::solve_request::Request::Chunk(chunk(60))) });
        // Never ended by this side: it is cut.
        let requests = tokio_stream::iter(requests).chain(tokio_stream::pending());
        let mut answers = solver.solve(requests).await.unwrap().into_inner();
        let Some(v1::solve_response::Response::Batch(batch)) =
            answers.message().await.unwrap().unwrap().response
        else {
            panic!("the batch comes first")
        };
        names.push(batch.name);
        tokio::time::timeout(Duration::from_micros(numbers.below(20_000)), async {
            while answers.message().await.unwrap().is_some() {}
        })
        .await
        .unwrap_err();
    }
    for name in names {
        let batch = client.get_batch(&name).await.unwrap();
        assert_eq!(batch.state(), v1::batch::State::Open, "nobody has ended it");
        client.append(&name, Some(0), vec![SEED.to_owned(); PUZZLES.into()]).await.unwrap();
        client.seal(&name, Some(PUZZLES.into())).await.unwrap();
        let mut results = client.results(&name, Start::as_finished()).await.unwrap();
        let mut seen = 0;
        while let Some(run) = results.next_columns().await.unwrap() {
            seen += run.len();
        }
        assert_eq!(seen, usize::from(PUZZLES));
    }
}

/// A server that says how many streams are open, with a short keepalive.
fn telling() -> Service {
    let database = Database::fresh();
    let mut server = Process::start(
        &["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--keepalive", "1"],
        &[("DATABASE_URL", &database.url()), ("SUDOKU_BATCH_LOG", "info,server=debug")],
    );
    let url = server.line("ready ");
    Service { workers: Vec::new(), server, url, database }
}

fn none_open(service: &Service) {
    service.server.logged("streams.open=0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_killed_or_stands_still_is_let_go_and_its_batch_stays() {
    for signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let service = telling();
        let client = Client::connect(&service.url).await.unwrap();
        let name = client.create_batch(NewBatch::default()).await.unwrap().name;
        client.append(&name, Some(0), vec![SEED.to_owned(); 1_000]).await.unwrap();
        let id = name.trim_start_matches("batches/");
        let mut watcher = Command::new(binary())
            .args(["watch", id, "--server", &service.url, "--output", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It has its stream when it has printed the first state.
        let mut first = [0];
        std::io::Read::read_exact(watcher.stdout.as_mut().unwrap(), &mut first).unwrap();
        kill(Pid::from_raw(i32::try_from(watcher.id()).unwrap()), signal).unwrap();
        tokio::task::block_in_place(|| none_open(&service));
        watcher.kill().unwrap();
        watcher.wait().unwrap();
        let batch = client.get_batch(&name).await.unwrap();
        assert_eq!((batch.state(), batch.puzzle_count), (v1::batch::State::Open, 1_000));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_dropped_are_let_go_at_once_whatever_they_wait_for() {
    let service = telling();
    let client = Client::connect(&service.url).await.unwrap();
    let name = client.create_batch(NewBatch::default()).await.unwrap().name;
    let mut kept = Vec::new();
    for _ in 0..50 {
        kept.push(client.results(&name, Start::ordered(0)).await.unwrap());
    }
    drop(kept);
    tokio::task::block_in_place(|| {
        none_open(&service);
        // This look itself is one of them.
        let asking = "select count(*) from pg_stat_activity where state = 'active' and query like '%result%'";
        eventually("nothing is asked for them", || (service.database.value(asking) == "1").then_some(()));
    });
}
