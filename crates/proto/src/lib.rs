//! The types of `sudoku.v1` and its descriptor set.
//!
//! The contract itself, with every limit, is in the top-level folder `proto/`. Its types are generated, but for the two messages that
//! carry a text for each of thousands of puzzles: [`PuzzleChunk`] and [`ResultChunk`] hold theirs end
//! to end, without an allocation a puzzle. On the wire they are what generated code would write.
#![forbid(unsafe_code)]

mod chunks;
mod grids;
mod outcomes;

pub use grids::{GRID_BYTES, Grids};
pub use outcomes::Outcomes;

// Where the build script tells the generated code to find them.
pub(crate) use chunks::{PuzzleChunk, ResultChunk};

/// Encoded `google.protobuf.FileDescriptorSet` of `sudoku.v1` and all that it imports: for reflection, and for the
/// JSON form of its messages.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sudoku_v1.bin"));

/// The only version of the contract so far.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::pedantic,
    reason = "generated code; the comments are in the proto files"
)]
pub mod v1 {
    pub use crate::chunks::{PuzzleChunk, ResultChunk};

    tonic::include_proto!("sudoku.v1");
}
