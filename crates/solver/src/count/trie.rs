//! The states of a block walk a row's digit trie together.
//!
//! ```text
//! level 0        { 1 2 3 4 }                   the set of the states that walk
//!                /         \
//! cell 0        4           7                  a digit: the states that allow it there go on
//! level 1    { 1 2 4 }   { 2 3 }                 3 + 2 placements
//!            /     \        |
//! cell 1    7       9       4
//! level 2  { 1 }  { 2 4 } { 3 }                  1 + 2 + 1 placements
//!           :       :       :
//! ```
//!
//! A follower's set is its parent's set and the set of the states that allow the digit. Its size is the number of
//! placements it stands for, and an empty one is dropped. Whole levels are worked off at once, several nodes in a
//! vector. The last two cells are done together, since only two digits are left for them.

use super::blocks::{Block, Bundle, Emit, Scratch};
use super::nodes::{
    FIELD, HALF_FROM, Lists, SECOND_HALF, field, field_from, half_of, of_half, prefix, used_from,
};
use super::rows::Row;
use super::tally::Tally;
use crate::simd::sets::{BUNDLE, SET, Sets, StateWords, Word};
use crate::simd::{Isa, Op};

/// Where the digits of the nodes' halves begin in a table; none if there are no halves.
#[inline(always)]
fn halves_of<S: Sets>(_: S::Isa, prefixes: S) -> Option<S> {
    (S::Isa::BLOCK > SET && S::Word::STATES == SET).then(|| prefixes.shifted_right(HALF_FROM))
}

/// The places of the bits, from the lowest.
struct Bits(u16);

impl Iterator for Bits {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let place = self.0.trailing_zeros() as usize & 15;
        self.0 &= self.0 - 1;
        Some(place)
    }
}

/// A walk under way.
pub(super) struct Trie<'w, 't, S: Sets> {
    pub(super) isa: S::Isa,
    pub(super) row: &'w Row,
    pub(super) block: &'w Block,
    /// Halves of the block that have states that walk: one, the first if there is a second one, or two.
    pub(super) halves: usize,
    /// The slot of the first state that walks.
    pub(super) from: u8,
    pub(super) lists: &'w mut Lists<S::Word>,
    pub(super) bundle: &'w mut Bundle,
    /// The rows below, their blocks, and scratch memory for their walks.
    pub(super) rows: &'w [Row],
    pub(super) blocks: &'w mut [Block],
    pub(super) scratch: &'w mut [Scratch],
    pub(super) tally: &'w mut Tally<'t>,
}

impl<S: Sets> Trie<'_, '_, S> {
    /// Walks from the root, and from the nodes that are in the lists.
    #[inline(always)]
    pub(super) fn start(&mut self, states: [S::Word; 2]) {
        let isa = self.isa;
        match self.row.cells {
            1 => self.place_one(),
            2 => {
                self.push_roots(states);
                isa.run(Levels::<S, 2> { trie: self, from: 0 });
            }
            3 => isa.run(Levels::<S, 3> { trie: self, from: 0 }),
            4 => isa.run(Levels::<S, 4> { trie: self, from: 0 }),
            5 => isa.run(Levels::<S, 5> { trie: self, from: 0 }),
            6 => isa.run(Levels::<S, 6> { trie: self, from: 0 }),
            7 => isa.run(Levels::<S, 7> { trie: self, from: 0 }),
            8 => isa.run(Levels::<S, 8> { trie: self, from: 0 }),
            _ => isa.run(Levels::<S, 9> { trie: self, from: 0 }),
        }
        if self.lists.completions.len() > 0 {
            isa.run(Emit { trie: self });
        }
    }

    /// Walks a trie of one cell and one digit.
    #[inline(always)]
    fn place_one(&mut self) {
        for half in 0..self.halves {
            let set = self.lists.allowed[0][SECOND_HALF * half];
            self.tally.placed += u64::from(set.bits().count_ones());
            if set != S::Word::default() {
                self.lists.completions.push(set, of_half(half));
            }
        }
    }

    #[inline(always)]
    fn push_roots(&mut self, states: [S::Word; 2]) {
        let empty: S::Word = prefix(0, self.row.absent_digits());
        for (half, states) in states.into_iter().enumerate() {
            if states != S::Word::default() {
                self.lists.levels[0].push(states, empty | of_half(half));
            }
        }
    }
}

/// Works off the levels of a trie of so many cells from one on.
struct Levels<'l, 'w, 't, S: Sets, const CELLS: usize> {
    trie: &'l mut Trie<'w, 't, S>,
    from: usize,
}

impl<S: Sets, const CELLS: usize> Op for Levels<'_, '_, '_, S, CELLS> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let Levels { trie, from } = self;
        let mut placed = S::splat(trie.isa, S::Word::default());
        let mut cell = from;
        if CELLS > 2 && from == 0 {
            placed = trie.begin::<CELLS>();
            cell = 2;
        }
        while cell < CELLS - 2 {
            if trie.lists.levels[cell].len() > 0 {
                placed = placed.plus(trie.follow::<CELLS>(cell));
            }
            cell += 1;
        }
        if trie.lists.levels[CELLS - 2].len() > 0 {
            placed = placed.plus(trie.finish::<CELLS>());
        }
        trie.tally.placed += placed.total();
    }
}

impl<S: Sets> Trie<'_, '_, S> {
    /// Makes the first two levels, or those that there are; gives the numbers of placements.
    ///
    /// The nodes of the first one are never in a list: the node of each digit is in its lane.
    #[inline(always)]
    fn begin<const CELLS: usize>(&mut self) -> S {
        let isa = self.isa;
        let mut placed = S::splat(isa, S::Word::default());
        let mut strays = placed;
        let absent = self.row.absent_digits();
        let digits = self.digits::<CELLS>(1);
        for half in 0..self.halves {
            let none = S::splat(isa, prefix::<S::Word>(0, absent) | of_half(half));
            for from in (0..CELLS).step_by(S::LANES) {
                let lists = &mut *self.lists;
                let set = S::load(isa, &lists.allowed[0][SECOND_HALF * half + from..]).first(CELLS - from);
                if set.is_empty() {
                    continue;
                }
                let prefix = S::load(isa, &lists.steps[0][from..]).or(none);
                placed = placed.plus(set.sizes());
                if CELLS == 3 {
                    self.finish_vector::<CELLS>(set, prefix, &mut placed, &mut strays);
                } else {
                    let end = lists.levels[2].len();
                    let end = lists.follow_vector(isa, 1, digits, (set, prefix), end, &mut placed);
                    lists.levels[2].end_at(end);
                }
            }
        }
        assert!(strays.is_empty(), "no solution comes before the first one");
        placed
    }

    /// The digits that some state allows in a cell, a bit each.
    #[inline(always)]
    fn digits<const CELLS: usize>(&self, cell: usize) -> u16 {
        let some = S::some(self.isa, &self.lists.allowed[cell]);
        let of_second_half = if self.halves == 2 { some >> SECOND_HALF } else { 0 };
        (some | of_second_half) & ((1 << CELLS) - 1)
    }

    /// Makes the followers of all nodes of a level; gives the numbers of placements.
    #[inline(always)]
    fn follow<const CELLS: usize>(&mut self, cell: usize) -> S {
        let isa = self.isa;
        let mut placed = S::splat(isa, S::Word::default());
        let digits = self.digits::<CELLS>(cell);
        let one_by_one = if S::LANES < 8 || CELLS > 8 { 0 } else { digits.count_ones() as usize };
        let len = self.lists.levels[cell].len();
        let mut at = 0;
        while at < len {
            let mut end = self.lists.levels[cell + 1].len();
            if len - at <= one_by_one {
                let Lists { allowed, steps, used, levels, .. } = &mut *self.lists;
                let [from, to] = levels.get_disjoint_mut([cell, cell + 1]).expect("two levels");
                for node in at..len {
                    let (set, prefix) = from.node(node);
                    let allowed = S::load(isa, &allowed[cell][half_of(prefix)..]);
                    let (set, prefix) = (S::splat(isa, set), S::splat(isa, prefix));
                    let sets = set.and(allowed).where_disjoint(prefix, S::load(isa, used));
                    placed = placed.plus(sets.sizes());
                    end = to.append(end, sets, prefix.or(S::load(isa, &steps[cell])));
                }
            } else {
                let nodes = self.lists.levels[cell].vector::<S>(isa, at);
                end = self.lists.follow_vector(isa, cell, digits, nodes, end, &mut placed);
            }
            self.lists.levels[cell + 1].end_at(end);
            at += S::LANES;
            if self.lists.levels[cell + 1].is_full_for::<S>() {
                isa.run(Levels::<S, CELLS> { trie: self, from: cell + 1 });
            }
        }
        self.lists.levels[cell].clear();
        placed
    }

    /// Places the last two digits of all nodes of the last level but one; gives the numbers of placements.
    #[inline(always)]
    fn finish<const CELLS: usize>(&mut self) -> S {
        let isa = self.isa;
        let mut placed = S::splat(isa, S::Word::default());
        let mut strays = placed;
        let len = self.lists.levels[CELLS - 2].len();
        for at in (0..len).step_by(S::LANES) {
            let (set, prefix) = self.lists.levels[CELLS - 2].vector::<S>(isa, at);
            self.finish_vector::<CELLS>(set, prefix, &mut placed, &mut strays);
        }
        assert!(strays.is_empty(), "no solution comes before the first one");
        self.lists.levels[CELLS - 2].clear();
        placed
    }

    /// Places the last two digits of some nodes.
    #[inline(always)]
    fn finish_vector<const CELLS: usize>(&mut self, set: S, prefix: S, placed: &mut S, strays: &mut S) {
        let isa = self.isa;
        let cell = CELLS - 2;
        let all_digits = S::splat(isa, S::Word::of((1 << CELLS) - 1));
        let all_fields = S::splat(isa, of_half::<S::Word>(1) | S::Word::of(field(cell, 1) - 1));
        let by = field_from(cell);
        let Lists { allowed, completions, .. } = &mut *self.lists;
        let left = all_digits.minus(prefix.shifted_right(used_from::<S::Word>()));
        let (a, b) = (left.lowest(), left.highest());
        let (at_a, at_b) = match halves_of(isa, prefix) {
            Some(half) => (half.or(a), half.or(b)),
            None => (a, b),
        };
        let first_a = set.and(S::pick(&allowed[cell], at_a));
        let first_b = set.and(S::pick(&allowed[cell], at_b));
        let a_then_b = first_a.and(S::pick(&allowed[cell + 1], at_b));
        let b_then_a = first_b.and(S::pick(&allowed[cell + 1], at_a));
        *placed = placed.plus(first_a.sizes().plus(first_b.sizes()));
        *placed = placed.plus(a_then_b.sizes().plus(b_then_a.sizes()));
        if self.row.last {
            *strays = strays.or(a_then_b).or(b_then_a);
            return;
        }
        let fields = prefix.and(all_fields);
        let (a, b) = (a.shifted_left(by), b.shifted_left(by));
        let end = completions.len();
        let end = completions.append(end, a_then_b, fields.or(a).or(b.shifted_left(FIELD)));
        let end = completions.append(end, b_then_a, fields.or(b).or(a.shifted_left(FIELD)));
        completions.end_at(end);
        if completions.len() + 2 * S::LANES > BUNDLE {
            isa.run(Emit { trie: self });
        }
    }
}

impl<W: Word> Lists<W> {
    /// Appends the followers of some nodes to the next level, whose end is kept by the caller.
    #[inline(always)]
    fn follow_vector<S: Sets<Word = W>>(
        &mut self,
        isa: S::Isa,
        cell: usize,
        digits: u16,
        (set, prefix): (S, S),
        mut end: usize,
        placed: &mut S,
    ) -> usize {
        let half = halves_of(isa, prefix);
        let (allowed, steps, to) = (&self.allowed[cell], &self.steps[cell], &mut self.levels[cell + 1]);
        for digit in Bits(digits) {
            let allowed = match half {
                Some(half) => S::pick(allowed, half.or(S::splat(isa, W::of(digit as u64)))),
                None => S::splat(isa, allowed[digit]),
            };
            let sets = set.and(allowed).where_disjoint(prefix, S::splat(isa, self.used[digit]));
            *placed = placed.plus(sets.sizes());
            end = to.append(end, sets, prefix.or(S::splat(isa, steps[digit])));
        }
        end
    }
}
