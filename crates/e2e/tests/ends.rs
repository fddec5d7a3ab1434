//! Batches that are cancelled, deleted, listed and watched.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use client::{Client, NewBatch, Start, v1, v1::batch::State};
use e2e::{ENDLESS, ENDLESS_LIMIT, ENDLESS_OPTIONS, Process, SEED, Service, eventually, limit_for, run};
use nix::sys::signal::Signal;
use proto::v1::batch_service_client::BatchServiceClient;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// In which a search that would take minutes is stopped: far less than it, and far more than a busy machine needs.
const STOPPED_MAX: Duration = Duration::from_secs(20);

async fn client(service: &Service) -> Client {
    Client::connect(&service.url).await.unwrap()
}

/// A batch that counts for minutes where a puzzle is [`ENDLESS`].
async fn slow_batch(client: &Client, id: &str) -> String {
    let new = NewBatch { id: id.to_owned(), placement_limit: Some(ENDLESS_LIMIT), ..NewBatch::default() };
    client.create_batch(new).await.unwrap().name
}

fn reason<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, String) {
    let status = result.unwrap_err();
    (status.code(), status.get_details_error_info().unwrap().reason)
}

#[tokio::test]
async fn a_cancel_says_what_is_done_what_is_being_stopped_and_what_is_dropped_and_that_comes_true() {
    let service = Service::start(2, &[]);
    let client = client(&service).await;
    let batch = slow_batch(&client, "three-two-five").await;
    // Each puzzle a job of its own: three easy ones, then two for each worker, then five more.
    for (offset, puzzle) in (0..).zip([[SEED; 3].as_slice(), &[ENDLESS; 7]].concat()) {
        client.append(&batch, Some(offset), vec![puzzle.to_owned()]).await.unwrap();
    }
    client.seal(&batch, Some(10)).await.unwrap();
    let state = "select (select count(*) from result), (select count(*) from job where owner is not null)";
    eventually("three done and two running", || (service.database.query(state) == ["3|2"]).then_some(()));
    let mut stream = client.results(&batch, Start::ordered(0)).await.unwrap();
    let begun = Instant::now();
    let answer = client.cancel_batch(&batch).await.unwrap();
    assert_eq!((answer.done_count, answer.stopping_count, answer.dropped_count), (3, 2, 5));
    assert!(matches!(answer.batch.unwrap().state(), State::Cancelling | State::Cancelled));
    let mut outcomes = Vec::new();
    while let Some(run) = stream.next().await.unwrap() {
        outcomes.extend(run.into_iter().map(|result| result.outcome));
    }
    // The searches would take minutes.
    assert!(begun.elapsed() < STOPPED_MAX, "both workers are free: {:?}", begun.elapsed());
    let expected = [[v1::Outcome::Unique; 3].as_slice(), &[v1::Outcome::Cancelled; 7]].concat();
    assert_eq!(outcomes, expected, "every index, and nothing new after the last that was running");
    assert_eq!(stream.batch().unwrap().state(), State::Cancelled);
    assert_eq!(service.database.value("select count(*) from job"), "0");
    // Again: the same numbers, with nothing left to stop.
    let again = client.cancel_batch(&batch).await.unwrap();
    assert_eq!((again.done_count, again.stopping_count, again.dropped_count), (3, 0, 7));
    assert_eq!(service.run(&["submit", "-"], SEED).code, Some(0), "the workers serve others");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_in_the_middle_of_a_long_search_frees_the_worker_and_leaves_no_hole() {
    const PUZZLES: usize = 10_000;
    let service = Service::start(1, &[]);
    let client = client(&service).await;
    let batch = slow_batch(&client, "long-search").await;
    let mut puzzles = vec![SEED.to_owned(); PUZZLES];
    puzzles[5_000] = ENDLESS.to_owned();
    client.append(&batch, Some(0), puzzles).await.unwrap();
    // Not even sealed: an open batch can be cancelled.
    let running = "select count(*) from job where owner is not null and lo = 5000";
    eventually("the long one is running", || (service.database.value(running) == "1").then_some(()));
    let begun = Instant::now();
    let done = service.run(&["cancel", "long-search"], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // What was behind the long one has gone back meanwhile, and some of it may be done.
    assert!(done.stdout.contains(" done, ") && !done.stdout.contains(" 0 being"), "{}", done.stdout);
    eventually("it has ended", || (service.database.value("select state from batch") == "5").then_some(()));
    assert!(begun.elapsed() < STOPPED_MAX, "{:?}", begun.elapsed());
    assert_eq!(service.run(&["submit", "-"], SEED).code, Some(0), "the worker is free");
    let shown = service.run(&["results", "long-search", "--output", "jsonl"], "");
    assert_eq!(shown.code, Some(4), "{}", shown.stderr);
    assert!(shown.stderr.contains("was cancelled"), "{}", shown.stderr);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines.len(), PUZZLES);
    for (index, line) in lines.iter().enumerate() {
        let is = |outcome| line.starts_with(&format!("{{\"index\":{index},\"outcome\":\"{outcome}\""));
        assert!(index != 5_000 && is("unique") || index >= 5_000 && is("cancelled"), "{line}");
    }
    let (code, why) = reason(
        BatchServiceClient::connect(service.url.clone())
            .await
            .unwrap()
            .append_puzzles(v1::AppendPuzzlesRequest {
                name: batch.clone(),
                offset: Some(10_000),
                chunk: Some(v1::PuzzleChunk { grids: vec![SEED].into(), ..v1::PuzzleChunk::default() }),
            })
            .await,
    );
    assert_eq!((code, &*why), (Code::FailedPrecondition, "BATCH_NOT_OPEN"));
    assert!(client.seal(&batch, None).await.is_err());
}

#[test]
fn a_submit_whose_batch_is_cancelled_prints_every_index_and_says_so() {
    let service = Service::start(1, &[]);
    let args = ["submit", "--id", "mine", "--output", "jsonl", "--server", &service.url];
    let mut submit = Process::start(&[&args[..], &ENDLESS_OPTIONS[..]].concat(), &[]);
    // More than one message, and its input stays open: the submit is not through with it.
    submit.write(&format!("{SEED}\n{}", format!("{ENDLESS}\n").repeat(4_095)));
    submit.line("{\"index\":0,");
    assert_eq!(service.run(&["cancel", "mine"], "").code, Some(0));
    submit.write(&format!("{SEED}\n").repeat(4_096));
    submit.close_stdin();
    assert_eq!(submit.wait(), 4);
    submit.logged("batches/mine was cancelled");
    let lines = submit.lines();
    assert_eq!(lines.len(), 4_096);
    assert!(lines[1..].iter().all(|line| line.contains("\"cancelled\"")));
}

#[tokio::test]
async fn a_batch_that_has_ended_is_not_cancelled_any_more() {
    let service = Service::start(1, &[]);
    assert_eq!(service.run(&["submit", "-", "--id", "ended"], SEED).code, Some(0));
    let shown = service.run(&["cancel", "ended"], "");
    assert_eq!(
        (shown.code, &*shown.stdout),
        (Some(0), "batches/ended had succeeded before: nothing was left to cancel\n")
    );
    let shown = service.run(&["cancel", "ended", "--output", "json"], "");
    let answer: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&answer["doneCount"], &answer["batch"]["state"]), (&"1".into(), &"STATE_SUCCEEDED".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_batch_is_gone_at_once_and_its_name_is_free() {
    let service = Service::start(1, &[]);
    let client = client(&service).await;
    let batch = slow_batch(&client, "unwanted").await;
    client.append(&batch, Some(0), vec![SEED.to_owned(), ENDLESS.to_owned()]).await.unwrap();
    client.seal(&batch, Some(2)).await.unwrap();
    let running = "select count(*) from job where owner is not null and lo = 1";
    eventually("it is running", || (service.database.value(running) == "1").then_some(()));
    let mut watching = client.watch(&batch, None).await.unwrap();
    watching.next().await.unwrap().unwrap();

    let error = client.delete_batch(&batch, false).await.unwrap_err();
    assert_eq!(error.reason().as_deref(), Some("BATCH_NOT_ENDED"), "{error:?}");
    let refused = service.run(&["delete", "unwanted"], "");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(service.run(&["delete", "unwanted", "--force"], "").code, Some(0));
    assert_eq!(service.run(&["get", "unwanted"], "").code, Some(1));
    assert_eq!(
        client.delete_batch(&batch, true).await.unwrap_err().reason().as_deref(),
        Some("BATCH_NOT_FOUND")
    );
    let error = loop {
        match watching.next().await {
            Ok(Some(_)) => {}
            other => break other.unwrap_err(),
        }
    };
    assert_eq!(error.reason().as_deref(), Some("BATCH_NOT_FOUND"), "its watchers are told");
    // The same name again is another batch.
    let done = service.run(&["submit", "-", "--id", "unwanted", "--output", "jsonl"], SEED);
    assert_eq!((done.code, done.stdout.lines().count()), (Some(0), 1), "{}", done.stderr);
    let rows =
        "select (select count(*) from batch), (select count(*) from job), (select count(*) from payload),
        (select count(*) from result), (select count(*) from result_piece)";
    eventually("only the new one has rows", || (service.database.query(rows) == ["1|0|1|1|1"]).then_some(()));
}

#[tokio::test]
async fn a_stream_and_a_watch_stay_with_their_batch_when_its_name_is_given_to_another() {
    let service = Service::start(0, &[]);
    let client = client(&service).await;
    let named = || NewBatch { id: "nightly".to_owned(), ..NewBatch::default() };
    let batch = client.create_batch(named()).await.unwrap().name;
    client.append(&batch, Some(0), vec![SEED.to_owned(); 3]).await.unwrap();
    let mut stream = client.results(&batch, Start::ordered(0)).await.unwrap();
    let mut watch = client.watch(&batch, None).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().puzzle_count, 3);
    client.delete_batch(&batch, true).await.unwrap();
    // The next one of that name is solved to its end at once.
    client.create_batch(named()).await.unwrap();
    client.append(&batch, Some(0), vec![SEED.to_owned(); 5]).await.unwrap();
    client.seal(&batch, Some(5)).await.unwrap();
    let _worker = Service::worker(&service.database, &[]);
    let mut again = client.results(&batch, Start::ordered(0)).await.unwrap();
    while again.next().await.unwrap().is_some() {}
    assert_eq!(stream.next().await.unwrap_err().reason().as_deref(), Some("BATCH_NOT_FOUND"));
    let error = loop {
        match watch.next().await {
            Ok(Some(batch)) => assert_eq!(batch.puzzle_count, 3, "not the other one"),
            other => break other.unwrap_err(),
        }
    };
    assert_eq!(error.reason().as_deref(), Some("BATCH_NOT_FOUND"));
}

#[tokio::test]
async fn lists_are_newest_first_by_state_and_in_pages() {
    let service = Service::start(0, &[]);
    let client = client(&service).await;
    for number in 0..7 {
        let display_name = if number == 3 { "the third" } else { "" }.to_owned();
        let id = format!("list-{number}");
        client.create_batch(NewBatch { id, display_name, ..NewBatch::default() }).await.unwrap();
    }
    client.seal("batches/list-2", Some(0)).await.unwrap();
    client.cancel_batch("batches/list-4").await.unwrap();
    let shown = service.run(&["list"], "");
    let names: Vec<&str> = shown.stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    let newest: Vec<String> = (0..7).rev().map(|number| format!("batches/list-{number}")).collect();
    assert_eq!(names, newest);
    assert!(shown.stdout.contains("the third"), "{}", shown.stdout);
    let shown =
        service.run(&["list", "--state", "succeeded", "--state", "cancelled", "--output", "json"], "");
    let list: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let names: Vec<&str> =
        list["batches"].as_array().unwrap().iter().map(|batch| batch["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["batches/list-4", "batches/list-2"]);
    assert!(list["nextPageToken"].is_null());
    let few = service.run(&["list", "--limit", "2"], "");
    assert_eq!(few.stdout.lines().count(), 2);
    let few_json = service.run(&["list", "--limit", "2", "--output", "json"], "");
    assert!(few_json.stdout.contains("nextPageToken"), "{}", few_json.stdout);
    assert!(few.stderr.contains("--limit"), "{}", few.stderr);

    let mut batches = BatchServiceClient::connect(service.url.clone()).await.unwrap();
    let page = |page_size, page_token: &str, states: &[State]| v1::ListBatchesRequest {
        page_size,
        page_token: page_token.to_owned(),
        states: states.iter().map(|state| (*state).into()).collect(),
    };
    let (mut token, mut seen) = (String::new(), Vec::new());
    loop {
        let answer = batches.list_batches(page(3, &token, &[])).await.unwrap().into_inner();
        seen.extend(answer.batches.into_iter().map(|batch| batch.name));
        token = answer.next_page_token;
        if token.is_empty() {
            break;
        }
        // What is made meanwhile moves nothing.
        client.create_batch(NewBatch::default()).await.unwrap();
    }
    assert_eq!(seen, newest);
    let first = batches.list_batches(page(1, "", &[])).await.unwrap().into_inner();
    for refused in [page(-1, "", &[]), page(1, &first.next_page_token, &[State::Open]), page(1, "x", &[])] {
        assert_eq!(
            reason(batches.list_batches(refused).await),
            (Code::InvalidArgument, "BAD_ARGUMENT".to_owned())
        );
    }
    let all = batches.list_batches(page(1_000_000, "", &[])).await.unwrap().into_inner();
    assert_eq!((all.batches.len(), &*all.next_page_token), (9, ""), "more than the limit is cut to it");
}

#[test]
fn the_last_line_of_a_watch_is_all_of_all() {
    let service = Service::start(1, &[]);
    let mut watch = Process::start(&["watch", "watched", "--server", &service.url], &[]);
    assert_eq!(watch.wait(), 1, "there is nothing to watch yet");
    // It stays open until the watch has shown its beginning; what comes then comes faster than the watch may tell.
    let mut submit =
        Process::start(&["submit", "--id", "watched", "--summary", "--server", &service.url], &[]);
    submit.write(&format!("{SEED}\n").repeat(4_096));
    eventually("it is there", || (service.run(&["get", "watched"], "").code == Some(0)).then_some(()));
    let mut watch =
        Process::start(&["watch", "batches/watched", "--interval", "2", "--server", &service.url], &[]);
    watch.line("");
    let made = run(&["generate", "-n", "103"], &[], "");
    submit.write(&made.stdout);
    submit.close_stdin();
    assert_eq!((submit.wait(), watch.wait()), (0, 0));
    let lines = watch.lines();
    let progress: Vec<&String> = lines.iter().filter(|line| line.contains(" puzzles, ")).collect();
    assert!(progress.len() >= 2, "{lines:#?}");
    assert_eq!(*progress.last().unwrap(), "4,199/4,199 puzzles, succeeded: unique 4,199");
    assert!(lines.iter().any(|line| line == "done         4,199 of 4,199"), "{lines:#?}");
    let done = service.run(&["watch", "watched", "--output", "json"], "");
    let last: serde_json::Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["progress"]["doneCount"], &last["puzzleCount"]), (&"4199".into(), &"4199".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_never_falls_and_never_goes_beyond_the_total_while_workers_die() {
    let expired = ["a lease has run out"];
    // The last puzzle of each message: its worker is killed in the middle of it, and the batch is done when the last death is over.
    let limit = limit_for(Duration::from_millis(300));
    let service = Service::start(0, &[]);
    let mut worker = Service::worker(&service.database, &["--lease", "1"]).allowing(&expired);
    let client = client(&service).await;
    let new = NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
    let batch = client.create_batch(new).await.unwrap().name;
    let made = run(&["generate", "-n", "6000", "--clues", "30"], &[], "");
    let mut puzzles: Vec<String> = made.stdout.lines().map(str::to_owned).collect();
    puzzles.iter_mut().skip(499).step_by(500).for_each(|last| ENDLESS.clone_into(last));
    let mut watch = client.watch(&batch, Some(Duration::from_millis(100))).await.unwrap();
    let watching = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(batch) = watch.next().await.unwrap() {
            seen.push((batch.progress.unwrap_or_default().done_count, batch.puzzle_count));
        }
        seen
    });
    for (message, puzzles) in (0..).zip(puzzles.chunks(500)) {
        client.append(&batch, Some(message * 500), puzzles.to_vec()).await.unwrap();
        if message % 4 == 3 {
            let id = worker.lines()[0].trim_start_matches("ready worker ").to_owned();
            let held = format!("select count(*) from job where owner = '{id}'");
            eventually("it holds a lease", || (service.database.value(&held) != "0").then_some(()));
            worker.signal(Signal::SIGKILL);
            worker.wait();
            worker = Service::worker(&service.database, &["--lease", "1"]).allowing(&expired);
        }
    }
    client.seal(&batch, Some(6_000)).await.unwrap();
    let seen = watching.await.unwrap();
    assert!(seen.len() >= 3, "{seen:?}");
    assert!(seen.iter().all(|(done, total)| done <= total), "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1), "{seen:?}");
    assert_eq!(*seen.last().unwrap(), (6_000, 6_000));
}

#[tokio::test]
async fn a_watch_takes_intervals_within_its_limits() {
    let service = Service::start(0, &[]);
    let client = client(&service).await;
    let batch = client.create_batch(NewBatch::default()).await.unwrap().name;
    for interval in [Duration::from_millis(99), Duration::from_millis(60_001), Duration::ZERO] {
        let error = client.watch(&batch, Some(interval)).await.unwrap_err();
        assert_eq!(error.reason().as_deref(), Some("BAD_ARGUMENT"), "{interval:?}: {error:?}");
    }
    for interval in [Duration::from_millis(100), Duration::from_secs(60)] {
        assert!(client.watch(&batch, Some(interval)).await.unwrap().next().await.unwrap().is_some());
    }
}

#[test]
fn seventy_thousand_puzzles_are_one_batch() {
    const PUZZLES: usize = 70_000;
    let service = Service::start(2, &[]);
    let made = run(&["generate", "-n", "7000", "--clues", "60"], &[], "").stdout.repeat(10);
    let options = ["--output", "jsonl", "--placement-limit", "off"];
    let done = service.run(&[&["submit", "-"], &options[..]].concat(), &made);
    assert_eq!((done.code, done.stdout.lines().count()), (Some(0), PUZZLES), "{}", done.stderr);
    assert_eq!(service.database.value("select sum(hi - lo) from payload"), PUZZLES.to_string());
    assert_eq!(service.database.value("select sum(hi - lo) from result"), PUZZLES.to_string());
}
