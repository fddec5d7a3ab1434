//! The harness of the whole: real processes, a private PostgreSQL, real sockets, waits on levels.
//!
//! A process that a test starts never outlives it: it is killed when its handle is dropped, and its children go with it. A log line of level
//! WARN or ERROR that the test did not allow fails it.
#![forbid(unsafe_code)]

mod database;
mod numbers;
mod pooler;
mod process;
mod proxy;
mod python;
mod searches;
mod service;
mod wait;

pub use database::{Database, Held};
pub use numbers::Numbers;
pub use pooler::Pooler;
pub use process::{Finished, Process, binary, processes_naming, run};
pub use proxy::Proxy;
pub use python::{python, run_python};
pub use searches::{ENDLESS, ENDLESS_LIMIT, ENDLESS_OPTIONS, ENDLESS_TAKEN, limit_for, with_long_searches};
pub use service::Service;
pub use wait::{PATIENCE, eventually};

/// The seed example.
pub const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
/// Its solution.
pub const SEED_SOLUTION: &str =
    "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
