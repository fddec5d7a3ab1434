//! Givens as few bytes, from texts and back.

use crate::givens::Givens;
use crate::grid::CELLS;
use crate::simd::{Isa, Op, Width, with};

/// Givens that do not clash, as few bytes: which cells they are in, and their digits.
///
/// ```
/// use solver::{DenseGivens, Givens};
///
/// let text = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
/// let dense = DenseGivens::of_text(text.as_bytes().try_into()?).ok_or("no puzzle")?;
/// assert_eq!(dense.cells & 0b11_1111, 0b01_0011);
/// assert_eq!(dense.digits[..2], [0x53, 0x76]);
/// let mut givens = Givens::NONE;
/// assert!(givens.set_dense(dense.cells, &dense.digits));
/// assert_eq!(givens, Givens::parse(text)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DenseGivens {
    /// Bit `c` for a given in cell `c`.
    pub cells: u128,
    /// The digits, ascending by cell: two a byte, the first in the high half, and zeros behind them.
    pub digits: [u8; DenseGivens::BYTES],
}

impl DenseGivens {
    /// Bytes of 81 digits, up to whole words.
    pub const BYTES: usize = 48;

    pub(crate) const NONE: DenseGivens = DenseGivens { cells: 0, digits: [0; DenseGivens::BYTES] };

    /// Checks and takes a puzzle's text, of the characters that [`Givens::parse`] knows. `None`: it is no puzzle, for a reason that `parse` tells.
    #[inline]
    #[must_use]
    pub fn of_text(text: &[u8; CELLS]) -> Option<DenseGivens> {
        let mut dense = DenseGivens::NONE;
        with(Width::Avx512, OfText { text, dense: &mut dense }).then_some(dense)
    }
}

impl Givens {
    /// Becomes the givens whose dense form is `cells` and `digits`, and checks them; what is behind the last digit is not looked at. In place and from where
    /// they lie, for copies would cost as much as the rest.
    ///
    /// `false`, and there are none: a digit is none of 1 to 9, two of them clash, or there are bits beyond the last cell.
    #[inline]
    #[must_use]
    pub fn set_dense(&mut self, cells: u128, digits: &[u8; DenseGivens::BYTES]) -> bool {
        set_dense(Width::Avx512, cells, digits, self)
    }
}

#[inline]
fn set_dense(width: Width, cells: u128, digits: &[u8; DenseGivens::BYTES], givens: &mut Givens) -> bool {
    let is_right = with(width, SetDense { dense: &(cells, digits), givens: &mut *givens });
    if !is_right {
        *givens = Givens::NONE;
    }
    is_right
}

/// No more than two words, so that it is passed in registers. A larger one is copied through memory, and reading it back while it is being written takes longer than all that
/// is done with it.
struct OfText<'a> {
    text: &'a [u8; CELLS],
    dense: &'a mut DenseGivens,
}

impl Op for OfText<'_> {
    type Output = bool;

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) -> bool {
        isa.pack(self.text, self.dense)
    }
}

/// Two words, as [`OfText`].
struct SetDense<'a> {
    dense: &'a (u128, &'a [u8; DenseGivens::BYTES]),
    givens: &'a mut Givens,
}

impl Op for SetDense<'_> {
    type Output = bool;

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) -> bool {
        let &(cells, digits) = self.dense;
        isa.unpack(cells, digits, &mut self.givens.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::random::SplitMix64;

    fn every_width() -> impl Iterator<Item = Width> {
        Width::ALL.into_iter().filter(|width| width.is_available())
    }

    fn packed(width: Width, text: &[u8; CELLS]) -> Option<DenseGivens> {
        let mut dense = DenseGivens::NONE;
        with(width, OfText { text, dense: &mut dense }).then_some(dense)
    }

    /// Into a place that is full of other digits.
    fn unpacked(width: Width, dense: &DenseGivens) -> Option<Givens> {
        let mut givens = Givens(Grid(full(5)));
        let is_right = set_dense(width, dense.cells, &dense.digits, &mut givens);
        assert!(is_right || givens == Givens::NONE, "{width}: left behind");
        is_right.then_some(givens)
    }

    /// A complete grid, by number.
    fn full(number: usize) -> [u8; CELLS] {
        let digit = |cell: usize| (cell / 9 * 3 + cell / 27 + cell % 9 + number) % 9;
        std::array::from_fn(|cell| b"\x01\x02\x03\x04\x05\x06\x07\x08\x09"[digit(cell)])
    }

    /// What the documentation says, cell by cell.
    fn plainly(givens: &Givens) -> DenseGivens {
        let mut dense = DenseGivens::NONE;
        let digits = givens.grid().0.into_iter().enumerate().filter(|&(_, digit)| digit != 0);
        for (number, (cell, digit)) in digits.enumerate() {
            dense.cells |= 1 << cell;
            dense.digits[number / 2] |= if number % 2 == 0 { digit << 4 } else { digit };
        }
        dense
    }

    /// Puzzles of all numbers of givens, their empty cells as `0` or `.`, and half of the texts with a character changed.
    fn texts() -> impl Iterator<Item = [u8; CELLS]> {
        let mut random = SplitMix64::new(7);
        (0..4_000).map(move |number| {
            let mut text = full(number).map(|digit| b'0' + digit);
            let givens = random.below(CELLS + 1);
            let zeros = random.next();
            for (cell, character) in text.iter_mut().enumerate() {
                if random.below(CELLS) >= givens {
                    *character = if (zeros >> (cell % 64)) & 1 == 1 { b'0' } else { b'.' };
                }
            }
            if random.below(2) == 1 {
                let odd = *b"123456789.0/:-\0\xff\xb5\x2f Ax";
                text[random.below(CELLS)] = odd[random.below(odd.len())];
            }
            text
        })
    }

    #[test]
    fn every_width_knows_every_character_in_every_cell() {
        for width in every_width() {
            for cell in 0..CELLS {
                for character in 0..=u8::MAX {
                    let mut text = [b'.'; CELLS];
                    text[cell] = character;
                    let givens = Givens::parse_bytes(&text).ok();
                    assert_eq!(
                        packed(width, &text),
                        givens.as_ref().map(plainly),
                        "{width}: {character} in {cell}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_width_packs_what_parse_reads_and_nothing_else() {
        let mut refused = 0;
        for text in texts() {
            let givens = Givens::parse_bytes(&text).ok();
            refused += usize::from(givens.is_none());
            for width in every_width() {
                assert_eq!(packed(width, &text), givens.as_ref().map(plainly), "{width}: {text:?}");
                if let Some(givens) = givens {
                    assert_eq!(unpacked(width, &plainly(&givens)), Some(givens), "{width}: {text:?}");
                }
            }
        }
        assert!((500..2_000).contains(&refused), "{refused} of 4,000");
    }

    #[test]
    fn equal_digits_in_one_house_clash_in_every_width() {
        use crate::houses::are_peers;
        for width in every_width() {
            for one in 0..CELLS {
                for other in one + 1..CELLS {
                    let mut text = [b'.'; CELLS];
                    (text[one], text[other]) = (b'9', b'9');
                    let mut dense = DenseGivens { cells: 1 << one | 1 << other, ..DenseGivens::NONE };
                    dense.digits[0] = 0x99;
                    assert_eq!(
                        packed(width, &text).is_none(),
                        are_peers(one, other),
                        "{width}: {one}, {other}"
                    );
                    assert_eq!(
                        unpacked(width, &dense).is_none(),
                        are_peers(one, other),
                        "{width}: {one}, {other}"
                    );
                    dense.digits[0] = 0x91;
                    assert!(unpacked(width, &dense).is_some(), "{width}: {one}, {other}");
                }
            }
        }
    }

    #[test]
    fn damaged_bytes_are_refused_in_every_width() {
        let cells = 1 | 1 << 63 | 1 << 64 | 1 << 80;
        let with_digits = |cells, digits: [u8; 2]| {
            let mut dense = DenseGivens { cells, ..DenseGivens::NONE };
            dense.digits[..2].copy_from_slice(&digits);
            dense
        };
        for width in every_width() {
            let right = with_digits(cells, [0x12, 0x34]);
            assert_eq!(unpacked(width, &right).map(|givens| givens.count()), Some(4), "{width}");
            for wrong in [[0x13, 0x34], [0x02, 0x34], [0x12, 0x3a], [0x12, 0xf4]] {
                assert_eq!(unpacked(width, &with_digits(cells, wrong)), None, "{width}: {wrong:x?}");
            }
            for bit in 81..128 {
                assert_eq!(unpacked(width, &with_digits(1 << bit, [0x10, 0])), None, "{width}: {bit}");
            }
        }
    }

    #[test]
    fn one_changed_half_byte_or_cell_is_seen_alike_in_every_width() {
        let mut random = SplitMix64::new(11);
        let mut seen = [0; 2];
        for text in texts() {
            let Ok(givens) = Givens::parse_bytes(&text) else { continue };
            let mut dense = plainly(&givens);
            // What is behind the last digit is anything.
            let behind = givens.count().div_ceil(2);
            for byte in &mut dense.digits[behind..] {
                *byte = random.next().to_le_bytes()[7];
            }
            match random.below(3) {
                0 => dense.cells ^= 1 << random.below(84),
                1 => dense.digits[random.below(48)] ^= 1 << random.below(8),
                _ => {}
            }
            let found: Vec<_> = every_width().map(|width| unpacked(width, &dense)).collect();
            assert!(found.windows(2).all(|two| two[0] == two[1]), "{dense:x?}");
            seen[usize::from(found[0].is_some())] += 1;
        }
        assert!(seen.iter().all(|&times| times > 200), "{seen:?}");
    }
}
