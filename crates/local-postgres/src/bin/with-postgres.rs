//! Runs a command with a private PostgreSQL beside it, and ends with the command's exit code.
//!
//! `with-postgres [--durable] [--data-dir FOLDER] -- COMMAND [ARGUMENT…]`: without `--data-dir` the cluster is
//! temporary. The command finds it by `DATABASE_URL`, `SUDOKU_BATCH_TEST_DATABASE_URL` and, for psql, `PGHOST`, `PGUSER` and
//! `PGDATABASE`. SIGTERM is passed on to it, as are SIGINT and SIGHUP unless a terminal sends it those itself.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "this is a command-line tool: its errors go to stderr")]

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use local_postgres::{LocalPostgres, Options, Programs};
use nix::{
    sys::signal::{SigSet, Signal, kill},
    unistd::Pid,
};

const USAGE: &str = "usage: with-postgres [--durable] [--data-dir FOLDER] -- COMMAND [ARGUMENT…]";
const EXIT_ERROR: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// How often to look whether the command has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// The most connections to a cluster in a given folder.
const CONNECTIONS_MAX: u32 = 200;

struct Arguments {
    durable: bool,
    data_dir: Option<OsString>,
    command: Vec<OsString>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(env::args_os().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(EXIT_USAGE);
    };
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("with-postgres: {error}");
            ExitCode::from(EXIT_ERROR)
        }
    }
}

fn parse(mut given: impl Iterator<Item = OsString>) -> Option<Arguments> {
    let mut arguments = Arguments { durable: false, data_dir: None, command: Vec::new() };
    loop {
        match given.next()?.to_str()? {
            "--durable" => arguments.durable = true,
            "--data-dir" => arguments.data_dir = Some(given.next()?),
            "--" => break,
            _ => return None,
        }
    }
    arguments.command = given.collect();
    (!arguments.command.is_empty()).then_some(arguments)
}

fn run(arguments: Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let Arguments { durable, data_dir, command } = arguments;
    let postgres = match data_dir {
        None => LocalPostgres::start_temporary(durable)?,
        Some(folder) => LocalPostgres::start(&Options {
            data_dir: folder.into(),
            durable,
            max_connections: CONNECTIONS_MAX,
        })?,
    };
    let url = postgres.url();
    let child = Command::new(&command[0])
        .args(&command[1..])
        .envs([("DATABASE_URL", &url), ("SUDOKU_BATCH_TEST_DATABASE_URL", &url)])
        .env("PGHOST", postgres.socket_dir())
        // psql and its like are beside the server on systems that put neither on PATH.
        .env("PATH", path_with(Programs::find()?.bin_dir())?)
        .envs([("PGUSER", "sudoku"), ("PGDATABASE", "postgres")])
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", command[0].display()))?;
    let status = wait_passing_signals(child)?;
    postgres.stop()?;
    Ok(exit_code(status))
}

/// The user's PATH, and at its end the folder of PostgreSQL's programs.
fn path_with(bin_dir: &Path) -> Result<OsString, env::JoinPathsError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(env::split_paths(&path).chain([bin_dir.to_owned()]))
}

/// Waits for the command's end; meanwhile signals to this process go to the command.
///
/// A signal before this ends this process, and the watcher stops the cluster. The signals are blocked only now because
/// children inherit what is blocked.
fn wait_passing_signals(child: Child) -> io::Result<ExitStatus> {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    signals.thread_block()?;
    let child = Arc::new(Mutex::new(child));
    thread::spawn({
        let child = Arc::clone(&child);
        move || pass_signals(&signals, &child)
    });
    loop {
        if let Some(status) = lock(&child).try_wait()? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
}

fn pass_signals(signals: &SigSet, child: &Mutex<Child>) {
    // The terminal's driver sends these to every process of the foreground, the command included.
    let at_terminal = io::stdin().is_terminal();
    while let Ok(signal) = signals.wait() {
        let mut child = lock(child);
        // Under the lock the command's pid is its own: nobody waits for it meanwhile.
        let runs = matches!(child.try_wait(), Ok(None));
        if runs
            && (signal == Signal::SIGTERM || !at_terminal)
            && let Err(error) = kill(Pid::from_raw(child.id().cast_signed()), signal)
        {
            eprintln!("with-postgres: cannot pass {signal} on: {error}");
        }
    }
}

/// A panic while it was locked leaves the child as it is.
fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command's exit code, or, as shells have it, 128 and the signal that ended it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_ERROR)
}
