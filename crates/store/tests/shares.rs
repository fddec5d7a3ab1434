//! Whose turn it is: by solver time, by weight, and nobody waits for another tenant's backlog.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use common::{LEASE, append, batch_of, completion, store};
use e2e::Database;
use store::{Batch, Done, Job, PUZZLE_COST_MIN, Rest, Store, Turn, Turned, WorkerId};

mod common;

const SLICE: Duration = Duration::from_millis(250);

async fn claim(store: &Store, worker: WorkerId) -> Job {
    store.claim(worker, 1, LEASE).await.unwrap().pop().expect("a job is ready")
}

async fn complete(store: &Store, worker: WorkerId, job: &Job) {
    let puzzles = i32::try_from(job.key.hi - job.key.lo).unwrap();
    store.complete(worker, job.key, completion(job.key.hi, puzzles)).await.unwrap();
}

fn clock(database: &Database) -> i64 {
    database.value("select last_value from virtual_clock").parse().unwrap()
}

/// A worker for which every puzzle of a batch takes a fixed time; gives how much of `time` each batch has had.
async fn work(
    database: &Database,
    store: &Store,
    costs: &BTreeMap<i64, Duration>,
    time: Duration,
) -> BTreeMap<i64, Duration> {
    let worker = WorkerId::fresh();
    let mut used: BTreeMap<i64, Duration> = BTreeMap::new();
    while used.values().sum::<Duration>() < time {
        let job = claim(store, worker).await;
        let key = job.key;
        let cost = costs[&key.batch_id];
        let in_a_slice = u64::try_from(SLICE.as_nanos() / cost.as_nanos()).unwrap().max(1);
        let mid = key.hi.min(key.lo + in_a_slice);
        let puzzles = u32::try_from(mid - key.lo).unwrap();
        let spent = cost * puzzles;
        let rest =
            Rest { ends: vec![], excess: spent.saturating_sub(job.puzzle_cost * puzzles), puzzle_cost: cost };
        let done = Done { key, completion: completion(mid, i32::try_from(puzzles).unwrap()), rest };
        let turned = store.turn(worker, LEASE, &Turn { done: &[done], claim: 0 }).await.unwrap();
        assert_eq!(turned.stored, [key]);
        // No time passes here; there it would.
        database.execute("update batch set priced_at = null where priced_at is not null");
        store.reprice(key.batch_id, cost).await.unwrap();
        *used.entry(key.batch_id).or_default() += spent;
    }
    used
}

/// The share of the first of two.
fn share(used: &BTreeMap<i64, Duration>, batch: &Batch) -> f64 {
    used[&batch.key.id()].as_secs_f64() / used.values().sum::<Duration>().as_secs_f64()
}

#[tokio::test]
async fn an_idle_newcomer_does_not_wait_for_a_backlog() {
    let database = Database::fresh();
    let store = store(&database).await;
    let large = batch_of(&store, "large", "large", 0).await;
    append(&store, &large, 0, 2_000, 4_096).await;
    let worker = WorkerId::fresh();
    for _ in 0..10 {
        let job = claim(&store, worker).await;
        complete(&store, worker, &job).await;
    }
    let small = batch_of(&store, "small", "small", 0).await;
    append(&store, &small, 0, 1, 1).await;
    // The job whose turn begins at the same moment may come first, and no other.
    let next = [claim(&store, worker).await, claim(&store, worker).await].map(|job| job.key.batch_id);
    assert!(next.contains(&small.key.id()), "{next:?}");
    // Neither does one of the same tenant.
    let own = batch_of(&store, "large", "small", 0).await;
    append(&store, &own, 0, 1, 1).await;
    let next = [claim(&store, worker).await, claim(&store, worker).await].map(|job| job.key.batch_id);
    assert!(next.contains(&own.key.id()), "{next:?}");
}

#[tokio::test]
async fn the_clock_never_falls_also_over_an_empty_queue() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "first", 0).await;
    append(&store, &batch, 0, 20, 4_096).await;
    let (worker, mut last) = (WorkerId::fresh(), clock(&database));
    for _ in 0..20 {
        let end: i64 = database
            .value("select tag_end from job where lease_until is null order by place limit 1")
            .parse()
            .unwrap();
        let job = claim(&store, worker).await;
        complete(&store, worker, &job).await;
        let now = clock(&database);
        assert!(now >= last && now == end.max(last), "{last} {end} {now}");
        last = now;
    }
    assert_eq!(store.claim(worker, 1, LEASE).await.unwrap(), []);
    assert_eq!(clock(&database), last);
    // Nothing is saved up by having been away: the next job is due at the clock.
    let next = batch_of(&store, "two", "second", 0).await;
    append(&store, &next, 0, 1, 1).await;
    assert_eq!(database.query("select tag, tag_end from job"), [format!("{last}|{}", last + 1_000)]);
    // An old job with a head start is claimed without turning the clock back.
    let eager = batch_of(&store, "two", "third", 9).await;
    append(&store, &eager, 0, 1, 1).await;
    assert_eq!(claim(&store, worker).await.key.batch_id, eager.key.id());
    assert!(clock(&database) >= last);
}

#[tokio::test]
async fn a_hard_batch_and_an_easy_one_get_the_same_solver_time() {
    let database = Database::fresh();
    let store = store(&database).await;
    let hard = batch_of(&store, "hard", "hard", 0).await;
    let easy = batch_of(&store, "easy", "easy", 0).await;
    append(&store, &hard, 0, 200, 4_096).await;
    append(&store, &easy, 0, 4_000, 4_096).await;
    let costs = [(hard.key.id(), Duration::from_millis(1)), (easy.key.id(), PUZZLE_COST_MIN)].into();
    let used = work(&database, &store, &costs, Duration::from_secs(8)).await;
    let share = share(&used, &hard);
    assert!((0.4..0.6).contains(&share), "{share}: {used:?}");
}

#[tokio::test]
async fn tenants_get_solver_time_by_weight() {
    let database = Database::fresh();
    let store = store(&database).await;
    let heavy = batch_of(&store, "heavy", "heavy", 0).await;
    let light = batch_of(&store, "light", "light", 0).await;
    database.execute("update tenant set weight = 3 where name = 'heavy'");
    append(&store, &heavy, 0, 400, 4_096).await;
    append(&store, &light, 0, 400, 4_096).await;
    let costs = [(heavy.key.id(), PUZZLE_COST_MIN), (light.key.id(), PUZZLE_COST_MIN)].into();
    let used = work(&database, &store, &costs, Duration::from_millis(1_200)).await;
    let share = share(&used, &heavy);
    assert!((0.72..0.78).contains(&share), "{share}: {used:?}");
}

/// The share of a tenant of one batch beside a tenant of twenty, whose puzzles all cost as much.
async fn share_beside_many(cost: Duration, time: Duration) -> f64 {
    let database = Database::fresh();
    let store = store(&database).await;
    let single = batch_of(&store, "single", "single", 0).await;
    append(&store, &single, 0, 200, 4_096).await;
    let mut costs: BTreeMap<i64, Duration> = [(single.key.id(), cost)].into();
    for number in 0..20 {
        let other = batch_of(&store, "many", &format!("many-{number}"), 0).await;
        append(&store, &other, 0, 1, 32).await;
        append(&store, &other, 32, 10, 4_096).await;
        costs.insert(other.key.id(), cost);
    }
    share(&work(&database, &store, &costs, time).await, &single)
}

#[tokio::test]
async fn a_tenant_of_many_batches_gets_no_more_than_one_of_a_single_batch() {
    let easy = share_beside_many(PUZZLE_COST_MIN, Duration::from_millis(800)).await;
    assert!((0.45..0.55).contains(&easy), "{easy}");
    let hard = share_beside_many(Duration::from_millis(1), Duration::from_secs(40)).await;
    assert!((0.4..0.6).contains(&hard), "{hard}");
}

#[tokio::test]
async fn small_batches_of_hard_puzzles_pay_like_large_ones() {
    let database = Database::fresh();
    let store = store(&database).await;
    let easy = batch_of(&store, "easy", "easy", 0).await;
    append(&store, &easy, 0, 4_000, 4_096).await;
    let mut costs: BTreeMap<i64, Duration> = [(easy.key.id(), PUZZLE_COST_MIN)].into();
    let (mut hard, mut total) = (Duration::ZERO, Duration::ZERO);
    for number in 0..60 {
        let small = batch_of(&store, "hard", &format!("hard-{number}"), 0).await;
        append(&store, &small, 0, 1, 32).await;
        costs.insert(small.key.id(), Duration::from_millis(5));
        let used = work(&database, &store, &costs, Duration::from_millis(100)).await;
        hard += used.iter().filter(|(id, _)| **id != easy.key.id()).map(|(_, time)| *time).sum::<Duration>();
        total += used.values().sum::<Duration>();
    }
    let share = hard.as_secs_f64() / total.as_secs_f64();
    assert!(share < 0.65, "{share}");
}

#[tokio::test]
async fn jobs_that_may_take_long_leave_the_others_where_claims_look() {
    let database = Database::fresh();
    let store = store(&database).await;
    let long = batch_of(&store, "long", "long", 0).await;
    database.execute(&format!(
        "update batch set placement_limit = 1000000000000, puzzle_cost = 2000000000 where id = {}",
        long.key.id()
    ));
    append(&store, &long, 0, 20, 4_096).await;
    let short = batch_of(&store, "short", "short", 0).await;
    append(&store, &short, 0, 50, 4_096).await;
    let worker = WorkerId::fresh();
    for _ in 0..20 {
        assert!(store.claim_long(worker, LEASE).await.unwrap().is_some());
    }
    let mut claimed = 0;
    while let Some(job) = store.claim(worker, 1, LEASE).await.unwrap().pop() {
        assert_eq!(job.key.batch_id, short.key.id());
        claimed += 1;
    }
    assert_eq!(claimed, 50);
    // Nor do they hold back what their own tenant has of the other kind.
    let own = batch_of(&store, "long", "own-short", 0).await;
    append(&store, &own, 0, 1, 32).await;
    assert_eq!(
        database
            .value("select tag - (select last_value from virtual_clock) from job where lease_until is null"),
        "0"
    );
}

#[tokio::test]
async fn a_job_that_an_older_program_appended_is_claimed() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "older", 0).await;
    append(&store, &batch, 0, 1, 8).await;
    database.execute("select setval('virtual_clock', last_value + 1000000000000) from virtual_clock");
    database.execute(
        "insert into job (batch_id, lo, hi, chunk_lo, part, tenant_id, tag)
         select batch_id, 8, 16, 8, part, tenant_id, (extract(epoch from now()) * 1000000)::bigint - 90000000 from job",
    );
    while store.catch_up().await.unwrap() > 0 {}
    assert_eq!(store.claim(WorkerId::fresh(), 32, LEASE).await.unwrap().len(), 2);
}

#[tokio::test]
async fn priority_is_a_bounded_head_start_and_starves_nobody() {
    let database = Database::fresh();
    let store = store(&database).await;
    let plain = batch_of(&store, "plain", "plain", 0).await;
    append(&store, &plain, 0, 1, 4_096).await;
    let worker = WorkerId::fresh();
    // One eager batch after the other, each longer than a slice, and always one waits.
    let mut turns = 0;
    loop {
        let eager = batch_of(&store, "eager", &format!("eager-{turns}"), 9).await;
        database.execute(&format!("update batch set puzzle_cost = 1000000 where id = {}", eager.key.id()));
        append(&store, &eager, 0, 1, 4_096).await;
        let job = claim(&store, worker).await;
        if job.key.batch_id == plain.key.id() {
            break;
        }
        complete(&store, worker, &job).await;
        turns += 1;
        assert!(turns < 40, "nine seconds of head start are over after thirty-six slices");
    }
    assert!(turns >= 30, "it has a head start");
}

#[tokio::test]
async fn what_is_put_back_pays_for_its_slice_and_spreads() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "hard", 0).await;
    append(&store, &batch, 0, 1, 64).await;
    let worker = WorkerId::fresh();
    let key = claim(&store, worker).await.key;
    let before: i64 = database.value("select tag from job").parse().unwrap();
    let rest = Rest {
        ends: vec![5, 7, 64],
        excess: Duration::from_millis(240),
        puzzle_cost: Duration::from_millis(60),
    };
    let done = Done { key, completion: completion(4, 4), rest };
    let turned = store.turn(worker, LEASE, &Turn { done: &[done], claim: 0 }).await.unwrap();
    assert_eq!(turned, Turned { stored: vec![key], ..Turned::default() });
    let later = |ms: i64| (before + ms * 1_000_000).to_string();
    assert_eq!(
        database.query("select lo, hi, attempt, lease_until is null, tag, cost from job order by lo"),
        [
            format!("4|5|1|t|{}|60000000", later(240)),
            format!("5|7|1|t|{}|120000000", later(300)),
            format!("7|64|1|t|{}|3420000000", later(420)),
        ]
    );
    // Each part is a job like any other, with the pieces that it needs.
    let jobs = store.claim(worker, 3, LEASE).await.unwrap();
    let claimed: Vec<_> = jobs.iter().map(|job| (job.key.lo, job.key.hi, job.key.attempt)).collect();
    assert_eq!(claimed, [(4, 5, 2), (5, 7, 2), (7, 64, 2)]);
    assert_eq!(jobs.iter().map(|job| job.pieces.len()).collect::<Vec<_>>(), [1, 1, 2]);
}

#[tokio::test]
async fn a_lease_sheds_what_waits_behind_a_long_search() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "long", 0).await;
    append(&store, &batch, 0, 1, 10).await;
    let worker = WorkerId::fresh();
    let mut key = claim(&store, worker).await.key;
    let rest = Rest { ends: vec![2, 10], excess: Duration::ZERO, puzzle_cost: SLICE };
    assert!(!store.shed(WorkerId::fresh(), key, &rest).await.unwrap(), "only the holder may");
    assert!(store.shed(worker, key, &rest).await.unwrap());
    let jobs = "select lo, hi, attempt, lease_until is null, started from job order by lo";
    assert_eq!(database.query(jobs), ["0|1|1|f|t", "1|2|1|t|f", "2|10|1|t|f"]);
    let refused = store.complete(worker, key, completion(1, 1)).await;
    assert!(refused.is_err(), "its range is another now");
    key.hi = 1;
    store.complete(worker, key, completion(1, 1)).await.unwrap();
    assert_eq!(database.query(jobs).len(), 2);
}

#[tokio::test]
async fn a_corrected_price_moves_the_jobs_that_wait_and_is_not_corrected_all_the_time() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "dear", 0).await;
    append(&store, &batch, 0, 3, 100).await;
    let worker = WorkerId::fresh();
    claim(&store, worker).await;
    let now = clock(&database);
    let first: i64 = database.value("select min(tag) from job where lease_until is null").parse().unwrap();
    let tags = &format!("select tag - {first}, cost from job where lease_until is null order by lo");
    let id = batch.key.id();
    store.reprice(id, Duration::from_micros(2)).await.unwrap();
    assert_eq!(database.query(tags), ["0|100000", "100000|100000"], "twice is not far off");
    // One step is a factor of sixteen.
    store.reprice(id, Duration::from_millis(1)).await.unwrap();
    assert_eq!(database.query(tags), ["0|1600000", "1600000|1600000"]);
    store.reprice(id, Duration::from_millis(1)).await.unwrap();
    assert_eq!(database.query(tags), ["0|1600000", "1600000|1600000"], "a moment ago");
    // What is appended later costs as much, and so does the tenant's next batch.
    append(&store, &batch, 300, 1, 100).await;
    assert_eq!(database.query(tags), ["0|1600000", "1600000|1600000", "3200000|1600000"]);
    let next = batch_of(&store, "one", "next", 0).await;
    assert_eq!(
        database.value(&format!("select puzzle_cost from batch where id = {}", next.key.id())),
        "16000"
    );
    // One easy puzzle leads it back.
    database.execute("update batch set priced_at = null");
    store.reprice(id, Duration::from_micros(1)).await.unwrap();
    assert_eq!(database.query(tags), ["0|100000", "100000|100000", "200000|100000"]);
    assert_eq!(clock(&database), now);
}

// The test's own thread waits for the slow append's, so there must be two.
#[tokio::test(flavor = "multi_thread")]
async fn appends_of_one_tenant_do_not_wait_for_each_other() {
    let database = Database::fresh();
    let store = Arc::new(store(&database).await);
    let slow = batch_of(&store, "one", "slow", 0).await;
    let quick = batch_of(&store, "one", "quick", 0).await;
    // The slow one stands in the middle of its statement, with all its locks, until the gate opens.
    database.execute(&format!(
        "create table gate (is_open boolean);
         create function wait_at_gate() returns trigger language plpgsql as $$
         begin
             while not exists (select from gate) loop perform pg_sleep(0.01); end loop;
             return new;
         end $$;
         create trigger wait_at_gate after insert on job for each row when (new.batch_id = {}) execute function wait_at_gate()",
        slow.key.id()
    ));
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { append(&store, &slow, 0, 1, 1).await })
    };
    e2e::eventually("the slow append is under way", || {
        let found = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        (database.value(found) == "1").then_some(())
    });
    let appended = append(&store, &quick, 0, 1, 1);
    tokio::time::timeout(Duration::from_secs(60), appended).await.expect("it waits for nobody");
    database.execute("insert into gate values (true)");
    waiting.await.unwrap();
    assert_eq!(database.value("select count(*) from job"), "2");
}

#[tokio::test]
async fn a_job_that_was_left_behind_the_clock_is_found_again() {
    let database = Database::fresh();
    let store = store(&database).await;
    let batch = batch_of(&store, "one", "late", 0).await;
    append(&store, &batch, 0, 1, 1).await;
    database.execute("select setval('virtual_clock', last_value + 1000000000000) from virtual_clock");
    let worker = WorkerId::fresh();
    assert_eq!(store.claim(worker, 1, LEASE).await.unwrap(), [], "an index full of the dead is not read");
    assert_eq!(store.catch_up().await.unwrap(), 1);
    assert_eq!(store.catch_up().await.unwrap(), 0);
    assert_eq!(store.claim(worker, 1, LEASE).await.unwrap().len(), 1);
}
