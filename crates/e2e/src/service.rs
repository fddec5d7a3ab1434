//! One server and some workers on a database of their own.

use crate::{Database, Process};

/// A running service.
#[derive(Debug)]
pub struct Service {
    /// Dropped first: a worker without a server is no fault, a worker without a database is.
    pub workers: Vec<Process>,
    /// The server.
    pub server: Process,
    /// Where it listens.
    pub url: String,
    /// Dropped last.
    pub database: Database,
}

impl Service {
    /// Starts a server and `workers` worker processes of one thread each, with `options` added for the workers.
    ///
    /// # Panics
    /// When one does not become ready.
    #[must_use]
    pub fn start(workers: usize, options: &[&str]) -> Self {
        let database = Database::fresh();
        let (server, url) = Self::server(&database);
        let workers = (0..workers).map(|_| Self::worker(&database, options)).collect();
        Self { workers, server, url, database }
    }

    /// Starts a server; gives it with its address.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn server(database: &Database) -> (Process, String) {
        let mut server = Process::start(
            &["serve", "--listen", "127.0.0.1:0", "--exit-with-parent"],
            &[("DATABASE_URL", &database.url())],
        );
        let url = server.line("ready ");
        (server, url)
    }

    /// Starts a worker of one thread.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn worker(database: &Database, options: &[&str]) -> Process {
        let args = [&["work", "--threads", "1", "--exit-with-parent"], options].concat();
        let mut worker = Process::start(&args, &[("DATABASE_URL", &database.url())]);
        worker.line("ready worker ");
        worker
    }
}
