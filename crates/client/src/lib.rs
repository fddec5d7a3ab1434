//! A client of sudoku-batch for Rust services.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::Error> {
//! use client::{Client, NewBatch, Start};
//!
//! let mut client = Client::connect("http://127.0.0.1:50051").await?;
//! let batch = client.create_batch(NewBatch::default()).await?;
//! let puzzle = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
//! client.append(&batch.name, Some(0), vec![puzzle.to_owned()]).await?;
//! client.seal(&batch.name, Some(1)).await?;
//! let mut results = client.results(&batch.name, Start::ordered(0)).await?;
//! while let Some(run) = results.next().await? {
//!     for result in run {
//!         println!("{} {:?} {:?}", result.index, result.outcome, result.placements);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! For millions of puzzles there is the same without a value a puzzle: [`Grids`] go in with [`Client::append_grids`], a [`Run`] of columns comes
//! with [`Results::next_columns`].
#![forbid(unsafe_code)]

mod appender;
mod connection;
mod error;
mod patience;
mod results;
mod run;
mod watch;

pub use appender::Appender;
pub use connection::{Client, NewBatch};
pub use error::Error;
pub use proto::{Grids, v1};
pub use results::{Position, Results, Start};
pub use run::{Count, InvalidReason, PuzzleResult, Run};
pub use watch::Watch;

/// Puzzles in one message, at the most; [`Client::append`] cuts what it is given.
pub const MESSAGE_PUZZLES: usize = 4_096;
/// Bytes of grids in one message, at the most, unless one alone has more: below the 5,000,000 that a server takes.
pub const MESSAGE_BYTES: usize = 4_000_000;
