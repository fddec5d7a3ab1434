//! A database of its own for each test, on one private PostgreSQL.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use local_postgres::{LocalPostgres, Programs};

/// One database, fresh.
#[derive(Debug)]
pub struct Database {
    name: String,
    cluster: &'static Cluster,
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
        let bin_dir = Programs::find().expect("PostgreSQL programs").bin_dir().to_owned();
        let shared = std::env::var_os("SUDOKU_BATCH_TEST_DATABASE_URL").and(std::env::var_os("PGHOST"));
        if let Some(socket_dir) = shared {
            return Cluster { socket_dir: socket_dir.into(), bin_dir, _own: None };
        }
        let own = LocalPostgres::start_temporary(false).expect("a private PostgreSQL");
        Cluster { socket_dir: own.socket_dir().to_owned(), bin_dir, _own: Some(own) }
    })
}

impl Database {
    /// Makes one.
    ///
    /// # Panics
    /// When PostgreSQL cannot be started or refuses.
    #[must_use]
    pub fn fresh() -> Self {
        let database = Self { name: format!("t_{}", uuid::Uuid::new_v4().simple()), cluster: cluster() };
        database.psql("postgres", &format!("create database {}", database.name));
        database
    }

    /// How the roles reach it.
    #[must_use]
    pub fn url(&self) -> String {
        let host = self.cluster.socket_dir.display().to_string().replace('/', "%2F");
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

    fn psql(&self, database: &str, sql: &str) -> Vec<String> {
        let output = Command::new(self.cluster.bin_dir.join("psql"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "sudoku",
                "-d",
                database,
                "-c",
                sql,
            ])
            .arg("-h")
            .arg(&self.cluster.socket_dir)
            .output()
            .expect("psql can be run");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.psql("postgres", &format!("drop database if exists {} with (force)", self.name));
        }
    }
}
