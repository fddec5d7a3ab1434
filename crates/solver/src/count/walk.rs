//! One walk: what its states allow, then what comes of them.

use super::blocks::{Block, Scratch};
use super::nodes::{Lists, OfLists, SECOND_HALF, SECOND_SLOT, cells_max, field, prefix};
use super::rows::Row;
use super::tally::Tally;
use super::trie::Trie;
use crate::houses::ALL_DIGITS;
use crate::simd::sets::{SET, Sets, Word};
use crate::simd::{Isa, Op};

/// The states of a block walk the trie of their row.
pub(super) struct Walk<'w, 't> {
    /// Their row and those below.
    pub(super) rows: &'w [Row],
    /// Their block and those of the rows below.
    pub(super) blocks: &'w mut [Block],
    pub(super) scratch: &'w mut [Scratch],
    pub(super) tally: &'w mut Tally<'t>,
    /// The states that walk, by half; slot 0 is not among them if it holds the path's state.
    pub(super) states: [u64; 2],
    /// Slot 0 holds the path's state: what comes before the path is counted too.
    pub(super) with_path: bool,
}

impl Op for Walk<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(mut self, isa: I) {
        if !self.tally.goes_on() {
            return;
        }
        let [first, second] = self.states;
        let cells = self.rows[0].cells;
        if is_narrow::<<I::Narrow as Sets>::Word>(self.states, cells) {
            return self.run::<I::Narrow>(isa, self.states, 0);
        }
        // A table has no room for nine digits of two halves: then one walks after the other.
        let walks = if second == 0 || cells <= SECOND_HALF {
            [([first, second], 0), ([0, 0], 0)]
        } else {
            [([first, 0], 0), ([second, 0], SECOND_SLOT)]
        };
        for (states, from) in walks {
            if states != [0, 0] || self.with_path {
                self.run::<I::Wide>(isa, states, from);
                self.with_path = false;
            }
        }
    }
}

/// Whether sets of such words, if they are narrower than others, are enough.
#[inline(always)]
fn is_narrow<W: Word>(states: [u64; 2], cells: usize) -> bool {
    W::STATES < SET && states[1] == 0 && W::of(states[0]).bits() == states[0] && cells <= cells_max::<W>()
}

impl Walk<'_, '_> {
    /// Walks with sets of this kind; the first half of the states begins at slot `from`.
    #[inline(always)]
    fn run<S: Sets>(&mut self, isa: S::Isa, states: [u64; 2], from: u8) {
        let Walk { rows, blocks, scratch, tally, with_path, .. } = self;
        let ([row, rows_below @ ..], [block, blocks_below @ ..]) = (*rows, &mut **blocks) else { return };
        let [Scratch { wide, narrow, bundle }, scratch_below @ ..] = &mut **scratch else { return };
        let lists = S::Word::choose::<OfLists>(wide, narrow);
        let with_first = [states[0] | u64::from(*with_path), states[1]];
        if from == 0 && with_first == [1, 0] {
            allow_first(row, lists);
        } else {
            block.line_up(isa);
            allow(isa, row, block, usize::from(from), with_first.map(S::Word::of), lists);
        }
        if *with_path {
            tally.placed += before_path::<S>(isa, row, lists);
        }
        let halves = if states[1] == 0 { 1 } else { 2 };
        let (rows, blocks, scratch) = (rows_below, blocks_below, scratch_below);
        let mut trie =
            Trie::<S> { isa, row, block, halves, from, lists, bundle, rows, blocks, scratch, tally };
        trie.start(states.map(S::Word::of));
    }
}

/// Finds out which digits the state in slot 0 allows, if no others walk.
#[inline(always)]
fn allow_first<W: Word>(row: &Row, lists: &mut Lists<W>) {
    for cell in 0..row.cells {
        let open = row.open_to_path(cell);
        for (to, digit) in lists.allowed[cell][..row.cells].iter_mut().zip(row.digits) {
            *to = W::of(u64::from(open & digit != 0));
        }
    }
}

/// Finds out which states allow which digits in the empty cells of the row.
#[inline(always)]
fn allow<I: Isa, W: Word>(
    isa: I,
    row: &Row,
    block: &Block,
    from: usize,
    states: [W; 2],
    lists: &mut Lists<W>,
) {
    match row.cells {
        1 => allow_in::<1, I, W>(isa, row, block, from, states, lists),
        2 => allow_in::<2, I, W>(isa, row, block, from, states, lists),
        3 => allow_in::<3, I, W>(isa, row, block, from, states, lists),
        4 => allow_in::<4, I, W>(isa, row, block, from, states, lists),
        5 => allow_in::<5, I, W>(isa, row, block, from, states, lists),
        6 => allow_in::<6, I, W>(isa, row, block, from, states, lists),
        7 => allow_in::<7, I, W>(isa, row, block, from, states, lists),
        8 => allow_in::<8, I, W>(isa, row, block, from, states, lists),
        _ => allow_in::<9, I, W>(isa, row, block, from, states, lists),
    }
}

/// The same for a row of so many empty cells: loops of a known length are worth a fifth of all time.
#[inline(always)]
fn allow_in<const CELLS: usize, I: Isa, W: Word>(
    isa: I,
    row: &Row,
    block: &Block,
    from: usize,
    states: [W; 2],
    lists: &mut Lists<W>,
) {
    let digits: [u16; CELLS] = std::array::from_fn(|digit| row.digits[digit]);
    for cell in 0..CELLS {
        let column = row.columns[cell];
        let (columns, boxes) = (&block.states.by_word[column], &block.states.by_word[9 + column / 3]);
        let allowed = &mut lists.allowed[cell];
        for half in 0..2 {
            if half == 0 || (CELLS <= SECOND_HALF && states[half] != W::default()) {
                let from = from + SET * half;
                let columns = &columns[from..];
                let boxes = if row.opens_band { None } else { Some(&boxes[from..]) };
                let allowed = &mut allowed[SECOND_HALF * half..];
                isa.allow(columns, boxes, row.taken[cell], &digits, states[half], allowed);
            }
        }
    }
}

/// Counts the path's own placements in this row, and those by which it could be left here: digits before the path's.
/// Each of these becomes a node of the path's state alone; in the first cell it joins the other states of its digit,
/// and is counted with them.
///
/// Without a branch for each digit: it would be guessed wrong too often.
#[inline(always)]
fn before_path<S: Sets>(isa: S::Isa, row: &Row, lists: &mut Lists<S::Word>) -> u64 {
    let path_alone = S::splat(isa, S::Word::of(1));
    let mut placed = row.cells;
    let (mut fields, mut used) = (0, row.absent_digits());
    for cell in 0..row.cells {
        let path = row.index_of(row.path[cell]);
        if cell == 0 && row.cells != 2 {
            for set in &mut lists.allowed[0][path..row.cells] {
                *set = S::Word::of(set.bits() & !1);
            }
        } else if cell + 2 < row.cells {
            let from_path_on = ALL_DIGITS & (ALL_DIGITS << path);
            let closed = S::splat(isa, prefix(0, used | from_path_on));
            let prefixes = S::splat(isa, prefix(fields, used));
            let begin = lists.levels[cell + 1].len();
            let mut end = begin;
            for from in (0..row.cells).step_by(S::LANES) {
                let open = S::load(isa, &lists.allowed[cell][from..]).first(row.cells - from).and(path_alone);
                let before = open.where_disjoint(S::load(isa, &lists.used[from..]), closed);
                let prefixes = prefixes.or(S::load(isa, &lists.steps[cell][from..]));
                end = lists.levels[cell + 1].append(end, before, prefixes);
            }
            lists.levels[cell + 1].end_at(end);
            placed += end - begin;
        } else if cell + 2 == row.cells {
            placed += swap_last(row, path, fields, used, lists);
        }
        fields |= field(cell, path);
        used |= 1 << path;
    }
    placed as u64
}

/// The same for the last cell but one: there, only the path's last two digits can change places.
#[inline(always)]
fn swap_last<W: Word>(row: &Row, path: usize, fields: u64, used: u16, lists: &mut Lists<W>) -> usize {
    let cell = row.cells - 2;
    let other = (!used & !(1 << path)).trailing_zeros() as usize & 15;
    let is_open = |cell: usize, digit: usize| lists.allowed[cell][digit & 15].bits() & 1 == 1;
    if other > path || !is_open(cell, other) {
        return 0;
    }
    if !is_open(cell + 1, path) {
        return 1;
    }
    let swapped = fields | field(cell, other) | field(cell + 1, path);
    lists.completions.push(W::of(1), W::of(swapped));
    2
}
