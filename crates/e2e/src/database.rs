//! A database of its own for each test: on one private PostgreSQL for all, or on one that the test may stop.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use local_postgres::{LocalPostgres, Options, Programs};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::wait::eventually;

/// Connections of a PostgreSQL of a test's own.
const OWN_CONNECTIONS_MAX: u32 = 100;

/// One database, fresh.
#[derive(Debug)]
pub struct Database {
    name: String,
    socket_dir: PathBuf,
    bin_dir: PathBuf,
    own: Option<Own>,
}

/// A PostgreSQL of one test's own.
#[derive(Debug)]
struct Own {
    /// `None` while it is stopped.
    running: Option<LocalPostgres>,
    data_dir: PathBuf,
    /// Dropped last.
    _folder: TempDir,
}

/// A transaction that stays open, with its locks, until this is dropped.
#[derive(Debug)]
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The PostgreSQL that `make test` has started, or one of this test process. That one is never stopped by hand: it ends with this process.
#[derive(Debug)]
struct Cluster {
    socket_dir: PathBuf,
    bin_dir: PathBuf,
    _own: Option<LocalPostgres>,
}

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let bin_dir = bin_dir();
        let shared = std::env::var_os("SUDOKU_BATCH_TEST_DATABASE_URL").and(std::env::var_os("PGHOST"));
        if let Some(socket_dir) = shared {
            return Cluster { socket_dir: socket_dir.into(), bin_dir, _own: None };
        }
        let own = LocalPostgres::start_temporary(false).expect("a private PostgreSQL");
        Cluster { socket_dir: own.socket_dir().to_owned(), bin_dir, _own: Some(own) }
    })
}

fn bin_dir() -> PathBuf {
    Programs::find().expect("PostgreSQL programs").bin_dir().to_owned()
}

impl Own {
    fn start(&mut self) {
        let options =
            Options { data_dir: self.data_dir.clone(), durable: true, max_connections: OWN_CONNECTIONS_MAX };
        self.running = Some(LocalPostgres::start(&options).expect("a PostgreSQL of its own"));
    }
}

impl Database {
    /// Makes one on the PostgreSQL that all tests share.
    ///
    /// # Panics
    /// When PostgreSQL cannot be started or refuses.
    #[must_use]
    pub fn fresh() -> Self {
        let Cluster { socket_dir, bin_dir, .. } = cluster();
        Self::made(socket_dir.clone(), bin_dir.clone(), None)
    }

    /// Makes one on a PostgreSQL of its own, a durable one, which may be stopped and killed.
    ///
    /// # Panics
    /// When PostgreSQL cannot be started or refuses.
    #[must_use]
    pub fn on_its_own_postgres() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("own-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()
            .expect("a temporary folder");
        let data_dir = folder.path().join("data");
        let mut own = Own { running: None, data_dir, _folder: folder };
        own.start();
        let socket_dir =
            own.running.as_ref().map(|postgres| postgres.socket_dir().to_owned()).unwrap_or_default();
        Self::made(socket_dir, bin_dir(), Some(own))
    }

    fn made(socket_dir: PathBuf, bin_dir: PathBuf, own: Option<Own>) -> Self {
        let name = format!("t_{}", uuid::Uuid::new_v4().simple());
        let database = Self { name, socket_dir, bin_dir, own };
        database.psql("postgres", &format!("create database {}", database.name));
        database
    }

    /// Stops its PostgreSQL in order: connections are cut, everything is written out.
    ///
    /// # Panics
    /// When it has none of its own, or that does not stop.
    pub fn stop_postgres(&mut self) {
        let running = self.own.as_mut().and_then(|own| own.running.take()).expect("its own, running");
        running.stop().expect("PostgreSQL stops");
    }

    /// Ends its PostgreSQL as a crash would: what was not on disk is lost.
    ///
    /// # Panics
    /// When it has none of its own, or that cannot be killed.
    pub fn kill_postgres(&mut self) {
        let running = self.own.as_mut().and_then(|own| own.running.take()).expect("its own, running");
        let pid = i32::try_from(running.server_pid()).expect("process ids fit");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the server is there");
        running.stop().expect("nothing is left to stop");
    }

    /// Starts its PostgreSQL again, where it was.
    ///
    /// # Panics
    /// When it has none of its own, or that does not start.
    pub fn start_postgres(&mut self) {
        self.own.as_mut().expect("its own").start();
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where its PostgreSQL listens.
    pub(crate) fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// How the roles reach it.
    #[must_use]
    pub fn url(&self) -> String {
        let host = self.socket_dir.display().to_string().replace('/', "%2F");
        format!("postgres://sudoku@localhost/{}?host={host}", self.name)
    }

    /// Runs statements for their effect.
    ///
    /// # Panics
    /// When one fails.
    pub fn execute(&self, sql: &str) {
        self.psql(&self.name, sql);
    }

    /// Runs one statement; gives its rows, columns parted by `|`.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn query(&self, sql: &str) -> Vec<String> {
        self.psql(&self.name, sql)
    }

    /// The one value of a statement.
    ///
    /// # Panics
    /// When it fails or gives more or less than one row.
    #[must_use]
    pub fn value(&self, sql: &str) -> String {
        let rows = self.query(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows.into_iter().next().unwrap_or_default()
    }

    /// Locks a table until what is given back is dropped; returns when it is locked.
    ///
    /// # Panics
    /// When it cannot be locked.
    #[must_use]
    pub fn locked(&self, table: &str, mode: &str) -> Held {
        self.held(&format!("begin; lock table {table} in {mode} mode"))
    }

    /// Keeps a snapshot of now, as a long report does, until what is given back is dropped.
    ///
    /// # Panics
    /// When it cannot be taken.
    #[must_use]
    pub fn snapshot(&self) -> Held {
        self.held("begin isolation level repeatable read; select from batch")
    }

    /// Runs statements that open a transaction, and leaves it open until what is given back is dropped.
    ///
    /// # Panics
    /// When one fails.
    #[must_use]
    pub fn held(&self, sql: &str) -> Held {
        let mut session = self.session(&self.name);
        let mut child =
            session.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("psql can be run");
        let sql = format!("{sql}; select 'held';\n");
        child.stdin.as_mut().expect("piped").write_all(sql.as_bytes()).expect("psql reads");
        let said = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        assert!(said.map_while(Result::ok).any(|line| line == "held"), "{sql}");
        Held(child)
    }

    /// Waits until so many statements that hold `text` wait for a lock.
    ///
    /// # Panics
    /// When they do not.
    pub fn blocked(&self, count: usize, text: &str) {
        let sql = format!(
            "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and position('{text}' in query) > 0"
        );
        let what = format!("{count} statements with {text:?} wait for a lock");
        eventually(&what, || (self.value(&sql) == count.to_string()).then_some(()));
    }

    fn session(&self, database: &str) -> Command {
        let mut psql = Command::new(self.bin_dir.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "sudoku", "-d", database, "-h"])
            .arg(&self.socket_dir);
        psql
    }

    fn psql(&self, database: &str, sql: &str) -> Vec<String> {
        let output = self.session(database).args(["-c", sql]).output().expect("psql can be run");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.own.is_none() {
            self.psql("postgres", &format!("drop database if exists {} with (force)", self.name));
        }
    }
}
