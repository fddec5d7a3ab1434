//! The dense form of givens: what an instruction set does for it. Here in plain code, for the sets that cannot pick bytes by bits.

use crate::clashes::Clashes;
use crate::dense::DenseGivens;
use crate::grid::{CELLS, Grid};

/// Digits of a word, half a byte each.
const WORD_DIGITS: u32 = 16;

/// From texts to the dense form and back.
pub(crate) trait Dense: Copy {
    /// As [`DenseGivens::of_text`]; `dense` holds no digits before.
    #[inline(always)]
    fn pack(self, text: &[u8; CELLS], dense: &mut DenseGivens) -> bool {
        pack(text, dense)
    }

    /// As [`Givens::set_dense`](crate::Givens::set_dense).
    #[inline(always)]
    fn unpack(self, cells: u128, digits: &[u8; DenseGivens::BYTES], grid: &mut Grid) -> bool {
        unpack(cells, digits, grid)
    }
}

#[inline(always)]
fn pack(text: &[u8; CELLS], dense: &mut DenseGivens) -> bool {
    let Some(halves) = given_cells(text) else { return false };
    dense.cells = u128::from(halves[1]) << 64 | u128::from(halves[0]);
    let mut words = dense.digits.chunks_exact_mut(8);
    let mut clashes = Clashes::default();
    let (mut word, mut count) = (0_u64, 0_u32);
    for (mut half, first) in halves.into_iter().zip([0, 64]) {
        while half != 0 {
            let cell = first + half.trailing_zeros() as usize;
            half &= half - 1;
            let digit = text[cell] & 15;
            clashes.place(cell, digit);
            word = word << 4 | u64::from(digit);
            count += 1;
            if count.is_multiple_of(WORD_DIGITS)
                && let Some(bytes) = words.next()
            {
                bytes.copy_from_slice(&word.to_be_bytes());
            }
        }
    }
    let last = count % WORD_DIGITS;
    if last != 0
        && let Some(bytes) = words.next()
    {
        bytes.copy_from_slice(&(word << (4 * (WORD_DIGITS - last))).to_be_bytes());
    }
    !clashes.any()
}

/// The cells that hold a digit, the first 64 and the others; `None` if a character is none of a puzzle's.
#[inline(always)]
fn given_cells(text: &[u8; CELLS]) -> Option<[u64; 2]> {
    // A byte a cell, in a form that compilers turn into vectors; then a bit a cell.
    let mut are_given = [0_u8; 88];
    let mut is_wrong = 0;
    for (is_given, &byte) in are_given.iter_mut().zip(text) {
        *is_given = u8::from(byte.wrapping_sub(b'1') < 9);
        let is_empty = u8::from(byte == b'.') | u8::from(byte == b'0');
        is_wrong |= 1 ^ (*is_given | is_empty);
    }
    if is_wrong != 0 {
        return None;
    }
    let mut halves = [0; 2];
    for (place, eight) in are_given.chunks_exact(8).enumerate() {
        halves[place / 8] |= low_bits(eight.try_into().unwrap_or_default()) << (place % 8 * 8);
    }
    Some(halves)
}

/// The lowest bit of each of eight bytes, of which nothing else is set.
#[inline(always)]
fn low_bits(bytes: [u8; 8]) -> u64 {
    // The product moves the bit of byte `i` from place 8 i to place 56 + i; no two of its terms meet.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[inline(always)]
fn unpack(cells: u128, digits: &[u8; DenseGivens::BYTES], grid: &mut Grid) -> bool {
    *grid = Grid::EMPTY;
    let mut words = digits.chunks_exact(8);
    let (mut word, mut left) = (0_u64, 0);
    let mut clashes = Clashes::default();
    let mut is_wrong = cells >> CELLS != 0;
    // Two halves: loops over words that the machine has.
    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    let halves = [(cells as u64, 0), ((cells >> 64) as u64, 64)];
    for (mut half, first) in halves {
        while half != 0 {
            let cell = first + half.trailing_zeros() as usize;
            half &= half - 1;
            if left == 0 {
                word =
                    words.next().map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap_or_default()));
                left = WORD_DIGITS;
            }
            left -= 1;
            word = word.rotate_left(4);
            let digit = word.to_le_bytes()[0] & 15;
            is_wrong |= !(1..=9).contains(&digit);
            clashes.place(cell, digit);
            if let Some(slot) = grid.0.get_mut(cell) {
                *slot = digit;
            }
        }
    }
    !is_wrong && !clashes.any()
}
