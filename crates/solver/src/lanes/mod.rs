//! Decides many puzzles at once: none, one or more solutions, and the first one.
//!
//! Each lane of a block works on a puzzle of its own, and all lanes share the instructions. A lane that is done or
//! stuck is served by itself, in plain code:
//!
//! ```text
//!  next puzzle ──▶ sweep, again and again, with all lanes ◀───────────────────────────┐
//!       ▲            │                │                  │                            │
//!       │       contradiction    all cells filled    nothing changes                  │
//!       │            │                │                  │                            │
//!       │            │            a solution          guess: "d stands here" stays, ──┤
//!       │            ▼                ▼               "d does not" onto the pile      │
//!       └── empty ── take the top of the lane's pile ─────────────────────────────────┘
//! ```
//!
//! A lane searches its puzzle alone, depth first. So how many guesses a puzzle takes depends on the puzzle and on nothing
//! else: not on its neighbours, not on the width. After [`GUESSES_MAX`] guesses it is left undecided here.

mod block;
mod guess;
mod lane;
mod search;
#[cfg(test)]
mod tests;

pub(crate) use self::search::GUESSES_MAX;

use std::ops::ControlFlow;

use self::lane::Lane;
use self::search::Search;
use crate::givens::Puzzle;
use crate::grid::CELLS;
use crate::simd::{Isa, Op};
use crate::stop::{StopFlag, Stopped};

/// How many solutions a puzzle has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    None,
    One,
    /// Two or more.
    Many,
    /// More guesses were needed than are allowed.
    GaveUp,
    /// It is no puzzle.
    Invalid,
}

/// A decision that waits to be handed on.
#[derive(Clone, Copy)]
struct Decided {
    decision: Option<Decision>,
    /// The only or the smallest solution, filled up to whole vectors.
    digits: Digits,
}

/// Digits as they are written by whole vectors.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Digits([u8; 96]);

impl Decided {
    const NOTHING: Decided = Decided { decision: None, digits: Digits([0; 96]) };
}

/// Memory that is kept from batch to batch; nothing in it has a meaning for the next one.
pub(crate) struct Memory {
    lanes: Vec<Lane>,
    /// The decisions of puzzles begun, at their number modulo the length, until they are handed on.
    decided: Vec<Decided>,
}

impl Memory {
    pub(crate) const fn new() -> Memory {
        Memory { lanes: Vec::new(), decided: Vec::new() }
    }
}

/// Takes a puzzle, its decision, and the digits of its only or smallest solution, if it has one.
pub(crate) type Sink<'a> = dyn FnMut(&Puzzle, Decision, &[u8; CELLS]) -> ControlFlow<()> + 'a;

/// Decides the puzzles of a batch, and hands each decision on in the order of the batch, until all are decided or `sink`
/// breaks off.
pub(crate) struct Decide<'a> {
    pub(crate) batch: &'a [Puzzle],
    /// Puzzles that may be begun before the first of them is handed on: what is lost if `sink` breaks off.
    pub(crate) ahead_max: usize,
    /// Guesses after which a puzzle is given up: [`GUESSES_MAX`], or fewer in tests.
    pub(crate) guesses_max: u32,
    pub(crate) memory: &'a mut Memory,
    pub(crate) stop: &'a StopFlag,
    pub(crate) sink: &'a mut Sink<'a>,
}

impl Op for Decide<'_> {
    type Output = Result<(), Stopped>;

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) -> Result<(), Stopped> {
        let mut search = Search::new(isa, self.batch, self.ahead_max, self.guesses_max, self.memory);
        loop {
            if self.stop.is_raised() {
                return Err(Stopped);
            }
            search.serve();
            search.sweep();
            // Not between the two: a processor that reads what was just written, in other pieces than it was written in, waits
            // for all that was written before, and serving writes to all over the block.
            while let Some((puzzle, decision, digits)) = search.next() {
                if (self.sink)(puzzle, decision, digits).is_break() {
                    return Ok(());
                }
                search.forget_next();
            }
            if search.is_over() {
                return Ok(());
            }
        }
    }
}
