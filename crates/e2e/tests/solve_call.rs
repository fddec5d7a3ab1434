//! `SolverService.Solve`: puzzles in and results out on one call, through a durable batch.
#![allow(clippy::unwrap_used, reason = "tests")]

use client::{Client, Start};
use e2e::{SEED, SEED_SOLUTION, Service};
use proto::v1::{self, solver_service_client::SolverServiceClient};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

const OTHER: &str = "..43..2.9..5..9..1.7..6..43..6..2.8719...74...5..83...6.....1.5..35.869..4291.3..";

/// One Solve call; the sending side stays open until it is dropped.
struct Solve {
    sender: mpsc::Sender<v1::SolveRequest>,
    responses: tonic::Streaming<v1::SolveResponse>,
}

impl Solve {
    /// Returns as soon as the response's headers are there, with nothing sent.
    async fn open(service: &Service) -> Self {
        let mut client = SolverServiceClient::connect(service.url.clone()).await.unwrap();
        let (sender, receiver) = mpsc::channel(4);
        let responses = client.solve(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        Self { sender, responses }
    }

    async fn send(&self, request: v1::solve_request::Request) {
        self.sender.send(v1::SolveRequest { request: Some(request) }).await.unwrap();
    }

    async fn send_grids(&self, grids: &[&str]) {
        let grids = grids.iter().map(|grid| (*grid).to_owned()).collect();
        self.send(v1::solve_request::Request::Chunk(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() }))
            .await;
    }

    async fn next(&mut self) -> Option<v1::solve_response::Response> {
        loop {
            // A message without anything is a heartbeat.
            if let Some(response) = self.responses.message().await.unwrap()?.response {
                return Some(response);
            }
        }
    }
}

#[tokio::test]
async fn solve_answers_on_one_call_and_names_its_batch_first_and_last() {
    use v1::solve_response::Response;
    let service = Service::start(1, &[]);
    let mut call = Solve::open(&service).await;
    let config = v1::SolveConfig { ordered: true, packed_results: true, ..v1::SolveConfig::default() };
    call.send(v1::solve_request::Request::Config(config)).await;
    let Some(Response::Batch(batch)) = call.next().await else { panic!("the batch comes first") };
    call.send_grids(&[SEED]).await;
    let Some(Response::Results(results)) = call.next().await else {
        panic!("a result before the next puzzle is sent")
    };
    assert_eq!(&*results.packed_solutions, SEED_SOLUTION.as_bytes());
    assert_eq!((results.start_index, &*results.placements), (0, &[4_208][..]));
    call.send_grids(&[OTHER, "bad"]).await;
    let (sender, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut call.sender, sender));
    let mut answered = 1;
    let end = loop {
        match call.next().await.expect("the last message is the batch") {
            Response::Results(results) => answered += results.outcomes.len(),
            Response::Batch(batch) => break batch,
        }
    };
    assert_eq!((answered, end.name, end.puzzle_count), (3, batch.name, 3));
    assert!(call.responses.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_call_returns_before_anything_is_sent() {
    use v1::solve_response::Response;
    let service = Service::start(1, &[]);
    // Far longer than the answer's headers take, far shorter than any other wait of the service.
    let opened = tokio::time::timeout(std::time::Duration::from_secs(2), Solve::open(&service)).await;
    let mut call = opened.expect("the headers come at once");
    call.send_grids(&[SEED]).await;
    let Some(Response::Batch(_)) = call.next().await else { panic!("the batch comes first") };
    let Some(Response::Results(results)) = call.next().await else { panic!("the first result follows") };
    assert_eq!(results.solutions, [SEED_SOLUTION]);
}

#[tokio::test]
async fn a_client_that_writes_everything_before_it_reads_is_answered() {
    use v1::solve_response::Response;
    const CHUNKS: usize = 30;
    let service = Service::start(2, &[]);
    let mut call = Solve::open(&service).await;
    let config = v1::SolveConfig {
        options: Some(v1::SolveOptions { placement_limit: Some(0) }),
        ..v1::SolveConfig::default()
    };
    call.send(v1::solve_request::Request::Config(config)).await;
    for _ in 0..CHUNKS {
        call.send_grids(&vec![SEED; 10_000]).await;
    }
    let (sender, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut call.sender, sender));
    let mut seen = vec![false; CHUNKS * 10_000];
    let mut batches = 0;
    while let Some(response) = call.next().await {
        match response {
            Response::Batch(_) => batches += 1,
            Response::Results(results) => {
                for place in 0..results.outcomes.len() {
                    let index = usize::try_from(results.start_index).unwrap() + place;
                    assert!(!std::mem::replace(&mut seen[index], true), "{index} came twice");
                }
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen) && batches == 2);
}

#[test]
fn a_broken_solve_call_leaves_a_batch_that_can_be_gone_on_with() {
    use v1::solve_response::Response;
    let service = Service::start(1, &[]);
    // Cut, not ended: the runtime goes, and the connection with it.
    let broken = tokio::runtime::Runtime::new().unwrap();
    let name = broken.block_on(async {
        let mut call = Solve::open(&service).await;
        call.send_grids(&[SEED, OTHER]).await;
        let Some(Response::Batch(batch)) = call.next().await else { panic!("the batch comes first") };
        let Some(Response::Results(_)) = call.next().await else { panic!("then results") };
        // Never ended by this side.
        std::mem::forget(call.sender);
        batch.name
    });
    broken.shutdown_background();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = Client::connect(&service.url).await.unwrap();
        client.append(&name, Some(2), vec![SEED.to_owned()]).await.unwrap();
        client.seal(&name, Some(3)).await.unwrap();
        let mut results = client.results(&name, Start::ordered(0)).await.unwrap();
        let mut indexes = Vec::new();
        while let Some(run) = results.next().await.unwrap() {
            indexes.extend(run.into_iter().map(|result| result.index));
        }
        assert_eq!(indexes, [0, 1, 2]);
    });
}

#[test]
fn a_call_that_is_cut_at_any_moment_never_seals_its_batch() {
    // A reset stream looks like an ended one to tonic: the first version sealed half of these batches.
    let service = Service::start(1, &[]);
    for round in 0..40_u32 {
        let broken = tokio::runtime::Runtime::new().unwrap();
        broken.block_on(async {
            let call = Solve::open(&service).await;
            call.send_grids(&[SEED]).await;
            let Solve { sender, mut responses } = call;
            for _ in 0..round % 3 {
                responses.message().await.unwrap();
            }
            // The stream is reset: the call is dropped as a whole, its sending side not ended before.
            std::mem::forget(sender);
            drop(responses);
        });
        broken.shutdown_background();
    }
    // The server has let go of every one of them: a late seal would have happened by now.
    let cut = || service.server.log().iter().filter(|line| line.contains("a Solve call was cut")).count();
    e2e::eventually("40 calls were cut", || (cut() == 40).then_some(()));
    let name = run_one(&service);
    assert_eq!(
        service.database.value(&format!("select count(*) from batch where state > 1 and name <> '{name}'")),
        "0"
    );
}

/// A call that is ended as it should be; gives its batch's id.
fn run_one(service: &Service) -> String {
    use v1::solve_response::Response;
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut call = Solve::open(service).await;
        call.send_grids(&[SEED]).await;
        let (sender, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut call.sender, sender));
        let mut last = None;
        while let Some(response) = call.next().await {
            if let Response::Batch(batch) = response {
                last = Some(batch);
            }
        }
        let last = last.expect("the batch comes last");
        assert_eq!(last.state(), v1::batch::State::Succeeded);
        last.name.trim_start_matches("batches/").to_owned()
    })
}

#[tokio::test]
async fn messages_that_come_together_are_stored_up_to_the_first_that_is_refused() {
    use v1::{solve_request::Request, solve_response::Response};
    let service = Service::start(1, &[]);
    let chunk = |count: usize| {
        Request::Chunk(v1::PuzzleChunk { grids: vec![SEED; count].into(), ..v1::PuzzleChunk::default() })
    };
    for bad in [chunk(10_001), chunk(0), Request::Config(v1::SolveConfig::default())] {
        let mut client = SolverServiceClient::connect(service.url.clone()).await.unwrap();
        let requests = [chunk(3), chunk(40), chunk(1), bad, chunk(7)];
        let requests = requests.map(|request| v1::SolveRequest { request: Some(request) });
        let mut responses = client.solve(tokio_stream::iter(requests)).await.unwrap().into_inner();
        let Some(Response::Batch(batch)) = responses.message().await.unwrap().unwrap().response else {
            panic!("the batch comes first")
        };
        let refused = loop {
            match responses.message().await {
                Ok(message) => assert!(message.is_some(), "it is refused"),
                Err(status) => break status,
            }
        };
        assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");
        let client = Client::connect(&service.url).await.unwrap();
        let left = client.get_batch(&batch.name).await.unwrap();
        assert_eq!((left.state(), left.puzzle_count), (v1::batch::State::Open, 44));
    }
}

#[tokio::test]
async fn a_call_that_ends_with_its_headers_is_an_empty_batch() {
    // Its body is empty from the start: nothing ever asks that body how it ended.
    let service = Service::start(0, &[]);
    let channel =
        tonic::transport::Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
    let request =
        tonic::codegen::http::Request::post(format!("{}/sudoku.v1.SolverService/Solve", service.url))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(tonic::body::Body::empty())
            .unwrap();
    let mut channel = channel;
    let response = {
        use tonic::codegen::Service as _;
        std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
        channel.call(request).await.unwrap()
    };
    let mut body = response.into_body();
    let mut bytes = 0;
    while let Some(frame) = std::future::poll_fn(|context| {
        tonic::codegen::Body::poll_frame(std::pin::Pin::new(&mut body), context)
    })
    .await
    {
        bytes += frame.unwrap().data_ref().map_or(0, bytes_len);
    }
    assert!(bytes > 0, "the batch comes first and last");
    assert_eq!(service.database.value("select count(*) from batch where state = 3"), "1");
}

fn bytes_len(bytes: &tonic::codegen::Bytes) -> usize {
    bytes.len()
}

#[tokio::test]
async fn a_call_without_any_message_makes_a_batch_only_when_it_is_ended() {
    use v1::solve_response::Response;
    let service = Service::start(0, &[]);
    let mut call = Solve::open(&service).await;
    assert_eq!(service.database.value("select count(*) from batch"), "0", "headers alone make none");
    let (sender, _) = mpsc::channel(1);
    drop(std::mem::replace(&mut call.sender, sender));
    let Some(Response::Batch(_)) = call.next().await else { panic!("the batch comes first") };
    let Some(Response::Batch(batch)) = call.next().await else { panic!("and last") };
    assert_eq!((batch.state(), batch.puzzle_count), (v1::batch::State::Succeeded, 0));
}
