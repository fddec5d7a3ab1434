//! The states that wait at each row, and how completions of a row become states of the next one.
//!
//! ```text
//! slot        0      1    2    3   ...  127 | 128 ...      when the last slot before the bar is filled, the
//! row 2     path    a    b    c                          block walks its row (64 slots where vectors are
//! row 3     path    a7   a9   c7                         narrow), and what comes after moves to the front
//! ```

use super::nodes::{Completions, Lists, first_slot};
use super::rows::State;
use super::trie::Trie;
use super::walk::Walk;
use crate::simd::sets::{
    Additions, BLOCK_MAX, BUNDLE, Boxes, CHILDREN, Children, Completed, SET, SLOTS, Sets, StateWords, States,
    WORDS, Word,
};
use crate::simd::{Isa, Op};

/// States that wait at a row.
#[derive(Clone)]
pub(super) struct Block {
    /// The words of boxes have no meaning in a row that opens a band.
    pub(super) states: States,
    /// Slots in use; slot 0 always is, the path's or empty.
    len: usize,
}

impl Block {
    pub(super) const EMPTY: Block =
        Block { states: States { by_word: [[0; SLOTS]; WORDS], by_state: [[0; 16]; SLOTS] }, len: 1 };

    /// Leaves nothing but slot 0.
    pub(super) fn clear(&mut self) {
        self.len = 1;
    }

    /// Puts a state into slot 0.
    pub(super) fn put_first(&mut self, state: &State) {
        for (slots, word) in self.states.by_word.iter_mut().zip(state) {
            slots[0] = *word;
        }
        self.states.by_state[0][..WORDS].copy_from_slice(state);
    }

    /// Makes the states ready to be looked at.
    #[inline(always)]
    pub(super) fn line_up<I: Isa>(&mut self, isa: I) {
        isa.line_up(&mut self.states, self.len);
    }

    /// The states that wait, but for slot 0, by half.
    pub(super) fn waiting(&self) -> [u64; 2] {
        let first = !1 & u64::MAX >> (SET - self.len.min(SET));
        let second = if self.len > SET { u64::MAX >> (BLOCK_MAX - self.len) } else { 0 };
        [first, second]
    }
}

/// What one walk needs. While a walk waits for those of the rows below, they need another one each. The first is
/// used most, so that its memory is near.
pub(super) struct Scratch {
    pub(super) wide: Lists<u64>,
    pub(super) narrow: Lists<u32>,
    pub(super) bundle: Bundle,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        Scratch { wide: Lists::new(), narrow: Lists::new(), bundle: Bundle::EMPTY }
    }
}

/// Pairs of a state and a completion in a bundle, and a vector to write over the end.
const PAIRS: usize = BUNDLE * SET + SET;

/// Completions on their way to the next row: each pair of a state and a completion that it allows is a child.
#[repr(C, align(64))]
pub(super) struct Bundle {
    parents: [u8; PAIRS],
    completions: [u8; PAIRS],
    additions: Additions,
}

impl Bundle {
    const EMPTY: Bundle = Bundle {
        parents: [0; PAIRS],
        completions: [0; PAIRS],
        additions: Additions { by_column: [[0; BUNDLE]; 9], by_completion: [[0; 16]; BUNDLE] },
    };

    /// Lists the pairs; gives their number.
    #[inline(always)]
    fn pair<S: Sets>(&mut self, isa: S::Isa, from: u8, completions: &Completions<S::Word>) -> usize {
        let mut pairs = 0;
        for (number, (set, prefix)) in (0_u8..).zip(completions.all()) {
            let completions: &mut [u8; SET] = self.completions[pairs..].first_chunk_mut().expect("room");
            completions.fill(number);
            let parents = self.parents[pairs..].first_chunk_mut().expect("room");
            pairs += isa.slots_of(set.bits(), from + first_slot(prefix), parents);
        }
        pairs
    }

    #[inline(always)]
    fn chunk(&self, at: usize) -> (&[u8; CHILDREN], &[u8; CHILDREN]) {
        let room = "room for a vector";
        (self.parents[at..].first_chunk().expect(room), self.completions[at..].first_chunk().expect(room))
    }
}

/// Turns the completions of a row into states of the next one. Whenever these fill a block, they walk first.
pub(super) struct Emit<'e, 'w, 't, S: Sets> {
    pub(super) trie: &'e mut Trie<'w, 't, S>,
}

impl<S: Sets> Op for Emit<'_, '_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Trie { isa, row, block, from, lists, bundle, rows, blocks, scratch, tally, .. } = self.trie;
        let isa = *isa;
        let [next_row, ..] = rows else { panic!("no solution comes before the first one") };
        let boxes = match (row.opens_band, next_row.opens_band) {
            (_, true) => Boxes::Unused,
            (true, false) => Boxes::Fresh,
            (false, false) => Boxes::Inherited,
        };
        let pairs = bundle.pair::<S>(isa, *from, &lists.completions);
        let completed = Completed {
            fields: lists.completions.prefixes(),
            number: lists.completions.len(),
            columns: &row.columns[..row.cells],
            digits: &row.digits,
        };
        S::add(isa, &completed, &mut bundle.additions);
        let columns = completed.columns.iter().fold(0, |columns, column| columns | 1 << column);
        lists.completions.clear();
        for at in (0..pairs).step_by(CHILDREN) {
            let (parents, completions) = bundle.chunk(at);
            let children = Children {
                states: &block.states,
                added: &bundle.additions,
                parents,
                completions,
                number: CHILDREN.min(pairs - at),
                columns,
                from_both_halves: block.len > SET,
                boxes,
            };
            let next = &mut blocks[0];
            isa.append(&mut next.states, next.len, &children);
            next.len += children.number;
            if next.len >= S::Isa::BLOCK {
                let states = if S::Isa::BLOCK > SET { [!1, u64::MAX] } else { [!1, 0] };
                isa.run(Walk { rows, blocks, scratch, tally, states, with_path: false });
                let next = &mut blocks[0];
                isa.carry_over(&mut next.states);
                next.len -= S::Isa::BLOCK - 1;
            }
        }
    }
}
