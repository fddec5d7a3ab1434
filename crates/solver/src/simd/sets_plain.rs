//! One set at a time, in a plain word: for machines whose vectors neither count bits nor pack lanes.

#[cfg(target_arch = "x86_64")]
use super::Sse2;
use super::sets::{
    Additions, Boxes, CHILDREN, Children, Completed, SET, Sets, StateLine, StateWords, States, Table, Word,
};
use super::{Isa, Portable};

/// A set; the isa is there so that the work is compiled with its instructions.
#[derive(Clone, Copy)]
pub(crate) struct OneSet<I>(u64, I);

impl<I: Isa> Sets for OneSet<I> {
    type Isa = I;
    type Word = u64;

    const LANES: usize = 1;

    #[inline(always)]
    fn splat(isa: I, word: u64) -> Self {
        OneSet(word, isa)
    }

    #[inline(always)]
    fn load(isa: I, words: &[u64]) -> Self {
        OneSet(words[0], isa)
    }

    #[inline(always)]
    fn first(self, lanes: usize) -> Self {
        OneSet(if lanes == 0 { 0 } else { self.0 }, self.1)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        OneSet(self.0 & other.0, self.1)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        OneSet(self.0 | other.0, self.1)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        OneSet(self.0 & !other.0, self.1)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        OneSet(self.0.wrapping_add(other.0), self.1)
    }

    #[inline(always)]
    fn shifted_left(self, by: u32) -> Self {
        OneSet(self.0.wrapping_shl(by), self.1)
    }

    #[inline(always)]
    fn shifted_right(self, by: u32) -> Self {
        OneSet(self.0.wrapping_shr(by), self.1)
    }

    #[inline(always)]
    fn some(_: I, table: &Table<u64>) -> u16 {
        table.iter().rev().fold(0, |some, &set| some << 1 | u16::from(set != 0))
    }

    #[inline(always)]
    fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    fn sizes(self) -> Self {
        OneSet(u64::from(self.0.count_ones()), self.1)
    }

    #[inline(always)]
    fn total(self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn lowest(self) -> Self {
        OneSet(u64::from(self.0.trailing_zeros()), self.1)
    }

    #[inline(always)]
    fn highest(self) -> Self {
        OneSet(u64::from(63 ^ self.0.leading_zeros()), self.1)
    }

    #[inline(always)]
    fn where_disjoint(self, words: Self, bits: Self) -> Self {
        OneSet(if words.0 & bits.0 == 0 { self.0 } else { 0 }, self.1)
    }

    #[inline(always)]
    fn pick(table: &Table<u64>, at: Self) -> Self {
        OneSet(table[(at.0 & 15) as usize], at.1)
    }

    #[inline(always)]
    fn store_nonempty(self, carried: Self, sets: &mut [u64], words: &mut [u64]) -> usize {
        sets[0] = self.0;
        words[0] = carried.0;
        usize::from(self.0 != 0)
    }

    #[inline(always)]
    fn add(_: I, completed: &Completed<'_, u64>, to: &mut Additions) {
        let Completed { fields, number, columns, digits } = completed;
        for (to, fields) in to.by_completion.iter_mut().zip(*fields).take(*number) {
            let mut line = [0; 16];
            for (cell, &column) in columns.iter().enumerate() {
                let digit = digits[(fields >> (4 * cell) & 15) as usize];
                line[column & 15] |= digit;
                line[(9 + column / 3) & 15] |= digit;
            }
            *to = line;
        }
    }
}

/// See [`StateWords::allow`].
#[inline(always)]
fn allow<W: Word>(
    columns: &[u16],
    boxes: Option<&[u16]>,
    taken: u16,
    digits: &[u16],
    states: W,
    to: &mut [W],
) {
    let mut sets = [0; 16];
    for from in (0..end_of(states)).step_by(4) {
        let mut found = four(columns, from);
        if let Some(boxes) = boxes {
            found |= four(boxes, from);
        }
        for (set, &digit) in sets.iter_mut().zip(digits) {
            // One bit in each of four words, brought together by a multiplication.
            let free = !(found >> digit.trailing_zeros()) & 0x0001_0001_0001_0001;
            *set |= (free.wrapping_mul(0x0001_0002_0004_0008) >> 48 & 15) << from;
        }
    }
    only_free(&sets, taken, digits, states, to);
}

/// The place after the last of these states.
#[inline(always)]
pub(super) fn end_of<W: Word>(states: W) -> usize {
    SET - states.bits().leading_zeros() as usize
}

/// Takes over the sets of the digits that are not taken, as far as they are of these states.
#[inline(always)]
pub(super) fn only_free<W: Word>(sets: &[u64; 16], taken: u16, digits: &[u16], states: W, to: &mut [W]) {
    for (index, digit) in digits.iter().enumerate() {
        to[index] = if digit & taken == 0 { W::of(sets[index]) & states } else { W::default() };
    }
}

/// Four words as one, the first in the lowest bits.
#[inline(always)]
fn four(words: &[u16], from: usize) -> u64 {
    let words: &[u16; 4] = words[from..].first_chunk().expect("words of 64 states");
    words.iter().rev().fold(0, |four, &word| four << 16 | u64::from(word))
}

/// See [`StateWords::slots_of`].
#[inline(always)]
pub(super) fn slots_of(set: u64, from: u8, to: &mut [u8; SET]) -> usize {
    let mut rest = set;
    for to in to.iter_mut() {
        if rest == 0 {
            break;
        }
        *to = from + rest.trailing_zeros().to_le_bytes()[0];
        rest &= rest - 1;
    }
    set.count_ones() as usize
}

/// The words of a state that are inherited where those of boxes are not.
const COLUMNS: StateLine = {
    let mut words = [0; 16];
    let mut column = 0;
    while column < 9 {
        words[column] = u16::MAX;
        column += 1;
    }
    words
};

/// See [`StateWords::append`].
#[inline(always)]
pub(super) fn append(to: &mut States, at: usize, children: &Children<'_>) {
    let inherited = if children.boxes == Boxes::Inherited { [u16::MAX; 16] } else { COLUMNS };
    let number = children.number.min(CHILDREN);
    let to = &mut to.by_state[at..at + CHILDREN][..number];
    for ((to, parent), completion) in to.iter_mut().zip(children.parents).zip(children.completions) {
        let mut child = children.states.by_state[usize::from(parent & 127)];
        let added = children.added.by_completion[usize::from(completion & 63)];
        for word in 0..16 {
            child[word] = child[word] & inherited[word] | added[word];
        }
        *to = child;
    }
}

/// See [`StateWords::carry_over`].
#[inline(always)]
pub(super) fn carry_over(states: &mut States) {
    states.by_state.copy_within(SET..SET + CHILDREN, 1);
}

/// Implements [`StateWords`] by plain words.
macro_rules! plain_state_words {
    ($isa:ty) => {
        impl StateWords for $isa {
            const BLOCK: usize = SET;

            #[inline(always)]
            fn allow<W: Word>(
                self,
                columns: &[u16],
                boxes: Option<&[u16]>,
                taken: u16,
                digits: &[u16],
                states: W,
                to: &mut [W],
            ) {
                allow(columns, boxes, taken, digits, states, to);
            }

            #[inline(always)]
            fn slots_of(self, set: u64, from: u8, to: &mut [u8; SET]) -> usize {
                slots_of(set, from, to)
            }

            #[inline(always)]
            fn append(self, to: &mut States, at: usize, children: &Children<'_>) {
                append(to, at, children);
            }

            #[inline(always)]
            fn line_up(self, states: &mut States, number: usize) {
                for (word, slots) in states.by_word.iter_mut().enumerate() {
                    for (to, line) in slots.iter_mut().zip(&states.by_state).take(number) {
                        *to = line[word];
                    }
                }
            }

            #[inline(always)]
            fn carry_over(self, states: &mut States) {
                carry_over(states);
            }
        }
    };
}

plain_state_words!(Portable);
#[cfg(target_arch = "x86_64")]
plain_state_words!(Sse2);
