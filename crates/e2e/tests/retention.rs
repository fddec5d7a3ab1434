//! Batches that expire under running workers. Time is moved by changing what was written.
#![allow(clippy::unwrap_used, reason = "tests")]

use e2e::{Database, Process, SEED, Service, eventually};

#[test]
fn an_expired_batch_goes_with_its_day_and_the_service_goes_on() {
    let database = Database::fresh();
    let mut server = Process::start(
        &["serve", "--listen", "127.0.0.1:0", "--exit-with-parent", "--keep-days", "30"],
        &[("DATABASE_URL", &database.url()), ("SUDOKU_BATCH_KEEP_CANCELLED_DAYS", "3")],
    );
    let url = server.line("ready ");
    let workers = (0..2).map(|_| Service::worker(&database, &[])).collect();
    let service = Service { workers, server, url, database };
    assert_eq!(service.run(&["submit", "-", "--id", "short-lived"], SEED).code, Some(0));
    assert_eq!(
        service
            .database
            .query("select extract(day from expires_at - ended_at), keep, keep_cancelled from batch"),
        ["30|720:00:00|72:00:00"]
    );
    let shown = service.run(&["get", "short-lived"], "").stdout;
    assert!(shown.lines().any(|line| line.starts_with("expires ") && line.ends_with('Z')), "{shown}");
    let listed = service.run(&["list"], "").stdout;
    assert!(listed.lines().any(|line| line.contains("short-lived") && line.ends_with('Z')), "{listed}");

    let day: i32 = service.database.value("select part - 31 from batch").parse().unwrap();
    service.database.execute(&format!(
        "select ensure_partitions({day}); update batch set part = {day}, expires_at = now();
         update payload set part = {day}; update result set part = {day}; update result_piece set part = {day}"
    ));
    let left = format!(
        "select (select count(*) from partition_days() as day where day = {day}), (select count(*) from batch),
            (select count(*) from payload), (select count(*) from result), (select count(*) from result_piece)"
    );
    eventually("nothing is left", || (service.database.query(&left) == ["0|0|0|0|0"]).then_some(()));
    assert_eq!(service.run(&["get", "short-lived"], "").code, Some(1));
    assert_eq!(service.run(&["submit", "-", "--id", "short-lived"], SEED).code, Some(0), "its name is free");
}
