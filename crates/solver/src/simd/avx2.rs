//! 256 bits: AVX2.

use core::arch::x86_64::{
    __m256i, _mm_movemask_epi8, _mm_packs_epi16, _mm256_add_epi16, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_castsi256_si128, _mm256_cmpeq_epi16, _mm256_extracti128_si256, _mm256_loadu_si256,
    _mm256_min_epi16, _mm256_or_si256, _mm256_set1_epi16, _mm256_setr_epi16, _mm256_setzero_si256,
};
use core::hint::black_box;
use std::sync::LazyLock;

use super::dense::Dense;
use super::sets_plain::OneSet;
use super::u16s::words_of_vectors;
use super::{Isa, Op, U16s, instructions};

/// This machine has AVX2, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    #[inline]
    pub(crate) fn detect() -> Option<Avx2> {
        // Found once, as for `Avx512`.
        static HAS_ALL: LazyLock<bool> = LazyLock::new(Avx2::has_all);
        HAS_ALL.then_some(Avx2(()))
    }

    fn has_all() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
}

/// Sixteen words.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct U16x16(__m256i);

impl Dense for Avx2 {}

impl Isa for Avx2 {
    type Wide = OneSet<Avx2>;
    type Narrow = OneSet<Avx2>;
    type U16s = U16x16;

    #[inline(always)]
    fn splat(self, word: u16) -> U16x16 {
        U16x16(instructions!(_mm256_set1_epi16(word.cast_signed())))
    }

    #[inline(always)]
    fn load(self, words: &[u16]) -> U16x16 {
        let words = &words[..16];
        // SAFETY: this machine has AVX2, and sixteen words can be read, at any alignment.
        U16x16(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn bits_of_lanes(self, lanes: u32) -> U16x16 {
        let lanes = self.splat((lanes & 0xffff) as u16).0;
        let bit = |lane: u32| (1_u16 << lane).cast_signed();
        U16x16(instructions!({
            let bits = _mm256_setr_epi16(
                bit(0),
                bit(1),
                bit(2),
                bit(3),
                bit(4),
                bit(5),
                bit(6),
                bit(7),
                bit(8),
                bit(9),
                bit(10),
                bit(11),
                bit(12),
                bit(13),
                bit(14),
                bit(15),
            );
            _mm256_cmpeq_epi16(_mm256_and_si256(lanes, bits), bits)
        }))
    }

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn with_avx2<O: Op>(isa: Avx2, op: O) -> O::Output {
            op.call(isa)
        }
        // By a pointer that the compiler cannot see through: inlined into each other, kernels compete for registers, and
        // `inline(never)` has not kept them apart.
        // SAFETY: a value of `Avx2` comes from `detect` alone, which has found these features.
        unsafe { black_box(with_avx2::<O> as unsafe fn(Avx2, O) -> O::Output)(self, op) }
    }
}

impl U16s for U16x16 {
    const COUNT: usize = 16;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_and_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_or_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_andnot_si256(other.0, self.0)))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_add_epi16(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_min_epi16(self.0, other.0)))
    }

    #[inline(always)]
    fn where_none(self, other: Self) -> Self {
        U16x16(instructions!(_mm256_and_si256(self.0, _mm256_cmpeq_epi16(other.0, _mm256_setzero_si256()))))
    }

    #[inline(always)]
    fn or_else(self, other: Self) -> Self {
        let missing = instructions!(_mm256_cmpeq_epi16(self.0, _mm256_setzero_si256()));
        U16x16(instructions!(_mm256_or_si256(self.0, _mm256_and_si256(other.0, missing))))
    }

    #[inline(always)]
    fn differing(self, other: Self) -> u32 {
        let equal = instructions!(_mm256_cmpeq_epi16(self.0, other.0));
        let equal = instructions!(_mm_movemask_epi8(_mm_packs_epi16(
            _mm256_castsi256_si128(equal),
            _mm256_extracti128_si256::<1>(equal)
        )));
        !equal.cast_unsigned() & 0xffff
    }

    words_of_vectors!(16);
}
