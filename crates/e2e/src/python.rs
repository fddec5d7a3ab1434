//! Programs in Python that know the service by its proto files alone: those of `crates/e2e/python`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use crate::Finished;

/// The root of the repository, where `make python` has made what the programs need.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/e2e").to_owned();
        let made = Command::new(root.join(".ci/ensure-python")).status().expect("a script of the house");
        assert!(made.success(), "the environment of Python cannot be made: see .ci/ensure-python");
        root
    })
}

/// A program of `crates/e2e/python`, to be started.
///
/// # Panics
/// When what it needs cannot be made.
#[must_use]
pub fn python(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(root().join("target/python/bin/python"));
    command
        .arg(root().join("crates/e2e/python").join(program))
        .args(args)
        .env("PYTHONPATH", root().join("target/python/stubs"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("no_proxy", "127.0.0.1")
        .stdin(Stdio::null());
    command
}

/// Runs one to its end.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn run_python(program: &str, args: &[&str]) -> Finished {
    let output = python(program, args).output().expect("Python can be started");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}
