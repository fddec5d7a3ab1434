//! A database that restarts, crashes, cuts connections; and sessions that never hold it up.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use client::{Client, NewBatch, Retry, Start};
use e2e::{
    Database, ENDLESS, ENDLESS_LIMIT, PATIENCE, Process, SEED, Service, eventually, limit_for, run,
    with_long_searches,
};
use nix::sys::signal::Signal;

/// What the roles say while their database is away: each in its own words.
const LOSS: [&str; 1] = [" WARN "];

fn service_of(database: Database, workers: usize, options: &[&str]) -> Service {
    let (server, url) = Service::server(&database);
    let workers = (0..workers).map(|_| Service::worker(&database, options).allowing(&LOSS)).collect();
    Service { workers, server: server.allowing(&LOSS), url, database }
}

/// Puzzles, and the limit to submit them with: some of them take two workers three seconds, so that there is a middle.
fn puzzles(count: usize) -> (String, String) {
    let made = run(&["generate", "-n", &count.to_string(), "--clues", "32", "--seed", "7"], &[], "").stdout;
    (with_long_searches(&made, 60), limit_for(Duration::from_millis(100)).to_string())
}

/// Waits until a share of a batch is done.
fn half_done(service: &Service, puzzles: usize) {
    let done = "select coalesce(sum(hi - lo), 0) from result";
    eventually("half of the results", || {
        (service.database.value(done).parse::<usize>().unwrap() >= puzzles / 2).then_some(())
    });
}

/// The results of a batch to its end, by as many calls as it takes.
fn all_results(service: &Service, id: &str) -> String {
    eventually("the whole batch", || {
        let done = service.run(&["results", id, "--output", "jsonl"], "");
        (done.code == Some(0)).then_some(done.stdout)
    })
}

#[test]
fn postgres_stopped_in_the_middle_of_a_batch_keeps_the_workers_waiting_and_loses_nothing() {
    const PUZZLES: usize = 60_000;
    let mut service = service_of(Database::on_its_own_postgres(), 2, &["--lease", "2"]);
    let (text, limit) = puzzles(PUZZLES);
    let limited = ["--placement-limit", &limit];
    let quiet = run(&[&["solve", "-", "--output", "jsonl"], &limited[..]].concat(), &[], &text).stdout;
    let submit = [&["submit", "-", "--detach", "--id", "stopped"], &limited[..]].concat();
    assert_eq!(service.run(&submit, &text).code, Some(0));
    half_done(&service, PUZZLES);
    assert_ne!(service.database.value("select count(*) from job"), "0", "it is in the middle");
    service.database.stop_postgres();
    let stopped = Instant::now();
    for worker in &service.workers {
        // Each has noticed, and says so in one line.
        worker.logged(" WARN ");
    }
    let refused = service.run(&["get", "stopped"], "");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("the database is not available just now"), "{}", refused.stderr);
    // Away for much longer than a lease.
    eventually("five seconds", || (stopped.elapsed() > Duration::from_secs(5)).then_some(()));
    service.database.start_postgres();
    assert!(all_results(&service, "stopped") == quiet, "the bytes of a quiet run");
    assert_eq!(service.database.value("select count(*) from job"), "0");
    for worker in &service.workers {
        let log = worker.log().join("\n");
        assert!(!log.contains("a lease has run out"), "nobody has died: {log}");
        assert!(!log.contains("a late completion was refused"), "what was in hand was kept: {log}");
    }
    assert_eq!(service.database.value("select sum(hi - lo) from result"), PUZZLES.to_string());
    for mut worker in std::mem::take(&mut service.workers) {
        assert_eq!(worker.stop(), 0, "it stayed up");
    }
}

/// As after a fail-over to a stand-by: all sessions are cut, and new ones can only read. And as after the next: new ones can write again, and those that cannot stay.
fn fail_over(database: &Database, reading: bool) {
    let (setting, sessions) = if reading {
        ("on", "datname = current_database() and pid <> pg_backend_pid()")
    } else {
        ("off", "false")
    };
    database.execute(&format!(
        "begin read write;
        do $$ begin execute format('alter database %I set default_transaction_read_only = {setting}', current_database()); end $$;
        commit;
        select pg_terminate_backend(pid) from pg_stat_activity where {sessions}"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_can_only_be_read_everyone_is_told_and_then_all_goes_on_and_nothing_is_lost() {
    const PUZZLES: usize = 20_000;
    /// Connections of a server's that were made meanwhile only to read, at the most: each may refuse one call.
    const REFUSALS_MAX: usize = 10;
    let mut service = service_of(Database::fresh(), 2, &["--lease", "2"]);
    let (text, limit) = puzzles(PUZZLES);
    let quiet = run(&["solve", "-", "--output", "jsonl", "--placement-limit", &limit], &[], &text).stdout;
    let grids: Vec<String> = text.lines().map(str::to_owned).collect();
    let (first, rest) = grids.split_at(PUZZLES / 2);
    let client = Client::connect(&service.url).await.unwrap().with_retry(Retry::never());
    let new = NewBatch {
        id: "failed-over".to_owned(),
        placement_limit: Some(limit.parse().unwrap()),
        ..NewBatch::default()
    };
    let batch = client.create_batch(new).await.unwrap().name;
    client.append(&batch, Some(0), first.to_vec()).await.unwrap();
    half_done(&service, PUZZLES / 4);
    assert_ne!(service.database.value("select count(*) from job"), "0", "it is in the middle");

    fail_over(&service.database, true);
    let begun = Instant::now();
    for worker in &service.workers {
        worker.logged("in a read-only transaction");
    }
    // For much longer than a lease.
    while begun.elapsed() < Duration::from_secs(5) {
        let refused = client.append(&batch, Some(first.len() as u64), rest.to_vec()).await.unwrap_err();
        assert_eq!(refused.reason().as_deref(), Some("DATABASE_UNAVAILABLE"), "{refused:?}");
        let refused = service.run(&["submit", "-"], SEED);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("the database is not available just now"), "{}", refused.stderr);
    }
    eventually("what is there can be read", || {
        (service.run(&["get", "failed-over"], "").code == Some(0)).then_some(())
    });
    fail_over(&service.database, false);
    let mut refusals = 0;
    while let Err(refused) = client.append(&batch, Some(first.len() as u64), rest.to_vec()).await {
        refusals += 1;
        assert!(refusals <= REFUSALS_MAX, "{refused:?}");
        assert!(refused.is_transient(), "{refused:?}");
    }
    client.seal(&batch, Some(PUZZLES as u64)).await.unwrap();
    assert!(all_results(&service, "failed-over") == quiet, "the bytes of a quiet run");
    assert_eq!(service.database.value("select count(*) from job"), "0");
    assert_eq!(service.database.value("select sum(hi - lo) from result"), PUZZLES.to_string());
    for mut worker in std::mem::take(&mut service.workers) {
        assert!(!worker.log().concat().contains("a lease has run out"), "nobody has died");
        assert_eq!(worker.stop(), 0, "it stayed up");
    }
}

#[test]
fn postgres_that_crashes_under_load_brings_the_same_bytes() {
    const PUZZLES: usize = 30_000;
    let mut service = service_of(Database::on_its_own_postgres(), 2, &["--lease", "3"]);
    let (text, limit) = puzzles(PUZZLES);
    let limited = ["--placement-limit", &limit];
    let quiet = run(&[&["solve", "-", "--output", "jsonl"], &limited[..]].concat(), &[], &text).stdout;
    let submit = [&["submit", "-", "--detach", "--id", "crashed"], &limited[..]].concat();
    assert_eq!(service.run(&submit, &text).code, Some(0));
    for part in [3, 2] {
        half_done(&service, PUZZLES / part);
        assert_ne!(service.database.value("select count(*) from job"), "0", "it is under load");
        service.database.kill_postgres();
        service.database.start_postgres();
    }
    assert!(all_results(&service, "crashed") == quiet, "the bytes of a quiet run");
    assert_eq!(service.database.value("select sum(hi - lo) from result"), PUZZLES.to_string());
    assert_eq!(
        service.database.value("select coalesce(max(failed_count), 0) from result"),
        "0",
        "a crash of the database is no puzzle's fault"
    );
}

#[test]
fn a_listener_whose_session_is_ended_listens_again_and_work_starts_at_once() {
    let service = Service::start(0, &[]);
    let worker = Service::worker(&service.database, &[]).allowing(&["the listening connection was lost"]);
    let listening = "from pg_stat_activity where query like 'LISTEN%' and datname = current_database()
        and application_name = 'sudoku-batch work'";
    let count = format!("select count(*) {listening}");
    eventually("it listens", || (service.database.value(&count) == "1").then_some(()));
    let ended = service.database.value(&format!("select count(pg_terminate_backend(pid)) {listening}"));
    assert_eq!(ended, "1");
    worker.logged("the listening connection was lost; listening again");
    eventually("it listens again", || (service.database.value(&count) == "1").then_some(()));
    // A deaf worker looks once a second: thirty times one after the other would take it thirty.
    let begun = Instant::now();
    for _ in 0..30 {
        assert_eq!(service.run(&["submit", "-"], SEED).code, Some(0));
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_session_waits_in_a_transaction_while_something_is_solved_or_nobody_reads() {
    let service = Service::start(2, &["--grace", "0"]);
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { placement_limit: Some(ENDLESS_LIMIT), ..NewBatch::default() };
    let batch = client.create_batch(new).await.unwrap().name;
    client.append(&batch, Some(0), vec![SEED.to_owned(); 20_000]).await.unwrap();
    client.append(&batch, Some(20_000), vec![ENDLESS.to_owned()]).await.unwrap();
    let mut paused = client.results(&batch, Start::ordered(0)).await.unwrap();
    paused.next().await.unwrap().unwrap();
    let running = "select count(*) from job where owner is not null and hi - lo = 1";
    eventually("the long one is running", || (service.database.value(running) == "1").then_some(()));
    // One that is held while the search goes on, or until the reader goes on, does not end: neither does. How long
    // others take is the machine's affair.
    let older = |now: &str| {
        let open = "select pid, state, query from pg_stat_activity where datname = current_database()";
        format!("{open} and application_name like 'sudoku-batch%' and xact_start < '{now}'")
    };
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let now = service.database.value("select clock_timestamp()");
        let begun = Instant::now();
        eventually("what was open then has ended", || {
            let open = service.database.query(&older(&now));
            assert!(open.is_empty() || begun.elapsed() < PATIENCE / 2, "since before {now}: {open:#?}");
            open.is_empty().then_some(())
        });
    }
    assert_eq!(service.database.value(running), "1", "it still is, or this shows nothing");
    drop(paused);
}

#[test]
fn two_servers_and_four_workers_at_once_on_an_empty_database_all_start_ten_times() {
    // The first version made partitions by a look-up that did not see what another process had just made.
    for _ in 0..10 {
        let database = Database::fresh();
        let url = database.url();
        let environment = [("DATABASE_URL", &*url)];
        let start = |args: &[&str]| Process::start(args, &environment);
        let mut all: Vec<Process> = Vec::new();
        for _ in 0..2 {
            all.push(start(&["serve", "--listen", "127.0.0.1:0", "--exit-with-parent"]));
            all.push(start(&["work", "--threads", "1", "--exit-with-parent"]));
            all.push(start(&["work", "--threads", "1", "--exit-with-parent"]));
        }
        for process in &mut all {
            process.line("ready ");
        }
        for process in &mut all {
            assert_eq!(process.stop(), 0);
        }
    }
}

#[test]
fn a_process_killed_in_the_middle_of_the_migration_leaves_it_to_nine_others() {
    let database = Database::fresh();
    let url = database.url();
    let start = || Process::start(&["migrate"], &[("DATABASE_URL", &url)]);
    // The first stands in the middle of it, the others wait for it.
    let in_its_way = database.held("begin; create table tenant ()");
    let mut killed = start();
    database.blocked(1, "create table tenant");
    let mut others: Vec<Process> = (0..9).map(|_| start()).collect();
    database.blocked(9, "sudoku-batch migrations");
    killed.signal(Signal::SIGKILL);
    killed.wait();
    drop(in_its_way);
    for other in &mut others {
        assert_eq!(other.wait(), 0, "{:#?}", other.log());
    }
    let migrations = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations")).unwrap();
    let migrations =
        migrations.filter(|file| file.as_ref().unwrap().path().extension() == Some("sql".as_ref()));
    let done = database.value("select count(*) from _sqlx_migrations where success");
    assert_eq!(done, migrations.count().to_string());
    let days = "select count(*) from pg_inherits where inhparent = 'payload'::regclass";
    assert_eq!(database.value(days), "8", "today and a week ahead");
}
