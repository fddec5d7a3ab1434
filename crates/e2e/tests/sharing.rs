//! Sharing by real workers: hard puzzles spread over all of them, and nobody waits for another's backlog.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use e2e::{ENDLESS, ENDLESS_OPTIONS, SEED, Service, eventually, limit_for};

/// The first line of what a detached submit says: the batch.
fn detached(service: &Service, options: &[&str], input: &str) -> String {
    let submit = [&["submit", "-", "--detach"], options].concat();
    let done = service.run(&submit, input);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.stdout.lines().next().unwrap().to_owned()
}

#[test]
fn hard_puzzles_that_came_as_one_chunk_keep_all_workers_busy() {
    let service = Service::start(4, &["--grace", "0"]);
    // Thirty-two in a chunk, each longer than a slice: a worker would be at its chunk for minutes.
    let batch = detached(&service, &ENDLESS_OPTIONS, &format!("{ENDLESS}\n").repeat(32));
    let owners = "select count(distinct owner) from job where started";
    eventually("all four are at it", || (service.database.value(owners) == "4").then_some(()));
    assert_eq!(service.database.value("select count(distinct chunk_lo) from job"), "1");
    assert_eq!(service.run(&["cancel", &batch], "").code, Some(0));
}

#[test]
fn a_single_puzzle_of_another_tenant_is_answered_before_a_backlog_is() {
    let service = Service::start(1, &["--grace", "0"]);
    // Three minutes of work, in searches that are short enough to be stored one by one.
    let limit = limit_for(Duration::from_millis(20)).min(100_000_000).to_string();
    let batch = detached(
        &service,
        &["--tenant", "first", "--placement-limit", &limit],
        &format!("{ENDLESS}\n").repeat(9_000),
    );
    let done = "select count(*) from result";
    eventually("the backlog is being worked at", || (service.database.value(done) != "0").then_some(()));
    let answered = service.run(&["submit", "-", "--tenant", "second"], SEED);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    assert_ne!(service.database.value("select count(*) from job"), "0", "the backlog is still there");
    assert_eq!(service.run(&["cancel", &batch, "--tenant", "first"], "").code, Some(0));
}

#[test]
fn counts_that_take_long_never_have_all_threads_of_a_process() {
    for threads in ["1", "2"] {
        let service = Service::start(1, &["--threads", threads, "--grace", "0"]);
        let batch = detached(&service, &ENDLESS_OPTIONS, &format!("{ENDLESS}\n").repeat(8));
        let busy = "select count(*) from job where started";
        eventually("a long search runs", || (service.database.value(busy) != "0").then_some(()));
        let answered = service.run(&["submit", "-"], SEED);
        assert_eq!(answered.code, Some(0), "{}", answered.stderr);
        assert_eq!(service.database.value(busy), "1", "one of {threads}, or beside the one");
        assert_eq!(service.run(&["cancel", &batch], "").code, Some(0));
    }
}
