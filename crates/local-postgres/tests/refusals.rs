//! What is refused, and that the one line names what, where and what to do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::{Command, Output},
};

use local_postgres::{Error, LocalPostgres, Programs};
use support::{is_root, open_folder, options, query};

mod support;

/// Runs the helper program, which starts a cluster first.
fn with_postgres(arguments: &[&str], variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn stderr_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let root = open_folder();
    let foreign = root.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter"), "dear").unwrap();
    let before = fs::metadata(&foreign).unwrap();
    let error = LocalPostgres::start(&options(&foreign)).unwrap_err();
    assert!(matches!(error, Error::ForeignFolder { .. }), "{error}");
    assert!(error.to_string().contains("/foreign is not empty"), "{error}");
    let after = fs::metadata(&foreign).unwrap();
    assert_eq!((before.uid(), before.mode()), (after.uid(), after.mode()));
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);

    let file = LocalPostgres::start(&options(foreign.join("letter"))).unwrap_err();
    assert!(file.to_string().contains("is not a folder"), "{file}");
}

#[test]
fn a_strangers_cluster_is_foreign_too() {
    let root = open_folder();
    let stranger = root.path().join("stranger/postgres");
    fs::create_dir_all(&stranger).unwrap();
    fs::write(stranger.join("PG_VERSION"), "15\n").unwrap();
    let error = LocalPostgres::start(&options(root.path().join("stranger"))).unwrap_err();
    assert!(matches!(error, Error::ForeignFolder { .. }), "{error}");
}

#[test]
fn a_closed_folder_on_the_way_is_named() {
    let root = open_folder();
    let closed = root.path().join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    for data_dir in [closed.join("inner/new/data"), closed.join("inner")] {
        let started = LocalPostgres::start(&options(&data_dir));
        if is_root() {
            let error = started.unwrap_err();
            let Error::Unreachable { closed: named, .. } = &error else { panic!("{error}") };
            assert_eq!(named, &fs::canonicalize(&closed).unwrap());
            let text = error.to_string();
            assert!(text.contains("--data-dir") && text.contains(data_dir.to_str().unwrap()), "{text}");
            assert!(!closed.join("inner/new").exists(), "something was made before the refusal");
        } else {
            // A folder closed to others is open to its owner, as whom PostgreSQL runs.
            assert_eq!(query(started.unwrap().socket_dir(), "select 1"), "1");
            fs::remove_dir_all(closed.join("inner")).unwrap();
            fs::create_dir(closed.join("inner")).unwrap();
        }
    }
}

#[test]
fn a_temporary_folder_that_is_closed_is_passed_over() {
    let closed = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
    let script = ["--", "sh", "-c", "printf %s \"$PGHOST\""];
    let output = with_postgres(&script, &[("TMPDIR", closed.path())]);
    assert!(output.status.success(), "{output:?}");
    let folder = String::from_utf8(output.stdout).unwrap();
    let real = fs::canonicalize(closed.path()).unwrap();
    assert_eq!(Path::new(&folder).starts_with(real), !is_root(), "{folder}");
}

#[test]
fn a_named_folder_without_programs_is_named() {
    let empty = open_folder();
    let output = with_postgres(&["--", "true"], &[("SUDOKU_BATCH_PG_BIN", empty.path())]);
    assert_eq!(output.status.code(), Some(1));
    let line = stderr_line(&output);
    assert!(line.contains("SUDOKU_BATCH_PG_BIN") && line.contains(empty.path().to_str().unwrap()), "{line}");
}

#[test]
fn data_of_another_version_needs_its_programs() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    LocalPostgres::start(&options(&data_dir)).unwrap().stop().unwrap();
    fs::write(data_dir.join("postgres/PG_VERSION"), "11\n").unwrap();
    let error = LocalPostgres::start(&options(&data_dir)).unwrap_err();
    let found = Programs::find().unwrap().major_version();
    let both = matches!(error, Error::OtherVersion { made_by: 11, found: named, .. } if named == found);
    assert!(both, "{error}");
}

#[test]
fn wrong_usage_is_told() {
    for arguments in [&["true"][..], &["--durable"], &["--"], &["--data-dir", "--"]] {
        let output = with_postgres(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr_line(&output).starts_with("usage:"));
    }
}
