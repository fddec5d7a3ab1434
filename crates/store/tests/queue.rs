//! The queue against a real PostgreSQL: each state change is one fenced statement.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc, time::Duration};

use common::{FORMAT, LEASE, NO_LEASE, batch, chunk, claim_one, completion, expire, heartbeat, store};
use e2e::Database;
use store::{
    Append, BatchState, Config, Created, Durability, Error, JobKey, Listens, NewBatch, Round, Store, Tell,
    Waker, WorkerId,
};

mod common;

#[tokio::test]
async fn an_append_is_stored_once_and_only_at_its_offset() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "appends").await;
    let chunks = || vec![chunk(0, 10), chunk(10, 16)];
    assert_eq!(store.append(batch.key, 0, FORMAT, chunks()).await.unwrap(), Append::Stored(16));
    assert_eq!(store.append(batch.key, 0, FORMAT, chunks()).await.unwrap(), Append::Refused);
    assert_eq!(store.append(batch.key, 17, FORMAT, vec![chunk(17, 20)]).await.unwrap(), Append::Refused);
    assert!(store.seal(batch.key, 16).await.unwrap());
    assert_eq!(store.append(batch.key, 16, FORMAT, vec![chunk(16, 20)]).await.unwrap(), Append::Refused);
    assert_eq!(database.query("select lo, hi from job order by lo"), ["0|10", "10|16"]);

    let stored = store.puzzles(batch.key, 7, 12).await.unwrap();
    let ranges: Vec<_> = stored.iter().map(|piece| (piece.lo, piece.hi, piece.format)).collect();
    assert_eq!(ranges, [(5, 10, FORMAT), (10, 13, FORMAT)]);
    assert_eq!(stored[0].data, b"5-10");
}

#[tokio::test]
async fn a_claim_leases_no_more_than_asked_and_brings_the_puzzles() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "claims").await;
    let chunks = (0..20).map(|place| chunk(place * 4, place * 4 + 4)).collect();
    store.append(batch.key, 0, FORMAT, chunks).await.unwrap();
    let worker = WorkerId::fresh();
    let jobs = store.claim(worker, 3, LEASE).await.unwrap();
    assert_eq!(
        jobs.iter().map(|job| (job.key.lo, job.key.hi, job.key.attempt)).collect::<Vec<_>>(),
        [(0, 4, 1), (4, 8, 1), (8, 12, 1)]
    );
    assert_eq!(jobs[1].pieces.iter().map(|piece| (piece.lo, piece.hi)).collect::<Vec<_>>(), [(4, 6), (6, 8)]);
    assert_eq!(jobs[0].placement_limit, 10);
    assert_eq!(database.value("select count(*) from job where lease_until is null"), "17");
}

#[tokio::test]
async fn many_claimers_at_once_never_get_the_same_job() {
    let database = Database::fresh();
    let store = Arc::new(store(&database).await);
    let batch = batch(&store, "crowd").await;
    let chunks = (0..200).map(|place| chunk(place * 2, place * 2 + 2)).collect();
    store.append(batch.key, 0, FORMAT, chunks).await.unwrap();
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let worker = WorkerId::fresh();
                let mut mine = Vec::new();
                loop {
                    let jobs = store.claim(worker, 3, LEASE).await.unwrap();
                    if jobs.is_empty() {
                        return mine;
                    }
                    for job in jobs {
                        store.complete(worker, job.key, completion(job.key.hi, 2)).await.unwrap();
                        mine.push(job.key.lo);
                    }
                }
            })
        })
        .collect();
    let mut all = BTreeSet::new();
    for claimer in claimers {
        for lo in claimer.await.unwrap() {
            assert!(all.insert(lo), "{lo} was claimed twice");
        }
    }
    assert_eq!(all.len(), 200);
    assert_eq!(store.batch_progress(batch.key).await.unwrap().1.done, 400);
}

#[tokio::test]
async fn a_late_completion_is_refused_and_changes_nothing() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "zombie").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let (zombie, heir) = (WorkerId::fresh(), WorkerId::fresh());
    let lost = claim_one(&store, zombie, NO_LEASE).await;
    assert_eq!(expire(&store).await, [lost]);
    // Put back but claimed by nobody: the old owner has no right to it any more.
    let refused = store.complete(zombie, lost, completion(8, 8)).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    // A death is blamed on it, so it was cut: the same beginning, another end.
    let held = store.claim_blamed(heir, LEASE).await.unwrap().unwrap().key;
    assert_eq!((held.lo, held.hi, held.attempt), (0, 1, 2));
    for (worker, key) in [(zombie, lost), (zombie, held), (heir, lost)] {
        let refused = store.complete(worker, key, completion(8, 8)).await;
        assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
        assert_eq!(store.release(worker, &[key]).await.unwrap(), 0);
    }
    assert_eq!(
        database.value("select count(*) from result") + &database.value("select count(*) from result_piece"),
        "00"
    );
    assert_eq!(heartbeat(&store, zombie, &[lost], LEASE).await.unwrap(), []);
    assert_eq!(heartbeat(&store, heir, &[held, lost], LEASE).await.unwrap(), [held]);
    store.complete(heir, held, completion(1, 1)).await.unwrap();
    assert_eq!(database.query("select lo, hi, attempt, unique_count from result"), ["0|1|2|1"]);
}

#[tokio::test]
async fn a_completion_of_the_head_puts_the_rest_back_and_the_attempt_goes_on_rising() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "slices").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    let first = claim_one(&store, worker, LEASE).await;
    store.complete(worker, first, completion(3, 3)).await.unwrap();
    assert_eq!(database.query("select lo, hi, attempt, owner is null, started from job"), ["3|8|1|t|f"]);
    let second = claim_one(&store, worker, LEASE).await;
    assert_eq!((second.lo, second.hi, second.attempt), (3, 8, 2));
    assert_eq!(store.release(worker, &[second]).await.unwrap(), 1);
    let third = claim_one(&store, worker, LEASE).await;
    assert_eq!(third.attempt, 3);
    store.complete(worker, third, completion(8, 5)).await.unwrap();
    assert_eq!(
        store
            .finished(batch.key, 0, 10)
            .await
            .unwrap()
            .iter()
            .map(|range| (range.lo, range.hi))
            .collect::<Vec<_>>(),
        [(0, 3), (3, 8)]
    );
    assert_eq!(store.finished(batch.key, 3, 10).await.unwrap()[0].lo, 3);
    assert_eq!(store.finished(batch.key, 2, 1).await.unwrap()[0].lo, 0, "the first may begin before");
}

#[tokio::test]
async fn a_job_that_is_held_back_is_nobodys_until_then_and_blames_nobody() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "held-back").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    assert!(!store.hold_back(WorkerId::fresh(), key, LEASE).await.unwrap(), "of another worker");
    assert!(store.hold_back(worker, key, LEASE).await.unwrap());
    assert_eq!(store.claim(worker, 1, LEASE).await.unwrap(), []);
    // A heartbeat that was under way names the lease as it was: it changes nothing.
    assert_eq!(heartbeat(&store, worker, &[key], NO_LEASE).await.unwrap(), []);
    let key = JobKey { attempt: 2, ..key };
    assert!(store.hold_back(worker, key, NO_LEASE).await.unwrap());
    assert_eq!(expire(&store).await, [JobKey { attempt: 3, ..key }]);
    assert_eq!(database.query("select attempt, deaths from job"), ["3|0"]);
}

#[tokio::test]
async fn only_a_sealed_batch_without_jobs_is_finished() {
    let database = Database::fresh();
    let store = store(&database).await;
    let tenant = store.tenant("default").await.unwrap();
    let batch = batch(&store, "ending").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    assert!(!store.seal(batch.key, 5).await.unwrap(), "another count");
    assert!(store.seal(batch.key, 4).await.unwrap());
    assert!(!store.seal(batch.key, 4).await.unwrap(), "sealed already");
    assert_eq!(store.finish(batch.key.id()).await.unwrap(), None);
    assert_eq!(store.finish_any(10).await.unwrap(), []);
    store.complete(worker, key, completion(4, 4)).await.unwrap();
    let ended = store.finish_any(10).await.unwrap();
    assert_eq!((ended.len(), ended[0].id, &*ended[0].name), (1, batch.key.id(), "ending"));
    assert_eq!(store.finish(batch.key.id()).await.unwrap(), None, "once");
    let ended = store.batch(tenant, "ending").await.unwrap();
    assert_eq!(ended.state, BatchState::Succeeded);
    assert!(ended.ended_at.is_some());
    let (_, progress) = store.batch_progress(batch.key).await.unwrap();
    assert_eq!((progress.done, progress.unique, progress.placements), (4, 4, 5));
}

#[tokio::test]
async fn batches_are_solved_in_the_order_of_their_puzzles_and_priority_is_a_head_start() {
    let database = Database::fresh();
    let store = store(&database).await;
    let tenant = store.tenant("default").await.unwrap();
    let mut keys = Vec::new();
    for (name, priority) in [("first", 0), ("second", 0), ("urgent", 1)] {
        let new = NewBatch {
            name: name.to_owned(),
            name_is_chosen: true,
            request_id: None,
            placement_limit: 0,
            priority,
            display_name: String::new(),
            labels: BTreeMap::new(),
        };
        let Created::New(batch) = store.create_batch(tenant, &new).await.unwrap() else { panic!("new") };
        store.append(batch.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
        keys.push(batch.key.id());
    }
    let claimed: Vec<i64> =
        store.claim(WorkerId::fresh(), 3, LEASE).await.unwrap().iter().map(|job| job.key.batch_id).collect();
    assert_eq!(claimed, [keys[2], keys[0], keys[1]]);
}

#[tokio::test]
async fn a_submit_and_a_result_wake_their_waiters_long_before_they_would_look() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "wakes").await;
    let (work, streams) =
        (Waker::start(store.clone(), Listens::Work), Waker::start(store.clone(), Listens::Results));
    let (mut jobs, mut results) = (work.jobs(), streams.results(batch.key.id()));
    // The listener's first word is "look": then it listens.
    assert!(jobs.wait(Duration::from_secs(600)).await && results.wait(Duration::from_secs(600)).await);
    jobs.arm();
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(60), jobs.wait(Duration::from_secs(600))).await.unwrap()
    );
    results.arm();
    store.notify_results(&[batch.key.id() + 1, batch.key.id()]).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(60), results.wait(Duration::from_secs(600))).await.unwrap()
    );
}

#[tokio::test]
async fn an_append_of_a_flow_wakes_nobody_until_workers_are_told_of_what_waits() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "flow").await;
    let work = Waker::start(store.clone(), Listens::Work);
    let (mut jobs, mut overheard) = (work.jobs(), work.overhear());
    assert!(jobs.wait(Duration::from_secs(600)).await);
    jobs.arm();
    let told = store.append_telling(batch.key, 0, FORMAT, vec![chunk(0, 2)], Tell::Nobody).await.unwrap();
    assert_eq!(told, Append::Stored(2));
    // Notices come in the order of their commits: when this one is here, one of the append would be as well.
    store.notify_results(&[batch.key.id()]).await.unwrap();
    assert_eq!(overheard.batch().await, batch.key.id());
    assert!(!jobs.wait(Duration::ZERO).await, "nobody is told of the append");
    store.notify_waiting().await.unwrap();
    assert!(jobs.wait(Duration::from_secs(600)).await);
    jobs.arm();
    assert_eq!(store.claim(WorkerId::fresh(), 1, LEASE).await.unwrap().len(), 1);
    store.notify_waiting().await.unwrap();
    store.notify_results(&[batch.key.id()]).await.unwrap();
    assert_eq!(overheard.batch().await, batch.key.id());
    assert!(!jobs.wait(Duration::ZERO).await, "nothing waits any more");
}

#[tokio::test]
async fn workers_are_told_of_what_waits_with_a_head_start_before_the_clock() {
    let database = Database::fresh();
    let store = store(&database).await;
    let urgent = batch(&store, "urgent").await;
    database.execute("update batch set priority = 8");
    let work = Waker::start(store.clone(), Listens::Work);
    let (mut jobs, mut overheard) = (work.jobs(), work.overhear());
    assert!(jobs.wait(Duration::from_secs(600)).await);
    store.append_telling(urgent.key, 0, FORMAT, vec![chunk(0, 2)], Tell::Nobody).await.unwrap();
    jobs.arm();
    store.notify_waiting().await.unwrap();
    store.notify_results(&[urgent.key.id()]).await.unwrap();
    assert_eq!(overheard.batch().await, urgent.key.id());
    assert!(jobs.wait(Duration::ZERO).await);
}

#[tokio::test]
async fn workers_hear_of_the_rounds_of_others() {
    let database = Database::fresh();
    let store = store(&database).await;
    let work = Waker::start(store.clone(), Listens::Work);
    let (mut jobs, mut overheard) = (work.jobs(), work.overhear());
    assert!(jobs.wait(Duration::from_secs(600)).await);
    let worker = WorkerId::fresh();
    for round in [Round::Upkeep { any_blamed: true }, Round::Sweep] {
        store.notify_round(worker, round).await.unwrap();
        assert_eq!(overheard.round().await, (worker, round));
    }
}

// The test's own thread waits for the listener's, so there must be two.
#[tokio::test(flavor = "multi_thread")]
async fn a_listener_whose_connection_is_cut_listens_again_and_says_look() {
    let database = Database::fresh();
    let store = store(&database).await;
    let waker = Waker::start(store.clone(), Listens::Work);
    let mut jobs = waker.jobs();
    assert!(jobs.wait(Duration::from_secs(600)).await);
    jobs.arm();
    let listening = "from pg_stat_activity where query like 'LISTEN%' and datname = current_database()";
    assert_eq!(database.value(&format!("select count(pg_terminate_backend(pid)) {listening}")), "1");
    assert!(
        tokio::time::timeout(Duration::from_secs(60), jobs.wait(Duration::from_secs(600))).await.unwrap()
    );
    e2e::eventually("it listens again", || {
        (database.value(&format!("select count(*) {listening}")) == "1").then_some(())
    });
}

#[tokio::test]
async fn migrating_is_safe_at_once_from_many_and_needs_no_rights_when_all_is_there() {
    let database = Database::fresh();
    let config = Config {
        url: database.url(),
        connections_max: 2,
        durability: Durability::Synchronous,
        application_name: "test".to_owned(),
        is_pooled: false,
    };
    let all: Vec<_> = (0..10)
        .map(|_| {
            let config = config.clone();
            tokio::spawn(async move { Store::connect(&config).await.unwrap().migrate().await })
        })
        .collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    let partitions = "select count(*) from pg_inherits where inhparent = 'payload'::regclass";
    assert_eq!(database.value(partitions), "8", "today and a week ahead");
    assert_eq!(
        database.value("select count(*) from pg_attribute where attname = 'data' and attstorage <> 'p' and attrelid::regclass::text ~ '^(payload|result_piece)'"),
        "0",
        "pieces are stored plain, without TOAST"
    );
    // A role of the database that may read and write, but not create.
    let role = format!("reader_{}", std::process::id());
    database.execute(&format!(
        "create role {role} login; grant select, insert, update, delete on all tables in schema public to {role}; revoke create on schema public from public"
    ));
    let limited = Config { url: config.url.replace("sudoku@", &format!("{role}@")), ..config };
    Store::connect(&limited).await.unwrap().migrate().await.unwrap();
    database.execute(&format!("drop owned by {role}; drop role {role}"));
}
