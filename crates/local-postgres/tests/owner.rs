//! What becomes of the cluster and of the command when their owner, `with-postgres`, is sent a signal.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use local_postgres::{Error, LocalPostgres};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use support::{is_alive, open_folder, options, query, server_pid, wait_until};

mod support;

/// A running `with-postgres`, whose command waits until its stdin closes or it gets a signal.
struct Owner {
    child: Child,
    lines: BufReader<ChildStdout>,
    socket_dir: PathBuf,
}

/// `with-postgres` with signals as a terminal gives them. Tests that run in the background of a script inherit ignored ones, which no shell can trap;
/// where the system's `env` cannot mend that, they are taken as they are.
fn with_postgres() -> Command {
    const DEFAULTS: &str = "--default-signal=HUP,INT,TERM";
    let program = env!("CARGO_BIN_EXE_with-postgres");
    let mends = Command::new("env").args([DEFAULTS, "true"]).stderr(Stdio::null()).status();
    if mends.is_ok_and(|status| status.success()) {
        let mut command = Command::new("env");
        command.args([DEFAULTS, program]);
        command
    } else {
        Command::new(program)
    }
}

impl Owner {
    fn start(options: &[&str], script: &str) -> Self {
        let mut command = with_postgres();
        command.args(options).args(["--", "sh", "-c"]).arg(format!("{script} echo \"$PGHOST\"; read -r _"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut owner =
            Self { lines: BufReader::new(child.stdout.take().unwrap()), child, socket_dir: PathBuf::new() };
        owner.socket_dir = PathBuf::from(owner.line());
        owner
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }
}

#[test]
fn nothing_is_left_of_a_temporary_cluster_when_its_owner_is_killed() {
    let mut owner = Owner::start(&[], "");
    let pid = server_pid(&owner.socket_dir);
    assert_eq!(query(&owner.socket_dir, "select 1"), "1");
    owner.signal(Signal::SIGKILL);
    owner.child.wait().unwrap();
    wait_until("the server is gone", || !is_alive(pid));
    wait_until("the folder is gone", || !owner.socket_dir.exists());
}

#[test]
fn a_connection_in_use_does_not_keep_a_cluster_alive() {
    // A session that holds a transaction open, as a worker of a killed process would.
    let script = "(echo 'begin; create table t (); select pg_sleep(600);' | psql -Xq >/dev/null 2>&1) & ";
    let mut owner = Owner::start(&[], script);
    let pid = server_pid(&owner.socket_dir);
    let sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    wait_until("the session sleeps", || query(&owner.socket_dir, sleeping) == "1");
    owner.signal(Signal::SIGKILL);
    owner.child.wait().unwrap();
    wait_until("the server is gone", || !is_alive(pid));
    wait_until("the folder is gone", || !owner.socket_dir.exists());
}

#[test]
fn a_kept_folder_can_be_started_again_at_once_after_a_kill() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    let name = data_dir.to_str().unwrap();
    let mut owner = Owner::start(&["--durable", "--data-dir", name], "");
    let pid = server_pid(&data_dir);
    query(&owner.socket_dir, "create table kept as select 42 as answer");
    let error = LocalPostgres::start(&options(&data_dir)).unwrap_err();
    let named = matches!(error, Error::InUse { pid: Some(pid), .. } if pid == owner.child.id());
    assert!(named, "{error}");

    owner.signal(Signal::SIGKILL);
    owner.child.wait().unwrap();
    // The watcher may be at work still: the new owner waits for it, and its late stop does not hit the new server.
    let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    wait_until("the old server is gone", || !is_alive(pid));
    assert_eq!(query(postgres.socket_dir(), "select answer from kept"), "42");
    postgres.stop().unwrap();
}

#[test]
fn an_owner_killed_while_it_starts_leaves_nothing() {
    let root = open_folder();
    for pause_ms in [0, 50, 200, 500, 1000] {
        let data_dir = root.path().join(format!("data-{pause_ms}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
        command.arg("--data-dir").arg(&data_dir).args(["--", "true"]);
        let mut owner = command.stdin(Stdio::null()).spawn().unwrap();
        // No condition to wait for: the point is to hit it at different moments.
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        owner.kill().unwrap();
        owner.wait().unwrap();
        let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
        assert_eq!(query(postgres.socket_dir(), "select 1"), "1");
        postgres.stop().unwrap();
    }
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137), ("psql -Xc 'select 1'", 0)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
        command.args(["--", "sh", "-c", script]).stdout(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(code), "{script}");
    }
}

#[test]
fn a_polite_signal_goes_to_the_command_and_everything_is_cleaned_up() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut owner = Owner::start(&[], "trap 'echo caught; exit 3' TERM INT HUP; ");
        let pid = server_pid(&owner.socket_dir);
        // The owner's signal handling begins just after the command's start; what comes earlier is the watcher's.
        wait_until("the owner passes signals on", || passes_signals_on(owner.child.id()));
        owner.signal(signal);
        wait_until("the owner ends", || owner.child.try_wait().unwrap().is_some());
        assert_eq!(owner.child.wait().unwrap().code(), Some(3), "{signal}");
        assert_eq!(owner.line(), "caught", "{signal}");
        assert!(!is_alive(pid) && !owner.socket_dir.exists(), "{signal}");
    }
}

/// Whether the owner passes signals on by now: it blocks exactly those three, for its waiting thread to take. (While a
/// process is being started all signals are blocked for a moment.) Where the system does not tell, the command's start
/// is taken for it.
fn passes_signals_on(pid: u32) -> bool {
    let status = Path::new("/proc").join(pid.to_string()).join("status");
    let Ok(text) = std::fs::read_to_string(status) else { return true };
    let blocked = text.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    let passed = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].map(|signal| 1 << (signal as u64 - 1));
    u64::from_str_radix(blocked.trim(), 16).unwrap() == passed.into_iter().sum()
}
