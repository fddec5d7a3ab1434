//! Plain words, for any machine.

use super::dense::Dense;
use super::sets_plain::OneSet;
use super::u16s::words_of_vectors;
use super::{Isa, Op, U16s};

/// No instructions but those that every machine of the target has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// Eight words.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct U16x8([u16; 8]);

impl U16x8 {
    #[inline(always)]
    fn zip(self, other: Self, operation: impl Fn(u16, u16) -> u16) -> Self {
        let mut result = self;
        for (word, &other) in result.0.iter_mut().zip(&other.0) {
            *word = operation(*word, other);
        }
        result
    }
}

impl Dense for Portable {}

impl Isa for Portable {
    type Wide = OneSet<Portable>;
    type Narrow = OneSet<Portable>;
    type U16s = U16x8;

    #[inline(always)]
    fn splat(self, word: u16) -> U16x8 {
        U16x8([word; 8])
    }

    #[inline(always)]
    fn load(self, words: &[u16]) -> U16x8 {
        let mut loaded = [0; 8];
        loaded.copy_from_slice(&words[..8]);
        U16x8(loaded)
    }

    #[inline(always)]
    fn bits_of_lanes(self, lanes: u32) -> U16x8 {
        let mut words = [0; 8];
        for (lane, word) in words.iter_mut().enumerate() {
            *word = if lanes >> lane & 1 == 1 { u16::MAX } else { 0 };
        }
        U16x8(words)
    }

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        fn plain<O: Op>(isa: Portable, op: O) -> O::Output {
            op.call(isa)
        }
        plain(self, op)
    }
}

impl U16s for U16x8 {
    const COUNT: usize = 8;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, u16::wrapping_add)
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, u16::min)
    }

    #[inline(always)]
    fn where_none(self, other: Self) -> Self {
        self.zip(other, |a, b| if b == 0 { a } else { 0 })
    }

    #[inline(always)]
    fn or_else(self, other: Self) -> Self {
        self.zip(other, |a, b| if a == 0 { b } else { a })
    }

    #[inline(always)]
    fn differing(self, other: Self) -> u32 {
        let mut lanes = 0;
        for (lane, (a, b)) in self.0.iter().zip(&other.0).enumerate() {
            lanes |= u32::from(a != b) << lane;
        }
        lanes
    }

    words_of_vectors!(8);
}
