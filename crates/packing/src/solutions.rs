//! Solutions to and from bytes, eight digits a word: without their last row and column, which follow.

use solver::{CELLS, Solution};

/// Bytes of a packed solution.
pub(crate) const SOLUTION_BYTES: usize = 32;
/// What the nine digits of a house sum up to.
const HOUSE_SUM: u8 = 45;

/// A byte in each of the eight places of a word.
const EACH: u64 = 0x0101_0101_0101_0101;
/// What is left of the nine digits' bits where equal ones cancel each other.
const HOUSE_PARITY: u8 = 1;
const HIGH_BITS: u64 = EACH << 7;

/// The first 8 cells of the first 8 rows, two a byte, the first in the high half.
#[inline]
pub(crate) fn pack(solution: &Solution) -> [u8; SOLUTION_BYTES] {
    let mut packed = [0; SOLUTION_BYTES];
    for (bytes, row) in packed.chunks_exact_mut(4).zip(solution.digits().chunks_exact(9)) {
        let digits = word(row);
        // Two bytes become one, then the fours that are left move together.
        let pairs = (digits << 4 | digits >> 8) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
        bytes.copy_from_slice(&(fours | fours >> 16).to_le_bytes()[..4]);
    }
    packed
}

/// The first eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Writes the 81 digits as text; false if this is no solution's.
///
/// It was one when it was packed, so this looks for damage, and not into every house: all digits are 1 to 9, every row, column and box sums up
/// to 45, and the bits of every column cancel each other as those of the nine digits do. Of the changes that one byte can have, a test
/// says that not one in a hundred gets through.
#[inline]
pub(crate) fn unpack(packed: &[u8; SOLUTION_BYTES], text: &mut [u8; CELLS]) -> bool {
    let mut rows = [0_u64; 9];
    for (row, bytes) in rows.iter_mut().zip(packed.chunks_exact(4)) {
        // The opposite of packing: four bytes move apart, then their halves.
        let bytes = u64::from(u32::from_le_bytes(bytes.try_into().unwrap_or_default()));
        let fours = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
        let pairs = (fours | fours << 8) & 0x00ff_00ff_00ff_00ff;
        *row = (pairs >> 4 | pairs << 8) & 0x0f0f_0f0f_0f0f_0f0f;
    }
    // At most 8 times 15: no byte flows over, and with their high bits set none of the differences borrows.
    let columns = rows.iter().sum::<u64>();
    let last = ((EACH * u64::from(HOUSE_SUM)) | HIGH_BITS) - columns;
    rows[8] = last & !HIGH_BITS;
    let mut wrong = !last;
    let mut wrong_ninth = false;
    let (mut parities, mut ninth_parity) = (0, 0);
    for (row, text) in rows.iter().zip(text.chunks_exact_mut(9)) {
        // Sets the high bit of a byte above 9, and of one that is 0.
        wrong |= (row + EACH * 0x76) | !((row | HIGH_BITS) - EACH);
        let ninth = HOUSE_SUM.wrapping_sub((row.wrapping_mul(EACH) >> 56).to_le_bytes()[0]);
        wrong_ninth |= !(1..=9).contains(&ninth);
        parities ^= row;
        ninth_parity ^= ninth;
        text[..8].copy_from_slice(&(row | (EACH * u64::from(b'0'))).to_le_bytes());
        text[8] = b'0'.wrapping_add(ninth);
    }
    let are_digits = wrong & HIGH_BITS == 0 && !wrong_ninth;
    let have_parity = parities == EACH * u64::from(HOUSE_PARITY) && ninth_parity == HOUSE_PARITY;
    are_digits && have_parity && have_box_sums(&rows)
}

/// Whether the four boxes of the upper left sum up to 45: then, as the rows and columns do, so do the others.
fn have_box_sums(rows: &[u64; 9]) -> bool {
    [0, 3].iter().all(|&first| {
        // At most 27 a byte.
        let three = rows[first] + rows[first + 1] + rows[first + 2];
        let sum_of_three = |bytes: u64| (bytes & 0xff) + (bytes >> 8 & 0xff) + (bytes >> 16 & 0xff);
        sum_of_three(three) == u64::from(HOUSE_SUM) && sum_of_three(three >> 24) == u64::from(HOUSE_SUM)
    })
}
