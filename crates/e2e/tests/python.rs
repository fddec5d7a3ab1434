//! A client in another language, made from the proto files alone: `crates/e2e/python/sudoku_client.py`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    process::{Command, Stdio},
    thread,
};

use e2e::{Database, Finished, SEED, Service, eventually, python, run, run_python};
use nix::{
    pty::{Winsize, openpty},
    sys::signal::Signal,
};

fn client(args: &[&str]) -> Command {
    python("sudoku_client.py", args)
}

fn run_client(args: &[&str]) -> Finished {
    run_python("sudoku_client.py", args)
}

/// Runs it with a terminal for stderr; gives what that was sent in the place of stderr.
fn client_on_a_terminal(args: &[&str]) -> Finished {
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let mut command = client(args);
    command.env("TERM", "xterm-256color").env_remove("COLUMNS").env_remove("NO_COLOR");
    let child = command.stdout(Stdio::piped()).stderr(terminal.slave).spawn().unwrap();
    drop(command); // which holds the terminal open
    let mut shown = fs::File::from(terminal.master);
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        // The last one who held it has gone: that ends it with an error on Linux.
        shown.read_to_end(&mut all).ok();
        String::from_utf8(all).unwrap()
    });
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    Finished { code: output.status.code(), stdout, stderr: reader.join().unwrap() }
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

#[test]
fn on_a_terminal_it_shows_how_far_it_is_and_elsewhere_one_line() {
    let service = Service::start(1, &[]);
    let made = run(&["generate", "-n", "5000", "--clues", "40"], &[], "").stdout;
    let bad = r#"{"index":5000,"outcome":"invalid","solution":null,"placements":0}"#;
    let solved = run(&["solve", "--output", "jsonl"], &[], &made).stdout + bad + "\n";
    let (_folder, file, _) = puzzles(&(made + "bad\n"));
    let args = ["--server", &service.url, &file];
    let total = "5,001 results of 5,001 puzzles in ";
    let counts = "unique 5,000, invalid 1";
    for mode in [&[][..], &["--solve"]] {
        let shown = client_on_a_terminal(&[&args, mode].concat());
        assert_eq!(shown.code, Some(3), "{}", shown.stderr);
        assert!(shown.stdout == solved, "nothing but results");
        let drawn: Vec<&str> = shown.stderr.split(['\r', '\n']).collect();
        for bar in ["sent", "results"] {
            let last = drawn.iter().rfind(|line| line.contains("5,001/5,001") && line.contains(bar));
            let last = last.unwrap_or_else(|| panic!("no bar of {bar}: {drawn:#?}"));
            assert!(last.contains("/s") && last.contains("0:00:00"), "a rate, and the time to go: {last:?}");
            assert_eq!(last.contains(counts), bar == "results", "{last:?}");
        }
        let last = drawn.iter().rfind(|line| !line.is_empty()).unwrap();
        assert!(last.contains(total) && last.ends_with(counts), "{last:?}");

        let plain = run_client(&[&args, mode].concat());
        assert!(plain.stdout == solved && !plain.stderr.contains(['\r', '\x1b']), "{}", plain.stderr);
        let last = plain.stderr.lines().last().unwrap();
        assert!(last.starts_with(total) && last.ends_with(counts), "{last:?}");
        let others: Vec<&str> = plain.stderr.lines().filter(|line| !line.contains(" is begun; ")).collect();
        assert_eq!(others, [last]);
    }
}

#[test]
fn it_waits_as_long_as_the_service_says_and_at_its_deadline_the_batch_stays() {
    let database = Database::fresh();
    let (server, url) = Service::server_with(&database, &["--queued-max-tenant", "1000"]);
    let mut service = Service { workers: Vec::new(), server, url, database };
    let made = run(&["generate", "-n", "10000", "--clues", "40"], &[], "").stdout;
    let (folder, file, solved) = puzzles(&made);
    let args = ["--server", &service.url.clone(), &file, "--id", "waits"];
    // Nobody solves so far: of three messages one is taken.
    let late = run_client(&[&args[..], &["--deadline", "3"]].concat());
    assert_eq!((late.code, &*late.stdout), (Some(4), ""), "{}", late.stderr);
    assert!(late.stderr.ends_with("error: the time given by --deadline is over\n"), "{}", late.stderr);
    let told = folder.path().join("told");
    let stderr = fs::File::create(&told).unwrap();
    let waiting = client(&args).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let pause = eventually("it waits", || {
        let told = fs::read_to_string(&told).unwrap();
        let (_, pause) = told.split_once("(QUEUE_FULL); trying again in ")?;
        Some(pause.split_once(" s\n")?.0.parse::<f64>().unwrap())
    });
    assert!((1.0..=1.25).contains(&pause), "a second, and not at once with all others: {pause}");
    service.workers.push(Service::worker(&service.database, &[]));
    let done = waiting.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8(done.stdout).unwrap() == solved);
}

#[test]
fn the_rate_of_one_call_is_told_when_every_index_has_come_once() {
    let service = Service::start(1, &[]);
    let (_folder, file, _) = puzzles(&format!("{SEED}\n{}\n", "1".repeat(81)));
    let args = ["--server", &service.url, "--puzzles", "5001"];
    let own = ["--packed", "--ordered", "--message", "1000", &file];
    for (more, message, unique) in [(&[][..], 512, 5_001), (&own, 1_000, 2_501)] {
        let done = run_python("solve_rate.py", &[&args, more].concat());
        assert_eq!((done.code, &*done.stderr), (Some(0), ""));
        let told: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((&told["puzzles"], &told["unique"]), (&5_001.into(), &unique.into()), "{told}");
        assert_eq!(told["puzzles_per_message"], message);
        for figure in ["seconds", "puzzles_per_second", "client_cpu_seconds"] {
            assert!(told[figure].as_f64().unwrap() > 0.0, "{figure}: {told}");
        }
    }
}
