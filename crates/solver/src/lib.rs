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
//! Nothing here reads a file, a clock or a random source, writes a log, or keeps state between two puzzles: the
//! same arguments give the same answer on every machine.

#![forbid(unsafe_code)]

mod answer;
mod bands;
mod board;
mod count;
mod full_grid;
mod generate;
mod givens;
mod grid;
mod houses;
mod invalid;
mod random;
pub mod recipe;
mod search;
mod stop;
mod verdict;

pub use answer::{PlacementLimit, answer};
pub use generate::{GenerateError, Generator, Kind};
pub use givens::Givens;
pub use grid::{CELLS, Grid, Solution};
pub use invalid::{InvalidPuzzle, Reason};
pub use search::SEARCH_BUDGET_NODES;
pub use stop::{StopFlag, Stopped};
pub use verdict::{Outcome, Placements, Verdict};
