//! Cancelling, deleting and listing batches.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use common::{FORMAT, LEASE, NO_LEASE, batch, chunk, claim_one, completion, expire, store};
use e2e::Database;
use store::{Append, BatchState, Cancel, Error, Purged, WorkerId};

mod common;

#[tokio::test]
async fn a_cancelled_batch_drops_what_nobody_holds_and_ends_with_the_last_lease() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "cancelled").await;
    let chunks = (0..5).map(|place| chunk(place * 4, place * 4 + 4)).collect();
    store.append(batch.key, 0, FORMAT, chunks).await.unwrap();
    let worker = WorkerId::fresh();
    let done = claim_one(&store, worker, LEASE).await;
    store.complete(worker, done, completion(4, 4)).await.unwrap();
    let (held, idle) = (claim_one(&store, worker, LEASE).await, claim_one(&store, worker, LEASE).await);
    let id = batch.key.id();
    assert_eq!(store.drop_cancelled(id, 10).await.unwrap(), 0, "not cancelled yet");
    assert!(!store.drop_held(worker, held).await.unwrap());

    let counts = Cancel { done: 4, stopping: 8, dropped: 8 };
    assert_eq!(store.cancel(batch.key).await.unwrap(), Some(counts));
    assert_eq!(store.cancel(batch.key).await.unwrap(), None, "once");
    assert_eq!(store.append(batch.key, 20, FORMAT, vec![chunk(20, 24)]).await.unwrap(), Append::Refused);
    assert!(!store.seal(batch.key, 20).await.unwrap());
    assert_eq!(store.cancelled_of(&[id, id + 1]).await.unwrap(), [id]);
    assert_eq!(store.drop_cancelled(id, 1).await.unwrap(), 1, "no more than asked");
    assert_eq!(store.drop_cancelled(id, 10).await.unwrap(), 1);
    assert_eq!(store.finish(id).await.unwrap(), None, "two jobs are held");
    // One is finished, of the other only the head; its rest is claimed by nobody any more.
    store.complete(worker, held, completion(8, 4)).await.unwrap();
    assert!(!store.drop_held(WorkerId::fresh(), idle).await.unwrap(), "of another worker");
    store.complete(worker, idle, completion(10, 2)).await.unwrap();
    let rest = store.claim(worker, 10, LEASE).await.unwrap();
    assert!(rest.len() == 1 && rest[0].is_cancelled);
    assert!(store.drop_held(worker, rest[0].key).await.unwrap());
    let ended = store.finish(id).await.unwrap().unwrap();
    assert_eq!(ended.state, BatchState::Cancelled);
    let (ended, progress) = store.batch_progress(batch.key).await.unwrap();
    assert!(ended.ended_at.is_some() && ended.sealed_at.is_none());
    assert_eq!((progress.done, progress.unique, progress.cancelled), (20, 10, 10));
    let ranges = store.finished(batch.key, 0, 100).await.unwrap();
    let mut next = 0;
    for range in ranges {
        assert_eq!(range.lo, next, "no holes");
        next = range.hi;
    }
    assert_eq!(next, 20);
}

#[tokio::test]
async fn a_job_that_is_held_back_keeps_no_cancelled_batch_waiting() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "held-back").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    assert!(store.hold_back(worker, key, LEASE).await.unwrap());
    let counts = Cancel { done: 0, stopping: 0, dropped: 4 };
    assert_eq!(store.cancel(batch.key).await.unwrap(), Some(counts), "nobody is at it");
    assert_eq!(store.drop_cancelled(batch.key.id(), 10).await.unwrap(), 1);
    assert_eq!(store.finish(batch.key.id()).await.unwrap().unwrap().state, BatchState::Cancelled);
}

#[tokio::test]
async fn a_lease_that_runs_out_in_a_cancelled_batch_is_dropped_too() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "dead-and-cancelled").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 200)]).await.unwrap();
    claim_one(&store, WorkerId::fresh(), NO_LEASE).await;
    assert!(store.cancel(batch.key).await.unwrap().is_some());
    expire(&store).await;
    let id = batch.key.id();
    assert_eq!(store.drop_cancelled(id, 1_000).await.unwrap(), 50, "cut into parts of four");
    assert_eq!(store.finish_any(10).await.unwrap()[0].state, BatchState::Cancelled);
    assert_eq!(database.value("select sum(cancelled_count) from result"), "200");
}

#[tokio::test]
async fn a_deleted_batch_is_hidden_at_once_gives_its_name_back_and_leaves_no_row() {
    let database = Database::fresh();
    let store = store(&database).await;
    let tenant = store.tenant("default").await.unwrap();
    let old = batch(&store, "deleted").await;
    store.append(old.key, 0, FORMAT, (0..9).map(|at| chunk(at * 2, at * 2 + 2)).collect()).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    store.complete(worker, key, completion(2, 2)).await.unwrap();
    assert!(!store.delete(old.key, false).await.unwrap(), "it has not ended");
    assert!(store.delete(old.key, true).await.unwrap());
    assert!(!store.delete(old.key, true).await.unwrap());
    assert!(matches!(store.batch(tenant, "deleted").await, Err(Error::BatchNotFound)));
    assert!(matches!(store.current(old.key).await, Err(Error::BatchNotFound)));
    let new = batch(&store, "deleted").await;
    assert_ne!(new.key, old.key);
    assert!(matches!(store.current(old.key).await, Err(Error::BatchNotFound)), "its name is another's now");
    store.append(new.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();

    assert_eq!(store.purge(100).await.unwrap(), Purged::Nothing, "it still has jobs");
    assert_eq!(store.drop_cancelled(old.key.id(), 100).await.unwrap(), 8);
    assert!(store.finish(old.key.id()).await.unwrap().is_some());
    let mut steps = 0;
    while store.purge(3).await.unwrap() == Purged::Some(old.key.id()) {
        steps += 1;
    }
    assert!((5..10).contains(&steps), "in small steps: {steps}");
    assert_eq!(store.purge(3).await.unwrap(), Purged::Nothing);
    let rows = |table: &str| database.value(&format!("select count(*) from {table}"));
    assert_eq!(["batch", "job", "payload", "result", "result_piece"].map(rows), ["1", "1", "2", "0", "0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_remove_a_deleted_batch_at_once_leave_no_row_without_it() {
    // The first version removed the batch when it saw nothing more to remove: others had removed it since it looked.
    let database = Database::fresh();
    let store = store(&database).await;
    for round in 0..6 {
        let batch = batch(&store, &format!("round-{round}")).await;
        let chunks = (0..400).map(|at| chunk(at * 2, at * 2 + 2)).collect();
        store.append(batch.key, 0, FORMAT, chunks).await.unwrap();
        assert!(store.delete(batch.key, true).await.unwrap());
        assert_eq!(store.drop_cancelled(batch.key.id(), 1_000).await.unwrap(), 400);
        assert!(store.finish(batch.key.id()).await.unwrap().is_some());
        let purging: Vec<_> = (0..4)
            .map(|_| {
                let store = store.clone();
                let key = batch.key;
                tokio::spawn(async move {
                    while !matches!(store.purge(7).await.unwrap(), Purged::Whole(id) if id == key.id()) {
                        if store.unwanted(1).await.unwrap().any_deleted {
                            continue;
                        }
                        break;
                    }
                })
            })
            .collect();
        for one in purging {
            one.await.unwrap();
        }
        let rows = |table: &str| database.value(&format!("select count(*) from {table}"));
        assert_eq!(["batch", "payload", "result"].map(rows), ["0", "0", "0"], "round {round}");
    }
}

#[tokio::test]
async fn a_list_is_newest_first_in_stable_pages_and_by_state() {
    let database = Database::fresh();
    let store = store(&database).await;
    let tenant = store.tenant("default").await.unwrap();
    let mut keys = Vec::new();
    for number in 0..5 {
        keys.push(batch(&store, &format!("batch-{number}")).await.key);
    }
    store.append(keys[1], 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
    assert!(store.cancel(keys[2]).await.unwrap().is_some() && store.delete(keys[3], true).await.unwrap());
    let names = async |before: Option<i64>, states: &[BatchState], limit: usize| {
        let page = store.list(tenant, before, states, limit).await.unwrap();
        page.into_iter().map(|(batch, _)| batch.name).collect::<Vec<_>>()
    };
    assert_eq!(names(None, &[], 2).await, ["batch-4", "batch-2"]);
    // What is made meanwhile is newer than every later page.
    batch(&store, "batch-5").await;
    assert_eq!(names(Some(keys[2].id()), &[], 10).await, ["batch-1", "batch-0"]);
    assert_eq!(names(None, &[BatchState::Cancelling, BatchState::Succeeded], 10).await, ["batch-2"]);
    let other = store.tenant("other").await.unwrap();
    assert_eq!(store.list(other, None, &[], 10).await.unwrap(), []);
}

#[tokio::test]
async fn what_is_done_never_goes_beyond_the_count_of_the_same_moment() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "moving").await;
    let (writer, key) = (store.clone(), batch.key);
    let writing = tokio::spawn(async move {
        let worker = WorkerId::fresh();
        for step in 0..200 {
            writer.append(key, step * 2, FORMAT, vec![chunk(step * 2, step * 2 + 2)]).await.unwrap();
            let job = claim_one(&writer, worker, Duration::from_secs(30)).await;
            writer.complete(worker, job, completion(job.hi, 2)).await.unwrap();
        }
    });
    let mut last = 0;
    while !writing.is_finished() {
        let (batch, progress) = store.batch_progress(batch.key).await.unwrap();
        assert!(progress.done <= batch.puzzle_count && progress.done >= last);
        last = progress.done;
    }
    writing.await.unwrap();
}
