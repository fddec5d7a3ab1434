//! A `repeated Outcome`, one byte each.

use std::fmt;

use bytes::{Buf, BufMut};
use prost::{
    DecodeError,
    encoding::{
        DecodeContext, WireType, decode_varint, encode_key, encode_varint, encoded_len_varint, int32, key_len,
    },
};

use crate::v1::Outcome;

/// Outcomes in order, each by its number.
///
/// A number that only a newer server knows keeps its place and reads [`Outcome::Unspecified`]; one that does not fit a byte is kept as that.
///
/// ```
/// use proto::v1::Outcome;
///
/// let outcomes: proto::Outcomes = [1, 99, 3].into_iter().collect();
/// assert!(outcomes.iter().eq([Outcome::Unique, Outcome::Unspecified, Outcome::NoSolution]));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Outcomes(Vec<u8>);

impl Outcomes {
    /// None yet, with room for so many.
    #[must_use]
    pub fn with_capacity(outcomes: usize) -> Self {
        Self(Vec::with_capacity(outcomes))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, outcome: Outcome) {
        self.push_number(outcome.into());
    }

    #[inline]
    fn push_number(&mut self, number: i32) {
        self.0.push(u8::try_from(number).unwrap_or(0));
    }

    /// One of them; `None` beyond the last one.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Outcome> {
        self.0.get(place).copied().map(outcome)
    }

    /// All of them in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Outcome> {
        self.0.iter().copied().map(outcome)
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes of the numbers on the wire.
    fn packed_len(&self) -> usize {
        // Those from 128 on, which this version of the contract does not know, take two.
        self.0.len() + self.0.iter().filter(|number| !number.is_ascii()).count()
    }

    /// Writes them as the field `tag`.
    pub(crate) fn encode(&self, tag: u32, buf: &mut impl BufMut) {
        if self.is_empty() {
            return;
        }
        encode_key(tag, WireType::LengthDelimited, buf);
        encode_varint(self.packed_len() as u64, buf);
        if self.0.is_ascii() {
            // Below 128: a number's byte is its varint.
            buf.put_slice(&self.0);
        } else {
            for number in &self.0 {
                encode_varint(u64::from(*number), buf);
            }
        }
    }

    /// Bytes that [`Outcomes::encode`] writes.
    pub(crate) fn encoded_len(&self, tag: u32) -> usize {
        if self.is_empty() {
            return 0;
        }
        let packed = self.packed_len();
        key_len(tag) + encoded_len_varint(packed as u64) + packed
    }

    /// Reads more of them, packed or one by one, as prost does.
    pub(crate) fn merge(
        &mut self,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if wire_type == WireType::LengthDelimited {
            let chunk = buf.chunk();
            let mut rest = chunk;
            if let Ok(length) = decode_varint(&mut rest)
                && let Some(numbers) = usize::try_from(length).ok().and_then(|length| rest.get(..length))
                && numbers.is_ascii()
            {
                self.0.extend_from_slice(numbers);
                let read = chunk.len() - rest.len() + numbers.len();
                buf.advance(read);
                return Ok(());
            }
        }
        let mut numbers = Vec::new();
        let merged = int32::merge_repeated(wire_type, &mut numbers, buf, context);
        self.extend(numbers);
        merged
    }
}

#[inline]
fn outcome(number: u8) -> Outcome {
    Outcome::try_from(i32::from(number)).unwrap_or(Outcome::Unspecified)
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Extend<i32> for Outcomes {
    fn extend<I: IntoIterator<Item = i32>>(&mut self, numbers: I) {
        for number in numbers {
            self.push_number(number);
        }
    }
}

impl FromIterator<i32> for Outcomes {
    fn from_iter<I: IntoIterator<Item = i32>>(numbers: I) -> Self {
        let mut outcomes = Self::default();
        outcomes.extend(numbers);
        outcomes
    }
}

impl From<Vec<i32>> for Outcomes {
    fn from(numbers: Vec<i32>) -> Self {
        numbers.into_iter().collect()
    }
}
