//! The dense form of givens with AVX-512: 64 cells at a time, and all houses at once.

use core::arch::x86_64::{
    __m512i, _mm512_castsi512_si256, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask, _mm512_cvtepu8_epi16,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_maskz_compress_epi8, _mm512_maskz_expand_epi8,
    _mm512_or_si512, _mm512_permutex2var_epi8, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_setzero_si512,
    _mm512_sllv_epi16, _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_test_epi16_mask,
};

use super::avx512::Avx512;
use super::dense::Dense;
use super::instructions;
use crate::dense::DenseGivens;
use crate::grid::{CELLS, Grid};
use crate::houses::{HOUSE_COUNT, HOUSES};

/// A byte a cell, of the first 64 cells or of the others.
type Bytes = [u8; 64];

/// A house a lane, of which there are 27: where its first and second digit are, its third and fourth and so on, and the last byte, which no cell has, in
/// place of a tenth digit and for the lanes that are no house.
const PLACES_IN_HOUSES: [Bytes; 5] = {
    let mut places = [[127; 64]; 5];
    let mut house = 0;
    while house < HOUSE_COUNT {
        let mut number = 0;
        while number < 9 {
            #[expect(clippy::cast_possible_truncation, reason = "below 81")]
            let cell = HOUSES[house][number] as u8;
            places[number / 2][number % 2 * 32 + house] = cell;
            number += 1;
        }
        house += 1;
    }
    places
};

/// The digits 1 to 9 as bits.
const DIGIT_BITS: i16 = 0b11_1111_1110;

impl Dense for Avx512 {
    #[inline(always)]
    fn pack(self, text: &[u8; CELLS], dense: &mut DenseGivens) -> bool {
        let mut texts = [[b'.'; 64]; 2];
        texts.as_flattened_mut()[..CELLS].copy_from_slice(text);
        let mut digits = texts;
        for digit in digits.as_flattened_mut() {
            *digit = digit.wrapping_sub(b'0');
        }
        let digits = [self.load_bytes(&digits[0]), self.load_bytes(&digits[1])];
        let mut cells = [0; 2];
        let mut is_wrong = false;
        for half in 0..2 {
            let numbers = self.at_most(digits[half], 9);
            cells[half] = numbers & !self.at_most(digits[half], 0);
            is_wrong |= numbers | self.equal(self.load_bytes(&texts[half]), b'.') != u64::MAX;
        }
        if is_wrong || self.clash(digits) {
            return false;
        }
        let count = cells[0].count_ones();
        let [first, last] = [self.gather(digits[0], cells[0]), self.gather(digits[1], cells[1])];
        // The second half's follow those of the first, and what is beyond 64 digits comes by itself.
        let behind = self.spread(last, u64::MAX.checked_shl(count).unwrap_or(0));
        let beyond = self.gather(last, u64::MAX.checked_shl(64 - count).unwrap_or(0));
        let first = instructions!(_mm512_or_si512(first, behind));
        two_a_byte(&self.store_bytes(first), &mut dense.digits[..32]);
        two_a_byte(&self.store_bytes(beyond), &mut dense.digits[32..]);
        dense.cells = u128::from(cells[1]) << 64 | u128::from(cells[0]);
        true
    }

    #[inline(always)]
    fn unpack(self, cells: u128, digits: &[u8; DenseGivens::BYTES], grid: &mut Grid) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
        let cells = [cells as u64, (cells >> 64) as u64];
        let count = cells[0].count_ones() as usize;
        let first = self.load_bytes(&one_a_byte(&digits[..32]));
        // Those of the second half may begin in the midst of a byte.
        let last = self.load_bytes(&one_a_byte(&digits[count / 2..count / 2 + 16]));
        let last = self.gather(last, u64::MAX << (count % 2));
        let halves = [self.spread(first, cells[0]), self.spread(last, cells[1])];
        let mut is_wrong = cells[1] >> (CELLS - 64) != 0;
        for half in 0..2 {
            let filled = self.at_most(halves[half], 9) & !self.at_most(halves[half], 0);
            is_wrong |= filled != cells[half];
        }
        if is_wrong || self.clash(halves) {
            return false;
        }
        let halves = [self.store_bytes(halves[0]), self.store_bytes(halves[1])];
        grid.0.copy_from_slice(&halves.as_flattened()[..CELLS]);
        true
    }
}

#[expect(clippy::unused_self, reason = "the value is the proof that there are the instructions")]
impl Avx512 {
    #[inline(always)]
    fn load_bytes(self, bytes: &Bytes) -> __m512i {
        // SAFETY: this machine has AVX-512, and 64 bytes can be read, at any alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_bytes(self, vector: __m512i) -> Bytes {
        let mut bytes = [0; 64];
        // SAFETY: this machine has AVX-512, and 64 bytes can be written, at any alignment.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) };
        bytes
    }

    /// A bit for each byte that is at most `max`.
    #[inline(always)]
    fn at_most(self, bytes: __m512i, max: i8) -> u64 {
        instructions!(_mm512_cmple_epu8_mask(bytes, _mm512_set1_epi8(max)))
    }

    /// A bit for each byte that is this one.
    #[inline(always)]
    fn equal(self, bytes: __m512i, byte: u8) -> u64 {
        instructions!(_mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed())))
    }

    /// The bytes whose bits are set, one after the other, and zeros behind them.
    #[inline(always)]
    fn gather(self, bytes: __m512i, which: u64) -> __m512i {
        instructions!(_mm512_maskz_compress_epi8(which, bytes))
    }

    /// The first bytes in the places whose bits are set, zeros in the others.
    #[inline(always)]
    fn spread(self, bytes: __m512i, which: u64) -> __m512i {
        instructions!(_mm512_maskz_expand_epi8(which, bytes))
    }

    /// Whether a house has a digit twice. What is no digit stands for an empty cell.
    #[inline(always)]
    fn clash(self, digits: [__m512i; 2]) -> bool {
        let one = instructions!(_mm512_set1_epi16(1));
        let (mut seen, mut twice) = instructions!((_mm512_setzero_si512(), _mm512_setzero_si512()));
        for places in &PLACES_IN_HOUSES {
            let places = self.load_bytes(places);
            instructions!({
                let found = _mm512_permutex2var_epi8(digits[0], places, digits[1]);
                for half in [_mm512_castsi512_si256(found), _mm512_extracti64x4_epi64::<1>(found)] {
                    // Numbers from 16 on are shifted out.
                    let sets = _mm512_sllv_epi16(one, _mm512_cvtepu8_epi16(half));
                    // twice | seen & sets
                    twice = _mm512_ternarylogic_epi64::<0b1111_1000>(twice, seen, sets);
                    seen = _mm512_or_si512(seen, sets);
                }
            });
        }
        instructions!(_mm512_test_epi16_mask(twice, _mm512_set1_epi16(DIGIT_BITS))) != 0
    }
}

/// Digits from the front, two a byte, the first in the high half.
#[inline(always)]
fn two_a_byte(digits: &Bytes, bytes: &mut [u8]) {
    for (byte, &[high, low]) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = high << 4 | low;
    }
}

/// The digits of so many bytes, and zeros behind them.
#[inline(always)]
fn one_a_byte(bytes: &[u8]) -> Bytes {
    let mut digits = [0; 64];
    for (pair, &byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [byte >> 4, byte & 15];
    }
    digits
}
