//! The generated `sudoku.v1` and its descriptor set.
//!
//! The contract itself, with every limit, is in the top-level folder `proto/`.
#![forbid(unsafe_code)]

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
    tonic::include_proto!("sudoku.v1");
}
