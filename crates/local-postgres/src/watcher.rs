//! The watcher: a shell that stops the cluster when the owner is gone, however it went.
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process::{Child, Stdio},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use crate::{Error, runner::Runner};

const SCRIPT: &str = include_str!("watcher.sh");

/// How long the watcher lets a fast shutdown take before it asks for an immediate one.
pub(crate) const STOP_SECONDS_MAX: u64 = 60;

/// A running watcher, holding the owner's end of its pipe as the child's stdin.
///
/// Only the owner holds that end: the standard library makes its pipes close-on-exec, so no other child inherits it.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Child,
}

impl Watcher {
    /// Starts before the server does, so that there is no moment in which a killed owner leaves a server behind.
    ///
    /// `held` is locked until the watcher has done its duty; `temporary` folders are removed as its last act.
    pub(crate) fn start<'a>(
        runner: &Runner,
        cluster: &Path,
        held: File,
        log: File,
        temporary: impl Iterator<Item = &'a Path>,
    ) -> Result<Self, Error> {
        let mut command = runner.command("/bin/sh");
        command.arg("-c").arg(SCRIPT).arg(runner.program("pg_ctl")).arg(cluster);
        command.arg(STOP_SECONDS_MAX.to_string()).args(temporary);
        command.current_dir("/").stdin(Stdio::piped()).stdout(held).stderr(log);
        Ok(Self { child: runner.spawn(&mut command)? })
    }

    /// Says that a server is about to be started, so that there will be one to stop.
    pub(crate) fn expect_server(&mut self) -> Result<(), Error> {
        let pid = self.child.id();
        let told = match &mut self.child.stdin {
            Some(pipe) => pipe.write_all(b"server\n"),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        told.map_err(Error::process("tell", pid))
    }

    /// Ends the watcher once the cluster is down; its pipe is still open, so it is in the middle of nothing.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        let pid = self.child.id();
        if self.child.try_wait().map_err(Error::process("ask for", pid))?.is_some() {
            return Ok(());
        }
        killpg(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).map_err(Error::process("end", pid))?;
        self.child.wait().map_err(Error::process("wait for", pid))?;
        Ok(())
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Nobody is left to tell. Should the kill have failed, the closing pipe ends the watcher.
        drop(self.end());
    }
}
