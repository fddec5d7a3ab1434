//! Turns of workers that have several jobs at a time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use common::{FORMAT, LEASE, NO_LEASE, batch, chunk, completion, expire, heartbeat, store};
use e2e::Database;
use store::{Completion, Done, Job, OutcomeCounts, Piece, Rest, Turn, WorkerId};
use tokio::sync::Barrier;

mod common;

/// All of a job, with a count and pieces that only it has.
fn whole(job: &Job) -> Done {
    let key = job.key;
    let puzzles = i32::try_from(key.hi - key.lo).unwrap();
    let counts =
        OutcomeCounts { unique: 1, multiple: puzzles - 1, placements: key.lo, ..OutcomeCounts::default() };
    let piece = |lo, hi| Piece { lo, hi, data: format!("{}:{lo}-{hi}", key.batch_id).into_bytes() };
    let pieces = vec![piece(key.lo, key.lo + 1), piece(key.lo + 1, key.hi)];
    Done {
        key,
        completion: Completion { mid: key.hi, counts, format: FORMAT, pieces },
        rest: Rest::default(),
    }
}

#[tokio::test]
async fn several_jobs_are_stored_at_once_each_with_its_own_counts_and_pieces() {
    let database = Database::fresh();
    let store = store(&database).await;
    let (one, two) = (batch(&store, "one-batch").await, batch(&store, "another-one").await);
    store.append(one.key, 0, FORMAT, vec![chunk(0, 4), chunk(4, 9)]).await.unwrap();
    store.append(two.key, 0, FORMAT, vec![chunk(0, 3), chunk(3, 7)]).await.unwrap();
    let worker = WorkerId::fresh();
    let jobs = store.claim(worker, 3, LEASE).await.unwrap();
    let done: Vec<Done> = jobs.iter().map(whole).collect();
    let turned = store.turn(worker, LEASE, &Turn { done: &done, claim: 2 }).await.unwrap();
    let mut stored = turned.stored;
    stored.sort_by_key(|key| (key.batch_id, key.lo));
    let mut keys: Vec<_> = jobs.iter().map(|job| job.key).collect();
    keys.sort_by_key(|key| (key.batch_id, key.lo));
    assert_eq!(stored, keys);
    assert_eq!(turned.jobs.len(), 1, "there is one more");
    let mut maybe_ended = turned.maybe_ended;
    maybe_ended.sort_unstable();
    assert_eq!(maybe_ended, [one.key.id(), two.key.id()]);
    store.turn(worker, LEASE, &Turn { done: &[whole(&turned.jobs[0])], claim: 0 }).await.unwrap();
    assert_eq!(
        database.query("select lo, hi, attempt, unique_count, multiple_count, placement_count from result order by batch_id, lo"),
        ["0|4|1|1|3|0", "4|9|1|1|4|4", "0|3|1|1|2|0", "3|7|1|1|3|3"]
    );
    assert_eq!(
        database.query("select result_lo, piece, lo, hi, convert_from(data, 'utf8') from result_piece order by batch_id, lo"),
        [
            format!("0|0|0|1|{}:0-1", one.key.id()),
            format!("0|1|1|4|{}:1-4", one.key.id()),
            format!("4|0|4|5|{}:4-5", one.key.id()),
            format!("4|1|5|9|{}:5-9", one.key.id()),
            format!("0|0|0|1|{}:0-1", two.key.id()),
            format!("0|1|1|3|{}:1-3", two.key.id()),
            format!("3|0|3|4|{}:3-4", two.key.id()),
            format!("3|1|4|7|{}:4-7", two.key.id()),
        ]
    );
    assert_eq!(database.value("select count(*) from job"), "0");
}

#[tokio::test]
async fn of_several_jobs_those_whose_lease_was_lost_change_nothing() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "some-lost").await;
    let chunks = (0..6).map(|place| chunk(place * 4, place * 4 + 4)).collect();
    store.append(batch.key, 0, FORMAT, chunks).await.unwrap();
    let worker = WorkerId::fresh();
    let lost = store.claim(worker, 2, NO_LEASE).await.unwrap();
    let kept = store.claim(worker, 2, LEASE).await.unwrap();
    assert_eq!(expire(&store).await.len(), 2);
    let part = store.claim(worker, 1, LEASE).await.unwrap();
    // Half of the last one; of the others the lost ones are first and last.
    let mut half = whole(&part[0]);
    half.completion = completion(part[0].key.lo + 2, 2);
    let done = [whole(&lost[0]), whole(&kept[0]), half, whole(&kept[1]), whole(&lost[1])];
    let turned = store.turn(worker, LEASE, &Turn { done: &done, claim: 0 }).await.unwrap();
    let mut stored: Vec<_> = turned.stored.iter().map(|key| key.lo).collect();
    stored.sort_unstable();
    assert_eq!(stored, [8, 12, 16]);
    assert_eq!(
        database.query("select lo, hi from result order by lo"),
        ["8|12", "12|16", "16|18"],
        "nothing of those that were lost"
    );
    assert_eq!(database.query("select lo, hi from job where lo >= 8 order by lo"), ["18|20", "20|24"]);
    // The same again changes nothing.
    let again = store.turn(worker, LEASE, &Turn { done: &done, claim: 0 }).await.unwrap();
    assert_eq!(again.stored, []);
    assert_eq!(store.batch_progress(batch.key).await.unwrap().1.done, 10);
}

#[tokio::test]
async fn heartbeats_and_turns_over_the_same_jobs_never_deadlock() {
    const ROUNDS: u64 = 60;
    const JOBS: u64 = 24;
    let database = Database::fresh();
    let store = Arc::new(store(&database).await);
    let batch = batch(&store, "crossing").await;
    for round in 0..ROUNDS {
        let begin = round * JOBS * 4;
        let chunks = (0..JOBS).map(|place| chunk(begin + place * 4, begin + place * 4 + 4)).collect();
        store.append(batch.key, begin, FORMAT, chunks).await.unwrap();
        let worker = WorkerId::fresh();
        let jobs = store.claim(worker, 24, LEASE).await.unwrap();
        assert_eq!(jobs.len() as u64, JOBS);
        let together = Arc::new(Barrier::new(3));
        let beat = |keys: Vec<_>| {
            let (store, together) = (Arc::clone(&store), Arc::clone(&together));
            tokio::spawn(async move {
                together.wait().await;
                heartbeat(&store, worker, &keys, LEASE).await.map(|kept| kept.len())
            })
        };
        let keys: Vec<_> = jobs.iter().map(|job| job.key).collect();
        let beats = [beat(keys.clone()), beat(keys.iter().rev().copied().collect())];
        let done: Vec<Done> = jobs.iter().rev().map(whole).collect();
        together.wait().await;
        let turned = store.turn(worker, LEASE, &Turn { done: &done, claim: 0 }).await.unwrap();
        assert_eq!(turned.stored.len() as u64, JOBS);
        for beat in beats {
            beat.await.unwrap().unwrap();
        }
    }
}
