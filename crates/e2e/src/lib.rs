//! The harness of the whole: real processes, a private PostgreSQL, real sockets, waits on levels.
//!
//! A process that a test starts never outlives it: it is killed when its handle is dropped, and its children go with it. A log line of level
//! WARN or ERROR that the test did not allow fails it.
#![forbid(unsafe_code)]

mod database;
mod process;
mod proxy;
mod service;
mod wait;

pub use database::Database;
pub use process::{Finished, Process, binary, run};
pub use proxy::Proxy;
pub use service::Service;
pub use wait::{PATIENCE, eventually};

/// The seed example.
pub const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
/// Its solution.
pub const SEED_SOLUTION: &str =
    "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
/// A legal grid whose search takes the recipe 43,225,199,513 placements: counting keeps a solver thread busy for the better part of a minute at the greatest
/// limit, for seconds at a tenth of it.
pub const ENDLESS: &str = "..1......2..........3......4.......5..5...6..6......4...71.3...8..........9.2....";
