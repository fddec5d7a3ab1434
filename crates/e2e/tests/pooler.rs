//! A PgBouncer in transaction mode between all processes and the database, with fewer servers to lend than it has clients: the same answers, the same lives and deaths.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, time::Instant};

use e2e::{
    Database, ENDLESS, ENDLESS_OPTIONS, ENDLESS_TAKEN, Finished, PATIENCE, Pooler, Process, SEED, eventually,
    run,
};
use nix::sys::signal::Signal;

/// Servers that the pooler lends at a time; each worker of one thread has a dozen connections to it.
const SERVERS: u32 = 4;
/// What other workers say when one has died.
const EXPIRED: &str = "a lease has run out";

/// A server and workers behind a pooler.
struct Pooled {
    workers: Vec<Process>,
    server: Process,
    url: String,
    _pooler: Pooler,
    database: Database,
}

impl Pooled {
    fn start(workers: usize) -> Self {
        let database = Database::fresh();
        let pooler = Pooler::start(&database, SERVERS, "");
        let args = ["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--pgbouncer"];
        let mut server = Process::start(&args, &[("DATABASE_URL", pooler.url()), ENDLESS_TAKEN]);
        let url = server.line("ready ");
        let workers = (0..workers).map(|_| worker(&pooler)).collect();
        Self { workers, server, url, _pooler: pooler, database }
    }

    fn run(&self, args: &[&str], input: &str) -> Finished {
        run(&[args, &["--server", &self.url]].concat(), &[], input)
    }
}

fn worker(pooler: &Pooler) -> Process {
    let args = ["work", "--exit-with-parent", "--threads", "1", "--lease", "2"];
    // As a variable, where the server has it as an option.
    let environment = [("DATABASE_URL", pooler.url()), ("SUDOKU_BATCH_PGBOUNCER", "1")];
    let mut worker = Process::start(&args, &environment).allowing(&[EXPIRED]);
    worker.line("ready worker ");
    worker
}

#[test]
fn thirty_thousand_puzzles_and_the_death_of_a_worker_behind_a_pooler_are_the_bytes_of_solve() {
    const PUZZLES: u32 = 30_000;
    let mut pooled = Pooled::start(2);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "30"], &[], "").stdout)
        .unwrap();
    let file = file.to_str().unwrap();
    let expected = run(&["solve", file, "--output", "jsonl"], &[], "").stdout;

    let mut submit = Process::start(&["submit", file, "--output", "jsonl", "--server", &pooled.url], &[]);
    eventually("a result", || {
        let done = "select coalesce(sum(hi - lo), 0) from result";
        (pooled.database.value(done) != "0").then_some(())
    });
    pooled.workers[0].signal(Signal::SIGKILL);
    pooled.workers[0].wait();
    assert_eq!(submit.wait(), 0, "{:#?}", submit.log());
    assert!(submit.stdout() == expected, "every index once, and the bytes of solve");
    assert_eq!(pooled.database.value("select count(*) from job"), "0");
    assert_eq!(pooled.workers[1].stop(), 0);
    assert_eq!(pooled.server.stop(), 0);
    let servers = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    let servers: u32 = pooled.database.value(servers).parse().unwrap();
    assert!((1..=SERVERS).contains(&servers), "all of it went through the pooler: {servers}");
    let left = "select count(*) from pg_locks where locktype = 'advisory'";
    assert_eq!(pooled.database.value(left), "0", "no lock stayed with a lent server");
}

#[test]
fn a_cancel_behind_a_pooler_stops_the_search_and_frees_the_worker() {
    let pooled = Pooled::start(1);
    let puzzles = [SEED, SEED, ENDLESS].join("\n");
    let args = [&["submit", "-", "--detach", "--id", "to-be-cancelled"], &ENDLESS_OPTIONS[..]].concat();
    assert_eq!(pooled.run(&args, &puzzles).code, Some(0));
    let running = "select count(*) from job where owner is not null and lo = 2";
    eventually("the long one is running", || (pooled.database.value(running) == "1").then_some(()));
    eventually("it says how far it is", || {
        pooled.run(&["get", "to-be-cancelled"], "").stdout.contains(" placements so far").then_some(())
    });
    let begun = Instant::now();
    let done = pooled.run(&["cancel", "to-be-cancelled"], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // It would take minutes, and there is no other worker.
    let next = pooled.run(&["submit", "-", "--output", "jsonl"], SEED);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(next.stdout.contains("\"outcome\":\"unique\""), "{}", next.stdout);
    let shown = pooled.run(&["results", "to-be-cancelled", "--output", "jsonl"], "");
    assert_eq!(shown.stdout.lines().count(), 3, "no hole: {}", shown.stdout);
    assert_eq!(shown.stdout.matches("cancelled").count(), 1, "{}", shown.stdout);
}

#[test]
fn six_processes_that_start_at_once_behind_a_pooler_make_one_schema() {
    // One server for all: names that one of them left there would meet the next.
    for servers in [1, SERVERS] {
        let database = Database::fresh();
        let pooler = Pooler::start(&database, servers, "");
        let environment = [("DATABASE_URL", pooler.url())];
        let mut all: Vec<Process> =
            (0..6).map(|_| Process::start(&["migrate", "--pgbouncer"], &environment)).collect();
        for migrate in &mut all {
            assert_eq!(migrate.wait(), 0, "{:#?}", migrate.log());
        }
        let schema =
            "select count(*) filter (where success) = count(*) and count(*) > 0 from _sqlx_migrations";
        assert_eq!(database.value(schema), "t");
        assert_eq!(database.value("select count(*) from pg_locks where locktype = 'advisory'"), "0");
    }
}

#[test]
fn a_pooler_of_which_nobody_was_told_is_refused_by_a_line_that_names_the_option() {
    let database = Database::fresh();
    let ignoring = "ignore_startup_parameters = options, extra_float_digits";
    for (more, why) in [("", "unsupported startup parameter"), (ignoring, "keeps the session's settings")] {
        let pooler = Pooler::start(&database, SERVERS, more);
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["work"], &["migrate"]] {
            let done = run(args, &[("DATABASE_URL", pooler.url())], "");
            assert_eq!(done.code, Some(1), "{done:?}");
            let told: Vec<&str> = done.stderr.lines().collect();
            assert_eq!(told.len(), 1, "{told:#?}");
            assert!(told[0].contains(why) && told[0].contains("--pgbouncer"), "{}", told[0]);
        }
    }
}
