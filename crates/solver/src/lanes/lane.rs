//! The search in one lane: what it is looking for, and the candidates it has put aside.

use crate::givens::Givens;
use crate::grid::CELLS;
use crate::houses::ALL_DIGITS;
use crate::simd::U16s;

/// The candidate sets of one puzzle, filled up with empty ones to whole vectors.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct State(pub(super) [u16; 96]);

impl State {
    pub(super) const EMPTY: State = State([0; 96]);
}

/// What a lane is looking for. A puzzle with several solutions needs two of them as proof, and the smallest one.
///
/// ```text
///   First --A--> Second --B--> Smallest --S--> several; S is the smallest
///   FirstInOrder --S--> Another --any--> several; S is the smallest
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// Whether there is a solution.
    First,
    /// Whether there is a solution, and the smallest one first.
    FirstInOrder,
    /// Whether there is another one than the witness.
    Second,
    /// Whether there is another one than the witness, which is the smallest.
    Another,
    /// The smallest: the witness or a smaller one.
    Smallest,
}

/// The search in one lane.
pub(super) struct Lane {
    /// The number of the puzzle in the batch.
    pub(super) puzzle: usize,
    /// How many givens it has.
    pub(super) givens: usize,
    pub(super) aim: Aim,
    pub(super) guesses: u32,
    /// The lane's candidates, read when it was last stuck or solved.
    pub(super) state: State,
    /// The candidates at the first guess that might still be wrong. All solutions are within.
    pub(super) root: State,
    /// The smallest solution found, if there is one.
    pub(super) witness: State,
    /// What is still to be tried, the last put there first. Each guess on the way to where the lane is has left one here and
    /// filled a cell, so there are never more than 81.
    pub(super) pile: Vec<State>,
}

impl Lane {
    pub(super) fn new() -> Lane {
        Lane {
            puzzle: 0,
            givens: 0,
            aim: Aim::First,
            guesses: 0,
            state: State::EMPTY,
            root: State::EMPTY,
            witness: State::EMPTY,
            pile: Vec::new(),
        }
    }

    /// Forgets the puzzle before.
    #[inline(always)]
    pub(super) fn begin(&mut self, puzzle: usize, givens: usize) {
        self.puzzle = puzzle;
        self.givens = givens;
        self.aim = Aim::First;
        self.guesses = 0;
        self.pile.clear();
    }
}

/// Copies a lane's candidates out of the cells of all lanes.
///
/// A function of its own, as the next two: it is called in several places, and is long when inlined.
#[inline(never)]
pub(super) fn read<V: U16s>(cells: &[V; CELLS], lane: usize, state: &mut State) {
    for (set, cell) in state.0.iter_mut().zip(V::words(cells).chunks_exact(V::COUNT)) {
        *set = cell[lane % V::COUNT];
    }
}

/// Copies candidates into a lane of the cells of all lanes.
#[inline(never)]
pub(super) fn write<V: U16s>(cells: &mut [V; CELLS], lane: usize, state: &State) {
    for (cell, &set) in V::words_mut(cells).chunks_exact_mut(V::COUNT).zip(&state.0) {
        cell[lane % V::COUNT] = set;
    }
}

/// Puts a puzzle into a lane of the cells of all lanes: a given as its digit, an empty cell as all nine.
#[inline(never)]
pub(super) fn load<V: U16s>(cells: &mut [V; CELLS], lane: usize, puzzle: &Givens) {
    for (cell, &digit) in V::words_mut(cells).chunks_exact_mut(V::COUNT).zip(&puzzle.grid().0) {
        cell[lane % V::COUNT] = CANDIDATES[usize::from(digit % 16)];
    }
}

/// The candidates of a cell by its digit; 0 is an empty cell.
const CANDIDATES: [u16; 16] = {
    let mut candidates = [0; 16];
    candidates[0] = ALL_DIGITS;
    let mut digit = 1;
    while digit <= 9 {
        candidates[digit] = 1 << (digit - 1);
        digit += 1;
    }
    candidates
};
