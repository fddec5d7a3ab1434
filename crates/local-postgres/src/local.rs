//! A private cluster from start to stop.
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{
    Error, Programs,
    account::Account,
    cluster::{self, SUPERUSER},
    data_folder::DataFolder,
    locks::Locks,
    runner::Runner,
    server::{self, Server, Settings},
    socket::{self, SocketFolder},
    temporary,
    watcher::Watcher,
};

/// Connections that a temporary cluster allows: tests run many processes at once.
const TEMPORARY_CONNECTIONS_MAX: u32 = 200;

/// How to run a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder to keep everything in: new, empty, or one of an earlier start. A relative one is taken from the
    /// working folder. Whatever its length, the socket's path is not too long.
    pub data_dir: PathBuf,
    /// Whether committed data survives a crash of the machine. `false` is faster, and for tests only.
    pub durable: bool,
    /// The most connections at a time.
    pub max_connections: u32,
}

/// A running private cluster.
///
/// Dropping it stops the cluster as [`LocalPostgres::stop`] does, except that errors are lost. It never outlives this
/// process: when that is killed, the watcher stops the cluster within seconds.
#[derive(Debug)]
pub struct LocalPostgres {
    // Dropped in this order: the server ends before its watcher, the files go after both, the locks last.
    server: Server,
    watcher: Watcher,
    socket_folder: SocketFolder,
    temporary: Option<TempDir>,
    data_dir: PathBuf,
    log_file: PathBuf,
    _locks: Locks,
}

impl LocalPostgres {
    /// Starts the cluster in a folder, made first if it is new, and waits until it accepts connections.
    ///
    /// Blocks for about a second, longer for crash recovery, and for at most two minutes when a killed owner's cluster
    /// has to be stopped first.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] when another process runs this folder's cluster; otherwise any but [`Error::DidNotStop`].
    pub fn start(options: &Options) -> Result<Self, Error> {
        // First, so that nothing is made when nothing is installed.
        Programs::find()?;
        Self::start_in(options, |folder| Programs::find_for(folder.path(), cluster::made_by(folder)?), None)
    }

    /// Starts a cluster in a new temporary folder, removed when it stops or when this process is killed.
    ///
    /// It allows 200 connections.
    ///
    /// # Errors
    ///
    /// [`Error::NoTemporaryFolder`] when no place for one is open to the user that PostgreSQL runs as; otherwise as
    /// [`LocalPostgres::start`].
    pub fn start_temporary(durable: bool) -> Result<Self, Error> {
        Self::start_temporary_for(durable, TEMPORARY_CONNECTIONS_MAX)
    }

    /// The same for so many connections.
    ///
    /// # Errors
    ///
    /// As [`LocalPostgres::start_temporary`].
    pub fn start_temporary_for(durable: bool, max_connections: u32) -> Result<Self, Error> {
        // First, so that nothing is made when nothing is installed, and that nothing takes long between the folder and its watcher.
        let programs = Programs::find()?;
        let temporary = temporary::folder(&Account::choose()?, |_| true)?;
        let data_dir = temporary.path().to_owned();
        let options = Options { data_dir, durable, max_connections };
        Self::start_in(&options, |_| Ok(programs), Some(temporary))
    }

    fn start_in(
        options: &Options,
        programs: impl FnOnce(&DataFolder) -> Result<Programs, Error>,
        temporary: Option<TempDir>,
    ) -> Result<Self, Error> {
        let (folder, account) = DataFolder::take(&options.data_dir)?;
        let locks = Locks::take(folder.path(), &account)?;
        let runner = Runner::new(programs(&folder)?, account, folder.path())?;
        let log_file = folder.log_file();
        cluster::stop_left_over(&runner, &folder, &locks)?;

        let socket_folder = SocketFolder::choose(folder.path(), runner.account())?;
        let removed = socket_folder.temporary.iter().chain(&temporary).map(TempDir::path);
        let log = server::open_log(&runner, &log_file)?;
        let mut watcher = Watcher::start(&runner, &folder.cluster(), locks.for_helper()?, log, removed)?;
        cluster::make(&runner, &folder, &locks, options.durable)?;
        let settings = Settings {
            socket_folder: &socket_folder.path,
            durable: options.durable,
            max_connections: options.max_connections,
        };
        watcher.expect_server()?;
        let server = Server::start(&runner, &folder, &settings)?;
        let data_dir = folder.path().to_owned();
        Ok(Self { server, watcher, socket_folder, temporary, data_dir, log_file, _locks: locks })
    }

    /// Where to connect: the superuser `sudoku`, the database `postgres`, the socket's folder as the host.
    #[must_use]
    pub fn url(&self) -> String {
        socket::url(&self.socket_folder.path, SUPERUSER)
    }

    /// The folder of the Unix socket, as `psql -h` takes it.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.socket_folder.path
    }

    /// The folder that everything is kept in.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// What the server and its watcher say. Put aside as `postgres.log.1` when a start finds it over 10 MiB.
    #[must_use]
    pub fn log_file(&self) -> &Path {
        &self.log_file
    }

    /// The server's process.
    #[must_use]
    pub fn server_pid(&self) -> u32 {
        self.server.pid()
    }

    /// Whether the server has ended by itself; it is not started again.
    ///
    /// # Errors
    ///
    /// [`Error::Process`] when the system does not tell.
    pub fn has_exited(&mut self) -> Result<bool, Error> {
        Ok(self.server.try_wait()?.is_some())
    }

    /// Stops the cluster and removes what is temporary.
    ///
    /// Blocks: a fast shutdown ends all connections and writes everything out, usually within a second. After 60 s it
    /// becomes an immediate one, from which the next start recovers. A server that ended before is no error.
    ///
    /// # Errors
    ///
    /// [`Error::DidNotStop`], [`Error::Process`], or [`Error::File`] when a temporary folder cannot be removed.
    pub fn stop(self) -> Result<(), Error> {
        let Self { mut server, mut watcher, socket_folder, temporary, data_dir: _, log_file: _, _locks } =
            self;
        server.stop()?;
        watcher.end()?;
        for folder in socket_folder.temporary.into_iter().chain(temporary) {
            let path = folder.path().to_owned();
            folder.close().map_err(Error::file("remove", &path))?;
        }
        Ok(())
    }
}
