//! Finds installed PostgreSQL programs and runs a private cluster that never outlives its owner.
//!
//! The cluster listens on a Unix socket inside its own folder (mode 0700) and nowhere else. Started by root, it runs as
//! an unprivileged user, since PostgreSQL refuses to run as root. The server is a direct child of the owner; beside it
//! waits a small shell, the watcher, at the end of a pipe that only the owner holds: when the owner ends in any way,
//! SIGKILL included, the pipe closes and the watcher stops the cluster.
//!
//! ```no_run
//! let postgres = local_postgres::LocalPostgres::start_temporary(false)?;
//! println!("{}", postgres.url());
//! postgres.stop()?;
//! # Ok::<(), local_postgres::Error>(())
//! ```
#![forbid(unsafe_code)]

mod account;
mod cluster;
mod data_folder;
mod error;
mod local;
mod locks;
mod own_file;
mod programs;
mod reach;
mod runner;
mod search;
mod server;
mod socket;
mod temporary;
mod wait;
mod watcher;

pub use error::Error;
pub use local::{LocalPostgres, Options};
pub use programs::Programs;
