//! A client in another language, made from the proto files alone: `crates/e2e/python/sudoku_client.py`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
};

use e2e::{Finished, SEED, Service, eventually, python, run, run_python};
use nix::sys::signal::Signal;

fn client(args: &[&str]) -> Command {
    python("sudoku_client.py", args)
}

fn run_client(args: &[&str]) -> Finished {
    run_python("sudoku_client.py", args)
}

/// A file of puzzles, and what `solve` says of them.
fn puzzles(text: &str) -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let solved = run(&["solve", &file, "--output", "jsonl"], &[], "").stdout;
    (folder, file, solved)
}

#[test]
fn it_prints_what_solve_prints_in_every_mode() {
    let service = Service::start(2, &[]);
    let made = run(&["generate", "-n", "2000", "--seed", "5"], &[], "").stdout;
    let (_folder, file, solved) = puzzles(&made);
    for modes in [&[][..], &["--solve"], &["--as-finished"], &["--solve", "--as-finished"]] {
        let done = run_client(&[modes, &["--server", &service.url, &file]].concat());
        assert_eq!(done.code, Some(0), "{modes:?}: {}", done.stderr);
        if modes.contains(&"--as-finished") {
            assert_eq!(done.stdout.lines().count(), 2_000);
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            assert_eq!(lines(&done.stdout), lines(&solved), "{modes:?}");
        } else {
            assert!(done.stdout == solved, "{modes:?}");
        }
    }
}

#[test]
fn it_tells_bad_puzzles_limits_and_refusals() {
    let service = Service::start(1, &[]);
    let (_folder, file, _) = puzzles(&format!("{SEED}\nbad\n{SEED}\n"));
    let args = ["--server", &service.url, &file, "--id", "from-python", "--placement-limit", "1000"];
    let done = run_client(&args);
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].ends_with("\"placements\":null,\"placements_over\":1000}"), "{}", lines[0]);
    assert_eq!(lines[1], "{\"index\":1,\"outcome\":\"invalid\",\"solution\":null,\"placements\":0}");
    assert_eq!(run_client(&args).stdout, done.stdout, "the same id again is the same batch");
    let refused = run_client(&[&args[..5], &["--placement-limit", "5"]].concat());
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("ALREADY_EXISTS") && refused.stderr.contains("(BATCH_EXISTS)"),
        "{refused:?}"
    );
    assert_eq!(service.run(&["delete", "from-python"], "").code, Some(0));
}

#[test]
fn it_outlives_its_servers_death_and_its_own() {
    let mut service = Service::start(2, &[]);
    let made = run(&["generate", "-n", "40000", "--clues", "40"], &[], "").stdout;
    let (folder, file, solved) = puzzles(&made);
    let listen = service.url.trim_start_matches("http://").to_owned();
    let (place, output) = (folder.path().join("place"), folder.path().join("out"));
    let args = ["--server", &service.url, &file, "--as-finished", "--resume-file", place.to_str().unwrap()];
    let start = || {
        let out = fs::OpenOptions::new().create(true).append(true).open(&output).unwrap();
        client(&args).stdout(out).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut first = start();
    let lines = || fs::read_to_string(&output).unwrap_or_default();
    eventually("it has printed some", || (!lines().is_empty()).then_some(()));
    service.server.signal(Signal::SIGKILL);
    service.server.wait();
    (service.server, _) = Service::server_at(&service.database, &listen);
    let before = lines().len();
    // It may be at its end by then; but that is the only other way to end well.
    eventually("it goes on", || match first.try_wait().unwrap() {
        Some(status) => {
            assert_eq!(status.code(), Some(0), "the server's death was its own");
            Some(())
        }
        None => (lines().len() > before).then_some(()),
    });
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(start().wait().unwrap().code(), Some(0));
    let printed = lines();
    let seen: BTreeSet<&str> = printed.lines().collect();
    let expected: BTreeSet<&str> = solved.lines().collect();
    assert!(expected.is_subset(&seen), "nothing is missing");
    let twice = printed.lines().count() - expected.len();
    assert!(twice <= 4_097, "at most the one message that it was at when it died: {twice}");
    let whole = printed.len();
    assert_eq!(start().wait().unwrap().code(), Some(0));
    assert_eq!(lines().len(), whole, "all is printed");
}
