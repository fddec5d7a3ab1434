//! Puzzles with exactly one solution, reproducible from a seed.
//!
//! A random full grid is made, then givens are taken out in a random order, each for good if no other digit in
//! its cell leads to a solution. After one pass over all cells the puzzle is minimal: a given that had to stay
//! among many givens has to stay among fewer.
//!
//! Both steps depend on the random numbers and on what is true of a grid, not on how the solver searches, so a
//! faster solver makes the same puzzles.

use std::error::Error;
use std::fmt;

use crate::board::Board;
use crate::full_grid::random_full_grid;
use crate::givens::Givens;
use crate::grid::{CELLS, Grid};
use crate::random::SplitMix64;
use crate::search::{Effort, SEARCH_BUDGET_NODES, Solutions};
use crate::stop::StopFlag;

/// Fewest and most givens that can be asked for. No puzzle with 16 givens has exactly one solution (G. `McGuire`,
/// Tugemann, Civario, "There is no 16-clue Sudoku", 2012).
const CLUES: std::ops::RangeInclusive<u8> = 17..=80;

/// Givens of a [`Kind::Default`] puzzle.
const CLUES_DEFAULT: std::ops::RangeInclusive<u8> = 24..=34;

/// Full grids that are tried for one puzzle: about ten seconds.
const TRIES_MAX: u32 = 100_000;

/// Which puzzles are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Kind {
    /// 24 to 34 givens, as in newspapers.
    #[default]
    Default,
    /// As many givens as are needed: without any of them there is a second solution. 21 to 29, mostly 23 to 26.
    Minimal,
    /// Exactly so many givens, 17 to 80.
    ///
    /// Each given less than 24 takes five to thirty times as long: 24 takes a fifth of a millisecond on average, 22
    /// three, 21 sixty, 20 some seconds. With 19 or fewer nearly every try ends in
    /// [`NotFound`](GenerateError::NotFound), after about ten seconds.
    Clues(u8),
}

/// No puzzle was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum GenerateError {
    /// There are no puzzles with so many givens, or they need no generator.
    CluesOutOfRange(u8),
    /// None of the full grids tried for this puzzle came down to so many givens. Others of the same seed may.
    NotFound {
        /// The givens asked for.
        clues: u8,
        /// Full grids tried.
        tries: u32,
    },
}

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GenerateError::CluesOutOfRange(clues) => {
                write!(f, "{clues} givens asked for; {} to {} can be made", CLUES.start(), CLUES.end())
            }
            GenerateError::NotFound { clues, tries } => {
                write!(f, "no puzzle with {clues} givens found in {tries} grids")
            }
        }
    }
}

impl Error for GenerateError {}

/// An endless series of puzzles.
///
/// Puzzle number `i` depends on the seed, the kind and `i` alone. The puzzles of a seed do not change from one
/// version to the next.
#[derive(Clone, Debug)]
pub struct Generator {
    seed: u64,
    kind: Kind,
    next_index: u64,
}

impl Generator {
    /// Starts a series.
    ///
    /// # Errors
    /// [`GenerateError::CluesOutOfRange`] for fewer than 17 or more than 80 givens.
    pub fn new(seed: u64, kind: Kind) -> Result<Generator, GenerateError> {
        match kind {
            Kind::Clues(clues) if !CLUES.contains(&clues) => Err(GenerateError::CluesOutOfRange(clues)),
            _ => Ok(Generator { seed, kind, next_index: 0 }),
        }
    }

    /// Puzzle number `index` of the series, counted from 0.
    ///
    /// # Errors
    /// [`GenerateError::NotFound`], which only [`Kind::Clues`] with few givens gives.
    ///
    /// # Panics
    /// If the givens of a full valid grid clash: a bug in this crate.
    pub fn puzzle(&self, index: u64) -> Result<Givens, GenerateError> {
        let mut random = self.random_for(index);
        for _ in 0..TRIES_MAX {
            let (fewest, most) = match self.kind {
                Kind::Clues(clues) => (clues, clues),
                Kind::Minimal => (0, u8::MAX),
                Kind::Default => {
                    let width = usize::from(CLUES_DEFAULT.end() - CLUES_DEFAULT.start() + 1);
                    let above = u8::try_from(random.below(width)).unwrap_or(0);
                    (CLUES_DEFAULT.start() + above, *CLUES_DEFAULT.end())
                }
            };
            let (givens, clues) = dig(random_full_grid(&mut random), fewest, &mut random);
            if clues <= most {
                return Ok(Givens::new(givens).expect("givens from a full valid grid do not clash"));
            }
        }
        let clues = if let Kind::Clues(clues) = self.kind { clues } else { 0 };
        Err(GenerateError::NotFound { clues, tries: TRIES_MAX })
    }

    /// The numbers for one puzzle: seed, kind and index are mixed one after the other.
    fn random_for(&self, index: u64) -> SplitMix64 {
        let kind = match self.kind {
            Kind::Default => 1000,
            Kind::Minimal => 1001,
            Kind::Clues(clues) => u64::from(clues),
        };
        let of_seed = SplitMix64::new(self.seed).next();
        let of_kind = SplitMix64::new(of_seed ^ kind).next();
        SplitMix64::new(of_kind ^ index)
    }
}

impl Iterator for Generator {
    type Item = Result<Givens, GenerateError>;

    /// The next puzzle; never `None`. After an error the series goes on.
    fn next(&mut self) -> Option<Self::Item> {
        let puzzle = self.puzzle(self.next_index);
        self.next_index = self.next_index.wrapping_add(1);
        Some(puzzle)
    }
}

/// Takes givens out of a full grid until `fewest` are left or none can be spared; also says how many are left.
fn dig(mut grid: Grid, fewest: u8, random: &mut SplitMix64) -> (Grid, u8) {
    let mut order: [usize; CELLS] = std::array::from_fn(|cell| cell);
    random.shuffle(&mut order);
    let mut clues = 81;
    for cell in order {
        if clues <= fewest {
            break;
        }
        let digit = std::mem::take(&mut grid.0[cell]);
        if has_other_solution(&grid, cell, digit) {
            grid.0[cell] = digit;
        } else {
            clues -= 1;
        }
    }
    (grid, clues)
}

/// Whether the grid has a solution with another digit than `digit` in `cell`.
fn has_other_solution(grid: &Grid, cell: usize, digit: u8) -> bool {
    let Ok(mut board) = Board::new(grid) else { return false };
    board.remove(cell, digit);
    let never = StopFlag::new();
    let other = Solutions::of(board).next(&mut Effort::new(SEARCH_BUDGET_NODES, &never));
    // A spent budget proves nothing, so the given stays. No grid is known for which that happens.
    !matches!(other, Ok(None))
}
