//! The one error type, each variant a single line that names what, where and what to do.
use std::{
    io,
    path::{Path, PathBuf},
};

use crate::programs::VERSION_MIN;

/// The longest quotation from a program's output in an error.
const QUOTATION_CHARS_MAX: usize = 500;

/// Why a private cluster could not be found, started, asked or stopped.
///
/// The text of each is one complete line for the person at the terminal: causes are part of it, not behind `source()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable PostgreSQL is installed in any of the usual folders.
    #[error(
        "no PostgreSQL programs ({VERSION_MIN} or newer) found; install with `apt-get install postgresql` / \
         `brew install postgresql@17`, or set SUDOKU_BATCH_PG_BIN, or give --database-url"
    )]
    NoPrograms,
    /// The folder named by `SUDOKU_BATCH_PG_BIN` does not hold what is needed.
    #[error(
        "SUDOKU_BATCH_PG_BIN names {}, {reason}; name a folder with postgres, initdb and pg_ctl of PostgreSQL \
         {VERSION_MIN} or newer, or unset it",
        folder.display()
    )]
    NamedPrograms {
        /// The folder as given.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The data was made by another major version, whose programs are not installed.
    #[error(
        "the data in {} was made by PostgreSQL {made_by}, but only PostgreSQL {found} is found; install PostgreSQL \
         {made_by}, or choose another --data-dir",
        folder.display()
    )]
    OtherVersion {
        /// The data folder.
        folder: PathBuf,
        /// The major version that made the data.
        made_by: u32,
        /// The newest major version installed.
        found: u32,
    },
    /// Root was given no unprivileged user to run PostgreSQL as.
    #[error(
        "PostgreSQL does not run as root, and this system has no user {tried} to run it as; add one or start as an \
         ordinary user"
    )]
    NoUser {
        /// The users looked for.
        tried: String,
    },
    /// Another process runs a cluster in this folder.
    #[error("data folder {} is in use by {}; stop that one, or choose another --data-dir", folder.display(), process(*pid))]
    InUse {
        /// The data folder.
        folder: PathBuf,
        /// The process that holds it, if it could be read.
        pid: Option<u32>,
    },
    /// The helpers of an earlier, killed owner do not come to an end.
    #[error(
        "the helpers of an earlier run still work on data folder {} after {seconds} s; see its postgres.log, and end \
         them or choose another --data-dir",
        folder.display()
    )]
    HelpersBusy {
        /// The data folder.
        folder: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The folder holds something else.
    #[error("{} {reason}; choose an empty or new folder for --data-dir", folder.display())]
    ForeignFolder {
        /// The folder as given.
        folder: PathBuf,
        /// Why it is not taken.
        reason: &'static str,
    },
    /// The data belongs to a user that this process cannot act as.
    #[error(
        "data folder {} belongs to {owner}, not to {user}; start as that user, or choose another --data-dir",
        folder.display()
    )]
    OtherOwner {
        /// The data folder.
        folder: PathBuf,
        /// Whose it is.
        owner: String,
        /// Who this process is.
        user: String,
    },
    /// A folder on the way is closed to the user that PostgreSQL runs as.
    #[error(
        "{} cannot be reached by user {user}, as whom PostgreSQL runs: folder {} is closed to that user; {remedy}",
        wanted.display(), closed.display()
    )]
    Unreachable {
        /// The first closed folder.
        closed: PathBuf,
        /// What lies beyond it.
        wanted: PathBuf,
        /// The unprivileged user.
        user: String,
        /// What to do.
        remedy: &'static str,
    },
    /// No folder for temporary data is open to the user that PostgreSQL runs as.
    #[error(
        "no temporary folder that user {user} can reach and write, as whom PostgreSQL runs, tried {tried}; set TMPDIR \
         to such a folder"
    )]
    NoTemporaryFolder {
        /// The unprivileged user.
        user: String,
        /// The folders tried.
        tried: String,
    },
    /// A program could not be run at all.
    #[error("cannot run {} as user {user}: {cause}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The user it was to run as.
        user: String,
        /// What the system said.
        cause: io::Error,
    },
    /// A program ran and failed.
    #[error("{} failed ({status}): {output}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: String,
        /// The clipped end of what it said.
        output: String,
    },
    /// The server ended before it accepted connections.
    #[error("PostgreSQL did not start ({status}), see {}: {output}", log_file.display())]
    DidNotStart {
        /// How it ended.
        status: String,
        /// The server's log.
        log_file: PathBuf,
        /// The clipped errors from the log of this start.
        output: String,
    },
    /// The server runs but did not accept connections in time.
    #[error("PostgreSQL accepts no connections after {seconds} s, see {}: {output}", log_file.display())]
    NotReady {
        /// How long was waited.
        seconds: u64,
        /// The server's log.
        log_file: PathBuf,
        /// The clipped end of the log of this start.
        output: String,
    },
    /// The server did not end, not even by SIGKILL.
    #[error("PostgreSQL process {pid} does not end, not even by SIGKILL; look at it with `ps -p {pid}`")]
    DidNotStop {
        /// The server's process.
        pid: u32,
    },
    /// A file or folder could not be worked on.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// What was tried, a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The system refused an operation on a child process.
    #[error("cannot {action} process {pid}: {cause}")]
    Process {
        /// What was tried, a verb.
        action: &'static str,
        /// On which process.
        pid: u32,
        /// What the system said.
        cause: io::Error,
    },
}

impl Error {
    /// For `map_err` on an operation on `path`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::File { action, path: path.to_owned(), cause }
    }

    /// For `map_err` on an operation on a child process.
    pub(crate) fn process<E: Into<io::Error>>(action: &'static str, pid: u32) -> impl FnOnce(E) -> Self {
        move |cause| Self::Process { action, pid, cause: cause.into() }
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// The end of a program's output as one clipped line.
pub(crate) fn one_line(output: &str) -> String {
    let joined = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let surplus = joined.chars().count().saturating_sub(QUOTATION_CHARS_MAX);
    if surplus == 0 { joined } else { format!("…{}", joined.chars().skip(surplus).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_becomes_one_clipped_line() {
        assert_eq!(one_line("a\n\n  b \n"), "a; b");
        let long = one_line(&"ä".repeat(QUOTATION_CHARS_MAX + 1));
        assert_eq!(long.chars().count(), QUOTATION_CHARS_MAX + 1);
        assert!(long.starts_with('…'));
    }

    #[test]
    fn each_text_is_one_line() {
        let texts = [
            Error::NoPrograms.to_string(),
            Error::InUse { folder: "/d".into(), pid: None }.to_string(),
            Error::OtherVersion { folder: "/d".into(), made_by: 14, found: 17 }.to_string(),
            Error::NoTemporaryFolder { user: "nobody".into(), tried: "/tmp".into() }.to_string(),
        ];
        for text in texts {
            assert!(!text.contains('\n') && !text.contains("  "), "{text:?}");
        }
    }
}
