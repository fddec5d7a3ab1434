//! Sets of states, several side by side: what the count of placements asks of an instruction set.
//!
//! A state is a grid that is filled down to some row, and a block holds up to 128 of them. A set says which of 64:
//! one bit a state, one [`Word`] a set, one set a lane. Each lane has a second word that is carried along.
//!
//! ```text
//!             lane 0      lane 1      lane 2    ...
//! set         01101       00001       11111          which states take part
//! carried     3 7 . .     7 3 . .     1 2 . .        what the set stands for
//! ```

use std::ops::{BitAnd, BitOr};

use super::Isa;

/// States that a set tells apart at most.
pub(crate) const SET: usize = 64;
/// Most states in a block: two sets' worth.
pub(crate) const BLOCK_MAX: usize = 2 * SET;
/// Most completions of a row that are turned into states together.
pub(crate) const BUNDLE: usize = 64;
/// Children that are appended at once.
pub(crate) const CHILDREN: usize = 32;
/// Words of a state: the digits placed in each of the nine columns, then in each of the three boxes of a band.
pub(crate) const WORDS: usize = 12;
/// Room for the states of a block, those that come after it, and one vector to write over the end.
pub(crate) const SLOTS: usize = BLOCK_MAX + 2 * CHILDREN;

/// One word of every state, side by side.
pub(crate) type Slots = [u16; SLOTS];
/// The words of one state; the last four are always 0.
pub(crate) type StateLine = [u16; 16];
/// For each digit of a row the states that allow it in a cell: nine digits, or eight for each half of a block.
pub(crate) type Table<W> = [W; 16];

/// The states of a block. By word is how they are looked at. New ones are made in the way that suits the
/// instructions: if that is by state, they have to be lined up before they are looked at.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct States {
    pub(crate) by_word: [Slots; WORDS],
    pub(crate) by_state: [StateLine; SLOTS],
}

/// What each completion of a bundle adds to the words of a state: one way or the other, as the states. By column
/// only where there is an empty cell, and not to the boxes, which get what their columns get.
#[repr(C, align(64))]
pub(crate) struct Additions {
    pub(crate) by_column: [[u16; BUNDLE]; 9],
    pub(crate) by_completion: [StateLine; BUNDLE],
}

/// Completions of a row.
pub(crate) struct Completed<'c, W> {
    /// Four bits for each empty cell: the index of its digit.
    pub(crate) fields: &'c [W; BUNDLE],
    /// So many completions count.
    pub(crate) number: usize,
    /// The columns of the empty cells.
    pub(crate) columns: &'c [usize],
    /// The row's digits, a bit each.
    pub(crate) digits: &'c [u16; 16],
}

/// The word of a set.
pub(crate) trait Word:
    Copy + Eq + Default + BitAnd<Output = Self> + BitOr<Output = Self> + 'static
{
    /// States that a set can tell apart.
    const STATES: usize;

    /// The low bits of `bits`.
    fn of(bits: u64) -> Self;
    fn bits(self) -> u64;
    /// The one of two things that is made of these words.
    fn choose<'a, F: Family>(wide: &'a mut F::Of<u64>, narrow: &'a mut F::Of<u32>) -> &'a mut F::Of<Self>;
}

/// Things of one kind that are made of words.
pub(crate) trait Family {
    type Of<W: Word>;
}

impl Word for u64 {
    const STATES: usize = 64;

    #[inline(always)]
    fn of(bits: u64) -> u64 {
        bits
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn choose<'a, F: Family>(wide: &'a mut F::Of<u64>, _: &'a mut F::Of<u32>) -> &'a mut F::Of<u64> {
        wide
    }
}

impl Word for u32 {
    const STATES: usize = 32;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the low bits are asked for")]
    fn of(bits: u64) -> u32 {
        bits as u32
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn choose<'a, F: Family>(_: &'a mut F::Of<u64>, narrow: &'a mut F::Of<u32>) -> &'a mut F::Of<u32> {
        narrow
    }
}

/// A vector of words: sets of states, or what is carried along with them.
pub(crate) trait Sets: Copy {
    type Isa: Isa;
    type Word: Word;

    /// Words of a vector.
    const LANES: usize;

    /// The same word in every lane.
    fn splat(isa: Self::Isa, word: Self::Word) -> Self;
    /// The first words of a slice that holds a vector or more.
    fn load(isa: Self::Isa, words: &[Self::Word]) -> Self;
    /// The words of the first lanes, so many; 0 in the others.
    fn first(self, lanes: usize) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// What is in `self` and not in `other`.
    fn minus(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn shifted_left(self, by: u32) -> Self;
    fn shifted_right(self, by: u32) -> Self;
    /// The places of the table's words that are not 0, a bit each.
    fn some(isa: Self::Isa, table: &Table<Self::Word>) -> u16;
    /// Whether all words are 0.
    fn is_empty(self) -> bool;
    /// The sizes of the sets.
    fn sizes(self) -> Self;
    /// The numbers of all lanes together.
    fn total(self) -> u64;
    /// The place of the lowest bit of each word; the words are not 0.
    fn lowest(self) -> Self;
    /// The place of the highest bit of each word; the words are not 0.
    fn highest(self) -> Self;
    /// The sets of the lanes in which `words` and `bits` have nothing in common; the others become empty.
    fn where_disjoint(self, words: Self, bits: Self) -> Self;
    /// The words of the table at these indices, of which the low four bits count.
    fn pick(table: &Table<Self::Word>, at: Self) -> Self;
    /// Writes the sets that are not empty, and the words that belong to them, one after the other to the front of
    /// two slices that take a vector or more. What comes after them is overwritten up to a vector's length.
    ///
    /// Gives the number of those sets.
    fn store_nonempty(self, carried: Self, sets: &mut [Self::Word], words: &mut [Self::Word]) -> usize;

    /// Notes what completions add to the words of a state.
    fn add(isa: Self::Isa, completed: &Completed<'_, Self::Word>, to: &mut Additions);
}

/// Work on the words of all states of a block.
pub(crate) trait StateWords: Copy {
    /// States of a block. With more of them there is more to do at a time, and one walk costs more.
    const BLOCK: usize;

    /// Notes for each of the digits (bits of a word) those of the states whose words do not have it; none for the
    /// digits that are `taken`. The words are those of the first state and on, 64 or more.
    fn allow<W: Word>(
        self,
        columns: &[u16],
        boxes: Option<&[u16]>,
        taken: u16,
        digits: &[u16],
        states: W,
        to: &mut [W],
    );

    /// Writes the slots of a set's states to the front, if its first one is slot `from`; what comes after them is
    /// overwritten. Gives their number.
    fn slots_of(self, set: u64, from: u8, to: &mut [u8; SET]) -> usize;

    /// Appends children from slot `at` on: child `i` is the parent in slot `parents[i]` with what completion
    /// `completions[i]` adds.
    fn append(self, to: &mut States, at: usize, children: &Children<'_>);

    /// Makes the first states ready to be looked at by word.
    fn line_up(self, states: &mut States, number: usize);

    /// Moves what comes after a full block to the front, after slot 0.
    fn carry_over(self, states: &mut States);
}

/// Children to be: parents, and what is added to each.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "some is for vectors only"))]
pub(crate) struct Children<'c> {
    pub(crate) states: &'c States,
    pub(crate) added: &'c Additions,
    /// Slots of the parents.
    pub(crate) parents: &'c [u8; CHILDREN],
    /// Numbers of the completions.
    pub(crate) completions: &'c [u8; CHILDREN],
    /// Children that there are; more may be written, since only so many count.
    pub(crate) number: usize,
    /// The columns to which something is added, a bit each.
    pub(crate) columns: u16,
    /// Some parents are in the second half of their block.
    pub(crate) from_both_halves: bool,
    pub(crate) boxes: Boxes,
}

/// The words of boxes of children to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boxes {
    /// What the parents have, and what is added.
    Inherited,
    /// What is added alone: the parents' have no meaning, nothing has been placed in their boxes.
    Fresh,
    /// None: the children begin a band, and their words of boxes have no meaning.
    Unused,
}
