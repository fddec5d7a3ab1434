//! Runs PostgreSQL programs as the cluster's user, with a known environment.
use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{Error, account::Account, error::one_line, programs::Programs, reach};

/// Who runs what, and where.
#[derive(Debug)]
pub(crate) struct Runner {
    programs: Programs,
    account: Account,
    folder: PathBuf,
}

impl Runner {
    /// `folder` is the working folder and `HOME` of what is run.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`] when the account cannot get at the programs.
    pub(crate) fn new(programs: Programs, account: Account, folder: &Path) -> Result<Self, Error> {
        let bin_dir = programs.bin_dir();
        let real = fs::canonicalize(bin_dir).map_err(Error::file("find", bin_dir))?;
        reach::check(&real, bin_dir, &account, "open it, or set SUDOKU_BATCH_PG_BIN to other programs")?;
        Ok(Self { programs, account, folder: folder.to_owned() })
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// The full path of a PostgreSQL program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.bin_dir().join(name)
    }

    /// A command in a process group of its own, so that a Ctrl-C at the terminal does not reach it.
    ///
    /// The environment is cleared, since variables such as `PGPORT` or `PGDATA` would change what the programs do.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut path = self.programs.bin_dir().as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env_clear();
        command.env("PATH", path).env("HOME", &self.folder).env("LC_ALL", "C");
        if let Some(zone) = env::var_os("TZ") {
            command.env("TZ", zone);
        }
        command.stdin(Stdio::null()).process_group(0);
        self.account.apply(&mut command);
        command
    }

    /// Starts a command.
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<Child, Error> {
        command.spawn().map_err(|cause| Error::Run {
            program: command.get_program().into(),
            user: self.account.name.clone(),
            cause,
        })
    }

    /// Runs a PostgreSQL program to its end. `held` is a lock that stays locked for as long as it runs, even when this
    /// process is killed meanwhile.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = A>,
        held: File,
    ) -> Result<(), Error> {
        let mut command = self.command(self.program(name));
        command.args(arguments).stdin(held).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = self.spawn(&mut command)?.wait_with_output();
        let program = self.program(name);
        let output = output.map_err(Error::file("wait for", &program))?;
        if output.status.success() {
            return Ok(());
        }
        // What matters comes last, and the errors stream after the chatter.
        let said = format!("{}\n{}", lossy(&output.stdout), lossy(&output.stderr));
        Err(Error::Failed { program, status: output.status.to_string(), output: one_line(&said) })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
