//! Streams that are cut and gone on with; clients that die; servers that differ. Nothing twice, nothing missing.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, fs, time::Duration};

use client::{Client, NewBatch, Position, Start};
use e2e::{Finished, Numbers, Process, Proxy, SEED, Service, eventually, limit_for, run, with_long_searches};
use nix::sys::signal::Signal;
use proto::v1::{
    self,
    batch_service_client::BatchServiceClient,
    batch_service_server::{BatchService, BatchServiceServer},
};
use tokio_stream::{StreamExt as _, wrappers::TcpListenerStream};
use tonic::{Request, Response, Status, transport::Channel};

fn puzzles(count: usize) -> String {
    run(&["generate", "-n", &count.to_string(), "--clues", "30", "--seed", "11"], &[], "").stdout
}

/// The token in the command that an unfinished one told.
fn token(done: &Finished) -> Option<String> {
    done.stderr.split("--resume ").nth(1).map(|rest| rest.split_whitespace().next().unwrap().to_owned())
}

#[test]
fn results_cut_at_a_hundred_random_places_go_on_at_the_other_server_with_nothing_twice_and_nothing_missing() {
    const PUZZLES: usize = 5_000;
    const CUTS: usize = 100;
    let service = Service::start(2, &[]);
    let (_second, second_url) = Service::server(&service.database);
    let servers = [service.url.clone(), second_url];
    // The first pass runs while the batch is being solved: for two seconds.
    let text = with_long_searches(&puzzles(PUZZLES), 40);
    let limited = ["--placement-limit", &limit_for(Duration::from_millis(100)).to_string()];
    let quiet = run(&[&["solve", "-", "--output", "jsonl"], &limited[..]].concat(), &[], &text).stdout;
    let submit = [&["submit", "-", "--detach", "--id", "cut-up"], &limited[..]].concat();
    assert_eq!(service.run(&submit, &text).code, Some(0));
    let proxy = Proxy::start(&servers[0]);
    let mut numbers = Numbers::of(3);
    let (mut cuts, mut pass) = (0, 0);
    assert_ne!(service.database.value("select count(*) from job"), "0", "it is being solved");
    while cuts < CUTS {
        // Every other pass as results finish.
        let order: &[&str] = if pass % 2 == 1 { &["--as-finished"] } else { &[] };
        let (mut output, mut begin) = (String::new(), None::<String>);
        loop {
            proxy.point_to(&servers[cuts % 2]);
            proxy.cut_after(numbers.below(200_000));
            let resume: Vec<&str> = begin.iter().flat_map(|token| ["--resume", &**token]).collect();
            let args = [&["results", "cut-up", "--output", "jsonl", "--server", proxy.url()], order, &resume]
                .concat();
            let done = run(&args, &[], "");
            output.push_str(&done.stdout);
            if done.code == Some(0) {
                break;
            }
            cuts += 1;
            assert!(matches!(done.code, Some(1 | 4)) && cuts < 20 * CUTS, "{done:?}");
            // Cut before the first answer: it begins where it was.
            begin = token(&done).or(begin);
        }
        if order.is_empty() {
            assert!(output == quiet, "pass {pass}: the bytes of a quiet run");
        } else {
            let lines: BTreeSet<&str> = output.lines().collect();
            assert_eq!((output.lines().count(), lines), (PUZZLES, quiet.lines().collect()));
        }
        pass += 1;
    }
}

#[tokio::test]
async fn a_stream_cut_at_a_thousand_random_places_brings_each_of_five_thousand_results_once() {
    const PUZZLES: usize = 5_000;
    let service = Service::start(2, &[]);
    let (_second, second_url) = Service::server(&service.database);
    let clients = [Client::connect(&service.url).await.unwrap(), Client::connect(&second_url).await.unwrap()];
    let batch = clients[0].create_batch(NewBatch::default()).await.unwrap().name;
    let all: Vec<String> = puzzles(PUZZLES).lines().map(str::to_owned).collect();
    // Few to a message, so that a stream has many places to be cut at.
    for (message, puzzles) in (0..).zip(all.chunks(20)) {
        clients[0].append(&batch, Some(message * 20), puzzles.to_vec()).await.unwrap();
    }
    clients[0].seal(&batch, Some(PUZZLES as u64)).await.unwrap();
    let mut numbers = Numbers::of(5);
    let mut cuts = 0;
    while cuts < 1_000 {
        let mut seen = BTreeSet::new();
        let mut position = Position::Index(0);
        'pass: loop {
            // A token fits both orders, and both servers.
            let start = if numbers.below(2) == 0 { Start::ordered(0) } else { Start::as_finished() };
            let server = usize::try_from(numbers.below(2)).unwrap();
            let mut results = clients[server].results(&batch, start.at(position.clone())).await.unwrap();
            for _ in 0..=numbers.below(8) {
                let Some(run) = results.next().await.unwrap() else { break 'pass };
                for result in run {
                    assert!(seen.insert(result.index), "{} came twice", result.index);
                }
                position = Position::Token(results.token().unwrap().to_owned());
            }
            cuts += 1;
        }
        assert_eq!(seen.len(), PUZZLES);
    }
}

#[tokio::test]
async fn a_client_that_drops_thousands_of_streams_keeps_its_connection() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let batch = client.create_batch(NewBatch::default()).await.unwrap().name;
    let all: Vec<String> = puzzles(4_000).lines().map(str::to_owned).collect();
    client.append(&batch, Some(0), all).await.unwrap();
    client.seal(&batch, Some(4_000)).await.unwrap();
    let mut whole = client.results(&batch, Start::ordered(0)).await.unwrap();
    while whole.next().await.unwrap().is_some() {}
    // What was under way of each comes for a stream that HTTP/2 may have forgotten: no reason to end the connection, which others share.
    for _ in 0..3_000 {
        let mut results = client.results(&batch, Start::ordered(0)).await.unwrap();
        assert!(results.next().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_solve_call_that_breaks_is_gone_on_with_by_its_token_at_another_server() {
    use v1::{solve_request::Request as Asked, solve_response::Response as Answered};
    let service = Service::start(1, &[]);
    let (_second, second_url) = Service::server(&service.database);
    let chunk = |count: usize| {
        Asked::Chunk(v1::PuzzleChunk { grids: vec![SEED; count].into(), ..v1::PuzzleChunk::default() })
    };
    let requests = [chunk(10), chunk(300)].map(|request| v1::SolveRequest { request: Some(request) });
    let mut solver =
        v1::solver_service_client::SolverServiceClient::connect(service.url.clone()).await.unwrap();
    let mut answers = solver.solve(tokio_stream::iter(requests)).await.unwrap().into_inner();
    let mut seen = BTreeSet::new();
    let (mut name, mut token) = (String::new(), String::new());
    while seen.is_empty() {
        let message = answers.message().await.unwrap().unwrap();
        token.clone_from(&message.resume_token);
        match message.response {
            Some(Answered::Batch(batch)) => name = batch.name,
            Some(Answered::Results(results)) => {
                let first = results.start_index;
                seen.extend((first..).take(results.outcomes.len()));
            }
            None => {}
        }
    }
    // Everything was sent; the call is dropped while answers come.
    let sealed = "select count(*) from batch where sealed_at is not null";
    eventually("it is sealed", || (service.database.value(sealed) == "1").then_some(()));
    drop(answers);
    let client = Client::connect(&second_url).await.unwrap();
    let mut rest = client.results(&name, Start::as_finished().at(Position::Token(token))).await.unwrap();
    while let Some(run) = rest.next().await.unwrap() {
        for result in run {
            assert!(seen.insert(i64::try_from(result.index).unwrap()), "{} came twice", result.index);
        }
    }
    assert_eq!(seen.len(), 310);
}

#[tokio::test]
async fn a_token_that_is_damaged_or_of_another_batch_is_refused_by_name() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let batch = client.create_batch(NewBatch::default()).await.unwrap().name;
        client.append(&batch, Some(0), vec![SEED.to_owned()]).await.unwrap();
        client.seal(&batch, Some(1)).await.unwrap();
        let mut results = client.results(&batch, Start::ordered(0)).await.unwrap();
        while results.next().await.unwrap().is_some() {}
        tokens.push((batch, results.token().unwrap().to_owned()));
    }
    let (mine, other) = (&tokens[0].0, &tokens[1].1);
    for token in [other.clone(), "x".to_owned(), format!("{}A", tokens[0].1), "ä".repeat(3_000)] {
        let start = Start::ordered(0).at(Position::Token(token));
        let error = client.results(mine, start).await.unwrap_err();
        assert_eq!(error.reason().as_deref(), Some("BAD_ARGUMENT"), "{error:?}");
        assert!(error.to_string().contains("resume_token"), "{error}");
    }
    // Given away with a message that was the last: only the end is left.
    let start = Start::ordered(0).at(Position::Token(tokens[0].1.clone()));
    let mut end = client.results(mine, start).await.unwrap();
    assert_eq!(end.next().await.unwrap(), None);
    assert!(end.batch().is_some());
}

#[test]
fn a_client_killed_while_it_appends_goes_on_and_the_batch_holds_each_puzzle_once() {
    const PUZZLES: usize = 30_000;
    let service = Service::start(1, &[]);
    let text = puzzles(PUZZLES);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, &text).unwrap();
    let args = ["submit", "--id", "half-sent", "--output", "jsonl", "--server", &service.url];
    // By its standard input, so that it cannot have sent all of it.
    let mut first = Process::start(&args, &[]);
    let half: String = text.lines().take(PUZZLES / 2).flat_map(|line| [line, "\n"]).collect();
    first.write(&half);
    let sent = "select coalesce(max(puzzle_count), 0) from batch";
    eventually("some are sent", || {
        (service.database.value(sent).parse::<usize>().unwrap() > 4_000).then_some(())
    });
    first.signal(Signal::SIGKILL);
    first.wait();
    let state = service.run(&["get", "half-sent"], "");
    assert!(state.stdout.contains("open: takes more puzzles"), "{}", state.stdout);
    let done = run(&[&["submit", file.to_str().unwrap()], &args[1..]].concat(), &[], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout == run(&["solve", "-", "--output", "jsonl"], &[], &text).stdout);
    assert_eq!(service.database.value(sent), PUZZLES.to_string());
    assert_eq!(service.database.value("select count(*) from batch"), "1");
    assert_eq!(service.database.value("select sum(hi - lo) from payload"), PUZZLES.to_string());
}

#[test]
fn a_submit_whose_answers_are_lost_anywhere_is_the_same_batch_and_other_puzzles_are_refused() {
    const PUZZLES: usize = 200;
    let service = Service::start(1, &[]);
    let text = puzzles(PUZZLES);
    let submit = |url: &str, text: &str| {
        run(&["submit", "-", "--id", "key-k", "--output", "jsonl", "--server", url], &[], text)
    };
    let proxy = Proxy::start(&service.url);
    for bytes in (0..2_000).step_by(80) {
        proxy.cut_after(bytes);
        let cut = submit(proxy.url(), &text);
        assert!(matches!(cut.code, Some(1 | 4)), "after {bytes} bytes: {cut:?}");
    }
    let done = submit(&service.url, &text);
    assert_eq!((done.code, done.stdout.lines().count()), (Some(0), PUZZLES), "{}", done.stderr);
    let rows = "select count(*), sum(puzzle_count), (select sum(hi - lo) from payload), (select sum(hi - lo) from result) from batch";
    assert_eq!(service.database.query(rows), ["1|200|200|200"]);
    let mut other: Vec<&str> = text.lines().collect();
    other[77] = SEED;
    let refused = submit(&service.url, &other.join("\n"));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("index 77") && refused.stderr.contains("key-k"), "{}", refused.stderr);
    assert_eq!(service.database.query(rows), ["1|200|200|200"]);
}

/// A server that passes everything on, but ends streams of results after so many of them, as if they were complete.
struct CutShort {
    inner: BatchServiceClient<Channel>,
    results: usize,
}

#[tonic::async_trait]
impl BatchService for CutShort {
    type WatchBatchStream = tonic::Streaming<v1::WatchBatchResponse>;
    type StreamResultsStream =
        tokio_stream::Iter<std::vec::IntoIter<Result<v1::StreamResultsResponse, Status>>>;

    async fn create_batch(
        &self,
        request: Request<v1::CreateBatchRequest>,
    ) -> Result<Response<v1::Batch>, Status> {
        self.inner.clone().create_batch(request.into_inner()).await
    }

    async fn append_puzzles(
        &self,
        request: Request<v1::AppendPuzzlesRequest>,
    ) -> Result<Response<v1::AppendPuzzlesResponse>, Status> {
        self.inner.clone().append_puzzles(request.into_inner()).await
    }

    async fn seal_batch(
        &self,
        request: Request<v1::SealBatchRequest>,
    ) -> Result<Response<v1::Batch>, Status> {
        self.inner.clone().seal_batch(request.into_inner()).await
    }

    async fn get_batch(&self, request: Request<v1::GetBatchRequest>) -> Result<Response<v1::Batch>, Status> {
        self.inner.clone().get_batch(request.into_inner()).await
    }

    async fn list_batches(
        &self,
        request: Request<v1::ListBatchesRequest>,
    ) -> Result<Response<v1::ListBatchesResponse>, Status> {
        self.inner.clone().list_batches(request.into_inner()).await
    }

    async fn watch_batch(
        &self,
        request: Request<v1::WatchBatchRequest>,
    ) -> Result<Response<Self::WatchBatchStream>, Status> {
        self.inner.clone().watch_batch(request.into_inner()).await
    }

    async fn stream_results(
        &self,
        request: Request<v1::StreamResultsRequest>,
    ) -> Result<Response<Self::StreamResultsStream>, Status> {
        let mut stream = self.inner.clone().stream_results(request.into_inner()).await?.into_inner();
        let (mut messages, mut results) = (Vec::new(), 0);
        while results < self.results {
            let message = stream.message().await?.expect("more results than are passed on");
            results += message.results.as_ref().map_or(0, |results| results.outcomes.len());
            messages.push(Ok(message));
        }
        assert_eq!(results, self.results, "the cut is between two messages");
        Ok(Response::new(tokio_stream::iter(messages)))
    }

    async fn cancel_batch(
        &self,
        request: Request<v1::CancelBatchRequest>,
    ) -> Result<Response<v1::CancelBatchResponse>, Status> {
        self.inner.clone().cancel_batch(request.into_inner()).await
    }

    async fn delete_batch(&self, request: Request<v1::DeleteBatchRequest>) -> Result<Response<()>, Status> {
        self.inner.clone().delete_batch(request.into_inner()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_cleanly_after_forty_of_a_hundred_results_is_no_success() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let batch =
        client.create_batch(NewBatch { id: "hundred".to_owned(), ..NewBatch::default() }).await.unwrap();
    for offset in (0..100).step_by(20) {
        client.append(&batch.name, Some(offset), vec![SEED.to_owned(); 20]).await.unwrap();
    }
    client.seal(&batch.name, Some(100)).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let inner = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let cut_short = BatchServiceServer::new(CutShort { inner, results: 40 });
    let serving = tonic::transport::Server::builder()
        .add_service(cut_short)
        .serve_with_incoming(TcpListenerStream::new(listener).map(|stream| stream));
    let serving = tokio::spawn(serving);
    let (url, done) = tokio::task::spawn_blocking(move || {
        let done = run(&["results", "hundred", "--output", "jsonl", "--server", &url], &[], "");
        (url, done)
    })
    .await
    .unwrap();
    assert_eq!((done.code, done.stdout.lines().count()), (Some(4), 40), "{}", done.stderr);
    assert!(done.stderr.contains("cut off before its end, after 40 of 100 results"), "{}", done.stderr);
    let token = token(&done).unwrap();
    let rest = service.run(&["results", "hundred", "--output", "jsonl", "--resume", &token], "");
    assert_eq!((rest.code, rest.stdout.lines().count()), (Some(0), 60));
    assert!(rest.stdout.starts_with("{\"index\":40,"), "{}", rest.stdout);

    // The same of a submit, which had sent everything.
    let hundred = [SEED; 100].join("\n");
    let submit = move || run(&["submit", "-", "--id", "hundred", "--server", &url], &[], &hundred);
    let done = tokio::task::spawn_blocking(submit).await.unwrap();
    assert_eq!(done.code, Some(4), "{}", done.stderr);
    assert!(done.stderr.contains("after 40 of 100 results"), "{}", done.stderr);
    // Sealed by then or not: its input is what a shell gives it.
    assert!(done.stderr.contains(" --resume "), "{}", done.stderr);
    serving.abort();
}
