//! A `repeated string` of grids, held end to end.

use std::{fmt, ops::Index, str};

use bytes::{Buf, BufMut};
use prost::{
    DecodeError,
    encoding::{DecodeContext, WireType, encode_key, encode_varint, encoded_len_varint, key_len, string},
};

/// Bytes of a grid's text. Others are taken all the same.
pub const GRID_BYTES: usize = 81;
/// [`GRID_BYTES`] as the wire has it before each text.
const GRID_LENGTH: u8 = 81;
/// Texts that are put together before they go into a message's buffer: few enough that they stay in the processor's nearest cache.
const BLOCK_GRIDS: usize = 64;

/// Texts of grids: puzzles, or solutions with an empty text where there is none.
///
/// All of them are end to end in one allocation. Any text is taken; while all are 81 bytes long, as grids are, nothing but the texts is kept.
///
/// ```
/// let mut grids: proto::Grids = vec![".".repeat(81)].into();
/// grids.push("no grid");
/// assert_eq!((grids.len(), &grids[1]), (2, "no grid"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Grids {
    /// Each text is valid UTF-8 by itself.
    bytes: Vec<u8>,
    /// Where each text ends; empty exactly while all are [`GRID_BYTES`] long.
    ends: Vec<usize>,
}

impl Grids {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// None yet, with room for so many of 81 bytes.
    #[must_use]
    pub fn with_capacity(grids: usize) -> Self {
        Self { bytes: Vec::with_capacity(grids.saturating_mul(GRID_BYTES)), ends: Vec::new() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.ends.is_empty() { self.bytes.len() / GRID_BYTES } else { self.ends.len() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all texts together.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a text.
    pub fn push(&mut self, text: &str) {
        self.push_checked(text.as_bytes());
    }

    /// Adds a text of 81 ASCII characters, in less time than [`Grids::push`] takes to get a `str`.
    ///
    /// # Panics
    /// If one is no ASCII character.
    #[inline]
    pub fn push_ascii(&mut self, text: &[u8; GRID_BYTES]) {
        assert!(text.is_ascii(), "the text is not ASCII");
        self.push_grid(text);
    }

    #[inline]
    fn push_grid(&mut self, text: &[u8; GRID_BYTES]) {
        self.bytes.extend_from_slice(text);
        if !self.ends.is_empty() {
            self.ends.push(self.bytes.len());
        }
    }

    /// `text` is valid UTF-8.
    fn push_checked(&mut self, text: &[u8]) {
        if let Ok(grid) = text.try_into() {
            return self.push_grid(grid);
        }
        if self.ends.is_empty() {
            self.ends.extend((1..=self.len()).map(|count| count * GRID_BYTES));
        }
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    fn start(&self, place: usize) -> usize {
        if self.ends.is_empty() {
            place * GRID_BYTES
        } else {
            place.checked_sub(1).map_or(0, |before| self.ends[before])
        }
    }

    /// The bytes of a text, which are UTF-8; `None` beyond the last one.
    #[inline]
    #[must_use]
    pub fn bytes(&self, place: usize) -> Option<&[u8]> {
        if self.ends.is_empty() {
            let start = place.checked_mul(GRID_BYTES)?;
            return self.bytes.get(start..start.checked_add(GRID_BYTES)?);
        }
        let end = *self.ends.get(place)?;
        Some(&self.bytes[self.start(place)..end])
    }

    /// A text; `None` beyond the last one.
    ///
    /// # Panics
    /// Never: what is no text does not get in.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&str> {
        self.bytes(place).map(|text| str::from_utf8(text).expect("it was checked when it was added"))
    }

    /// The texts in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|place| &self[place])
    }

    /// The bytes of the texts in order.
    #[must_use]
    pub fn iter_bytes(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|place| self.bytes(place).unwrap_or_default())
    }

    /// Those at `places`; fewer where there are no more.
    #[must_use]
    pub fn slice(&self, places: std::ops::Range<usize>) -> Self {
        let end = places.end.min(self.len());
        let start = places.start.min(end);
        let (first, last) = (self.start(start), self.start(end));
        let bytes = self.bytes[first..last].to_vec();
        let ends = self.ends.get(start..end).unwrap_or_default();
        let mut begin = first;
        let are_all_grids = ends.iter().all(|end| end - std::mem::replace(&mut begin, *end) == GRID_BYTES);
        let ends = if are_all_grids { Vec::new() } else { ends.iter().map(|end| end - first).collect() };
        Self { bytes, ends }
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Writes them as the field `tag`.
    pub(crate) fn encode(&self, tag: u32, buf: &mut impl BufMut) {
        if !self.ends.is_empty() {
            for text in self.iter_bytes() {
                encode_key(tag, WireType::LengthDelimited, buf);
                encode_varint(text.len() as u64, buf);
                buf.put_slice(text);
            }
            return;
        }
        let mut head = Vec::with_capacity(key_len(tag) + 1);
        encode_key(tag, WireType::LengthDelimited, &mut head);
        head.push(GRID_LENGTH);
        match head[..] {
            // Given as one `Buf`, all of it is made room for at once.
            [key, length] if !self.is_empty() => buf.put(WireGrids::new([key, length], &self.bytes)),
            _ => {
                for text in self.bytes.chunks_exact(GRID_BYTES) {
                    buf.put_slice(&head);
                    buf.put_slice(text);
                }
            }
        }
    }

    /// Bytes that [`Grids::encode`] writes.
    pub(crate) fn encoded_len(&self, tag: u32) -> usize {
        let lengths = if self.ends.is_empty() {
            self.len()
        } else {
            self.iter_bytes().map(|text| encoded_len_varint(text.len() as u64)).sum()
        };
        key_len(tag) * self.len() + lengths + self.bytes.len()
    }

    /// Reads one more of them, as prost does.
    #[inline]
    pub(crate) fn merge(
        &mut self,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        if wire_type == WireType::LengthDelimited
            && let Some((&GRID_LENGTH, rest)) = buf.chunk().split_first()
            && let Some(text) = rest.first_chunk()
            && text.is_ascii()
        {
            if self.bytes.capacity() - self.bytes.len() < GRID_BYTES {
                // Most likely the rest of the message is more of them. That is never more than was received.
                self.bytes.reserve(buf.remaining());
            }
            self.push_grid(text);
            buf.advance(1 + GRID_BYTES);
            return Ok(());
        }
        let mut text = String::new();
        string::merge(wire_type, &mut text, buf, context)?;
        self.push(&text);
        Ok(())
    }
}

/// Grids of 81 bytes as they go over the wire, made in blocks.
struct WireGrids<'a> {
    /// Those after the block.
    texts: &'a [u8],
    block: [u8; BLOCK_GRIDS * WIRE_BYTES],
    /// Where the rest of the block begins and ends.
    rest: std::ops::Range<usize>,
}

/// Bytes of a grid with what precedes it.
const WIRE_BYTES: usize = 2 + GRID_BYTES;

impl<'a> WireGrids<'a> {
    fn new(head: [u8; 2], texts: &'a [u8]) -> Self {
        let mut block = [0; BLOCK_GRIDS * WIRE_BYTES];
        for grid in block.chunks_exact_mut(WIRE_BYTES) {
            grid[..2].copy_from_slice(&head);
        }
        let mut made = Self { texts, block, rest: 0..0 };
        made.next_block();
        made
    }

    fn next_block(&mut self) {
        let (texts, later) = self.texts.split_at(self.texts.len().min(BLOCK_GRIDS * GRID_BYTES));
        for (grid, text) in self.block.chunks_exact_mut(WIRE_BYTES).zip(texts.chunks_exact(GRID_BYTES)) {
            grid[2..].copy_from_slice(text);
        }
        self.rest = 0..texts.len() / GRID_BYTES * WIRE_BYTES;
        self.texts = later;
    }
}

impl Buf for WireGrids<'_> {
    fn remaining(&self) -> usize {
        self.rest.len() + self.texts.len() / GRID_BYTES * WIRE_BYTES
    }

    fn chunk(&self) -> &[u8] {
        &self.block[self.rest.clone()]
    }

    fn advance(&mut self, count: usize) {
        let mut count = count;
        while count >= self.rest.len() && count > 0 {
            count -= self.rest.len();
            self.next_block();
            assert!(count == 0 || !self.rest.is_empty(), "advanced beyond the end");
        }
        self.rest.start += count;
    }
}

impl Index<usize> for Grids {
    type Output = str;

    fn index(&self, place: usize) -> &str {
        self.get(place).unwrap_or_else(|| panic!("grid {place} of {}", self.len()))
    }
}

impl fmt::Debug for Grids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: AsRef<str>> Extend<T> for Grids {
    fn extend<I: IntoIterator<Item = T>>(&mut self, texts: I) {
        for text in texts {
            self.push(text.as_ref());
        }
    }
}

impl<T: AsRef<str>> FromIterator<T> for Grids {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut grids = Self::new();
        grids.extend(texts);
        grids
    }
}

impl<T: AsRef<str>> From<Vec<T>> for Grids {
    fn from(texts: Vec<T>) -> Self {
        let mut grids = Self::with_capacity(texts.len());
        grids.extend(texts);
        grids
    }
}

impl<T: AsRef<str>> PartialEq<[T]> for Grids {
    fn eq(&self, texts: &[T]) -> bool {
        self.len() == texts.len() && self.iter().zip(texts).all(|(grid, text)| grid == text.as_ref())
    }
}

impl<T: AsRef<str>, const N: usize> PartialEq<[T; N]> for Grids {
    fn eq(&self, texts: &[T; N]) -> bool {
        *self == texts[..]
    }
}
