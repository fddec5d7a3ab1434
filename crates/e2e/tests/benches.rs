//! Benches of the whole: figures in the published form, answers that are checked, nothing left behind.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use e2e::{Process, SEED, eventually, processes_naming, run};
use local_postgres::Programs;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::TempDir;

/// A folder where every account may make temporary folders: benches make theirs here.
fn open_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir().unwrap();
    // Set apart from the making, which the umask narrows.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Processes that name the folder in their command line or environment, and how much is in it.
fn left(folder: &Path) -> (Vec<u32>, usize) {
    (processes_naming(folder.to_str().unwrap()), fs::read_dir(folder).unwrap().count())
}

/// Waits for both workers of the bench that runs in the folder.
fn workers(folder: &Path) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.windows(6).any(|part| part == b"\0work\0"))
    };
    eventually("a server and two workers", || {
        let workers: Vec<u32> = left(folder).0.into_iter().filter(is_worker).collect();
        (workers.len() == 2).then_some(workers)
    })
}

/// The database of a role, as its environment names it.
fn database_url(pid: u32) -> String {
    let environment = String::from_utf8(fs::read(format!("/proc/{pid}/environ")).unwrap()).unwrap();
    let url = environment.split('\0').find_map(|variable| variable.strip_prefix("DATABASE_URL="));
    url.unwrap().to_owned()
}

/// The one JSON object that a bench prints, with its fields in order.
fn figures(args: &[&str], input: &str) -> (Value, Vec<String>) {
    let folder = open_folder();
    let done = run(args, &[("TMPDIR", folder.path().to_str().unwrap())], input);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
    assert!(!done.stderr.contains(" WARN ") && !done.stderr.contains(" ERROR "), "{}", done.stderr);
    assert_eq!(left(folder.path()), (vec![], 0), "nothing is left");
    let figures: Value = serde_json::from_str(&done.stdout).unwrap();
    let names = figures.as_object().unwrap().keys().cloned().collect();
    (figures, names)
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

#[test]
fn figures_of_the_service_are_one_json_object_and_nothing_is_left() {
    let args = ["bench", "service", "--puzzles", "5000", "--warm-up", "0", "--output", "json"];
    let (figures, names) = figures(&args, "");
    let expected = [
        "puzzles",
        "seconds",
        "puzzles_per_second",
        "placements",
        "first_result_ms",
        "cpu_seconds",
        "raw_puzzles_per_second",
        "row_per_puzzle_per_second",
        "peak_memory_bytes",
        "disk_bytes",
    ];
    assert_eq!(names, expected);
    assert_eq!(figures["puzzles"], 5_000);
    for name in
        expected.iter().filter(|name| !["cpu_seconds", "peak_memory_bytes", "disk_bytes"].contains(name))
    {
        assert!(is_positive(&figures[name]), "{name}: {figures}");
    }
    assert!(figures["disk_bytes"].is_i64());
    for part in ["client", "server", "postgres", "worker"] {
        // So few puzzles may take less than the system counts.
        assert!(figures["cpu_seconds"][part].is_number(), "{part}: {figures}");
        assert!(is_positive(&figures["peak_memory_bytes"][part]), "{part}: {figures}");
    }
}

#[test]
fn puzzles_of_a_file_are_used_again_and_counting_can_be_off() {
    let input = format!("{SEED}\n{}\n11{}\n{}2\n", ".".repeat(81), ".".repeat(79), "1".repeat(80));
    let bench = ["bench", "service", "-", "--puzzles", "1000", "--warm-up", "100", "--workers", "1"];
    let args = [&bench[..], &["--threads", "2", "--output", "json", "--placement-limit", "off"]].concat();
    let (figures, _) = figures(&args, &input);
    assert_eq!((&figures["puzzles"], &figures["placements"]), (&Value::from(1_000), &Value::Null));
    let text = run(&[&bench[..], &["--placement-limit", "10000"]].concat(), &[], &input);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    for part in
        ["500 invalid", "250 unique", "250 multiple", "times the raw limit", "a puzzle,", ": postgres"]
    {
        assert!(text.stdout.contains(part), "{part:?} is not in {}", text.stdout);
    }
    let refused = run(&bench, &[], &format!("{SEED}\nno puzzle\n"));
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    assert!(refused.stderr.contains("line 2 of standard input is no puzzle"), "{}", refused.stderr);
}

#[test]
fn figures_of_the_latency_are_one_json_object_and_nothing_is_left() {
    let (figures, names) = figures(&["bench", "latency", "--puzzles", "5", "--output", "json"], "");
    let expected = ["puzzles", "seconds", "puzzles_per_second", "placements", "p50_ms", "p99_ms"];
    assert_eq!(names, expected);
    assert_eq!(figures["puzzles"], 5);
    assert!(expected.iter().all(|name| is_positive(&figures[name])), "{figures}");
    assert!(figures["p50_ms"].as_f64() <= figures["p99_ms"].as_f64());
}

#[test]
fn a_bench_that_is_interrupted_says_so_and_leaves_nothing() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let folder = open_folder();
        let environment = [("TMPDIR", folder.path().to_str().unwrap())];
        // The warm-up alone takes far longer.
        let args =
            ["bench", "service", "--puzzles", "1000", "--warm-up", "1000000", "--placement-limit", "off"];
        let mut bench = Process::start(&args, &environment);
        workers(folder.path());
        bench.signal(signal);
        assert_eq!(bench.wait(), 4);
        bench.logged("bench: interrupted; everything is stopped");
        assert_eq!(bench.lines(), [""; 0]);
        assert_eq!(left(folder.path()), (vec![], 0), "nothing is left");
    }
}

#[test]
fn a_bench_in_which_workers_were_started_again_gives_no_figures() {
    let service = ["bench", "service", "--puzzles", "1000000", "--warm-up", "0", "--placement-limit", "off"];
    let latency = ["bench", "latency", "--puzzles", "500"];
    let psql = Programs::find().unwrap().bin_dir().join("psql");
    for args in [&service[..], &latency] {
        let folder = open_folder();
        let environment = [("TMPDIR", folder.path().to_str().unwrap())];
        let mut bench = Process::start(args, &environment).allowing(&["a child has ended"]);
        let workers = workers(folder.path());
        let url = database_url(workers[0]);
        eventually("a batch", || {
            let rows =
                Command::new(&psql).args(["-XAtc", "select count(*) from batch", &url]).output().unwrap();
            (!["", "0"].contains(&String::from_utf8(rows.stdout).unwrap().trim())).then_some(())
        });
        // Without them nothing is answered, so that the bench can not end before they are started again. They give back what they hold.
        for worker in workers {
            kill(Pid::from_raw(worker.cast_signed()), Signal::SIGTERM).unwrap();
        }
        assert_eq!(bench.wait(), 1, "{:#?}", bench.log());
        bench.logged("started again meanwhile: the figures mean nothing");
        assert_eq!(bench.lines(), [""; 0]);
        assert_eq!(left(folder.path()), (vec![], 0), "nothing is left");
    }
}
