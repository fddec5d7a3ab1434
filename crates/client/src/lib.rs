//! A client of sudoku-batch for Rust services.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::Error> {
//! use client::{Client, Submit};
//!
//! // Several servers of one service: when one goes, the others are gone on at.
//! let client = Client::connect("http://127.0.0.1:50051,http://127.0.0.1:50052").await?;
//! let puzzles = ["53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"];
//! let mut submission = client.submit(puzzles, Submit { ordered: true, ..Submit::default() }).await?;
//! while let Some(run) = submission.next().await? {
//!     for result in run {
//!         println!("{} {:?} {:?}", result.index, result.outcome, result.placements);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Submission`] is the calls below it in their usual order, and each can be made by itself: [`Client::create_batch`], [`Client::append`], [`Client::seal`], [`Client::results`]. The
//! batch outlives its client: whoever keeps its name and a token ([`Results::token`]) goes on anywhere, with nothing twice and nothing missing.
//!
//! What fails is tried again ([`Retry`]): a service that is full is waited for, as its `RetryInfo` says, one that is away for half a minute. What does not pass is an [`Error`].
//!
//! For millions of puzzles there is the same without a value a puzzle: [`Grids`] go in with [`Client::append_grids`], a [`Run`] of columns comes
//! with [`Results::next_columns`].
#![forbid(unsafe_code)]

mod appender;
mod connection;
mod error;
mod lasting;
mod patience;
mod results;
mod run;
mod servers;
mod submission;
mod watch;

pub use appender::Appender;
pub use connection::{Client, NewBatch};
pub use error::Error;
pub use patience::Retry;
pub use proto::{Grids, v1};
pub use results::{Position, Results, Start};
pub use run::{Count, InvalidReason, PuzzleResult, Run};
pub use submission::{Submission, Submit};
pub use watch::Watch;

/// Puzzles in one message, at the most; [`Client::append`] cuts what it is given.
pub const MESSAGE_PUZZLES: usize = 4_096;
/// Bytes of grids in one message, at the most, unless one alone has more: below the 5,000,000 that a server takes.
pub const MESSAGE_BYTES: usize = 4_000_000;
