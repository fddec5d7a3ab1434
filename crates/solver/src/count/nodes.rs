//! The nodes of a row's digit trie, a list a level.
//!
//! A node stands for the digits placed so far in the row, its prefix, and holds the set of the states in which they
//! can be placed. A prefix is one word: four bits for the digit of each cell, and a bit for each digit that is used.
//!
//! ```text
//! 64 states, up to nine cells       bit 36                        bit 0
//!   | - | half | - | used: 9 bits | cell 8 | ... | cell 1 | cell 0 |
//! 32 states, up to eight cells              bit 24                bit 0
//!                  | used: 8 bits | cell 5 | ... | cell 1 | cell 0 |
//! ```
//!
//! A block of more than 64 states has two halves, which walk the trie at the same time, each with nodes of its own:
//! a bit in the prefix says whose node it is. There are more nodes in a list then, and better filled vectors.
//!
//! Completions of the row need no used digits: theirs make room for the last two cells.

use crate::simd::sets::{BUNDLE, Family, SET, Sets, Table, Word};

/// Bits of a cell's digit in a prefix.
pub(super) const FIELD: u32 = 4;

/// Where the used digits begin in a prefix.
pub(super) const fn used_from<W: Word>() -> u32 {
    if W::STATES == 64 { 9 * FIELD } else { 6 * FIELD }
}

/// Most empty cells of a row that the prefixes of such words have room for.
pub(super) const fn cells_max<W: Word>() -> usize {
    if W::STATES == 64 { 9 } else { 8 }
}

/// Where a prefix says 8 for the nodes of the second half: eight digits further on in a table.
pub(super) const HALF_FROM: u32 = 48;
/// Where the second half's digits begin in a table.
pub(super) const SECOND_HALF: usize = 8;

/// Slot of the second half's first state.
pub(super) const SECOND_SLOT: u8 = 64;
const _: () = assert!(SECOND_SLOT as usize == SET);

/// What the second half's prefixes have, and the first half's do not.
#[inline(always)]
pub(super) fn of_half<W: Word>(half: usize) -> W {
    W::of((SECOND_HALF as u64 * half as u64) << HALF_FROM)
}

/// Where the digits of a node's half begin in a table.
#[inline(always)]
pub(super) fn half_of<W: Word>(prefix: W) -> usize {
    (prefix.bits() >> HALF_FROM) as usize & SECOND_HALF
}

/// The slot of the first state of a node's half, if that of the first half is 0.
#[inline(always)]
pub(super) fn first_slot<W: Word>(prefix: W) -> u8 {
    if half_of(prefix) == 0 { 0 } else { SECOND_SLOT }
}

/// Where the field of a cell begins in a prefix.
#[inline(always)]
pub(super) fn field_from(cell: usize) -> u32 {
    const FROM: [u32; 9] = [0, 4, 8, 12, 16, 20, 24, 28, 32];
    FROM[cell]
}

/// A digit in the field of its cell.
#[inline(always)]
pub(super) fn field(cell: usize, digit: usize) -> u64 {
    (digit as u64) << field_from(cell)
}

/// The prefix of these fields and used digits.
#[inline(always)]
pub(super) fn prefix<W: Word>(fields: u64, used: u16) -> W {
    W::of(fields | u64::from(used) << used_from::<W>())
}

/// Nodes of a list. A list is worked off before it is full.
///
/// Not a power of two: the sets of a list, its prefixes and the next list would all begin at the same place of a page,
/// and then they push each other out of the cache, and loads wait for stores that have nothing to do with them.
///
/// In tests there is hardly more room than the first levels need, so that levels are worked off in their middle often.
const NODES: usize = if cfg!(test) { 208 } else { 456 };

/// Digits that a node can be followed by, at most.
const DIGITS: usize = 9;

/// A list of nodes: sets of states, and the prefix of each.
#[repr(C, align(64))]
pub(super) struct Nodes<W, const ROOM: usize = NODES> {
    sets: [W; ROOM],
    prefixes: [W; ROOM],
    len: usize,
}

impl<W: Word, const ROOM: usize> Nodes<W, ROOM> {
    pub(super) fn new() -> Nodes<W, ROOM> {
        Nodes { sets: [W::default(); ROOM], prefixes: [W::default(); ROOM], len: 0 }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, set: W, prefix: W) {
        self.sets[self.len] = set;
        self.prefixes[self.len] = prefix;
        self.len += 1;
    }

    /// Writes the lanes whose sets are not empty to the end of the list, which is at `end`; gives the new end.
    ///
    /// The caller keeps the end until [`Nodes::end_at`]: read from memory each time, right after it was written there,
    /// it would be waited for.
    #[inline(always)]
    #[must_use]
    pub(super) fn append<S: Sets<Word = W>>(&mut self, end: usize, sets: S, prefixes: S) -> usize {
        end + sets.store_nonempty(prefixes, &mut self.sets[end..], &mut self.prefixes[end..])
    }

    /// Keeps what was appended up to `end`.
    #[inline(always)]
    pub(super) fn end_at(&mut self, end: usize) {
        self.len = end;
    }

    /// Whether the followers of one more vector of nodes may not find room.
    #[inline(always)]
    pub(super) fn is_full_for<S: Sets<Word = W>>(&self) -> bool {
        self.len + (DIGITS + 1) * S::LANES > ROOM
    }

    /// The vector of nodes from `at` on, with empty sets behind the last one.
    ///
    /// Not by writing those: a processor that reads what two writes have just written waits for both.
    #[inline(always)]
    pub(super) fn vector<S: Sets<Word = W>>(&self, isa: S::Isa, at: usize) -> (S, S) {
        (S::load(isa, &self.sets[at..]).first(self.len - at), S::load(isa, &self.prefixes[at..]))
    }

    #[inline(always)]
    pub(super) fn node(&self, at: usize) -> (W, W) {
        (self.sets[at], self.prefixes[at])
    }

    #[inline(always)]
    pub(super) fn all(&self) -> impl Iterator<Item = (W, W)> {
        self.sets[..self.len].iter().copied().zip(self.prefixes[..self.len].iter().copied())
    }

    /// The prefixes of the first nodes and, after them, anything.
    #[inline(always)]
    pub(super) fn prefixes(&self) -> &[W; BUNDLE] {
        self.prefixes.first_chunk().expect("room for a bundle")
    }
}

/// Completions that are turned into states together, and a vector to write over the end.
pub(super) type Completions<W> = Nodes<W, { BUNDLE + 16 }>;

/// What is known while the states of a block walk a row's trie.
#[repr(C, align(64))]
pub(super) struct Lists<W> {
    /// For each empty cell and digit the states that allow the digit there.
    pub(super) allowed: [Table<W>; 9],
    /// For each digit its bit among the used ones of a prefix.
    pub(super) used: Table<W>,
    /// For each cell and digit what the digit adds to a prefix there.
    pub(super) steps: [Table<W>; 8],
    /// The nodes whose prefixes fill so many cells.
    pub(super) levels: [Nodes<W>; 8],
    /// Completions of the row that are not states of the next row yet.
    pub(super) completions: Completions<W>,
}

impl<W: Word> Lists<W> {
    pub(super) fn new() -> Lists<W> {
        let mut used = [W::default(); 16];
        let mut steps = [[W::default(); 16]; 8];
        for digit in 0..cells_max::<W>() {
            used[digit] = prefix(0, 1 << digit);
            for (cell, steps) in steps.iter_mut().enumerate() {
                steps[digit] = prefix(field(cell, digit), 1 << digit);
            }
        }
        Lists {
            used,
            steps,
            allowed: [[W::default(); 16]; 9],
            levels: std::array::from_fn(|_| Nodes::new()),
            completions: Nodes::new(),
        }
    }
}

/// [`Lists`] of any word.
pub(super) struct OfLists;

impl Family for OfLists {
    type Of<W: Word> = Lists<W>;
}
