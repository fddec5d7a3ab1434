//! The cluster's files: makes them, tells their version, and stops a server that a killed owner left on them.
use std::{fs, io, os::unix::net::UnixStream, path::Path};

use crate::{Error, data_folder::DataFolder, locks::Locks, runner::Runner, socket::socket_in, watcher};

/// The cluster's superuser.
pub(crate) const SUPERUSER: &str = "sudoku";

/// The major version that made the cluster; `None` when there is none yet.
pub(crate) fn made_by(folder: &DataFolder) -> Result<Option<u32>, Error> {
    if !folder.is_made() {
        return Ok(None);
    }
    let path = folder.cluster().join("PG_VERSION");
    let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    let version = text.trim().parse().map_err(io::Error::other).map_err(Error::file("understand", &path))?;
    Ok(Some(version))
}

/// Makes the cluster unless that was done to the end before.
pub(crate) fn make(runner: &Runner, folder: &DataFolder, locks: &Locks, durable: bool) -> Result<(), Error> {
    if folder.is_made() {
        return Ok(());
    }
    let cluster = folder.cluster();
    match fs::remove_dir_all(&cluster) {
        // Most often there is no half-made one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(Error::file("remove the half-made cluster", &cluster))?,
    }
    let mut command = vec!["-D".into(), cluster.into_os_string()];
    // Trust is enough: only this user can get through the folder's mode to the socket.
    let options = ["-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions"];
    command.extend(options.map(Into::into));
    command.extend((!durable).then(|| "--no-sync".into()));
    runner.run("initdb", command, locks.for_helper()?)?;
    folder.set_made(runner.account())
}

/// Stops a server that still runs on the cluster although both its owner and its watcher were killed.
///
/// A pid file without its server is left to PostgreSQL, which knows best whether it is stale.
pub(crate) fn stop_left_over(runner: &Runner, folder: &DataFolder, locks: &Locks) -> Result<(), Error> {
    let cluster = folder.cluster();
    let Ok(pid_file) = fs::read_to_string(cluster.join("postmaster.pid")) else { return Ok(()) };
    if !is_running(&cluster, &pid_file) {
        return Ok(());
    }
    let stop = |mode: &str, seconds: &str| {
        let data = cluster.as_os_str();
        let rest = ["stop", "-m", mode, "-w", "-t", seconds, "-D"].map(AsRef::as_ref);
        runner.run("pg_ctl", rest.into_iter().chain([data]), locks.for_helper()?)
    };
    stop("fast", &watcher::STOP_SECONDS_MAX.to_string()).or_else(|_| stop("immediate", "10"))
}

/// Whether the pid file's server runs. That its pid is alive is not enough: after a reboot it can be anyone's, and
/// would be sent a signal. So its socket has to answer or, where the system tells, its working folder has to be the cluster.
fn is_running(cluster: &Path, pid_file: &str) -> bool {
    let mut lines = pid_file.lines();
    let pid = lines.next().unwrap_or_default().trim();
    let socket_folder = lines.nth(3).unwrap_or_default();
    let answers =
        !socket_folder.is_empty() && UnixStream::connect(socket_in(Path::new(socket_folder))).is_ok();
    answers || fs::read_link(Path::new("/proc").join(pid).join("cwd")).is_ok_and(|folder| folder == cluster)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, process};

    use super::*;

    #[test]
    fn a_pid_file_counts_only_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let socket_folder = folder.path().to_str().unwrap();
        let own_pid = process::id();
        let pid_file = format!("{own_pid}\n/data\n1700000000\n5432\n{socket_folder}\n\n  1 2\nready   \n");
        assert!(!is_running(Path::new("/data"), &pid_file), "an alive pid is not enough");
        let listener = UnixListener::bind(socket_in(folder.path())).unwrap();
        assert!(is_running(Path::new("/data"), &pid_file));
        drop(listener);
        assert!(!is_running(Path::new("/data"), &pid_file));
        assert!(!is_running(Path::new("/data"), ""));
    }
}
