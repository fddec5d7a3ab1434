//! Grids, givens, verdicts, the recipe and the exact counts.
//!
//! What the answer to a puzzle is follows from one plain recipe: find the first empty cell in row-major
//! order, try the digits 1 to 9 that do not already stand in its row, column or box, ascending, place one, go
//! on with the next empty cell, and take it back if that fails. [`recipe`] is that recipe, as it stands.
//! [`answer()`] gives the same solution and the same number of placements, faster, and also says whether the
//! solution is the only one.
//!
//! ```
//! use solver::{Givens, PlacementLimit, Placements, StopFlag, Verdict, answer};
//!
//! let givens = Givens::parse(
//!     "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
//! )?;
//! let verdict = answer(&givens, PlacementLimit::DEFAULT, &StopFlag::new())?;
//! assert!(matches!(verdict, Verdict::Unique { placements: Placements::Exact(4208), .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The way through the crate
//!
//! ```text
//!  Givens ──▶ answer ──▶ lanes ──▶ Decision ──────────▶ count ──▶ Verdict
//!              Solver      │   none, one or several,      │   placements up to the
//!                          │   the first solution         │   first solution
//!                          ├─▶ search, for what the lanes give up
//!                          └─▶ simd ◀─────────────────────┘
//! ```
//!
//! - `recipe`: what is to be answered, as plainly as it can be written: the oracle of all tests.
//! - `answer`: [`Solver`], the entry point for batches.
//! - `lanes`: 8 to 32 puzzles side by side, a vector a cell. Start with the drawing in `lanes/mod.rs`; `block` draws
//!   conclusions in all of them at once, `search` serves each by itself, `guess` chooses.
//! - `search`, on a `board` of bits (`bands`): one puzzle alone, up to [`SEARCH_BUDGET_NODES`] boards. It also makes the
//!   generated puzzles unique.
//! - `count`: how many placements. Start with `count/mod.rs`; half-filled grids, up to 128 at a time, walk a row's digits
//!   together.
//! - `dense`: [`DenseGivens`], as puzzles are stored, from texts and back.
//! - `simd`: the instruction sets, the only module with `unsafe`; the kernels of `lanes` and `count` are safe code over its traits.
//! - `running`: how far a count is, for other threads to see.
//!
//! Nothing here reads a file, a clock or a random source, writes a log, or keeps state between two puzzles: the
//! same arguments give the same answer on every machine and every [`Width`].

#![deny(unsafe_code)]

mod answer;
mod bands;
mod board;
#[allow(clippy::inline_always, reason = "see `simd`: what is not inlined runs without the instructions")]
mod clashes;
#[allow(clippy::inline_always, reason = "see `simd`: what is not inlined runs without the instructions")]
mod count;
#[allow(clippy::inline_always, reason = "see `simd`: what is not inlined runs without the instructions")]
mod dense;
mod full_grid;
mod generate;
mod givens;
mod grid;
mod houses;
mod invalid;
#[allow(clippy::inline_always, reason = "what is not inlined runs without the vector instructions")]
mod lanes;
mod random;
pub mod recipe;
mod running;
mod search;
#[allow(unsafe_code, reason = "vector instructions")]
#[allow(clippy::inline_always, reason = "see the module: what is not inlined runs without the instructions")]
mod simd;
mod stop;
mod verdict;

#[cfg(any(test, debug_assertions))]
#[doc(hidden)]
pub use answer::test_panic;
pub use answer::{PlacementLimit, Solver, answer};
pub use dense::DenseGivens;
pub use generate::{GenerateError, Generator, Kind};
pub use givens::{Givens, Puzzle};
pub use grid::{CELLS, Grid, Solution};
pub use invalid::{InvalidPuzzle, Reason};
pub use running::RunningPlacements;
pub use search::SEARCH_BUDGET_NODES;
pub use simd::{UnknownWidth, Width};
pub use stop::{StopFlag, Stopped};
pub use verdict::{Outcome, Placements, Verdict};
