//! Who is blamed for a death, and what becomes of the one puzzle that causes them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, time::Duration};

use common::{FORMAT, LEASE, NO_LEASE, batch, chunk, claim_one, completion, expire, heartbeat, store};
use e2e::Database;
use store::{BatchState, Job, JobKey, Store, Unwanted, WorkerId};

mod common;

/// The lease of a worker that dies at once.
async fn die_over_blamed(store: &Store) -> JobKey {
    let job = store.claim_blamed(WorkerId::fresh(), NO_LEASE).await.unwrap().unwrap();
    assert_eq!(expire(store).await, [job.key]);
    job.key
}

#[tokio::test]
async fn a_puzzle_that_ends_its_workers_is_failed_at_its_third_death_and_all_others_are_answered() {
    const GUILTY: u64 = 2_777;
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "poison").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 4_096)]).await.unwrap();
    assert!(store.seal(batch.key, 4_096).await.unwrap());
    claim_one(&store, WorkerId::fresh(), NO_LEASE).await;
    expire(&store).await;
    assert_eq!(
        database.query("select count(*), min(hi - lo), max(hi - lo), min(deaths), max(attempt) from job"),
        ["64|64|64|1|1"],
        "after one death: parts of one 64th"
    );
    let worker = WorkerId::fresh();
    assert_eq!(store.claim(worker, 100, LEASE).await.unwrap(), [], "blamed jobs are for those who are alone");

    let mut answered = BTreeSet::new();
    let mut deaths = 1;
    while let Some(job) = store.claim_blamed(worker, LEASE).await.unwrap() {
        let range = job.key.lo..job.key.hi;
        if range.contains(&GUILTY) {
            // This process dies; the next one takes over.
            assert_eq!(store.release(worker, &[job.key]).await.unwrap(), 1);
            let key = die_over_blamed(&store).await;
            assert_eq!((key.lo, key.hi), (job.key.lo, job.key.hi));
            deaths += 1;
            continue;
        }
        store.complete(worker, job.key, completion_of(&job)).await.unwrap();
        answered.extend(range);
    }
    assert_eq!(deaths, 3);
    let all_but_one: BTreeSet<u64> = (0..4_096).filter(|index| *index != GUILTY).collect();
    assert_eq!(answered, all_but_one);
    assert_eq!(database.value("select count(*) from job"), "0");
    let ended = store.finish_any(10).await.unwrap();
    assert_eq!((ended.len(), ended[0].state), (1, BatchState::Succeeded));
    let (_, progress) = store.batch_progress(batch.key).await.unwrap();
    assert_eq!((progress.done, progress.failed), (4_096, 1));
    let failed = store.finished(batch.key, GUILTY, 1).await.unwrap()[0];
    assert_eq!((failed.lo, failed.hi, failed.failed), (GUILTY, GUILTY + 1, 1));
}

fn completion_of(job: &Job) -> store::Completion {
    completion(job.key.hi, i32::try_from(job.key.hi - job.key.lo).unwrap())
}

#[tokio::test]
async fn a_lone_puzzle_needs_three_deaths_and_two_are_forgiven_by_an_answer() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "alone").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
    claim_one(&store, WorkerId::fresh(), NO_LEASE).await;
    expire(&store).await;
    assert_eq!(database.query("select lo, hi, deaths from job order by lo"), ["0|1|1", "1|2|1"]);
    die_over_blamed(&store).await;
    assert_eq!(database.value("select deaths from job where lo = 0"), "2");
    let job = store.claim_blamed(WorkerId::fresh(), NO_LEASE).await.unwrap().unwrap();
    assert_eq!((job.key.lo, job.key.attempt), (0, 3));
    let expired = store.expire(10, Duration::ZERO).await.unwrap();
    assert!(expired[0].failed && expired[0].deaths == 3 && expired.len() == 1, "{expired:?}");
    // The other one dies twice and is answered then.
    die_over_blamed(&store).await;
    let worker = WorkerId::fresh();
    let job = store.claim_blamed(worker, LEASE).await.unwrap().unwrap();
    store.complete(worker, job.key, completion(2, 1)).await.unwrap();
    assert_eq!(
        database.query("select lo, failed_count, unique_count from result order by lo"),
        ["0|1|0", "1|0|1"]
    );
}

#[tokio::test]
async fn one_worker_cannot_be_counted_dead_twice_and_takes_its_death_back_when_it_lives() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "alive").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 128), chunk(128, 130)]).await.unwrap();
    let silent = WorkerId::fresh();
    let lost = claim_one(&store, silent, NO_LEASE).await;
    expire(&store).await;
    // One part is taken by another meanwhile, one is answered: the death goes from what is left, leased or not.
    let heir = WorkerId::fresh();
    let first = store.claim_blamed(heir, LEASE).await.unwrap().unwrap();
    store.complete(heir, first.key, completion(2, 2)).await.unwrap();
    let second = store.claim_blamed(heir, LEASE).await.unwrap().unwrap();
    assert_eq!((lost.lo, lost.hi), (0, 128));
    assert_eq!(store.acquit(WorkerId::fresh()).await.unwrap(), 0, "only its own");
    assert_eq!(store.acquit(silent).await.unwrap(), 63);
    assert_eq!(store.acquit(silent).await.unwrap(), 0, "once");
    assert_eq!(
        database.query("select distinct deaths, cardinality(dead_owners) from job where lo < 128"),
        ["0|0"]
    );
    store.complete(heir, second.key, completion(4, 2)).await.unwrap();
    let mut left = 0;
    loop {
        let jobs = store.claim(silent, 200, LEASE).await.unwrap();
        if jobs.is_empty() {
            break;
        }
        assert!(jobs.len() <= 32, "no more than the statement says");
        left += jobs.len();
    }
    assert_eq!(left, 63, "62 parts and the other chunk");
}

#[tokio::test]
async fn a_worker_that_lives_takes_back_all_its_deaths_over_one_job() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "twice").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 2)]).await.unwrap();
    let (silent, dead) = (WorkerId::fresh(), WorkerId::fresh());
    claim_one(&store, silent, NO_LEASE).await;
    expire(&store).await;
    store.claim_blamed(silent, NO_LEASE).await.unwrap().unwrap();
    expire(&store).await;
    assert_eq!(database.value("select deaths from job where lo = 0"), "2");
    assert_eq!(store.acquit(silent).await.unwrap(), 2);
    let left = "select deaths, cardinality(dead_owners) from job order by lo";
    assert_eq!(database.query(left), ["0|0", "0|0"]);
    // What another has died of stays.
    claim_one(&store, dead, NO_LEASE).await;
    expire(&store).await;
    assert_eq!(store.acquit(silent).await.unwrap(), 0);
    assert_eq!(database.query(left), ["1|1", "0|0"]);
}

#[tokio::test]
async fn after_a_restart_of_the_database_leases_are_left_to_the_living_for_a_moment() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch(&store, "restarted").await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, NO_LEASE).await;
    // As if it had been started a moment ago.
    assert_eq!(store.expire(10, Duration::from_secs(1_000_000)).await.unwrap(), []);
    assert_eq!(
        heartbeat(&store, worker, &[key], LEASE).await.unwrap(),
        [key],
        "prolonged although it had ended"
    );
    assert_eq!(expire(&store).await, []);
}

#[tokio::test]
async fn a_look_says_what_there_is_to_do() {
    let database = Database::fresh();
    let store = store(&database).await;
    let tenant = store.tenant("default").await.unwrap();
    let batch = batch(&store, "looked-at").await;
    let nothing = store.look().await.unwrap();
    assert!(!nothing.any_blamed && nothing.lease_left.is_none());
    assert_eq!(store.unwanted(10).await.unwrap(), Unwanted { cancelling: vec![], any_deleted: false });
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 8), chunk(8, 16)]).await.unwrap();
    claim_one(&store, WorkerId::fresh(), NO_LEASE).await;
    assert_eq!(store.look().await.unwrap().lease_left, Some(Duration::ZERO));
    expire(&store).await;
    claim_one(&store, WorkerId::fresh(), LEASE).await;
    let look = store.look().await.unwrap();
    assert!(look.any_blamed && look.lease_left.is_some_and(|left| left > LEASE / 2 && left <= LEASE));
    assert!(store.delete(batch.key, true).await.unwrap());
    let unwanted = Unwanted { cancelling: vec![batch.key.id()], any_deleted: false };
    assert_eq!(store.unwanted(10).await.unwrap(), unwanted, "it still has jobs");
    assert!(store.batch(tenant, "looked-at").await.is_err());
}
