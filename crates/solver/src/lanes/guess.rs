//! Which candidate to guess in one puzzle that conclusions alone do not solve.

use super::lane::State;
use crate::bands::PEERS;
use crate::grid::CELLS;
use crate::houses::HOUSES;
use crate::simd::{Isa, U16s};

/// A candidate: "this digit stands in this cell" is tried first, then that it does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guess {
    pub(super) cell: usize,
    /// The digit as its bit.
    pub(super) digit: u16,
}

/// A bit for each cell.
type Cells = u128;

/// Cells with two candidates that are looked at before one is chosen.
const CELLS_COMPARED_MAX: usize = 8;

/// The guess that is likely to decide most: in a cell with two candidates, where possible in one whose digits many peers
/// have, above all peers with two candidates; else a digit with two places in a house; else in a cell with the fewest
/// candidates. The state has an open cell.
#[inline(always)]
pub(super) fn choose<I: Isa>(isa: I, state: &State) -> Guess {
    let of_two = cells_of_two(isa, state);
    let mut left = of_two;
    let mut best = (0, usize::MAX);
    for _ in 0..CELLS_COMPARED_MAX {
        if left == 0 {
            break;
        }
        let cell = left.trailing_zeros() as usize;
        left &= left - 1;
        let touched = cells_that_share(isa, state, state.0[cell]) & peers(cell);
        let score = 1 + 4 * (touched & of_two).count_ones() + touched.count_ones();
        if score > best.0 {
            best = (score, cell);
        }
    }
    if best.0 == 0 { without_cells_of_two(state) } else { lowest_of(state, best.1) }
}

/// The lowest candidate of the first open cell: guesses made so come to the lexicographically smallest solution first.
#[inline(always)]
pub(super) fn first<I: Isa>(isa: I, state: &State) -> Guess {
    let minus_one = isa.splat(u16::MAX);
    let open = cells(isa, state, |set| set.and(set.add(minus_one)));
    lowest_of(state, open.trailing_zeros() as usize)
}

/// Whether every digit of the grid is a candidate of its cell.
#[inline(always)]
pub(super) fn extends<I: Isa>(isa: I, state: &State, grid: &State) -> bool {
    let pairs = state.0.chunks_exact(I::U16s::COUNT).zip(grid.0.chunks_exact(I::U16s::COUNT));
    let mut missing = isa.splat(0);
    for (candidates, digits) in pairs {
        let digits = isa.load(digits);
        missing = missing.or_and_not(digits, isa.load(candidates));
    }
    missing.differing(isa.splat(0)) == 0
}

#[inline(always)]
fn lowest_of(state: &State, cell: usize) -> Guess {
    let candidates = state.0[cell];
    Guess { cell, digit: candidates & candidates.wrapping_neg() }
}

#[inline(always)]
fn cells_of_two<I: Isa>(isa: I, state: &State) -> Cells {
    let minus_one = isa.splat(u16::MAX);
    let two_or_more = |set: I::U16s| set.and(set.add(minus_one));
    cells(isa, state, two_or_more) & !cells(isa, state, |set| two_or_more(two_or_more(set)))
}

/// The cells that have a candidate of the set.
#[inline(always)]
fn cells_that_share<I: Isa>(isa: I, state: &State, set: u16) -> Cells {
    let set = isa.splat(set);
    cells(isa, state, |candidates| candidates.and(set))
}

/// The cells for which something is left.
#[inline(always)]
fn cells<I: Isa>(isa: I, state: &State, left: impl Fn(I::U16s) -> I::U16s) -> Cells {
    let zero = isa.splat(0);
    let mut cells = 0;
    for (i, sets) in state.0.chunks_exact(I::U16s::COUNT).enumerate() {
        cells |= Cells::from(left(isa.load(sets)).differing(zero)) << (i * I::U16s::COUNT);
    }
    cells
}

#[inline(always)]
fn peers(cell: usize) -> Cells {
    let [a, b, c] = PEERS[cell].map(Cells::from);
    a | b << 27 | c << 54
}

#[cold]
#[inline(never)]
fn without_cells_of_two(state: &State) -> Guess {
    for house in &HOUSES {
        let (mut once, mut twice, mut thrice) = (0, 0, 0_u16);
        for &cell in house {
            let set = state.0[cell];
            thrice |= twice & set;
            twice |= once & set;
            once |= set;
        }
        let of_two = twice & !thrice;
        let digit = of_two & of_two.wrapping_neg();
        if let Some(&cell) = house.iter().find(|&&cell| state.0[cell] & digit != 0) {
            return Guess { cell, digit };
        }
    }
    let open = (0..CELLS).filter(|&cell| state.0[cell].count_ones() > 1);
    lowest_of(state, open.min_by_key(|&cell| state.0[cell].count_ones()).expect("a cell is open"))
}
