//! Batches that expire, open ones that are forgotten, and days that are dropped. Time is moved by changing what was written, never by waiting.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use common::{FORMAT, LEASE, batch, chunk, claim_one, completion, expire, store};
use e2e::Database;
use store::{Append, Batch, BatchState, DayDrop, Error, Keep, PastDay, Purged, Store, WorkerId};

mod common;

const DAY: Duration = Duration::from_secs(86_400);
/// Every table in which a batch leaves rows.
const TABLES: [&str; 5] = ["batch", "job", "payload", "result", "result_piece"];

fn rows(database: &Database) -> [String; 5] {
    TABLES.map(|table| database.value(&format!("select count(*) from {table}")))
}

fn today(database: &Database) -> i32 {
    database.value("select extract(epoch from now())::bigint / 86400").parse().unwrap()
}

/// A batch of eight puzzles in two chunks that has succeeded.
async fn succeeded(store: &Store, name: &str) -> Batch {
    let batch = batch(store, name).await;
    store.append(batch.key, 0, FORMAT, vec![chunk(0, 4), chunk(4, 8)]).await.unwrap();
    let worker = WorkerId::fresh();
    for _ in 0..2 {
        let key = claim_one(store, worker, LEASE).await;
        store.complete(worker, key, completion(key.hi, 4)).await.unwrap();
    }
    assert!(store.seal(batch.key, 8).await.unwrap());
    assert_eq!(store.finish(batch.key.id()).await.unwrap().unwrap().state, BatchState::Succeeded);
    batch
}

/// As if a batch had been created on another day, with all that it has.
fn move_to_day(database: &Database, batch: &Batch, day: i32) {
    let id = batch.key.id();
    database.execute(&format!(
        "select ensure_partitions({day}); update batch set part = {day} where id = {id};
         update job set part = {day} where batch_id = {id}; update payload set part = {day} where batch_id = {id};
         update result set part = {day} where batch_id = {id}; update result_piece set part = {day} where batch_id = {id}"
    ));
}

fn let_expire(database: &Database, batch: &Batch) {
    let id = batch.key.id();
    database.execute(&format!("update batch set expires_at = now() - interval '1 second' where id = {id}"));
}

fn days(database: &Database) -> BTreeSet<i32> {
    database.query("select partition_days()").iter().map(|day| day.parse().unwrap()).collect()
}

/// What a worker does in one round with every day in which nothing lives; gives the days that are gone.
async fn drop_days(store: &Store) -> Vec<i32> {
    let mut dropped = Vec::new();
    for past in store.past_days().await.unwrap() {
        if past.has_partitions && store.drop_day(past.day).await.unwrap() != DayDrop::Dropped {
            continue;
        }
        while store.purge_day(past.day, 1).await.unwrap() > 0 {}
        dropped.push(past.day);
    }
    dropped
}

/// Somebody else's session with an open transaction.
struct Other {
    psql: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Runs statements and leaves their transaction open.
    fn start(database: &Database, sql: &str) -> Self {
        let programs = local_postgres::Programs::find().unwrap();
        let mut psql = Command::new(programs.bin_dir().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &database.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(psql.stdout.take().unwrap()).lines();
        let mut other = Self { psql, said };
        other.run(&format!("begin; {sql};"));
        other
    }

    /// Ends the transaction; then its locks are gone.
    fn end(mut self) {
        self.run("rollback;");
    }

    fn run(&mut self, sql: &str) {
        let stdin = self.psql.stdin.as_mut().unwrap();
        stdin.write_all(format!("{sql} select 'done so far';\n").as_bytes()).unwrap();
        assert!(self.said.any(|line| line.unwrap() == "done so far"), "{sql}");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // An error means that it has ended already.
        self.psql.kill().ok();
        self.psql.wait().ok();
    }
}

#[tokio::test]
async fn each_end_has_its_own_time_and_only_what_has_ended_expires() {
    let database = Database::fresh();
    let store = store(&database).await.keeping(Keep { succeeded: 3 * DAY, cancelled: 2 * DAY });
    let tenant = store.tenant("default").await.unwrap();
    let left = |name: &str, from: &str| {
        database.value(&format!("select expires_at - {from} from batch where name = '{name}'"))
    };
    let open = batch(&store, "open").await;
    assert_eq!(left("open", "now()"), "", "nothing while it is open");

    let done = succeeded(&store, "done").await;
    assert_eq!(left("done", "ended_at"), "3 days");
    let sealed = batch(&store, "sealed").await;
    store.append(sealed.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
    assert!(store.seal(sealed.key, 4).await.unwrap());
    assert_eq!(left("sealed", "sealed_at"), "3 days");
    assert!(store.batch(tenant, "sealed").await.unwrap().expires_at.is_some());
    let cancelled = batch(&store, "cancelled").await;
    store.append(cancelled.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
    assert!(store.cancel(cancelled.key).await.unwrap().is_some());
    assert_ne!(left("cancelled", "now()"), "");
    assert_eq!(store.drop_cancelled(cancelled.key.id(), 10).await.unwrap(), 1);
    store.finish_any(10).await.unwrap();
    assert_eq!(left("cancelled", "ended_at"), "2 days");

    assert_eq!(store.expire_batches(10).await.unwrap(), [0_i64; 0], "none is over its time");
    for one in [&open, &done, &sealed, &cancelled] {
        let_expire(&database, one);
    }
    let mut expired = store.expire_batches(10).await.unwrap();
    expired.sort_unstable();
    assert_eq!(expired, [done.key.id(), cancelled.key.id()], "the others have not ended");
    assert_eq!(store.expire_batches(10).await.unwrap(), [0_i64; 0], "once");
    for name in ["done", "cancelled"] {
        assert!(matches!(store.batch(tenant, name).await, Err(Error::BatchNotFound)));
        batch(&store, name).await;
    }
    // Its time begins anew when it ends late.
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    store.complete(worker, key, completion(4, 4)).await.unwrap();
    assert_eq!(store.finish_any(10).await.unwrap().len(), 1);
    assert_eq!(left("sealed", "ended_at"), "3 days");
}

#[tokio::test]
async fn an_open_batch_to_which_nothing_is_appended_is_cancelled() {
    let database = Database::fresh();
    let store = store(&database).await;
    let idle = batch(&store, "idle").await;
    let busy = batch(&store, "busy").await;
    let young = batch(&store, "young").await;
    store.append(idle.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
    database.execute(
        "update batch set created_at = now() - interval '25 hours', appended_at = now() - interval '25 hours' where name <> 'young'",
    );
    // An append keeps it.
    assert_eq!(store.append(busy.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap(), Append::Stored(4));
    let cancelled = store.cancel_idle(DAY, 10).await.unwrap();
    assert_eq!(cancelled, [(idle.key.id(), "idle".to_owned())]);
    assert_eq!(store.cancel_idle(DAY, 10).await.unwrap(), []);
    assert_eq!(store.append(idle.key, 4, FORMAT, vec![chunk(4, 8)]).await.unwrap(), Append::Refused);
    assert_eq!(store.unwanted(10).await.unwrap().cancelling, [idle.key.id()]);
    assert_eq!(store.drop_cancelled(idle.key.id(), 10).await.unwrap(), 1);
    assert_eq!(store.finish_any(10).await.unwrap()[0].state, BatchState::Cancelled);
    assert_eq!(store.append(young.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap(), Append::Stored(4));
}

#[tokio::test]
async fn a_past_day_in_which_nothing_lives_is_dropped_and_leaves_no_row() {
    let database = Database::fresh();
    let store = store(&database).await;
    let today = today(&database);
    let (dead_day, living_day, empty_day) = (today - 9, today - 8, today - 7);
    let mut dead = Vec::new();
    for number in 0..3 {
        let batch = succeeded(&store, &format!("dead-{number}")).await;
        move_to_day(&database, &batch, dead_day);
        dead.push(batch);
    }
    let (mortal, living) = (succeeded(&store, "mortal").await, succeeded(&store, "living").await);
    move_to_day(&database, &mortal, living_day);
    move_to_day(&database, &living, living_day);
    database.execute(&format!("select ensure_partitions({empty_day})"));
    let ahead = days(&database).len() - 3;

    // Nothing has expired: only the day without any batch goes.
    assert_eq!(drop_days(&store).await, [empty_day]);
    for batch in dead.iter().take(2).chain([&mortal]) {
        let_expire(&database, batch);
    }
    assert_eq!(store.expire_batches(10).await.unwrap().len(), 3);
    assert_eq!(drop_days(&store).await, [] as [i32; 0], "one lives in each of them");
    assert_eq!(store.drop_day(dead_day).await.unwrap(), DayDrop::InUse);
    // A user's delete and an expiry end a day alike.
    assert!(store.delete(dead[2].key, false).await.unwrap());
    assert_eq!(drop_days(&store).await, [dead_day]);
    assert_eq!(days(&database).len(), ahead + 1, "those of today and ahead, and the living one's");
    // What has expired beside the living one waits for its day, until it has waited too long.
    assert!(!store.unwanted(1).await.unwrap().any_deleted);
    assert_eq!(store.purge(100).await.unwrap(), Purged::Nothing);
    assert_eq!(rows(&database), ["2", "0", "8", "4", "4"]);
    database.execute("update batch set purge_at = now() where purge_at is not null");
    assert!(store.unwanted(1).await.unwrap().any_deleted);
    assert_eq!(store.purge(100).await.unwrap(), Purged::Whole(mortal.key.id()));
    assert_eq!(rows(&database), ["1", "0", "4", "2", "2"]);
    let ranges = store.finished(store.current(living.key).await.unwrap().key, 0, 10).await.unwrap();
    assert_eq!(ranges.len(), 2, "the living one is whole");
    assert!(store.delete(store.current(living.key).await.unwrap().key, false).await.unwrap());
    assert_eq!(drop_days(&store).await, [living_day]);
    assert_eq!(rows(&database), ["0"; 5]);
}

#[tokio::test]
async fn a_deleted_batch_of_a_day_in_use_does_not_wait_for_its_day() {
    let database = Database::fresh();
    let store = store(&database).await;
    let (gone, stays) = (succeeded(&store, "gone").await, succeeded(&store, "stays").await);
    assert!(store.delete(gone.key, false).await.unwrap());
    assert!(store.unwanted(1).await.unwrap().any_deleted);
    assert_eq!(store.purge(100).await.unwrap(), Purged::Whole(gone.key.id()));
    assert_eq!(rows(&database), ["1", "0", "4", "2", "2"]);
    assert!(store.current(stays.key).await.is_ok());
}

#[tokio::test]
async fn today_and_the_last_day_until_an_hour_after_midnight_are_never_dropped() {
    let database = Database::fresh();
    let store = store(&database).await;
    let today = today(&database);
    for day in [today, today + 1] {
        assert_eq!(store.drop_day(day).await.unwrap(), DayDrop::InUse);
    }
    // A batch that was created just before midnight: its day is over, and it takes appends and is solved as any other.
    let late = batch(&store, "late").await;
    move_to_day(&database, &late, today - 2);
    let late = store.current(late.key).await.unwrap();
    assert_eq!(store.past_days().await.unwrap(), []);
    assert_eq!(store.drop_day(today - 2).await.unwrap(), DayDrop::InUse);
    assert_eq!(store.append(late.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap(), Append::Stored(4));
    let worker = WorkerId::fresh();
    let key = claim_one(&store, worker, LEASE).await;
    store.complete(worker, key, completion(4, 4)).await.unwrap();
    assert!(store.seal(late.key, 4).await.unwrap());
    assert_eq!(store.finish_any(10).await.unwrap().len(), 1);
    assert_eq!(store.verdicts(late.key, 0, 0, 4).await.unwrap().len(), 1);
}

#[tokio::test]
async fn whoever_reads_a_day_keeps_it_and_nobody_waits_for_the_drop() {
    let database = Database::fresh();
    let store = store(&database).await;
    let day = today(&database) - 5;
    let old = succeeded(&store, "older").await;
    move_to_day(&database, &old, day);
    let_expire(&database, &old);
    assert_eq!(store.expire_batches(10).await.unwrap().len(), 1);
    let before = days(&database);
    let expected = [PastDay { day, has_partitions: true }];
    for sql in [
        // A dump; a report that has read; one that is about to change rows.
        format!("lock table payload_{day} in access share mode"),
        "set transaction isolation level repeatable read; select count(*) from result_piece".to_owned(),
        "lock table batch in row exclusive mode".to_owned(),
    ] {
        let other = Other::start(&database, &sql);
        assert_eq!(store.drop_day(day).await.unwrap(), DayDrop::Busy, "{sql}");
        // After a second it is known to take long, and is not even waited for.
        assert_eq!(store.drop_day(day).await.unwrap(), DayDrop::Busy, "{sql}");
        assert_eq!(days(&database), before, "nothing is half done: {sql}");
        assert_eq!(store.past_days().await.unwrap(), expected);
        let new = batch(&store, "meanwhile").await;
        store.append(new.key, 0, FORMAT, vec![chunk(0, 4)]).await.unwrap();
        claim_one(&store, WorkerId::fresh(), Duration::ZERO).await;
        assert!(store.delete(new.key, true).await.unwrap());
        expire(&store).await;
        store.drop_cancelled(new.key.id(), 100).await.unwrap();
        store.finish_any(10).await.unwrap();
        assert_eq!(store.purge(100).await.unwrap(), Purged::Whole(new.key.id()));
        other.end();
    }
    // An old snapshot alone holds nothing: what it has not touched goes at once.
    let _other = Other::start(
        &database,
        "set transaction isolation level repeatable read; select count(*) from tenant",
    );
    assert_eq!(drop_days(&store).await, [day]);
    assert_eq!(rows(&database), ["0"; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_drop_days_at_once_beside_appends_drop_each_once_and_lose_nothing() {
    let database = Database::fresh();
    let store = store(&database).await;
    let today = today(&database);
    let old_days: Vec<i32> = (3..9).map(|back| today - back).collect();
    for day in &old_days {
        let batch = succeeded(&store, &format!("of-{day}")).await;
        move_to_day(&database, &batch, *day);
        let_expire(&database, &batch);
    }
    let late = batch(&store, "late").await;
    move_to_day(&database, &late, today - 2);
    let late = store.current(late.key).await.unwrap();
    let writer = store.clone();
    let writing = tokio::spawn(async move {
        for step in 0..50 {
            let stored = writer.append(late.key, step * 4, FORMAT, vec![chunk(step * 4, step * 4 + 4)]).await;
            assert_eq!(stored.unwrap(), Append::Stored(step * 4 + 4));
        }
    });
    let sweeping: Vec<_> = (0..4)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut dropped = Vec::new();
                store.expire_batches(2).await.unwrap();
                for past in store.past_days().await.unwrap() {
                    if past.has_partitions && store.drop_day(past.day).await.unwrap() == DayDrop::Dropped {
                        dropped.push(past.day);
                    }
                    store.purge_day(past.day, 1).await.unwrap();
                }
                dropped
            })
        })
        .collect();
    for one in sweeping {
        one.await.unwrap();
    }
    writing.await.unwrap();
    // Whatever was busy then goes in a later round.
    store.expire_batches(10).await.unwrap();
    drop_days(&store).await;
    assert!(days(&database).is_disjoint(&old_days.into_iter().collect()));
    assert_eq!(rows(&database), ["1", "50", "100", "0", "0"], "the late one is whole");
}
