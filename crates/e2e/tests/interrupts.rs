//! Commands that are interrupted, and readers that go or only pause: what was printed, and the command that goes on.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use e2e::{ENDLESS, ENDLESS_OPTIONS, Finished, Process, SEED, Service, eventually, limit_for, run};
use nix::sys::signal::Signal;

fn puzzles(count: usize) -> String {
    run(&["generate", "-n", &count.to_string(), "--clues", "30", "--seed", "11"], &[], "").stdout
}

/// The token in the command that an unfinished one told.
fn token(done: &Finished) -> Option<String> {
    done.stderr.split("--resume ").nth(1).map(|rest| rest.split_whitespace().next().unwrap().to_owned())
}

#[test]
fn ctrl_c_after_ten_of_a_hundred_results_ends_at_once_and_leads_back_to_all_of_them() {
    // Nine seconds for the other ninety.
    let limit = limit_for(Duration::from_millis(100)).to_string();
    let service = Service::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, format!("{SEED}\n").repeat(10) + &format!("{ENDLESS}\n").repeat(90)).unwrap();
    let file = file.to_str().unwrap();
    let options = ["--placement-limit", &limit, "--output", "jsonl"];
    let server = ["--server", &service.url];
    let args = [&["submit", file, "--id", "ctrl-c"], &options[..], &server].concat();
    let mut submit = Process::start(&args, &[]);
    submit.line("{\"index\":9,");
    let begun = Instant::now();
    submit.signal(Signal::SIGINT);
    assert_eq!(submit.wait(), 4);
    assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
    submit.logged("the batch ctrl-c is complete and is solved on");
    assert_ne!(service.database.value("select count(*) from job"), "0", "or it shows nothing");
    let all = run(&[&["results", "ctrl-c", "--output", "jsonl"], &server[..]].concat(), &[], "");
    assert_eq!((all.code, all.stdout.lines().count()), (Some(0), 100), "{}", all.stderr);
    // What was printed before and what the told token brings are together the same.
    let told = Finished { code: Some(4), stdout: String::new(), stderr: submit.log().join("\n") };
    let rest = run(
        &[&["results", "ctrl-c", "--output", "jsonl", "--resume", &token(&told).unwrap()], &server[..]]
            .concat(),
        &[],
        "",
    );
    assert!(submit.stdout() + &rest.stdout == all.stdout);
}

/// Waits until a process waits for the reader of its output: it has written something, and for a while nothing more.
fn waits_for_its_reader(pid: u32) {
    let (mut last, mut looks) = (String::new(), 0);
    eventually("it waits for its reader", || {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        let written = io.lines().find(|line| line.starts_with("wchar")).unwrap().to_owned();
        looks = if written == last { looks + 1 } else { 0 };
        last = written;
        (looks >= 20 && last != "wchar: 0").then_some(())
    });
}

/// A running command whose output is a pipe that nobody reads until it has ended; then what was in the pipe.
fn unread(args: &[&str]) -> (i32, String, String) {
    use std::{
        io::Read as _,
        process::{Command, Stdio},
    };
    let mut child = Command::new(e2e::binary())
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    waits_for_its_reader(child.id());
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    let status = eventually("it ends at a signal", || child.try_wait().unwrap());
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (status.code().unwrap(), stdout, stderr)
}

#[test]
fn ctrl_c_is_heard_while_nobody_reads_and_what_is_in_the_pipe_does_not_come_again() {
    const PUZZLES: usize = 5_000;
    let service = Service::start(2, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    // One of them invalid: its line number is only known to the submit.
    fs::write(&file, format!("bad\n{}", puzzles(PUZZLES))).unwrap();
    let file = file.to_str().unwrap();
    let solved = run(&["solve", file, "--output", "jsonl"], &[], "").stdout;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    for order in [&[][..], &["--as-finished"]] {
        let id = format!("unread-{}", order.len());
        let args = ["submit", file, "--id", &id, "--output", "jsonl", "--server", &service.url];
        let (code, mut output, told) = unread(&[&args[..], order].concat());
        assert_eq!(code, 4, "{told}");
        assert!(output.ends_with('\n') && output.lines().count() < PUZZLES, "whole lines, and not all");
        assert!(told.contains(&format!("after {} of ", grouped(output.lines().count()))), "{told}");
        let command = told.lines().last().unwrap().trim();
        let rest = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
        assert_eq!(rest.status.code(), Some(3), "{command}: {}", String::from_utf8_lossy(&rest.stderr));
        output.push_str(&String::from_utf8(rest.stdout).unwrap());
        assert_eq!(output.lines().count(), PUZZLES + 1, "nothing twice");
        assert_eq!(lines(&output), lines(&solved));
        assert!(!order.is_empty() || output == solved, "in order, the same bytes");
    }
    let (code, _, told) = unread(&["results", "unread-0", "--output", "jsonl", "--server", &service.url]);
    assert_eq!(code, 4, "{told}");
}

fn grouped(number: usize) -> String {
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}

#[test]
fn a_rest_says_of_the_whole_batch_that_some_of_it_was_bad_and_a_file_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let service = Service::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"-n\xff x.txt"));
    fs::write(&file, format!("bad\n{SEED}\n{ENDLESS}\n")).unwrap();
    let mut submit = std::process::Command::new(e2e::binary())
        .args(["submit", "--output", "jsonl"])
        .args(ENDLESS_OPTIONS)
        .arg("--")
        .arg(&file)
        .env("SUDOKU_BATCH_SERVER", &service.url)
        .env("SUDOKU_BATCH_TENANT", "carol")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let done = "select coalesce(sum(hi - lo), 0) from result";
    eventually("two are done", || (service.database.value(done) == "2").then_some(()));
    let mut out = std::io::BufReader::new(submit.stdout.take().unwrap());
    for _ in 0..2 {
        std::io::BufRead::read_line(&mut out, &mut String::new()).unwrap();
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(submit.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    let told = String::from_utf8(submit.wait_with_output().unwrap().stderr).unwrap();
    let id = service.database.value("select name from batch");
    assert_eq!(service.run(&["cancel", &id, "--tenant", "carol"], "").code, Some(0));
    // In another shell, which has not the variables.
    let command = told.lines().last().unwrap().trim();
    let rest = std::process::Command::new("bash").args(["-c", command]).output().unwrap();
    let stderr = String::from_utf8_lossy(&rest.stderr);
    assert_eq!(rest.status.code(), Some(4), "cancelled comes before bad: {command}: {stderr}");
    assert_eq!(rest.stdout.split(|byte| *byte == b'\n').count(), 2, "{command}: {stderr}");

    let text = format!("bad\n{SEED}\n{SEED}\n");
    assert_eq!(service.run(&["submit", "-", "--id", "some-bad"], &text).code, Some(3));
    for rest in [&["--from", "1"][..], &["--from", "3"], &[]] {
        assert_eq!(service.run(&[&["results", "some-bad"], rest].concat(), "").code, Some(3), "{rest:?}");
    }
}

#[test]
fn a_reader_that_leaves_or_pauses_keeps_no_puzzle_from_being_sent() {
    use std::process::{Command, Stdio};
    const PUZZLES: usize = 60_000;
    let service = Service::start(2, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, puzzles(PUZZLES / 10).repeat(10)).unwrap();
    let start = |id: &str| {
        Command::new(e2e::binary())
            .arg("submit")
            .arg(&file)
            .args(["--id", id, "--placement-limit", "off", "--output", "jsonl", "--server", &service.url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut leaves = start("leaves");
    let mut first = [0; 1];
    std::io::Read::read_exact(leaves.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(leaves.stdout.take());
    let ended = leaves.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*String::from_utf8(ended.stderr).unwrap()), (Some(0), ""));
    let count = |id: &str| {
        let sealed = format!("select puzzle_count from batch where name = '{id}' and sealed_at is not null");
        service.database.query(&sealed)
    };
    assert_eq!(count("leaves"), [PUZZLES.to_string()]);

    let mut pauses = start("pauses");
    eventually("all is sent, and nothing was read", || (count("pauses").len() == 1).then_some(()));
    pauses.kill().unwrap();
    pauses.wait().unwrap();
}

#[test]
fn a_disk_that_is_full_leaves_whole_lines_and_the_rest_follows_them() {
    const PUZZLES: usize = 3_000;
    let service = Service::start(2, &[]);
    let text = puzzles(PUZZLES);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let all = service.run(&["submit", "-", "--id", "full-disk", "--output", "jsonl"], &text).stdout;
    // A limit of the shell stands for the disk: 99 blocks of 1,024 bytes, in the middle of a piece.
    let script = format!(
        "trap '' XFSZ; ulimit -f 99; exec \"$BIN\" results full-disk --output jsonl --server {} > {}",
        service.url,
        out.display()
    );
    let done =
        std::process::Command::new("bash").args(["-c", &script]).env("BIN", e2e::binary()).output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1), "{told}");
    let mut printed = fs::read_to_string(&out).unwrap();
    assert!(printed.ends_with('\n') && all.starts_with(&printed) && printed.len() > 90_000, "{told}");
    let command = told.lines().last().unwrap().trim();
    let rest = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    printed.push_str(&String::from_utf8(rest.stdout).unwrap());
    assert!(printed == all, "nothing twice, nothing missing: {told}");
}

#[test]
fn nobody_who_reads_anything_keeps_an_interrupted_command() {
    use std::process::{Command, Stdio};
    let service = Service::start(2, &[]);
    let submit = ["submit", "-", "--id", "unheard", "--summary"];
    assert_eq!(service.run(&submit, &puzzles(5_000)).code, Some(0));
    // Both streams are one pipe, and it is full.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = Command::new(e2e::binary())
        .args(["results", "unheard", "--output", "jsonl", "--server", &service.url])
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    waits_for_its_reader(child.id());
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    let begun = Instant::now();
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    let status = eventually("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(4));
    assert!(begun.elapsed() < e2e::PATIENCE, "{:?}", begun.elapsed());
    drop(reader);
}

#[test]
fn a_reader_that_stops_early_ends_a_submit_quietly() {
    use std::process::{Command, Stdio};
    let service = Service::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, puzzles(1_000)).unwrap();
    let script = format!(
        "\"$BIN\" submit {} --server {} --output jsonl | head -n1; echo ${{PIPESTATUS[0]}}",
        file.display(),
        service.url
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .env("BIN", e2e::binary())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("{\"index\":0,") && lines.len() == 2, "{stdout}");
    // All may have fitted into the pipe: then it told its end.
    assert_eq!(lines[1], "0");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.is_empty() || told.starts_with("1,000/1,000 puzzles"), "{told}");
    eventually("the batch is solved to its end all the same", || {
        let done = "select count(*) from batch where state = 3";
        (service.database.value(done) == "1").then_some(())
    });
}
