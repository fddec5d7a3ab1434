//! Workers and servers that die, stall, panic or are told to stop: nothing is lost, nothing is answered twice.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    time::{Duration, Instant},
};

use client::{Client, NewBatch, Start, v1};
use e2e::{Database, ENDLESS, ENDLESS_LIMIT, Process, SEED, Service, binary, eventually, limit_for, run};
use nix::sys::signal::Signal;

/// What other workers say when one has died.
const EXPIRED: &str = "a lease has run out";
/// Lets a test see at once that the fencing token has fallen.
const ATTEMPTS_NEVER_FALL: &str = "
    create function attempts_never_fall() returns trigger language plpgsql as $$
    begin
        if new.attempt < old.attempt then raise exception 'attempt fell from % to %', old.attempt, new.attempt; end if;
        return new;
    end $$;
    create trigger attempts_never_fall before update on job for each row execute function attempts_never_fall()";

/// Submits each puzzle as a job of its own; counts up to `limit` placements.
async fn submit_singly(service: &Service, puzzles: &[&str], limit: u64) -> String {
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
    let batch = client.create_batch(new).await.unwrap().name;
    for (offset, puzzle) in (0..).zip(puzzles) {
        client.append(&batch, Some(offset), vec![(*puzzle).to_owned()]).await.unwrap();
    }
    client.seal(&batch, Some(puzzles.len() as u64)).await.unwrap();
    batch
}

/// Follows a batch to its end; gives the outcomes in order of index, each of which came once.
async fn outcomes(url: &str, batch: &str) -> Vec<v1::Outcome> {
    let client = Client::connect(url).await.unwrap();
    let mut results = client.results(batch, Start::ordered(0)).await.unwrap();
    let mut outcomes = Vec::new();
    while let Some(run) = results.next().await.unwrap() {
        for result in run {
            assert_eq!(result.index, outcomes.len() as u64);
            outcomes.push(result.outcome);
        }
    }
    outcomes
}

/// No row says that anything is left to do, and none belongs to nothing.
fn assert_nothing_is_left(database: &Database) {
    assert_eq!(database.value("select count(*) from job"), "0");
    let orphans = "select count(*) from result_piece p where not exists
        (select from result r where (r.part, r.batch_id, r.lo) = (p.part, p.batch_id, p.result_lo))";
    assert_eq!(database.value(orphans), "0");
    let unanswered = "select count(*) from batch b where b.puzzle_count is distinct from
        (select sum(r.hi - r.lo) from result r where r.batch_id = b.id)";
    assert_eq!(database.value(unanswered), "0", "each puzzle has exactly one result");
}

/// The command that a submit has told to go on, run in a shell; gives its exit code and its results, and tells the next command in its place.
fn go_on(told: &mut String) -> (i32, String) {
    let command = told.lines().last().unwrap().trim().to_owned();
    assert!(command.starts_with(binary().to_str().unwrap()), "{told}");
    let done = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    *told = String::from_utf8(done.stderr).unwrap();
    (done.status.code().unwrap(), String::from_utf8(done.stdout).unwrap())
}

#[test]
fn two_hundred_thousand_puzzles_with_five_deaths_of_a_worker_and_one_of_the_server_are_the_bytes_of_a_quiet_run()
 {
    const PUZZLES: u32 = 200_000;
    const LEASE: [&str; 2] = ["--lease", "2"];
    let database = Database::fresh();
    let (mut server, url) = Service::server(&database);
    database.execute(ATTEMPTS_NEVER_FALL);
    let listen = url.trim_start_matches("http://").to_owned();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    let made = run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "30"], &[], "");
    fs::write(&file, made.stdout).unwrap();
    let file = file.to_str().unwrap();
    let quiet = run(&["solve", file, "--output", "jsonl"], &[], "").stdout;

    let _steady = Service::worker(&database, &LEASE).allowing(&[EXPIRED]);
    let mut mortal = Service::worker(&database, &LEASE).allowing(&[EXPIRED]);
    let mut submit = Process::start(&["submit", file, "--output", "jsonl", "--server", &url], &[]);
    let done = || -> u32 { database.value("select coalesce(sum(hi - lo), 0) from result").parse().unwrap() };
    for death in 1..=5 {
        eventually("more results", || (done() >= death * PUZZLES / 7).then_some(()));
        if death == 4 {
            server.signal(Signal::SIGKILL);
            server.wait();
            (server, _) = Service::server_at(&database, &listen);
        }
        mortal.signal(Signal::SIGKILL);
        mortal.wait();
        mortal = Service::worker(&database, &LEASE).allowing(&[EXPIRED]);
    }
    let mut code = submit.wait();
    assert_eq!(code, 4, "the server died: {:#?}", submit.log());
    let mut output = submit.stdout();
    assert!(!output.is_empty(), "it had printed something");
    let mut told = submit.log().join("\n");
    for _ in 0..5 {
        if code != 4 {
            break;
        }
        let (next, more) = go_on(&mut told);
        code = next;
        output.push_str(&more);
    }
    assert_eq!(code, 0, "{told}");
    assert!(output == quiet, "every index once, and the same bytes as in a quiet run");
    assert_nothing_is_left(&database);
    assert_eq!(database.value("select count(*) from batch"), "1");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_workers_puzzles_are_all_answered_once_within_its_lease() {
    // Long enough that a worker is killed in the middle of one, and never between two.
    let (long, short) = (limit_for(Duration::from_secs(4)), limit_for(Duration::from_millis(100)));
    let mut service = Service::start(2, &["--lease", "2"]);
    service.workers = service.workers.into_iter().map(|worker| worker.allowing(&[EXPIRED])).collect();
    let long = submit_singly(&service, &[ENDLESS], long).await;
    let owner = "select owner from job where owner is not null";
    let owner = eventually("one of them has it", || service.database.query(owner).pop());
    let short = submit_singly(&service, &[ENDLESS; 19], short).await;
    let is_owner = |worker: &Process| worker.lines()[0].ends_with(&owner);
    let at = service.workers.iter().position(is_owner).unwrap();
    let mut killed = service.workers.remove(at);
    killed.signal(Signal::SIGKILL);
    killed.wait();
    assert_eq!(outcomes(&service.url, &short).await, [v1::Outcome::NoSolution; 19]);
    assert_eq!(outcomes(&service.url, &long).await, [v1::Outcome::NoSolution]);
    assert_nothing_is_left(&service.database);
    let attempts =
        "select count(*) filter (where attempt = 1), count(*) filter (where attempt = 2) from result";
    assert_eq!(service.database.query(attempts), ["19|1"], "only what it held was begun again");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_worker_dies_that_does_the_upkeep_for_all_another_puts_its_job_back_in_time() {
    let mut service = Service::start(1, &["--lease", "2", "--grace", "0"]);
    service.workers = service.workers.into_iter().map(|worker| worker.allowing(&[EXPIRED])).collect();
    let round = "select pid from pg_stat_activity
        where datname = current_database() and query like '%pg_notify(''sudoku_round%' and pid <> pg_backend_pid()
        order by query_start desc limit 1";
    eventually("a round", || service.database.query(round).pop());
    let firsts =
        service.database.query("select pid from pg_stat_activity where datname = current_database()");
    // The newest comes first.
    let mut second = Service::worker(&service.database, &["--lease", "2"]);
    submit_singly(&service, &[ENDLESS; 2], ENDLESS_LIMIT).await;
    let owners = "select count(distinct owner) from job where owner is not null";
    eventually("each has one", || (service.database.value(owners) == "2").then_some(()));
    // A connection shows only what it was asked last, which may be something else.
    eventually("the second does the rounds", || {
        service.database.query(round).pop().filter(|pid| !firsts.contains(pid))
    });
    second.signal(Signal::SIGKILL);
    second.wait();
    let killed = Instant::now();
    let put_back = "select count(*) from job where deaths = 1";
    eventually("its job is put back", || (service.database.value(put_back) == "1").then_some(()));
    // The lease and a second; the rest is for a busy machine.
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_given_back_at_sigterm_are_taken_by_a_new_worker_at_once() {
    let mut service = Service::start(0, &[]);
    // One thread more than long searches: they never have all of them.
    let options = ["--threads", "3", "--grace", "0"];
    let mut first = Service::worker(&service.database, &options);
    submit_singly(&service, &[ENDLESS; 2], ENDLESS_LIMIT).await;
    let running = |attempt: u32| {
        let sql = format!("select count(*) from job where owner is not null and attempt = {attempt}");
        eventually("both are running", || (service.database.value(&sql) == "2").then_some(()));
    };
    running(1);
    assert_eq!(first.stop(), 0);
    assert_eq!(service.database.value("select count(*) from job where owner is null and deaths = 0"), "2");
    // Within any lease: the patience of this test is twice as long.
    let begun = Instant::now();
    service.workers.push(Service::worker(&service.database, &options));
    let sql = "select count(*) from job where owner is not null and attempt = 2";
    eventually("both are run again", || (service.database.value(sql) == "2").then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(15), "half of a lease: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_puzzle_much_longer_than_the_lease_is_solved_once_under_one_attempt() {
    const LEASE: Duration = Duration::from_secs(1);
    let limit = limit_for(6 * LEASE);
    let service = Service::start(2, &["--lease", "1"]);
    let batch = submit_singly(&service, &[ENDLESS], limit).await;
    let running = "select count(*) from job where owner is not null";
    eventually("it is running", || (service.database.value(running) == "1").then_some(()));
    let begun = Instant::now();
    assert_eq!(outcomes(&service.url, &batch).await, [v1::Outcome::NoSolution]);
    assert!(begun.elapsed() > 2 * LEASE, "or it shows nothing: {:?}", begun.elapsed());
    assert_eq!(service.database.query("select attempt, hi - lo from result"), ["1|1"]);
    assert_nothing_is_left(&service.database);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_are_each_claimed_once_by_eight_lanes_in_two_processes() {
    let mut service = Service::start(0, &[]);
    for _ in 0..2 {
        service.workers.push(Service::worker(&service.database, &["--threads", "4"]));
    }
    let batch = submit_singly(&service, &[SEED; 1_000], 10_000).await;
    assert_eq!(outcomes(&service.url, &batch).await.len(), 1_000);
    let counts = "select count(*), sum(hi - lo), sum(attempt) from result";
    // A lane that has the next jobs and is kept from running gives them back: only then are they claimed again.
    let given_back =
        |worker: &Process| worker.log().iter().filter(|line| line.contains("lease given back")).count();
    eventually("as many claims as jobs and leases given back", || {
        let claims = 1_000 + service.workers.iter().map(given_back).sum::<usize>();
        (service.database.query(counts) == [format!("1000|1000|{claims}")]).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn more_long_searches_than_cores_starve_no_heartbeat_and_no_health_check() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let service = Service::start(0, &[]);
    let cores = std::thread::available_parallelism().unwrap().get();
    // One more than they may have: long searches never have all threads.
    let threads = (cores * 2 + 1).to_string();
    let _worker =
        Service::worker(&service.database, &["--lease", "2", "--threads", &threads, "--grace", "0"]);
    let _other = Service::worker(&service.database, &["--lease", "2"]);
    submit_singly(&service, &vec![ENDLESS; cores * 2 + 1], ENDLESS_LIMIT).await;
    let until = "select coalesce(extract(epoch from min(lease_until)), 0) from job where owner is not null";
    let all = format!("select count(*) from job where owner is not null having count(*) = {}", cores * 2 + 1);
    eventually("all of them are running", || (service.database.query(&all).len() == 1).then_some(()));
    let begun: f64 = service.database.value(until).parse().unwrap();
    let channel =
        tonic::transport::Channel::from_shared(service.url.clone()).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    let mut slowest = Duration::ZERO;
    let started = Instant::now();
    while service.database.value(until).parse::<f64>().unwrap() < begun + 5.0 {
        let asked = Instant::now();
        health.check(HealthCheckRequest::default()).await.unwrap();
        slowest = slowest.max(asked.elapsed());
        assert!(started.elapsed() < e2e::PATIENCE, "leases are no longer prolonged");
    }
    assert!(slowest < Duration::from_secs(1), "health answered after {slowest:?}");
    assert_eq!(
        service.database.query("select distinct attempt, deaths from job"),
        ["1|0"],
        "no lease was lost"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn at_sigterm_what_fits_in_the_grace_time_is_stored_and_the_rest_is_solved_elsewhere() {
    // The grace time is far from both of them.
    let (long, short) = (limit_for(Duration::from_secs(15)), limit_for(Duration::from_millis(500)));
    let service = Service::start(0, &[]);
    let mut first = Service::worker(&service.database, &["--threads", "3", "--grace", "5"]);
    let long = submit_singly(&service, &[ENDLESS], long).await;
    let short = submit_singly(&service, &[ENDLESS], short).await;
    let running = "select count(*) from job where owner is not null";
    eventually("both are running", || (service.database.value(running) == "2").then_some(()));
    let begun = Instant::now();
    let stopped = tokio::task::spawn_blocking(move || (first.stop(), first));
    let (code, _first) = stopped.await.unwrap();
    let took = begun.elapsed();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(7), "grace of 5 s and a moment: {took:?}");
    assert_eq!(outcomes(&service.url, &short).await, [v1::Outcome::NoSolution], "without any worker");
    assert_eq!(service.database.query("select owner is null, attempt, deaths from job"), ["t|1|0"]);
    let _second = Service::worker(&service.database, &["--grace", "0"]);
    assert_eq!(outcomes(&service.url, &long).await, [v1::Outcome::NoSolution], "by another worker");
    assert_eq!(service.database.query("select attempt from result order by attempt"), ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zombies_late_completion_is_refused_and_its_death_is_taken_back() {
    // A slice has done some of them whenever it is stopped, but for a moment at its beginning.
    let limit = limit_for(Duration::from_millis(10));
    let puzzles = [ENDLESS; 400];
    let mut service = Service::start(0, &[]);
    service.database.execute(ATTEMPTS_NEVER_FALL);
    let refused = [EXPIRED, "a late completion was refused", "a lease was lost before"];
    let mut zombie = Service::worker(&service.database, &["--lease", "1"]).allowing(&refused);
    let id = zombie.lines()[0].trim_start_matches("ready worker ").to_owned();
    let client = Client::connect(&service.url).await.unwrap();
    let new = NewBatch { placement_limit: Some(limit), ..NewBatch::default() };
    let batch = client.create_batch(new).await.unwrap().name;
    client.append(&batch, Some(0), puzzles.map(str::to_owned).to_vec()).await.unwrap();
    client.seal(&batch, Some(400)).await.unwrap();
    let held = format!("select count(*) from job where owner = '{id}'");
    let mut heir = None;
    for _ in 0..20 {
        eventually("it holds a lease", || (service.database.value(&held) == "1").then_some(()));
        zombie.signal(Signal::SIGSTOP);
        if service.database.value(&held) == "0" {
            // Stopped between two leases: nothing to lose.
            zombie.signal(Signal::SIGCONT);
            continue;
        }
        heir.get_or_insert_with(|| {
            Service::worker(&service.database, &["--lease", "1"]).allowing(&[EXPIRED])
        });
        eventually("its lease has run out", || (service.database.value(&held) == "0").then_some(()));
        zombie.signal(Signal::SIGCONT);
        eventually("it hears that it was late", || {
            let log = zombie.log().concat();
            (log.contains(refused[1]) || log.contains(refused[2])).then_some(())
        });
        if zombie.log().concat().contains(refused[1]) {
            break;
        }
    }
    zombie.logged("a late completion was refused");
    zombie.logged("a death was taken back: this worker is alive");
    assert_eq!(outcomes(&service.url, &batch).await, [v1::Outcome::NoSolution; 400]);
    assert_nothing_is_left(&service.database);
    // Nothing is left of the batch itself either, once it is deleted.
    client.delete_batch(&batch, false).await.unwrap();
    let rows =
        "select (select count(*) from batch) + (select count(*) from payload) + (select count(*) from result)
        + (select count(*) from result_piece)";
    eventually("no row is left behind", || (service.database.value(rows) == "0").then_some(()));
    assert_eq!(zombie.stop(), 0, "it goes on as any other");
    service.workers.extend(heir);
}

#[test]
fn a_puzzle_over_which_the_solver_panics_is_failed_and_its_worker_goes_on() {
    let service = Service::start(0, &[]);
    let mut worker = Service::worker_with(&service.database, &[], &[("SUDOKU_BATCH_TEST_PANIC", ENDLESS)])
        .allowing(&["a test asked for this panic", "panicked"]);
    let mut puzzles = [SEED; 100];
    puzzles[40] = ENDLESS;
    let done = service.run(&["submit", "-", "--output", "jsonl"], &puzzles.join("\n"));
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    let failed = "{\"index\":40,\"outcome\":\"failed\",\"solution\":null,\"placements\":null}";
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!((lines.len(), lines[40]), (100, failed));
    assert_eq!(lines.iter().filter(|line| line.contains("\"unique\"")).count(), 99);
    assert_eq!(service.run(&["submit", "-"], SEED).code, Some(0), "the same worker goes on");
    assert_eq!(worker.stop(), 0);
}

#[test]
fn a_puzzle_that_ends_its_workers_is_failed_at_the_third_death_and_all_others_are_answered() {
    const LEASE: u64 = 2;
    let folder = tempfile::Builder::new()
        .prefix("poison-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let data = folder.path().join("data");
    let args = ["up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--workers", "3"];
    let environment = [("SUDOKU_BATCH_TEST_ABORT", ENDLESS), ("SUDOKU_BATCH_LEASE", "2")];
    let allowed = [EXPIRED, "a child has ended", "it is FAILED"];
    let mut up = Process::start(&args, &environment).allowing(&allowed);
    let url = up.line("ready ");
    let made = run(&["generate", "-n", "3000", "--seed", "6", "--clues", "40"], &[], "");
    let mut puzzles: Vec<&str> = made.stdout.lines().collect();
    puzzles.insert(2_000, ENDLESS);
    let begun = Instant::now();
    let done = run(&["submit", "-", "--output", "jsonl", "--server", &url], &[], &puzzles.join("\n"));
    let took = begun.elapsed();
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let failed = "{\"index\":2000,\"outcome\":\"failed\",\"solution\":null,\"placements\":null}";
    assert_eq!((lines.len(), lines[2_000]), (3_001, failed));
    assert_eq!(lines.iter().filter(|line| line.contains("\"unique\"")).count(), 3_000);
    assert!(took < Duration::from_secs(3 * LEASE + 10), "three leases and 10 s: {took:?}");
    let deaths = up.log().iter().filter(|line| line.contains("a child has ended")).count();
    assert_eq!(deaths, 3, "it has ended three workers, and no more");
    assert_eq!(run(&["submit", "-", "--server", &url], &[], SEED).code, Some(0), "they are back");
    assert_eq!(up.stop(), 0);
}
