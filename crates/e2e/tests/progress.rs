//! How far a search is that takes long, while it is running.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use client::{Client, NewBatch, Watch, v1, v1::batch::State};
use e2e::{ENDLESS, ENDLESS_LIMIT, PATIENCE, Process, SEED, Service, eventually, limit_for};

/// Heartbeats come three times a lease of so many seconds: every 10 s by default.
const SHORT_LEASE: [&str; 2] = ["--lease", "1"];
/// In which a worker is free again when what it searches is cancelled: far less than the search, and more than a busy machine needs.
const FREE_MAX: Duration = Duration::from_secs(20);

/// A sealed batch of these puzzles, with its watch.
async fn watched(service: &Service, id: &str, limit: u64, puzzles: &[&str]) -> (Client, String, Watch) {
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { id: id.to_owned(), placement_limit: Some(limit), ..NewBatch::default() };
    let batch = client.create_batch(new).await.unwrap().name;
    client.append(&batch, Some(0), puzzles.iter().copied().map(str::to_owned).collect()).await.unwrap();
    client.seal(&batch, None).await.unwrap();
    let watch = client.watch(&batch, Some(Duration::from_millis(100))).await.unwrap();
    (client, batch, watch)
}

/// The next that a watch shows; `None`: the batch has ended.
async fn next(watch: &mut Watch) -> Option<(State, v1::BatchProgress)> {
    let next = tokio::time::timeout(PATIENCE, watch.next()).await.expect("the watch goes on");
    next.unwrap().map(|batch| (batch.state(), batch.progress.unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_count_shows_how_far_it_is_and_a_cancel_frees_its_worker_and_leaves_nothing_of_it() {
    let service = Service::start(1, &SHORT_LEASE);
    let (client, batch, mut watch) = watched(&service, "long-count", ENDLESS_LIMIT, &[SEED, ENDLESS]).await;
    let mut watching = Process::start(&["watch", "long-count", "--server", &service.url], &[]);
    let (mut last, mut steps) = (0, 0);
    while steps < 4 {
        let (state, progress) = next(&mut watch).await.unwrap();
        assert_eq!(state, State::Sealed, "it takes minutes");
        let shown = progress.running_placement_count;
        assert!((0..i64::try_from(ENDLESS_LIMIT).unwrap()).contains(&shown), "{shown} after {last}");
        assert!([0, 4_208].contains(&progress.placement_count), "what is running is not among what is done");
        // A slice that ends with the puzzles before it is counted anew from where it was cut.
        steps = if shown < last { 0 } else { steps + u32::from(shown > last) };
        last = shown;
    }
    watching.line("1/2 puzzles, sealed: unique 1, running ");
    let running = |output| service.run(&["get", "long-count", "--output", output], "").stdout;
    assert!(running("text").contains(" placements so far\n"), "{}", running("text"));
    let shown: serde_json::Value = serde_json::from_str(&running("json")).unwrap();
    let shown: i64 = shown["progress"]["runningPlacementCount"].as_str().unwrap().parse().unwrap();
    assert!(shown > 0, "{shown} after {last}");

    let begun = Instant::now();
    client.cancel_batch(&batch).await.unwrap();
    eventually("no lease is left", || {
        (service.database.value("select count(*) from job") == "0").then_some(())
    });
    assert!(begun.elapsed() < FREE_MAX, "{:?}", begun.elapsed());
    let mut end = None;
    while let Some(shown) = next(&mut watch).await {
        end = Some(shown);
    }
    let (state, progress) = end.unwrap();
    assert_eq!((state, progress.cancelled_count), (State::Cancelled, 1));
    assert_eq!((progress.running_placement_count, progress.placement_count), (0, 4_208));
    assert!(!running("text").contains("so far"), "{}", running("text"));
    assert_eq!(watching.wait(), 4);
    // One that takes as long has the lane for long counts next, from its beginning.
    let (client, batch, mut watch) = watched(&service, "the-next", ENDLESS_LIMIT, &[ENDLESS]).await;
    while next(&mut watch).await.unwrap().1.running_placement_count == 0 {}
    client.cancel_batch(&batch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_count_has_shown_stays_within_its_limit_and_is_gone_when_it_is_answered() {
    let service = Service::start(1, &SHORT_LEASE);
    let limit = limit_for(Duration::from_secs(2));
    let (_client, _, mut watch) = watched(&service, "to-its-limit", limit, &[ENDLESS]).await;
    let mut shown = Vec::new();
    let mut end = None;
    while let Some((state, progress)) = next(&mut watch).await {
        shown.push(progress.running_placement_count);
        end = Some((state, progress));
    }
    let (state, progress) = end.unwrap();
    assert_eq!((state, progress.over_limit_count, progress.placement_count), (State::Succeeded, 1, 0));
    assert_eq!(shown.pop(), Some(0));
    assert!(shown.iter().any(|shown| *shown > 0), "it took two seconds: {shown:?}");
    assert!(shown.iter().all(|shown| *shown <= i64::try_from(limit).unwrap()), "{limit}: {shown:?}");
}
