//! Counts exactly how many digits the recipe places.
//!
//! The first solution is known beforehand, or that there is none. The recipe places a digit for each grid that it
//! gets to, row by row and cell by cell: for each beginning of a grid that breaks no rule and does not come after
//! the solution in the order of digits. So the count needs no search, and no order: beginnings that lead nowhere are
//! counted many at a time.
//!
//! ```text
//!          states that wait                           what completes the row
//! row 1    [ S ]               -- walk the trie -->   a  b  c  d ...
//! row 2    [ S | a b c d ...   -- walk the trie -->   a1 a7 c2 ...
//! row 3    [ S | a1 a7 c2 ...  -- walk the trie -->   ...
//!            |         |
//!            |         as soon as there are enough for a block, and at last those that are left
//!            the path of the solution: only what comes before it is counted
//! ```
//!
//! A *state* is what is left of a complete beginning of some rows: the digits placed in each column and box. The
//! states that wait at a row (a *block*, up to 128, see [`blocks`]) walk the trie of its digits together ([`walk`],
//! [`trie`]): a node of the trie has a set of states, a bit each, and so the work for a node is done for all of
//! them. What completes the row becomes states of the next one, and these walk as soon as they fill a block, so that
//! never more than a block and a bit waits at each row. In the end the blocks that are not full walk, from the top,
//! and with each the state of the path ([`rows`]).
//!
//! The rest is in [`nodes`], the lists of nodes, and [`tally`], the count and the reasons to end it. Vectors and
//! instruction sets are behind the traits of [`simd::sets`](crate::simd::sets); nothing here is unsafe.

mod blocks;
mod nodes;
#[cfg(test)]
mod plain;
mod rows;
mod tally;
mod trie;
mod walk;

#[cfg(test)]
mod tests;

use self::blocks::{Block, Scratch};
use self::rows::Rows;
use self::tally::Tally;
use self::walk::Walk;
use crate::givens::Givens;
use crate::grid::CELLS;
use crate::running::RunningPlacements;
use crate::simd::{Isa, Op, Width, with};
use crate::stop::{StopFlag, Stopped};
use crate::verdict::Placements;

/// Most scratch memory of a counter: 2 MB.
#[cfg(test)]
const SCRATCH_BYTES_MAX: usize = 2_000_000;

/// Counts placements, puzzle after puzzle. Nothing of a puzzle has a meaning for the next one.
///
/// One for each thread: it keeps scratch memory, up to 2 MB, from the first count that needs it.
pub(crate) struct Counter {
    width: Width,
    rows: Rows,
    /// For each row with empty cells the states that wait there; none before the first count that needs them.
    blocks: Vec<Block>,
    /// For each walk on its way.
    scratch: Vec<Scratch>,
    /// A count is on its way, or did not come to its end.
    is_counting: bool,
}

impl Counter {
    pub(crate) fn new(width: Width) -> Counter {
        Counter { width, rows: Rows::NONE, blocks: Vec::new(), scratch: Vec::new(), is_counting: false }
    }

    /// Counts the placements up to and with the first solution, or all if there is none; a count of exactly `limit` is
    /// still given. `running` shows meanwhile how far it is.
    pub(crate) fn count(
        &mut self,
        givens: &Givens,
        first: Option<&[u8; CELLS]>,
        limit: u64,
        stop: &StopFlag,
        running: &RunningPlacements,
    ) -> Result<Placements, Stopped> {
        if stop.is_raised() {
            return Err(Stopped);
        }
        if self.blocks.is_empty() || self.is_counting {
            self.make_scratch();
        }
        self.is_counting = true;
        let mut tally = Tally::new(limit, stop, running);
        let (rows, blocks, scratch) = (&mut self.rows, &mut self.blocks, &mut self.scratch);
        with(self.width, Count { givens, first, rows, blocks, scratch, tally: &mut tally });
        self.is_counting = false;
        tally.result()
    }
}

impl Counter {
    /// Makes scratch memory, also after a count that panicked and may have left nodes in the lists: all others work
    /// them off.
    ///
    /// A function of its own, since it takes so much room on the stack that the way there costs more than a count.
    #[cold]
    #[inline(never)]
    fn make_scratch(&mut self) {
        self.blocks = vec![Block::EMPTY; 9];
        self.scratch = std::iter::repeat_with(Scratch::new).take(9).collect();
    }
}

#[cfg(test)]
impl Counter {
    /// Scratch memory that is kept now.
    fn scratch_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.scratch.capacity() * size_of::<Scratch>()
    }
}

/// The count of one puzzle.
struct Count<'c, 't> {
    givens: &'c Givens,
    first: Option<&'c [u8; CELLS]>,
    rows: &'c mut Rows,
    blocks: &'c mut [Block],
    scratch: &'c mut [Scratch],
    tally: &'c mut Tally<'t>,
}

impl Op for Count<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let Count { givens, first, rows, blocks, scratch, tally } = self;
        rows.read(givens, first);
        let rows = rows.all();
        blocks.iter_mut().for_each(Block::clear);
        let with_path = first.is_some();
        for row in 0..rows.len() {
            let (rows, blocks, scratch) = (&rows[row..], &mut blocks[row..], &mut *scratch);
            // Without a solution there is no path: the first row's only state walks as any other.
            let is_root = row == 0 && !with_path;
            let states = if is_root { [1, 0] } else { blocks[0].waiting() };
            if states == [0, 0] && (!with_path || tally.passes(&rows[0])) {
                continue;
            }
            blocks[0].put_first(&rows[0].start);
            isa.run(Walk { rows, blocks, scratch, tally, states, with_path });
        }
    }
}
