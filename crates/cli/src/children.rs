//! Child processes: this program again, in another role, tied to this process's life.
//!
//! Each child holds the reading end of a pipe as its standard input; the writing end lives here and nowhere else (it is close-on-exec). It
//! closes when this process drops it or dies, however it dies, and the child ends.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child as Process, ChildStdin, Command},
};

/// How long a child may take to become ready.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long a child may take to end after its pipe closes, before it is killed.
const END_MAX: Duration = Duration::from_secs(10);

/// A running child.
pub(crate) struct Child {
    name: String,
    process: Process,
    /// Closing it tells the child to end.
    pipe: Option<ChildStdin>,
    /// What it said when it was ready.
    ready: String,
}

impl Child {
    /// Starts a role and waits until it says `ready …`.
    pub(crate) async fn start(
        name: String,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        // The user's settings for other databases are not for this one.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        let mut process = command
            .args(args)
            .arg("--exit-with-parent")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on the terminal is for the parent, which ends its children in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let pipe = process.stdin.take();
        let Some(stdout) = process.stdout.take() else { bail!("{name} has no output") };
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(READY_MAX, lines.next_line())
            .await
            .with_context(|| format!("{name} was not ready within {} s", READY_MAX.as_secs()))?
            .with_context(|| format!("cannot hear {name}"))?;
        let Some(ready) = line.as_deref().and_then(|line| line.strip_prefix("ready ")) else {
            let status = process.wait().await.with_context(|| format!("cannot wait for {name}"))?;
            bail!("{name} did not start ({status}); its own message is above");
        };
        let ready = ready.to_owned();
        Ok(Self { name, process, pipe, ready })
    }

    /// What it said after `ready`.
    pub(crate) fn ready(&self) -> &str {
        &self.ready
    }

    /// Its process, while nobody knows that it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<String>> {
        let status = self.process.try_wait().with_context(|| format!("cannot look after {}", self.name))?;
        Ok(status.map(|status| status.to_string()))
    }

    /// Tells it to end.
    pub(crate) fn tell_to_end(&mut self) {
        self.pipe = None;
    }

    /// Waits for its end; kills it if that takes too long.
    pub(crate) async fn end(mut self) {
        self.tell_to_end();
        match tokio::time::timeout(END_MAX, self.process.wait()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(child = self.name, %error, "cannot wait for a child process"),
            Err(_) => {
                tracing::warn!(child = self.name, "a child process did not end in time; it is killed");
                if let Err(error) = self.process.kill().await {
                    tracing::warn!(child = self.name, %error, "cannot kill a child process");
                }
            }
        }
    }
}
