//! The gRPC services: batches, solving on one call, health and reflection.
//!
//! Nothing is solved here and no SQL is written here: puzzles are checked, packed and stored; results are read, unpacked and sent.
//! Wire types end in `wire.rs`, errors become statuses in `status.rs`.
#![forbid(unsafe_code)]

mod admission;
mod batches;
mod bell;
mod deadline;
mod delivery;
mod drain;
mod ends;
mod intake;
mod intervals;
mod limits;
mod line;
mod list;
mod memory;
mod outlet;
mod serve;
mod solve;
mod status;
mod tenants;
mod tokens;
mod upload;
mod verdicts;
mod watch;
mod wire;

pub use admission::Quotas;
pub use serve::{Config, ServeError, serve};
