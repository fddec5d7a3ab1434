//! Reading bytes from the front, and the fields that both formats share.

use solver::{CELLS, InvalidPuzzle, Reason};

use crate::Damaged;

/// Bytes of a set of cells with its flags.
pub(crate) const MASK_BYTES: usize = 11;
const REASON_SHIFT: u32 = 81;
const ESCAPE: u128 = 1 << 87;
const CELLS_MASK: u128 = (1 << CELLS) - 1;

/// What is left to read.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// One step of a reader: the next entry, `None` at the end. After damage nothing more is read: where the next entry begins is unknown.
    #[inline]
    pub(crate) fn step<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Damaged>,
    ) -> Option<Result<T, Damaged>> {
        if self.0.is_empty() {
            return None;
        }
        let entry = read(self);
        if entry.is_err() {
            self.0 = &[];
        }
        Some(entry)
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(Damaged::Short)?;
        self.0 = tail;
        Ok(head)
    }

    #[inline]
    pub(crate) fn take_array<const N: usize>(&mut self) -> Result<&'a [u8; N], Damaged> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Damaged::Short)?;
        self.0 = tail;
        Ok(head)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.take_array::<1>()?[0])
    }

    /// LEB128, at most 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(Damaged::Entry);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged::Entry)
    }

    /// A set of cells with its flags.
    #[inline]
    pub(crate) fn mask(&mut self) -> Result<u128, Damaged> {
        let mut bytes = [0; 16];
        bytes[..MASK_BYTES].copy_from_slice(self.take_array::<MASK_BYTES>()?);
        Ok(u128::from_le_bytes(bytes))
    }

    /// The rest of an invalid puzzle, whose mask has been read.
    pub(crate) fn invalid(&mut self, mask: u128) -> Result<InvalidPuzzle, Damaged> {
        let reason = match (mask & !CELLS_MASK & !ESCAPE) >> REASON_SHIFT {
            1 => Reason::Length,
            2 => Reason::Character,
            3 => Reason::DuplicateGiven,
            _ => return Err(Damaged::Entry),
        };
        let found_length = u32::from_le_bytes(*self.take_array()?);
        Ok(InvalidPuzzle { reason, cells: cells(mask).collect(), found_length })
    }
}

/// Whether a mask stands for a puzzle that is none.
pub(crate) fn is_escape(mask: u128) -> bool {
    mask & ESCAPE != 0
}

/// Whether a mask holds nothing but cells.
pub(crate) fn is_plain(mask: u128) -> bool {
    mask & !CELLS_MASK == 0
}

/// The cells of a mask, ascending.
fn cells(mask: u128) -> impl Iterator<Item = u8> {
    (0_u8..81).filter(move |cell| mask & (1 << cell) != 0)
}

pub(crate) fn put_mask(mask: u128, out: &mut Vec<u8>) {
    out.extend_from_slice(&mask.to_le_bytes()[..MASK_BYTES]);
}

pub(crate) fn put_invalid(invalid: &InvalidPuzzle, out: &mut Vec<u8>) {
    let reason: u128 = match invalid.reason {
        Reason::Length => 1,
        Reason::Character => 2,
        Reason::DuplicateGiven => 3,
    };
    let cells = invalid.cells.iter().fold(0_u128, |mask, cell| mask | (1 << cell));
    put_mask(cells | reason << REASON_SHIFT | ESCAPE, out);
    out.extend_from_slice(&invalid.found_length.to_le_bytes());
}

pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
