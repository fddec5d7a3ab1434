//! The errors that a newcomer meets: one clear line, the right exit code, no backtrace.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::TcpListener;

use e2e::{Database, Finished, run};

/// One line that says what, where and what to do.
fn assert_one_line(done: &Finished, code: i32, words: &[&str]) {
    assert_eq!(done.code, Some(code), "{done:?}");
    assert_eq!(done.stdout, "");
    let told: Vec<&str> = done.stderr.lines().filter(|line| !line.contains(" INFO ")).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    for word in words {
        assert!(told[0].contains(word), "{word:?} is not in {:?}", told[0]);
    }
    assert!(!done.stderr.contains("backtrace") && !done.stderr.contains("panicked"), "{}", done.stderr);
}

/// A port that nobody listens on: it was free a moment ago and is not handed out again at once.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// As on a machine whose user asks for backtraces.
const BACKTRACE: (&str, &str) = ("RUST_BACKTRACE", "1");

#[test]
fn no_server_there() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let done = run(&["submit", "-", "--server", &url], &[BACKTRACE], e2e::SEED);
    assert_one_line(&done, 1, &[&url, "refused", "sudoku-batch up", "--server"]);
    let done = run(&["get", "some-batch", "--server", &url], &[BACKTRACE], "");
    assert_one_line(&done, 1, &[&url, "refused"]);
}

#[test]
fn no_server_address() {
    let done = run(&["get", "some-batch", "--server", "localhost:50051"], &[BACKTRACE], "");
    assert_one_line(&done, 2, &["localhost:50051", "http://"]);
}

#[test]
fn no_postgresql_programs() {
    let empty = tempfile::tempdir().unwrap();
    let environment = [("SUDOKU_BATCH_PG_BIN", empty.path().to_str().unwrap()), BACKTRACE];
    let data = empty.path().join("data");
    let done =
        run(&["up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()], &environment, "");
    assert_one_line(&done, 1, &["SUDOKU_BATCH_PG_BIN", "PostgreSQL 14"]);
    assert!(!data.exists(), "nothing was begun");
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let args = ["up", "--listen", &address, "--data-dir", data.path().to_str().unwrap()];
    let done = run(&args, &[BACKTRACE], "");
    assert_one_line(&done, 1, &[&address, "in use", "--listen"]);
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0, "nothing was begun");
    let database = Database::fresh();
    let done = run(&["serve", "--listen", &address], &[("DATABASE_URL", &database.url()), BACKTRACE], "");
    assert_one_line(&done, 1, &[&address, "in use", "--listen"]);
}

#[test]
fn a_port_beyond_loopback() {
    let database = Database::fresh();
    let done = run(&["serve", "--listen", "0.0.0.0:0"], &[("DATABASE_URL", &database.url()), BACKTRACE], "");
    assert_one_line(&done, 2, &["0.0.0.0", "TLS", "--allow-insecure-remote"]);
}

#[test]
fn a_database_that_refuses() {
    let url = format!("postgres://alice:s3cret@127.0.0.1:{}/sudoku", free_port());
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["work"], &["migrate"]] {
        let done = run(args, &[("DATABASE_URL", &url), BACKTRACE], "");
        assert_one_line(&done, 1, &["\"sudoku\" at 127.0.0.1", "alice", "refused"]);
        assert!(!done.stderr.contains("s3cret"), "the password is nobody's business");
    }
    let database = Database::fresh();
    let done = run(&["migrate"], &[("DATABASE_URL", &database.url().replace("/t_", "/no_such_"))], "");
    assert_one_line(&done, 1, &["no_such_", "does not exist"]);
}

#[test]
fn a_database_url_of_another_kind_or_none() {
    let done = run(&["migrate", "--database-url", "mysql://localhost/x"], &[BACKTRACE], "");
    assert_one_line(&done, 2, &["postgres://"]);
    let done = run(&["work"], &[], "");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("--database-url"), "{}", done.stderr);
}

#[test]
fn a_file_that_is_missing_or_a_folder() {
    for command in ["solve", "submit"] {
        let done = run(&[command, "no/such/file.txt"], &[BACKTRACE], "");
        assert_one_line(&done, 1, &["no/such/file.txt", "No such file"]);
        let done = run(&[command, "/"], &[BACKTRACE], "");
        assert_one_line(&done, 1, &["folder"]);
    }
}

#[test]
fn an_input_without_a_puzzle() {
    let done = run(&["solve", "-"], &[BACKTRACE], "# nothing\n\n");
    assert_one_line(&done, 1, &["no puzzle", "standard input"]);
}

#[test]
fn a_line_that_is_no_puzzle_is_told_in_its_place_and_spoils_no_other() {
    let text = format!("{0}\nhello\n{0}\n", e2e::SEED);
    let done = run(&["solve", "-"], &[BACKTRACE], &text);
    assert_eq!(done.code, Some(3));
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].contains("line 2: 5 characters, not 81"), "{}", lines[1]);
    assert!(lines[2].contains("4,208 placements"), "{}", lines[2]);
}

#[test]
fn an_unlimited_count() {
    let done = run(&["solve", "-", "--placement-limit", "none"], &[], e2e::SEED);
    assert_eq!((done.code, &*done.stdout), (Some(2), ""));
    assert!(done.stderr.contains("\"off\""), "{}", done.stderr);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::{Command, Stdio};
    let made = run(&["generate", "-n", "20000"], &[], "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    std::fs::write(&file, made.stdout).unwrap();
    let mut solving = Command::new(e2e::binary())
        .arg("solve")
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(solving.stdout.take());
    let output = solving.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn nobody_who_reads_standard_error_is_no_reason_to_fail() {
    use std::process::{Command, Stdio};
    // `exec 2>&1 >/dev/null |` in a shell: the reader goes at once.
    for args in ["solve", "solve no/such/file", "migrate --database-url postgres://127.0.0.1:1/x"] {
        let mut child = Command::new(e2e::binary())
            .args(args.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{args}");
    }
}

#[test]
fn long_lines_are_invalid_puzzles_for_a_server_too() {
    let service = e2e::Service::start(1, &[]);
    let text = "7".repeat(4_000) + "\n";
    let text = text.repeat(2_500);
    let there = run(&["submit", "--output", "jsonl", "--server", &service.url], &[], &text);
    let here = run(&["solve", "--output", "jsonl"], &[], &text);
    assert_eq!((there.code, here.code), (Some(3), Some(3)), "{}", there.stderr);
    assert!(there.stdout == here.stdout && there.stdout.lines().count() == 2_500);
}

#[test]
fn the_users_settings_for_other_databases_are_not_for_the_private_one() {
    let settings =
        [("PGPORT", "5433"), ("PGSSLMODE", "require"), ("PGOPTIONS", "--foo=bar"), ("PGUSER", "nobody")];
    let done = run(&["demo"], &settings, "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

#[test]
fn every_command_has_help() {
    for command in [
        "",
        "demo",
        "up",
        "serve",
        "work",
        "migrate",
        "submit",
        "get",
        "solve",
        "generate",
        "bench",
        "bench solver",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let done = run(&args, &[], "");
        assert_eq!(done.code, Some(0));
        assert!(done.stdout.contains("Usage: sudoku-batch"), "{}", done.stdout);
    }
}
