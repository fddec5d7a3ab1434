//! The contract of `sudoku.v1` as a client in any language meets it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use client::{Client, Count, NewBatch, Position, Retry, Start};
use e2e::{Database, ENDLESS_LIMIT, Process, SEED, SEED_SOLUTION, Service, run};
use proto::v1::{self, batch::State, batch_service_client::BatchServiceClient};
use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt as _;

const OTHER: &str = "..43..2.9..5..9..1.7..6..43..6..2.8719...74...5..83...6.....1.5..35.869..4291.3..";

async fn batches(service: &Service) -> BatchServiceClient<Channel> {
    BatchServiceClient::connect(service.url.clone()).await.unwrap()
}

fn create(id: &str) -> v1::CreateBatchRequest {
    v1::CreateBatchRequest { batch_id: id.to_owned(), ..v1::CreateBatchRequest::default() }
}

fn append(id: &str, offset: Option<i64>, grids: &[&str]) -> v1::AppendPuzzlesRequest {
    let grids = grids.iter().map(|grid| (*grid).to_owned()).collect();
    let chunk = Some(v1::PuzzleChunk { grids, ..v1::PuzzleChunk::default() });
    v1::AppendPuzzlesRequest { name: format!("batches/{id}"), offset, chunk }
}

fn seal(id: &str, expected: Option<i64>) -> v1::SealBatchRequest {
    v1::SealBatchRequest { name: format!("batches/{id}"), expected_puzzle_count: expected }
}

fn get(id: &str) -> v1::GetBatchRequest {
    v1::GetBatchRequest { name: format!("batches/{id}") }
}

/// The code, the reason word and the numbers of a refusal, whose details must fit everywhere.
fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, String, HashMap<String, String>) {
    let status = result.unwrap_err();
    assert!(status.details().len() + status.message().len() < 4_096);
    let info = status.get_details_error_info().expect("every refusal has ErrorInfo");
    assert_eq!(info.domain, "sudoku-batch");
    (status.code(), info.reason, info.metadata)
}

#[tokio::test]
async fn appends_at_an_offset_are_exactly_once_however_they_are_repeated_and_cut() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    batches.create_batch(create("offsets")).await.unwrap();
    let zeros = SEED.replace('.', "0");
    let bad = "not a puzzle";

    let first =
        batches.append_puzzles(append("offsets", Some(0), &[SEED, OTHER, bad])).await.unwrap().into_inner();
    assert_eq!((first.next_offset, first.duplicate), (3, false));
    // The same again, with zeros for dots; a part of it; a part from the middle.
    for (offset, grids) in [(0, vec![&*zeros, OTHER, bad]), (0, vec![SEED]), (1, vec![OTHER, bad])] {
        let again =
            batches.append_puzzles(append("offsets", Some(offset), &grids)).await.unwrap().into_inner();
        assert_eq!((again.next_offset, again.duplicate), (3, true));
    }
    // An equal head that goes beyond the end: the tail is added.
    let longer = batches
        .append_puzzles(append("offsets", Some(1), &[OTHER, bad, SEED, SEED]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((longer.next_offset, longer.duplicate), (5, false));
    // Other puzzles: nothing is added, and the first that differs is named.
    for grids in [[SEED, OTHER, "another text", SEED, SEED, SEED], [SEED, OTHER, SEED, SEED, SEED, SEED]] {
        let (code, reason, numbers) =
            refusal(batches.append_puzzles(append("offsets", Some(0), &grids)).await);
        assert_eq!((code, &*reason, &*numbers["first_index"]), (Code::AlreadyExists, "OFFSET_TAKEN", "2"));
    }
    // A gap.
    let (code, reason, numbers) = refusal(batches.append_puzzles(append("offsets", Some(6), &[SEED])).await);
    assert_eq!((code, &*reason, &*numbers["next_offset"]), (Code::OutOfRange, "OFFSET_BEYOND_END", "5"));
    // Without an offset: at the end.
    let end = batches.append_puzzles(append("offsets", None, &[SEED])).await.unwrap().into_inner();
    assert_eq!((end.next_offset, end.duplicate), (6, false));

    // Sealing checks the count; afterwards a repeat still succeeds, and new puzzles are refused.
    let (code, reason, _) = refusal(batches.seal_batch(seal("offsets", Some(7))).await);
    assert_eq!((code, &*reason), (Code::FailedPrecondition, "COUNT_MISMATCH"));
    for expected in [Some(6), None, Some(6)] {
        let sealed = batches.seal_batch(seal("offsets", expected)).await.unwrap().into_inner();
        assert_eq!((sealed.state(), sealed.puzzle_count), (State::Sealed, 6));
        assert!(sealed.seal_time.is_some() && sealed.end_time.is_none());
    }
    let repeat =
        batches.append_puzzles(append("offsets", Some(0), &[SEED, OTHER, bad])).await.unwrap().into_inner();
    assert!(repeat.duplicate);
    let (code, reason, _) = refusal(batches.append_puzzles(append("offsets", Some(6), &[SEED])).await);
    assert_eq!((code, &*reason), (Code::FailedPrecondition, "BATCH_NOT_OPEN"));
    assert_eq!(service.database.value("select sum(hi - lo) from payload"), "6", "each puzzle is stored once");
    assert_eq!(service.database.value("select sum(hi - lo) from job"), "6", "and queued once");
}

#[tokio::test]
async fn appends_that_race_for_one_offset_are_stored_once() {
    let service = Service::start(0, &[]);
    let client = batches(&service).await;
    client.clone().create_batch(create("racing")).await.unwrap();
    let tries: Vec<_> = (0..8)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(
                async move { client.append_puzzles(append("racing", Some(0), &[SEED, OTHER])).await },
            )
        })
        .collect();
    let mut stored = 0;
    for one in tries {
        let response = one.await.unwrap().unwrap().into_inner();
        assert_eq!(response.next_offset, 2);
        stored += u32::from(!response.duplicate);
    }
    assert_eq!(stored, 1);
    assert_eq!(service.database.value("select sum(hi - lo) from payload"), "2");
}

#[tokio::test]
async fn creating_again_finds_the_batch_and_other_options_are_refused() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    let limited = |id: &str, request_id: &str, limit: i64| v1::CreateBatchRequest {
        batch_id: id.to_owned(),
        request_id: request_id.to_owned(),
        batch: Some(v1::Batch {
            options: Some(v1::SolveOptions { placement_limit: Some(limit) }),
            ..v1::Batch::default()
        }),
    };
    let made = batches.create_batch(limited("mine", "", 5)).await.unwrap().into_inner();
    assert_eq!((&*made.name, made.state()), ("batches/mine", State::Open));
    assert_eq!(batches.create_batch(limited("mine", "", 5)).await.unwrap().into_inner(), made);
    let (code, reason, _) = refusal(batches.create_batch(limited("mine", "", 6)).await);
    assert_eq!((code, &*reason), (Code::AlreadyExists, "BATCH_EXISTS"));

    let request = "6f1d2bcb-6d4e-4a43-8f0e-3d9b8a1f0c11";
    let named = batches.create_batch(limited("", request, 7)).await.unwrap().into_inner();
    assert_eq!(batches.create_batch(limited("", request, 7)).await.unwrap().into_inner(), named);
    let (code, _, _) = refusal(batches.create_batch(limited("", request, 8)).await);
    assert_eq!(code, Code::AlreadyExists);
    let unset = batches.create_batch(create("unset")).await.unwrap().into_inner();
    assert_eq!(unset.options.unwrap().placement_limit, Some(100_000_000));
}

#[tokio::test]
async fn each_bad_field_is_named() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    let with =
        |batch: v1::Batch| v1::CreateBatchRequest { batch: Some(batch), ..v1::CreateBatchRequest::default() };
    let limit = |limit| v1::Batch {
        options: Some(v1::SolveOptions { placement_limit: Some(limit) }),
        ..v1::Batch::default()
    };
    let labels = |count: usize| (0..count).map(|number| (format!("k{number}"), String::new())).collect();
    for (request, field) in [
        (create("abc"), "batch_id"),
        (create(&"a".repeat(64)), "batch_id"),
        (create("Upper"), "batch_id"),
        (v1::CreateBatchRequest { request_id: "x".to_owned(), ..create("good") }, "request_id"),
        (with(limit(-1)), "batch.options.placement_limit"),
        (with(limit(i64::MAX)), "batch.options.placement_limit"),
        (with(v1::Batch { priority: 10, ..v1::Batch::default() }), "batch.priority"),
        (with(v1::Batch { display_name: "x".repeat(121), ..v1::Batch::default() }), "batch.display_name"),
        (with(v1::Batch { display_name: "nul\0".to_owned(), ..v1::Batch::default() }), "batch.display_name"),
        (
            with(v1::Batch {
                labels: HashMap::from([("k".to_owned(), "\u{1b}[2J".to_owned())]),
                ..v1::Batch::default()
            }),
            "batch.labels",
        ),
        (with(v1::Batch { labels: labels(17), ..v1::Batch::default() }), "batch.labels"),
        (
            with(v1::Batch {
                labels: HashMap::from([("k".repeat(20_000), String::new())]),
                ..v1::Batch::default()
            }),
            "batch.labels",
        ),
    ] {
        let status = batches.create_batch(request).await.unwrap_err();
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!((status.code(), &*violations[0].field), (Code::InvalidArgument, field));
        refusal::<()>(Err(status));
    }
    let accepted = with(v1::Batch { labels: labels(16), ..v1::Batch::default() });
    batches.create_batch(accepted).await.unwrap();
    batches.create_batch(create("full")).await.unwrap();
    let (code, reason, _) = refusal(batches.append_puzzles(append("full", Some(-1), &[SEED])).await);
    assert_eq!((code, &*reason), (Code::InvalidArgument, "BAD_ARGUMENT"));
    let (code, ..) = refusal(batches.append_puzzles(append("full", Some(0), &vec![SEED; 10_001])).await);
    assert_eq!(code, Code::InvalidArgument);
    let taken =
        batches.append_puzzles(append("full", Some(0), &vec![SEED; 10_000])).await.unwrap().into_inner();
    assert_eq!(taken.next_offset, 10_000);
}

#[tokio::test]
async fn what_is_not_there_says_so_whatever_is_asked_of_it() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    for request in [get("nobody"), get("some-other")] {
        let (code, reason, _) = refusal(batches.get_batch(request).await);
        assert_eq!((code, &*reason), (Code::NotFound, "BATCH_NOT_FOUND"));
    }
    let (code, ..) = refusal(batches.get_batch(v1::GetBatchRequest { name: "x".repeat(100_000) }).await);
    assert_eq!(code, Code::InvalidArgument);
    let name = "batches/nobody".to_owned();
    let watch = v1::WatchBatchRequest { name: name.clone(), min_interval: None };
    let stream = v1::StreamResultsRequest { name: name.clone(), ..v1::StreamResultsRequest::default() };
    let refused = [
        refusal(batches.watch_batch(watch).await.map(drop)),
        refusal(batches.stream_results(stream).await.map(drop)),
        refusal(batches.cancel_batch(v1::CancelBatchRequest { name: name.clone() }).await.map(drop)),
        refusal(batches.delete_batch(v1::DeleteBatchRequest { name, force: true }).await.map(drop)),
        refusal(batches.append_puzzles(append("nobody", Some(0), &[SEED])).await.map(drop)),
        refusal(batches.seal_batch(seal("nobody", None)).await.map(drop)),
    ];
    for (code, reason, _) in refused {
        assert_eq!((code, &*reason), (Code::NotFound, "BATCH_NOT_FOUND"));
    }
    let list = batches.list_batches(v1::ListBatchesRequest::default()).await.unwrap().into_inner();
    assert_eq!(list, v1::ListBatchesResponse::default());
}

#[tokio::test]
async fn tenants_do_not_see_each_others_batches() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    let of = |tenant: &'static str, message: v1::GetBatchRequest| {
        let mut request = Request::new(message);
        request.metadata_mut().insert("sudoku-tenant", tenant.parse().unwrap());
        request
    };
    let mut mine = Request::new(create("shared-name"));
    mine.metadata_mut().insert("sudoku-tenant", "alice".parse().unwrap());
    batches.create_batch(mine).await.unwrap();
    assert!(batches.get_batch(of("alice", get("shared-name"))).await.is_ok());
    for other in ["bob", "default"] {
        let (code, ..) = refusal(batches.get_batch(of(other, get("shared-name"))).await);
        assert_eq!(code, Code::NotFound);
    }
    let (code, ..) = refusal(batches.get_batch(of("Not A Name", get("shared-name"))).await);
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(service.database.value("select count(*) from tenant"), "2", "asking makes no tenant");
}

#[tokio::test]
async fn results_from_any_index_ordered_and_followed_to_the_end() {
    let service = Service::start(2, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let batch = client.create_batch(NewBatch::default()).await.unwrap();
    let mut following = client.results(&batch.name, Start::ordered(0)).await.unwrap();
    let puzzles: Vec<String> =
        (0..500).map(|number| if number % 7 == 3 { "bad".to_owned() } else { SEED.to_owned() }).collect();
    client.append(&batch.name, Some(0), puzzles.clone()).await.unwrap();
    let first = following.next().await.unwrap().unwrap();
    assert_eq!(first[0].index, 0, "results come before the batch is sealed");
    client.seal(&batch.name, Some(500)).await.unwrap();
    let mut all = first;
    while let Some(run) = following.next().await.unwrap() {
        all.extend(run);
    }
    let end = following.batch().unwrap();
    assert_eq!((end.state(), end.puzzle_count), (State::Succeeded, 500));
    let progress = end.progress.unwrap();
    assert_eq!((progress.done_count, progress.invalid_count), (500, 71));
    assert_eq!(progress.placement_count, 429 * 4_208);
    assert_eq!(all.iter().map(|result| result.index).collect::<Vec<_>>(), (0..500).collect::<Vec<_>>());
    assert_eq!(all[0].solution.as_deref(), Some(SEED_SOLUTION));
    assert_eq!((all[3].outcome, all[3].invalid.as_ref().unwrap().found_length), (v1::Outcome::Invalid, 3));

    for from in [0, 1, 31, 32, 33, 250, 499, 500, 10_000] {
        for ordered in [true, false] {
            let start = Start { position: Position::Index(from), ordered, follow: true };
            let mut results = client.results(&batch.name, start).await.unwrap();
            let mut tail = Vec::new();
            while let Some(run) = results.next().await.unwrap() {
                tail.extend(run);
            }
            tail.sort_by_key(|result| result.index);
            assert_eq!(tail, all[usize::try_from(from.min(500)).unwrap()..]);
        }
    }
}

#[tokio::test]
async fn results_that_are_not_followed_stop_at_what_is_there() {
    let service = Service::start(0, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let batch = client.create_batch(NewBatch::default()).await.unwrap();
    client.append(&batch.name, Some(0), vec![SEED.to_owned()]).await.unwrap();
    let start = Start { follow: false, ..Start::ordered(0) };
    let mut results = client.results(&batch.name, start).await.unwrap();
    assert_eq!(results.next().await.unwrap(), None);
    assert_eq!(results.batch().unwrap().state(), State::Open);
}

#[tokio::test]
async fn an_empty_batch_ends_when_it_is_sealed() {
    let service = Service::start(0, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    let batch = client.create_batch(NewBatch::default()).await.unwrap();
    let sealed = client.seal(&batch.name, Some(0)).await.unwrap();
    assert_eq!(sealed.state(), State::Succeeded);
    assert!(sealed.end_time.is_some());
}

#[tokio::test]
async fn a_limit_of_zero_counts_nothing_and_a_limit_is_exact() {
    let service = Service::start(1, &[]);
    let client = Client::connect(&service.url).await.unwrap();
    for (limit, count) in [(0, Count::None), (4_207, Count::OverLimit), (4_208, Count::Exact(4_208))] {
        let new = NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
        let batch = client.create_batch(new).await.unwrap();
        client.append(&batch.name, Some(0), vec![SEED.to_owned()]).await.unwrap();
        client.seal(&batch.name, Some(1)).await.unwrap();
        let mut results = client.results(&batch.name, Start::ordered(0)).await.unwrap();
        assert_eq!(results.next().await.unwrap().unwrap()[0].placements, count);
    }
}

#[tokio::test]
async fn too_large_a_message_is_refused_and_the_connection_lives_on() {
    let service = Service::start(0, &[]);
    let mut batches = batches(&service).await;
    batches.create_batch(create("large")).await.unwrap();
    let (code, ..) = refusal(batches.append_puzzles(append("large", Some(0), &vec![SEED; 60_000])).await);
    assert_eq!(code, Code::InvalidArgument, "below what is decoded: the limit is named");
    let status = batches.append_puzzles(append("large", Some(0), &vec![SEED; 120_000])).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "beyond it the transport says so");
    assert!(batches.get_batch(get("large")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_takes_placement_limits_up_to_its_own_maximum_from_every_client() {
    let database = Database::fresh();
    let mut by_default = Process::start(
        &["serve", "--listen", "127.0.0.1:0", "--exit-with-parent"],
        &[("DATABASE_URL", &database.url())],
    );
    let url = by_default.line("ready ");
    let (_raised, raised_url) = Service::server(&database);
    for (url, greatest) in [(&url, 10_000_000_000), (&raised_url, ENDLESS_LIMIT)] {
        let client = Client::connect(url).await.unwrap();
        let with = |limit| NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
        client.create_batch(with(greatest)).await.unwrap();
        let refused = client.create_batch(with(greatest + 1)).await.unwrap_err();
        assert_eq!(refused.reason().as_deref(), Some("BAD_ARGUMENT"), "{refused:?}");
        let submit = |limit: u64| {
            let limit = limit.to_string();
            run(&["submit", "-", "--detach", "--placement-limit", &limit, "--server", url], &[], SEED)
        };
        assert_eq!(submit(greatest).code, Some(0));
        assert_ne!(submit(greatest + 1).code, Some(0));
    }
    let args = ["submit", "-", "--placement-limit", "10000000001", "--server", &url];
    let refused = run(&args, &[], SEED);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("10000000000"), "it says what it takes: {}", refused.stderr);
}

#[tokio::test]
async fn a_stopping_server_ends_streams_with_unavailable_and_exits() {
    let mut service = Service::start(0, &[]);
    let client = Client::connect(&service.url).await.unwrap().with_retry(Retry::never());
    let batch = client.create_batch(NewBatch::default()).await.unwrap();
    client.append(&batch.name, Some(0), vec![SEED.to_owned()]).await.unwrap();
    let mut results = client.results(&batch.name, Start::ordered(0)).await.unwrap();
    let channel = Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
    let request = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel)
        .watch(request)
        .await
        .unwrap()
        .into_inner();
    health.message().await.unwrap().unwrap();
    service.server.signal(nix::sys::signal::Signal::SIGTERM);
    let error = results.next().await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(error.reason().as_deref(), Some("SERVER_STOPPING"));
    while health.message().await.unwrap().is_some() {}
    // Nothing holds it: a grace time that runs out would be told by a warning, and fail this test.
    let code = tokio::task::spawn_blocking(move || service.server.wait()).await.unwrap();
    assert_eq!(code, 0);
}
