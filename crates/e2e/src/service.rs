//! One server and some workers on a database of their own.

use crate::{Database, Finished, Process, run, searches::ENDLESS_TAKEN};

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

    /// Starts a server that takes the limit of an endless search; gives it with its address.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn server(database: &Database) -> (Process, String) {
        Self::server_at(database, "127.0.0.1:0")
    }

    /// Starts a server at an address.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn server_at(database: &Database, listen: &str) -> (Process, String) {
        Self::server_with(database, &["--listen", listen])
    }

    /// Starts a server with these options, at any address unless they name one.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn server_with(database: &Database, options: &[&str]) -> (Process, String) {
        let listen: &[&str] = if options.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let args = [&["serve", "--exit-with-parent"], listen, options].concat();
        let mut server = Process::start(&args, &[("DATABASE_URL", &*database.url()), ENDLESS_TAKEN]);
        let url = server.line("ready ");
        (server, url)
    }

    /// Starts a worker of one thread.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn worker(database: &Database, options: &[&str]) -> Process {
        Self::worker_with(database, options, &[])
    }

    /// Starts a worker of one thread, unless the options say otherwise, with variables for its test hooks.
    ///
    /// # Panics
    /// When it does not become ready.
    #[must_use]
    pub fn worker_with(database: &Database, options: &[&str], environment: &[(&str, &str)]) -> Process {
        let one_thread: &[&str] = if options.contains(&"--threads") { &[] } else { &["--threads", "1"] };
        let args = [&["work", "--exit-with-parent"], one_thread, options].concat();
        let url = database.url();
        let mut worker = Process::start(&args, &[&[("DATABASE_URL", &*url)], environment].concat());
        worker.line("ready worker ");
        worker
    }

    /// Runs a command against this server.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(&self, args: &[&str], input: &str) -> Finished {
        run(&[args, &["--server", &self.url]].concat(), &[], input)
    }
}
