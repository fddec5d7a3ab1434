//! 512 bits: AVX-512 as of Ice Lake and Zen 4.

use core::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_and_si512, _mm512_andnot_si512, _mm512_cmpneq_epi16_mask,
    _mm512_loadu_si512, _mm512_mask_mov_epi16, _mm512_maskz_mov_epi16, _mm512_min_epu16, _mm512_movm_epi16,
    _mm512_or_si512, _mm512_set1_epi16, _mm512_ternarylogic_epi64, _mm512_test_epi16_mask,
    _mm512_testn_epi16_mask,
};
use core::hint::black_box;
use std::sync::LazyLock;

use super::sets_avx512::{Narrow, Wide};
use super::u16s::words_of_vectors;
use super::{Isa, Op, U16s, instructions};

/// This machine has AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2, BITALG and VPOPCNTDQ, and all that comes before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

impl Avx512 {
    #[inline]
    pub(crate) fn detect() -> Option<Avx512> {
        // Found once: this is asked for every puzzle that is packed.
        static HAS_ALL: LazyLock<bool> = LazyLock::new(Avx512::has_all);
        HAS_ALL.then_some(Avx512(()))
    }

    fn has_all() -> bool {
        // The first three are what compilers take AVX-512 to bring along.
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512bitalg")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
}

/// Thirty-two words.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct U16x32(__m512i);

/// A truth table for `_mm512_ternarylogic_epi64`, from the expression with the three operands' own tables.
macro_rules! ternary {
    (|$a:ident, $b:ident, $c:ident| $value:expr, $x:expr, $y:expr, $z:expr) => {{
        const TABLE: i32 = {
            let ($a, $b, $c) = (0xf0, 0xcc, 0xaa);
            $value & 0xff
        };
        U16x32(instructions!(_mm512_ternarylogic_epi64::<TABLE>($x.0, $y.0, $z.0)))
    }};
}

impl Isa for Avx512 {
    type Wide = Wide;
    type Narrow = Narrow;
    type U16s = U16x32;

    #[inline(always)]
    fn splat(self, word: u16) -> U16x32 {
        U16x32(instructions!(_mm512_set1_epi16(word.cast_signed())))
    }

    #[inline(always)]
    fn load(self, words: &[u16]) -> U16x32 {
        let words = &words[..32];
        // SAFETY: this machine has AVX-512, and 32 words can be read, at any alignment.
        U16x32(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn bits_of_lanes(self, lanes: u32) -> U16x32 {
        U16x32(instructions!(_mm512_movm_epi16(lanes)))
    }

    #[inline(always)]
    fn run<O: Op>(self, op: O) -> O::Output {
        #[target_feature(
            enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx512bitalg,avx512vpopcntdq,bmi1,bmi2,lzcnt,popcnt"
        )]
        fn with_avx512<O: Op>(isa: Avx512, op: O) -> O::Output {
            op.call(isa)
        }
        // By a pointer that the compiler cannot see through: inlined into each other, kernels compete for registers, and
        // `inline(never)` has not kept them apart.
        // SAFETY: a value of `Avx512` comes from `detect` alone, which has found these features.
        unsafe { black_box(with_avx512::<O> as unsafe fn(Avx512, O) -> O::Output)(self, op) }
    }
}

impl U16s for U16x32 {
    const COUNT: usize = 32;

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_and_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_or_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_andnot_si512(other.0, self.0)))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_add_epi16(self.0, other.0)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_min_epu16(self.0, other.0)))
    }

    #[inline(always)]
    fn where_none(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_maskz_mov_epi16(_mm512_testn_epi16_mask(other.0, other.0), self.0)))
    }

    #[inline(always)]
    fn or_else(self, other: Self) -> Self {
        U16x32(instructions!(_mm512_mask_mov_epi16(other.0, _mm512_test_epi16_mask(self.0, self.0), self.0)))
    }

    #[inline(always)]
    fn differing(self, other: Self) -> u32 {
        instructions!(_mm512_cmpneq_epi16_mask(self.0, other.0))
    }

    #[inline(always)]
    fn or3(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a | b | c, self, b, c)
    }

    #[inline(always)]
    fn and3(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a & b & c, self, b, c)
    }

    #[inline(always)]
    fn majority(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a & b | a & c | b & c, self, b, c)
    }

    #[inline(always)]
    fn or_both(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a | b & c, self, b, c)
    }

    #[inline(always)]
    fn and_not_both(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a & !(b & c), self, b, c)
    }

    #[inline(always)]
    fn without_unless(self, taken: Self, kept: Self) -> Self {
        ternary!(|a, b, c| a & (!b | c), self, taken, kept)
    }

    #[inline(always)]
    fn or_and_not(self, b: Self, c: Self) -> Self {
        ternary!(|a, b, c| a | b & !c, self, b, c)
    }

    words_of_vectors!(32);
}
