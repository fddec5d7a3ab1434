//! When to stop: a signal, or the end of the parent process.

use std::io::Read as _;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// Why a process is told to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// SIGTERM or SIGINT.
    Signal,
    /// The parent closed the pipe or died: be quick, the database may be going too.
    Parent,
}

/// Resolves at SIGTERM, SIGINT or, if asked, when standard input closes: a parent that dies closes it, however it dies.
///
/// # Errors
/// If the signals cannot be watched.
pub(crate) fn stop(with_parent: bool) -> std::io::Result<impl Future<Output = Stop> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (closed, parent) = oneshot::channel();
    if with_parent {
        std::thread::Builder::new().name("parent".to_owned()).spawn(move || {
            let mut rest = Vec::new();
            // An error of the pipe means the same as its end.
            std::io::stdin().read_to_end(&mut rest).ok();
            closed.send(()).ok();
        })?;
    } else {
        std::mem::forget(closed);
    }
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => Stop::Signal,
            _ = interrupt.recv() => Stop::Signal,
            _ = parent => Stop::Parent,
        }
    })
}
