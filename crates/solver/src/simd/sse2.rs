//! 128 bits: SSE2, which every `x86_64` has.

use core::arch::x86_64::{
    __m128i, _mm_add_epi16, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_min_epi16,
    _mm_movemask_epi8, _mm_or_si128, _mm_packs_epi16, _mm_set1_epi16, _mm_setzero_si128,
};

use super::dense::Dense;
use super::sets_plain::OneSet;
use super::u16s::words_of_vectors;
use super::{Isa, Op, U16s, instructions};

/// SSE2 is part of `x86_64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sse2;

/// Eight words.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct U16x8(__m128i);

impl Dense for Sse2 {}

impl Isa for Sse2 {
    type Wide = OneSet<Sse2>;
    type Narrow = OneSet<Sse2>;
    type U16s = U16x8;

    #[inline(always)]
    fn splat(self, word: u16) -> U16x8 {
        U16x8(instructions!(_mm_set1_epi16(word.cast_signed())))
    }

    #[inline(always)]
    fn load(self, words: &[u16]) -> U16x8 {
        let words = &words[..8];
        // SAFETY: every `x86_64` has SSE2, and eight words can be read, at any alignment.
        U16x8(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn bits_of_lanes(self, lanes: u32) -> U16x8 {
        let words: [u16; 8] = std::array::from_fn(|lane| if lanes >> lane & 1 == 1 { u16::MAX } else { 0 });
        self.load(&words)
    }

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        fn with_sse2<O: Op>(isa: Sse2, op: O) -> O::Output {
            op.call(isa)
        }
        with_sse2(self, op)
    }
}

impl U16s for U16x8 {
    const COUNT: usize = 8;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        U16x8(instructions!(_mm_and_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        U16x8(instructions!(_mm_or_si128(self.0, other.0)))
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        U16x8(instructions!(_mm_andnot_si128(other.0, self.0)))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        U16x8(instructions!(_mm_add_epi16(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        U16x8(instructions!(_mm_min_epi16(self.0, other.0)))
    }

    #[inline(always)]
    fn where_none(self, other: Self) -> Self {
        U16x8(instructions!(_mm_and_si128(self.0, _mm_cmpeq_epi16(other.0, _mm_setzero_si128()))))
    }

    #[inline(always)]
    fn or_else(self, other: Self) -> Self {
        let missing = instructions!(_mm_cmpeq_epi16(self.0, _mm_setzero_si128()));
        U16x8(instructions!(_mm_or_si128(self.0, _mm_and_si128(other.0, missing))))
    }

    #[inline(always)]
    fn differing(self, other: Self) -> u32 {
        let equal = instructions!(_mm_cmpeq_epi16(self.0, other.0));
        let equal = instructions!(_mm_movemask_epi8(_mm_packs_epi16(equal, equal)));
        !equal.cast_unsigned() & 0xff
    }

    words_of_vectors!(8);
}
