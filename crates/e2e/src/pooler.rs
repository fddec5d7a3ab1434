//! A pooler between processes and a database: PgBouncer in transaction mode, a process of a test's own.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nix::unistd::{Uid, User};
use tempfile::TempDir;

use crate::{Database, eventually};

/// Names its socket: it listens on no network.
const PORT: u16 = 6432;
/// Where packages put the program, if not on the PATH.
const FOLDERS: [&str; 5] =
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];
/// Starts the program and ends it when standard input closes, so that it never outlives the test. A word that may be disobeyed would not do: since 1.23 it waits for
/// its clients at SIGTERM.
const KEEPER: &str = r#""$@" 2>"$0" & pid=$!; exec 2>/dev/null; read -r _; kill -KILL "$pid"; wait "$pid""#;

/// A running PgBouncer.
#[derive(Debug)]
pub struct Pooler {
    keeper: Child,
    url: String,
    folder: TempDir,
}

impl Pooler {
    /// Starts one that lends at most `servers` connections of the database at a time, each for one transaction. `more` are lines of its set-up.
    ///
    /// # Panics
    /// When there is no PgBouncer, or it does not start.
    #[must_use]
    pub fn start(database: &Database, servers: u32, more: &str) -> Self {
        let program =
            program().expect("PgBouncer is not installed, and this test needs it: run `make pgbouncer`");
        let folder = tempfile::Builder::new()
            .prefix("pooler-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary folder");
        let path = folder.path();
        let set_up = path.join("pgbouncer.ini");
        let user = user(database);
        if let Some(user) = &user {
            chown(path, Some(user.uid.as_raw()), None).expect("root may");
        }
        let user = user.map(|user| format!("user = {}", user.name)).unwrap_or_default();
        let lines = [&*written(database, path, servers), &user, more].join("\n");
        fs::write(&set_up, lines + "\n").expect("the folder can be written to");
        fs::write(path.join("users"), "\"sudoku\" \"\"\n").expect("the folder can be written to");
        let keeper = Command::new("sh")
            .args(["-c", KEEPER])
            .args([&path.join("log"), &program, &set_up])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("sh can be run");
        let socket = path.join(format!(".s.PGSQL.{PORT}"));
        let host = path.display().to_string().replace('/', "%2F");
        let url = format!("postgres://sudoku@localhost:{PORT}/{}?host={host}", database.name());
        let pooler = Self { keeper, url, folder };
        eventually("PgBouncer answers", || {
            let is_there = UnixStream::connect(&socket).is_ok();
            assert!(is_there || !pooler.log().contains("FATAL"), "{}", pooler.log());
            is_there.then_some(())
        });
        pooler
    }

    /// How the roles reach the database through it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it has said so far.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // An error means that it has ended already.
        self.keeper.wait().ok();
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

/// As root it becomes who runs PostgreSQL: it refuses to be root itself.
fn user(database: &Database) -> Option<User> {
    if !Uid::effective().is_root() {
        return None;
    }
    let owner = fs::metadata(database.socket_dir()).expect("the socket's folder").uid();
    User::from_uid(Uid::from_raw(owner)).ok().flatten()
}

fn written(database: &Database, folder: &Path, servers: u32) -> String {
    let (name, host, folder) = (database.name(), database.socket_dir().display(), folder.display());
    format!(
        "[databases]
{name} = host={host}
[pgbouncer]
pool_mode = transaction
default_pool_size = {servers}
max_client_conn = 200
listen_port = {PORT}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users"
    )
}
