//! The examples of the client library, run as their first lines say.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
    thread,
};

use e2e::{Service, eventually, run};
use nix::sys::signal::Signal;

/// A built example.
fn example(name: &str) -> Command {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        // As this test is built, for they are looked for beside it.
        let profile: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "client", "--examples"])
            .args(profile)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(built.success(), "the examples cannot be built");
        std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples")
    });
    Command::new(folder.join(name))
}

fn puzzles(count: usize) -> String {
    run(&["generate", "-n", &count.to_string(), "--clues", "36", "--seed", "9"], &[], "").stdout
}

#[test]
fn lines_are_answered_in_their_order_while_a_server_stops() {
    const PUZZLES: usize = 40_000;
    let mut service = Service::start(2, &[]);
    let (_second, second_url) = Service::server(&service.database);
    let text = puzzles(PUZZLES);
    let mut out = tempfile::tempfile().unwrap();
    let mut child = example("solve_lines")
        .arg(format!("{},{second_url}", service.url))
        .stdin(Stdio::piped())
        .stdout(out.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (half, rest) = text.split_at(text.len() / 2);
    stdin.write_all(half.as_bytes()).unwrap();
    assert_eq!(service.server.stop(), 0);
    let rest = rest.to_owned();
    let writing = thread::spawn(move || stdin.write_all(rest.as_bytes()).unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    writing.join().unwrap();
    let mut lines = String::new();
    out.seek(SeekFrom::Start(0)).unwrap();
    out.read_to_string(&mut lines).unwrap();
    for (index, line) in lines.lines().enumerate() {
        assert!(line.starts_with(&format!("{index} Unique ")), "{line}");
    }
    assert_eq!(lines.lines().count(), PUZZLES);
}

#[test]
fn a_client_that_keeps_its_place_is_killed_and_goes_on() {
    const PUZZLES: usize = 60_000;
    let service = Service::start(2, &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("puzzles"), puzzles(PUZZLES)).unwrap();
    let start = || {
        let out = fs::OpenOptions::new().create(true).append(true).open(path("results")).unwrap();
        let args = [service.url.clone(), path("puzzles"), path("place")];
        example("keep_place").args(args).stdout(out).stderr(Stdio::null()).spawn().unwrap()
    };
    let written = || fs::read_to_string(path("results")).unwrap_or_default();
    let mut first = start();
    eventually("some results", || (!written().is_empty()).then_some(()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(first.id()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGKILL).ok();
    first.wait().unwrap();
    assert_eq!(start().wait().unwrap().code(), Some(0));
    let text = written();
    let seen: BTreeSet<&str> = text.lines().collect();
    let expected: Vec<String> = (0..PUZZLES).map(|index| format!("{index} Unique")).collect();
    assert!(expected.iter().all(|line| seen.contains(&**line)), "nothing is missing");
    let twice = text.lines().count() - PUZZLES;
    assert!(twice <= 4_096 + 1, "at the most the message at which it was killed: {twice}");
}
