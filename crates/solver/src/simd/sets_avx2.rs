//! One set at a time; the words of the states sixteen at a time.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_and_si256, _mm256_loadu_si256, _mm256_loadu2_m128i,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_packus_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi16,
    _mm256_sll_epi16, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::sets::{Children, SET, StateLine, StateWords, States, Word};
use super::{Avx2, sets_plain};

impl StateWords for Avx2 {
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
        let mut sets = [0; 16];
        for half in 0..sets_plain::end_of(states).div_ceil(32) {
            let found = Found::load(self, columns, boxes, half * 32);
            for (set, &digit) in sets.iter_mut().zip(digits) {
                *set |= u64::from(found.without(digit.trailing_zeros())) << (32 * half);
            }
        }
        sets_plain::only_free(&sets, taken, digits, states, to);
    }

    #[inline(always)]
    fn slots_of(self, set: u64, from: u8, to: &mut [u8; SET]) -> usize {
        sets_plain::slots_of(set, from, to)
    }

    #[inline(always)]
    fn append(self, to: &mut States, at: usize, children: &Children<'_>) {
        sets_plain::append(to, at, children);
    }

    #[inline(always)]
    fn line_up(self, states: &mut States, number: usize) {
        for from in (0..number.min(SET)).step_by(16) {
            let lines: &[StateLine; 16] = states.by_state[from..].first_chunk().expect("a block");
            let words = transpose(self, eight_words(self, lines, 0));
            for (slots, word) in states.by_word.iter_mut().zip(words) {
                store(self, word, slots[from..].first_chunk_mut().expect("a block"));
            }
            // Of the last eight words four are in use.
            let words = transpose(self, eight_words(self, lines, 8));
            for (slots, word) in states.by_word[8..].iter_mut().zip(words) {
                store(self, word, slots[from..].first_chunk_mut().expect("a block"));
            }
        }
    }

    #[inline(always)]
    fn carry_over(self, states: &mut States) {
        sets_plain::carry_over(states);
    }
}

/// Eight words of sixteen states, from one on: those of a state in the low half of a vector, those of the state eight
/// further on in the high half.
#[inline(always)]
fn eight_words(isa: Avx2, lines: &[StateLine; 16], from: usize) -> [__m256i; 8] {
    [
        halves(isa, &lines[0], &lines[8], from),
        halves(isa, &lines[1], &lines[9], from),
        halves(isa, &lines[2], &lines[10], from),
        halves(isa, &lines[3], &lines[11], from),
        halves(isa, &lines[4], &lines[12], from),
        halves(isa, &lines[5], &lines[13], from),
        halves(isa, &lines[6], &lines[14], from),
        halves(isa, &lines[7], &lines[15], from),
    ]
}

#[inline(always)]
fn halves(_: Avx2, low: &StateLine, high: &StateLine, from: usize) -> __m256i {
    let low: &[u16; 8] = low[from..].first_chunk().expect("half a line");
    let high: &[u16; 8] = high[from..].first_chunk().expect("half a line");
    // SAFETY: `low` and `high` are 16 bytes each to read, which need not be aligned; an `Avx2` is the proof of the
    // instructions.
    unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) }
}

/// Gathers what is word `i` of eight vectors in vector `i`, in each half.
///
/// ```text
/// a0 a1 a2 ...      a0 b0 a1 b1 ...      a0 b0 c0 d0 ...      a0 b0 c0 d0 e0 f0 g0 h0
/// b0 b1 b2 ...  ->  c0 d0 c1 d1 ...  ->  e0 f0 g0 h0 ...  ->  a1 b1 c1 d1 e1 f1 g1 h1
/// ```
#[inline(always)]
fn transpose(_: Avx2, v: [__m256i; 8]) -> [__m256i; 8] {
    // SAFETY: an `Avx2` is the proof that the instructions are there.
    unsafe {
        let (ab, ab_high) = (_mm256_unpacklo_epi16(v[0], v[1]), _mm256_unpackhi_epi16(v[0], v[1]));
        let (cd, cd_high) = (_mm256_unpacklo_epi16(v[2], v[3]), _mm256_unpackhi_epi16(v[2], v[3]));
        let (ef, ef_high) = (_mm256_unpacklo_epi16(v[4], v[5]), _mm256_unpackhi_epi16(v[4], v[5]));
        let (gh, gh_high) = (_mm256_unpacklo_epi16(v[6], v[7]), _mm256_unpackhi_epi16(v[6], v[7]));
        let (ad01, ad23) = (_mm256_unpacklo_epi32(ab, cd), _mm256_unpackhi_epi32(ab, cd));
        let (ad45, ad67) = (_mm256_unpacklo_epi32(ab_high, cd_high), _mm256_unpackhi_epi32(ab_high, cd_high));
        let (eh01, eh23) = (_mm256_unpacklo_epi32(ef, gh), _mm256_unpackhi_epi32(ef, gh));
        let (eh45, eh67) = (_mm256_unpacklo_epi32(ef_high, gh_high), _mm256_unpackhi_epi32(ef_high, gh_high));
        [
            _mm256_unpacklo_epi64(ad01, eh01),
            _mm256_unpackhi_epi64(ad01, eh01),
            _mm256_unpacklo_epi64(ad23, eh23),
            _mm256_unpackhi_epi64(ad23, eh23),
            _mm256_unpacklo_epi64(ad45, eh45),
            _mm256_unpackhi_epi64(ad45, eh45),
            _mm256_unpacklo_epi64(ad67, eh67),
            _mm256_unpackhi_epi64(ad67, eh67),
        ]
    }
}

/// Writes sixteen words.
#[inline(always)]
fn store(_: Avx2, words: __m256i, to: &mut [u16; 16]) {
    // SAFETY: `to` is 32 bytes to write, which need not be aligned; an `Avx2` is the proof of the instruction.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), words) }
}

/// The digits found in 32 states: the lowest eight, a byte a state, and the ninth.
struct Found {
    low: __m256i,
    ninth: __m256i,
}

impl Found {
    #[inline(always)]
    fn load(isa: Avx2, columns: &[u16], boxes: Option<&[u16]>, from: usize) -> Found {
        let (first, second) = (found(isa, columns, boxes, from), found(isa, columns, boxes, from + 16));
        // SAFETY: an `Avx2` is the proof that the instructions are there.
        unsafe {
            let byte = _mm256_set1_epi16(0xff);
            let low = _mm256_packus_epi16(_mm256_and_si256(first, byte), _mm256_and_si256(second, byte));
            let ninth = _mm256_packus_epi16(_mm256_srli_epi16::<8>(first), _mm256_srli_epi16::<8>(second));
            // Packing works on halves of vectors: their quarters have to be put in order.
            Found {
                low: _mm256_permute4x64_epi64::<0b11_01_10_00>(low),
                ninth: _mm256_permute4x64_epi64::<0b11_01_10_00>(ninth),
            }
        }
    }

    /// The states without the digit of this number, from 0.
    #[inline(always)]
    fn without(&self, digit: u32) -> u32 {
        let (bytes, bit) = if digit == 8 { (self.ninth, 0) } else { (self.low, digit) };
        // SAFETY: a `Found` is made with the proof that the instructions are there.
        let found = unsafe {
            _mm256_movemask_epi8(_mm256_sll_epi16(bytes, _mm_cvtsi32_si128(7 - bit.cast_signed())))
        };
        !found.cast_unsigned()
    }
}

/// The digits found in sixteen states.
#[inline(always)]
fn found(isa: Avx2, columns: &[u16], boxes: Option<&[u16]>, at: usize) -> __m256i {
    let word = vector(isa, columns, at);
    match boxes {
        // SAFETY: an `Avx2` is the proof that the instruction is there.
        Some(boxes) => unsafe { _mm256_or_si256(word, vector(isa, boxes, at)) },
        None => word,
    }
}

/// Sixteen words.
#[inline(always)]
fn vector(_: Avx2, words: &[u16], at: usize) -> __m256i {
    let words: &[u16; 16] = words[at..].first_chunk().expect("words of 64 states");
    // SAFETY: `words` are 32 bytes to read, which need not be aligned; an `Avx2` is the proof of the instruction.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
