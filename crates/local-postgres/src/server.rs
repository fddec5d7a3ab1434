//! The server process: a direct child of the owner, waited for until it accepts connections, and stopped.
use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
    process::{Child, ExitStatus},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    Error,
    data_folder::DataFolder,
    error::one_line,
    own_file,
    runner::Runner,
    socket::{self, PORT},
    wait::poll,
};

/// How long a server may take to accept connections, crash recovery included.
const READY_WAIT: Duration = Duration::from_mins(1);

/// What to ask of a running server in turn, and how long to wait for each: the fast shutdown, which ends connections
/// and writes everything out; the immediate one, after which the next start recovers; and the end of all patience.
const STOPS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_mins(1)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(10)),
];

/// At start, a log longer than this becomes `postgres.log.1` and a new one is begun.
const LOG_BYTES_MAX: u64 = 10 << 20;

/// How much of the log's end is looked at for what went wrong.
const LOG_TAIL_BYTES_MAX: u64 = 16 << 10;

/// How a server is started.
#[derive(Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) socket_folder: &'a Path,
    pub(crate) durable: bool,
    pub(crate) max_connections: u32,
}

impl Settings<'_> {
    /// All given on the command line: nothing is written to `postgresql.conf`.
    fn arguments(&self) -> Vec<String> {
        let mut settings = vec![
            "listen_addresses=".to_owned(),
            format!("port={PORT}"),
            format!("unix_socket_directories={}", socket::quoted(self.socket_folder)),
            "unix_socket_permissions=0700".to_owned(),
            format!("max_connections={}", self.max_connections),
        ];
        if !self.durable {
            settings.extend(["fsync=off".to_owned(), "full_page_writes=off".to_owned()]);
        }
        settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts the server and waits until it accepts connections.
    pub(crate) fn start(
        runner: &Runner,
        folder: &DataFolder,
        settings: &Settings<'_>,
    ) -> Result<Self, Error> {
        let log_file = folder.log_file();
        let mut log = open_log(runner, &log_file)?;
        let log_start = log.metadata().map_err(Error::file("look at", &log_file))?.len();
        let copy = || log.try_clone().map_err(Error::file("copy", &log_file));
        let mut command = runner.command(runner.program("postgres"));
        command.arg("-D").arg(folder.cluster()).args(settings.arguments()).stdout(copy()?).stderr(copy()?);
        let mut server = Self { child: runner.spawn(&mut command)? };

        let pid_file = folder.cluster().join("postmaster.pid");
        let pid = server.pid();
        let ended = poll(READY_WAIT, || match server.try_wait()? {
            Some(status) => Ok(Some(Some(status))),
            None => Ok(is_ready(&pid_file, pid).then_some(None)),
        })?;
        match ended {
            Some(None) => Ok(server),
            Some(Some(status)) => {
                let output = complaints(&mut log, log_start);
                Err(Error::DidNotStart { status: status.to_string(), log_file, output })
            }
            None => {
                let output = complaints(&mut log, log_start);
                Err(Error::NotReady { seconds: READY_WAIT.as_secs(), log_file, output })
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the server ended, if it has.
    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(Error::process("ask for", self.child.id()))
    }

    /// Stops the server and waits for its end; one that has ended already is fine.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        for (signal, limit) in STOPS {
            if self.try_wait()?.is_some() {
                return Ok(());
            }
            // It is our child and not waited for yet, so its pid cannot be anyone else's.
            let pid = Pid::from_raw(self.pid().cast_signed());
            kill(pid, signal).map_err(Error::process("stop", self.pid()))?;
            if poll(limit, || self.try_wait())?.is_some() {
                return Ok(());
            }
        }
        Err(Error::DidNotStop { pid: self.pid() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to tell; what still runs is stopped by the watcher or by the next start.
        drop(self.stop());
    }
}

/// Opens the log for appending; a long one is put aside first.
pub(crate) fn open_log(runner: &Runner, path: &Path) -> Result<File, Error> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() > LOG_BYTES_MAX) {
        fs::rename(path, path.with_extension("log.1")).map_err(Error::file("put aside", path))?;
    }
    own_file::open(path, runner.account())
}

/// Whether the server with this pid says that it accepts connections, which is the file's 8th line
/// (`LOCK_FILE_LINE_PM_STATUS` in PostgreSQL's `pidfile.h`). The file may be an older server's, or not there yet.
fn is_ready(pid_file: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(pid_file) else { return false };
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(pid.to_string().as_str()) && lines.nth(6) == Some("ready")
}

/// The end of what the log says since `start`, without time stamps, as one clipped line.
fn complaints(log: &mut File, start: u64) -> String {
    let mut read = || -> std::io::Result<String> {
        let start = start.max(log.metadata()?.len().saturating_sub(LOG_TAIL_BYTES_MAX));
        log.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = match read() {
        Ok(text) => text,
        Err(error) => return format!("the log cannot be read: {error}"),
    };
    let lines = text.lines().map(|line| match line.split_once("] ") {
        Some((stamp, message)) if stamp.starts_with(|c: char| c.is_ascii_digit()) => message,
        _ => line,
    });
    one_line(&lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_file_makes_it_ready() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("postmaster.pid");
        let lines = |status| format!("42\n/data\n1700000000\n5432\n/socket\n\n  1 2\n{status}\n");
        assert!(!is_ready(&file, 42));
        fs::write(&file, lines("starting")).unwrap();
        assert!(!is_ready(&file, 42));
        fs::write(&file, lines("ready   ")).unwrap();
        assert!(is_ready(&file, 42));
        assert!(!is_ready(&file, 43));
    }

    #[test]
    fn complaints_come_from_this_start_only() {
        let mut log = tempfile::tempfile().unwrap();
        let text = b"FATAL: old\n2026-01-02 03:04:05.678 GMT [9] LOG:  x [y] z\nFATAL: new\n";
        std::io::Write::write_all(&mut log, text).unwrap();
        assert_eq!(complaints(&mut log, 11), "LOG:  x [y] z; FATAL: new");
    }

    #[test]
    fn only_a_durable_server_flushes() {
        let arguments = |durable| {
            Settings { socket_folder: Path::new("/s"), durable, max_connections: 7 }.arguments().join(" ")
        };
        assert!(!arguments(true).contains("fsync"));
        assert!(arguments(false).ends_with("-c fsync=off -c full_page_writes=off"));
    }
}
