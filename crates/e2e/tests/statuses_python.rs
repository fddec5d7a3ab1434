//! Every status of the contract as a client in Python meets it, its details decoded: `crates/e2e/python/statuses.py`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
};

use e2e::{Database, Service, python, run_python};
use serde_json::{Value, json};

/// Bytes of a status's details and message, at the most.
const STATUS_BYTES_MAX: u64 = 4_096;

/// The rows of what was printed, each a status with a reason of this service unless it is OK.
fn rows(printed: &str) -> Vec<Value> {
    let rows: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        if row["code"] == "OK" {
            continue;
        }
        assert_eq!(row["domain"], "sudoku-batch", "{row}");
        let details = row["details_bytes"].as_u64().unwrap();
        let message = row["message"].as_str().unwrap();
        assert!(details > 0 && !message.is_empty(), "{row}");
        assert!(details + (message.len() as u64) < STATUS_BYTES_MAX, "{row}");
    }
    rows
}

/// Provokes rows of a service.
fn provoked(url: &str, names: &[&str]) -> Vec<Value> {
    let done = run_python("statuses.py", &[&["--server", url], names].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    rows(&done.stdout)
}

/// One of the rows: its code, its reason and the numbers with it are as expected.
fn row<'a>(rows: &'a [Value], name: &str, code: &str, reason: &str, metadata: &Value) -> &'a Value {
    let row = rows.iter().find(|row| row["row"] == name).unwrap_or_else(|| panic!("no {name} in {rows:#?}"));
    assert_eq!((&row["code"], &row["reason"]), (&code.into(), &reason.into()), "{row}");
    assert_eq!(row["metadata"], *metadata, "{row}");
    row
}

/// What a status that may be tried again says of that: whole seconds or parts of them, not none.
fn assert_retry(row: &Value) {
    assert!(row["retry_seconds"].as_f64().unwrap() > 0.0, "{row}");
}

#[test]
fn what_a_call_asks_for_decides_its_status() {
    let service = Service::start(1, &[]);
    let rows = provoked(&service.url, &[]);
    assert_repeats(&rows);
    assert_taken(&rows);
    assert_bad_arguments(&rows);
    assert_several_bad_arguments(&rows);
    assert_states(&rows);
    // The script has seen that the batch stays, and that its stream goes on where it was. The service answers a moment before the client's own clock would, which has no details.
    row(&rows, "deadline", "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", &json!({}));
    let beyond = json!({"next_offset": "1"});
    row(&rows, "offset-beyond-end", "OUT_OF_RANGE", "OFFSET_BEYOND_END", &beyond);
    let of_another = row(&rows, "of-another-tenant", "NOT_FOUND", "BATCH_NOT_FOUND", &json!({}));
    assert_resource(of_another);
    assert_eq!(rows.len(), 15, "{rows:#?}");
}

fn assert_repeats(rows: &[Value]) {
    let repeated = |name: &str| rows.iter().find(|row| row["row"] == name && row["code"] == "OK").unwrap();
    let appended = &repeated("append-repeated")["response"];
    assert_eq!(*appended, json!({"nextOffset": "2", "duplicate": true}));
    assert_eq!(repeated("create-repeated")["response"]["state"], "STATE_OPEN");
}

fn assert_taken(rows: &[Value]) {
    row(rows, "offset-taken", "ALREADY_EXISTS", "OFFSET_TAKEN", &json!({"first_index": "1"}));
    assert_resource(row(rows, "batch-exists", "ALREADY_EXISTS", "BATCH_EXISTS", &json!({})));
}

/// It names the batch that it is about.
fn assert_resource(row: &Value) {
    let resource = &row["ResourceInfo"];
    assert_eq!(resource["resourceType"], "sudoku.example.com/Batch", "{row}");
    assert!(resource["resourceName"].as_str().unwrap().starts_with("batches/"), "{row}");
}

fn assert_bad_arguments(rows: &[Value]) {
    for (name, field, limit) in [
        ("too-many-grids", "chunk", "10000"),
        ("too-many-bytes", "chunk", "5000000"),
        ("bad-option", "batch.options.placement_limit", "1000000000000"),
    ] {
        let row = row(rows, name, "INVALID_ARGUMENT", "BAD_ARGUMENT", &json!({}));
        let violations = row["BadRequest"]["fieldViolations"].as_array().unwrap();
        assert_eq!(violations.len(), 1, "{row}");
        let first = &violations[0];
        assert!(first["field"].as_str().unwrap().starts_with(field), "{row}");
        assert!(first["description"].as_str().unwrap().replace([',', '_'], "").contains(limit), "{row}");
    }
}

/// Several at once: those that are named are bad, and none is named twice.
fn assert_several_bad_arguments(rows: &[Value]) {
    let bad = ["batch.display_name", "batch.options.placement_limit", "batch.priority", "batch_id"];
    let row = row(rows, "several-bad-fields", "INVALID_ARGUMENT", "BAD_ARGUMENT", &json!({}));
    let violations = row["BadRequest"]["fieldViolations"].as_array().unwrap();
    let named: BTreeSet<&str> = violations.iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert!(named.iter().all(|field| bad.contains(field)), "{row}");
    assert!(named.len() == violations.len() && named.len() == bad.len(), "{row}");
}

fn assert_states(rows: &[Value]) {
    for (name, reason, kind, metadata) in [
        ("append-to-sealed", "BATCH_NOT_OPEN", "BATCH_STATE", json!({})),
        ("append-to-cancelled", "BATCH_NOT_OPEN", "BATCH_STATE", json!({})),
        ("delete-unfinished", "BATCH_NOT_ENDED", "BATCH_STATE", json!({})),
        ("seal-with-another-count", "COUNT_MISMATCH", "PUZZLE_COUNT", json!({"puzzle_count": "0"})),
    ] {
        let row = row(rows, name, "FAILED_PRECONDITION", reason, &metadata);
        let violation = &row["PreconditionFailure"]["violations"][0];
        assert_eq!(violation["type"], kind, "{row}");
        assert!(!violation["subject"].as_str().unwrap().is_empty(), "{row}");
    }
}

#[test]
fn a_quota_says_which_it_is_and_when_to_try_again() {
    let database = Database::fresh();
    let (_server, url) = Service::server_with(&database, &["--queued-max-tenant", "10"]);
    let rows = provoked(&url, &["queue-full"]);
    let numbers = json!({"queued": "12", "queued_max": "10"});
    let full = row(&rows, "queue-full", "RESOURCE_EXHAUSTED", "QUEUE_FULL", &numbers);
    assert_eq!(full["QuotaFailure"]["violations"][0]["subject"], "tenant/queued_puzzles");
    assert_retry(full);
}

#[test]
fn a_server_that_stops_ends_its_streams_by_name() {
    let database = Database::fresh();
    let (mut server, url) = Service::server_with(&database, &[]);
    let mut script =
        python("statuses.py", &["--server", &url, "stopping"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(script.stdout.take().unwrap());
    let mut open = String::new();
    output.read_line(&mut open).unwrap();
    assert_eq!(open, "open\n");
    assert_eq!(server.stop(), 0);
    let mut printed = String::new();
    output.read_to_string(&mut printed).unwrap();
    assert!(script.wait().unwrap().success(), "{printed}");
    let rows = rows(&printed);
    for name in ["stopping-results", "stopping-watch", "stopping-solve"] {
        assert_retry(row(&rows, name, "UNAVAILABLE", "SERVER_STOPPING", &json!({})));
    }
}

#[test]
fn a_database_that_is_away_is_unavailable_for_now() {
    let mut database = Database::on_its_own_postgres();
    let (server, url) = Service::server_with(&database, &[]);
    let _server = server.allowing(&[" WARN "]);
    database.stop_postgres();
    let names = ["database-away-get", "database-away-create"];
    let rows = provoked(&url, &names);
    for name in names {
        assert_retry(row(&rows, name, "UNAVAILABLE", "DATABASE_UNAVAILABLE", &json!({})));
    }
    database.start_postgres();
    assert_eq!(provoked(&url, &["append-repeated"])[0]["code"], "OK", "and then it is there again");
}
