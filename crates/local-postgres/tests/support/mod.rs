//! What the tests of real clusters share.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use local_postgres::{Options, Programs};
use nix::{sys::signal::kill, unistd::Pid};
use tempfile::TempDir;

/// How long a test waits for something that should happen soon.
const WAIT: Duration = Duration::from_secs(30);

pub(crate) fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// A temporary folder that every user can pass, for data folders to be made in.
pub(crate) fn open_folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap()
}

pub(crate) fn options(data_dir: impl Into<PathBuf>) -> Options {
    Options { data_dir: data_dir.into(), durable: false, max_connections: 10 }
}

/// Runs a statement through the socket and gives its one value.
pub(crate) fn query(socket_dir: &Path, statement: &str) -> String {
    let mut psql = Command::new(Programs::find().unwrap().bin_dir().join("psql"));
    psql.arg("-h").arg(socket_dir).args(["-U", "sudoku", "-d", "postgres", "-XAtq", "-v", "ON_ERROR_STOP=1"]);
    let output = psql.arg("-c").arg(statement).output().unwrap();
    assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits until something holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process exists, waited for or not.
pub(crate) fn is_alive(pid: u32) -> bool {
    kill(Pid::from_raw(pid.cast_signed()), None).is_ok()
}

/// The pid of the server of a data folder.
pub(crate) fn server_pid(data_dir: &Path) -> u32 {
    let text = fs::read_to_string(data_dir.join("postgres/postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}
