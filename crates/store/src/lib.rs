//! All SQL of the house: batches, chunks, jobs, leases, results, tenants.
//!
//! Payloads and verdicts are opaque bytes here; only a version number says how they are packed. Every change of state is one
//! statement, guarded or fenced, so a dropped future leaves either all of it or nothing.
#![forbid(unsafe_code)]

mod batches;
mod chunks;
mod connect;
mod deaths;
mod ends;
mod error;
mod jobs;
mod keep;
mod migrate;
mod pieces;
mod pool;
mod queued;
mod results;
mod shares;
mod turn;
mod wake;
mod yardsticks;

pub use batches::{Batch, BatchKey, BatchState, Created, NewBatch, Progress, TenantId};
pub use chunks::{Append, CHUNK_PUZZLES_MAX, Chunk, Tell};
pub use connect::{Config, Durability, Store};
pub use deaths::{Expired, Look};
pub use ends::{Cancel, Ended, Purged, Unwanted};
pub use error::Error;
pub use jobs::{Beat, Completion, Job, JobKey, OutcomeCounts, WorkerId};
pub use keep::{DayDrop, Keep, PastDay};
pub use pieces::{Piece, StoredPiece};
pub use results::ResultRange;
pub use shares::PUZZLE_COST_MIN;
pub use turn::{Done, Rest, Turn, Turned};
pub use wake::{Listens, Overheard, Round, Waker, Wakes, jitter};
pub use yardsticks::{Load, Measured, Yardsticks};
