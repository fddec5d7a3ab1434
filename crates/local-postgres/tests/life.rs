//! A cluster's life with real programs: start, connect, stop, start again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use local_postgres::{Error, LocalPostgres, Options, Programs};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use support::{is_alive, is_root, open_folder, options, query, server_pid, wait_until};

mod support;

#[test]
fn data_stays_over_a_stop_and_a_start() {
    let root = open_folder();
    let data_dir = root.path().join("not/yet/there");
    let first = LocalPostgres::start(&Options { durable: true, ..options(&data_dir) }).unwrap();
    let pid = first.server_pid();
    assert_eq!(pid, server_pid(&data_dir));
    assert_eq!(query(first.socket_dir(), "show fsync"), "on");
    assert_eq!(query(first.socket_dir(), "show listen_addresses"), "");
    assert_eq!(query(first.socket_dir(), "show max_connections"), "10");
    assert_eq!(query(first.socket_dir(), "show server_encoding"), "UTF8");
    query(first.socket_dir(), "create table kept as select 42 as answer");
    first.stop().unwrap();
    assert!(!is_alive(pid));

    let second = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert_eq!(query(second.socket_dir(), "show fsync"), "off");
    assert_eq!(query(second.socket_dir(), "show synchronous_commit"), "on");
    assert_eq!(query(second.socket_dir(), "select answer from kept"), "42");
    let log = fs::read_to_string(second.log_file()).unwrap();
    assert!(!log.contains("automatic recovery"), "the stop was not clean: {log}");
}

#[test]
fn the_folder_is_closed_and_root_does_not_run_postgres() {
    let root = open_folder();
    let postgres = LocalPostgres::start(&options(root.path().join("data"))).unwrap();
    let folder = fs::metadata(root.path().join("data")).unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    assert_ne!(folder.uid(), 0, "PostgreSQL refuses to run as root");
    assert_eq!(folder.uid() == fs::metadata(root.path()).unwrap().uid(), !is_root());
    let socket = fs::metadata(postgres.socket_dir().join(".s.PGSQL.5432")).unwrap();
    assert_eq!((socket.uid(), socket.mode() & 0o777), (folder.uid(), 0o700));
}

#[test]
fn dropping_stops_it() {
    let postgres = LocalPostgres::start_temporary(false).unwrap();
    let (pid, folder) = (postgres.server_pid(), postgres.socket_dir().to_owned());
    assert_eq!(query(&folder, "select 1"), "1");
    drop(postgres);
    assert!(!is_alive(pid));
    assert!(!folder.exists());
}

#[test]
fn the_url_names_the_socket_folder() {
    let postgres = LocalPostgres::start_temporary(false).unwrap();
    let psql = Programs::find().unwrap().bin_dir().join("psql");
    let output = Command::new(psql).args([&postgres.url(), "-XAtc", "select current_user"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "sudoku");
    postgres.stop().unwrap();
}

#[test]
fn a_second_start_on_the_folder_is_refused() {
    let root = open_folder();
    let first = LocalPostgres::start(&options(root.path().join("data"))).unwrap();
    let error = LocalPostgres::start(&options(root.path().join("data"))).unwrap_err();
    assert!(matches!(error, Error::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    assert!(error.to_string().contains("/data is in use by process"), "{error}");
    assert_eq!(query(first.socket_dir(), "select 1"), "1");
}

#[test]
fn an_end_of_the_server_is_seen() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    let mut postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert!(!postgres.has_exited().unwrap());
    query(postgres.socket_dir(), "create table kept ()");
    kill(Pid::from_raw(postgres.server_pid().cast_signed()), Signal::SIGKILL).unwrap();
    wait_until("the end is seen", || postgres.has_exited().unwrap());
    postgres.stop().unwrap();

    // Its pid file is stale now, and the server's own children need a moment to notice its end.
    let mut again = None;
    wait_until("it starts again", || {
        again = LocalPostgres::start(&options(&data_dir)).ok();
        again.is_some()
    });
    assert_eq!(query(again.unwrap().socket_dir(), "select count(*) from kept"), "0");
}

#[test]
fn a_left_over_server_without_owner_and_watcher_is_replaced() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    LocalPostgres::start(&options(&data_dir)).unwrap().stop().unwrap();

    let folder = fs::metadata(&data_dir).unwrap();
    let mut pg_ctl = Command::new(Programs::find().unwrap().bin_dir().join("pg_ctl"));
    if is_root() {
        pg_ctl.uid(folder.uid()).gid(folder.gid());
    }
    pg_ctl.args(["start", "-w", "-o"]).arg(format!("-c listen_addresses='' -k {}", data_dir.display()));
    pg_ctl.arg("-D").arg(data_dir.join("postgres")).current_dir("/").stdout(Stdio::null());
    assert!(pg_ctl.stderr(Stdio::null()).status().unwrap().success());
    let left_over = server_pid(&data_dir);

    let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert_ne!(postgres.server_pid(), left_over);
    wait_until("the left-over server is gone", || !is_alive(left_over));
    assert_eq!(query(postgres.socket_dir(), "select 1"), "1");
}

#[test]
fn a_half_made_cluster_is_made_again() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    LocalPostgres::start(&options(&data_dir)).unwrap().stop().unwrap();
    // As a kill in the middle of initdb leaves it: some files, and no note that it ended.
    fs::remove_file(data_dir.join("postgres.made")).unwrap();
    fs::remove_dir_all(data_dir.join("postgres/base")).unwrap();
    let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert_eq!(query(postgres.socket_dir(), "select 1"), "1");
}

#[test]
fn a_long_path_gets_a_short_socket_folder() {
    let root = open_folder();
    for name in ["x".repeat(100), "comma, \"quote\" and space".to_owned()] {
        let data_dir = root.path().join(name);
        let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
        let socket_dir = postgres.socket_dir().to_owned();
        assert_ne!(socket_dir, data_dir);
        assert!(socket_dir.as_os_str().len() < 80);
        assert_eq!(query(&socket_dir, "select 1"), "1");
        postgres.stop().unwrap();
        assert!(!socket_dir.exists());
        assert!(data_dir.join("postgres/PG_VERSION").exists());
    }
}

#[test]
fn quotes_and_spaces_in_the_path_are_fine() {
    let root = open_folder();
    let data_dir = root.path().join("it's a \"$HOME\" \\ %ä");
    let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert_eq!(postgres.socket_dir(), fs::canonicalize(&data_dir).unwrap());
    assert_eq!(query(postgres.socket_dir(), "select 1"), "1");
    postgres.stop().unwrap();
}

#[test]
fn a_long_log_is_put_aside() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    LocalPostgres::start(&options(&data_dir)).unwrap().stop().unwrap();
    let log = fs::OpenOptions::new().append(true).open(data_dir.join("postgres.log")).unwrap();
    log.set_len(11 << 20).unwrap();
    let postgres = LocalPostgres::start(&options(&data_dir)).unwrap();
    assert!(fs::metadata(postgres.log_file()).unwrap().len() < 1 << 20);
    assert!(Path::exists(&data_dir.join("postgres.log.1")));
}

#[test]
fn a_server_that_cannot_start_says_why_in_one_line() {
    let root = open_folder();
    let data_dir = root.path().join("data");
    LocalPostgres::start(&options(&data_dir)).unwrap().stop().unwrap();
    fs::write(data_dir.join("postgres/postgresql.conf"), "no_such_setting = 1\n").unwrap();
    let error = LocalPostgres::start(&options(&data_dir)).unwrap_err();
    assert!(matches!(error, Error::DidNotStart { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("no_such_setting") && text.contains("postgres.log"), "{text}");
    assert!(!text.contains('\n'), "{text}");
}
