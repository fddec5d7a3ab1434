//! Puzzles side by side, and what follows from their candidates without guessing.
//!
//! ```text
//!               lane 0   lane 1   ...                    a vector is one cell of all puzzles:
//! cells[0]    {  1,4  } {   7   } ...   first cell       a set of digits for each lane
//! cells[1]    {   2   } { 1,3,9 } ...   second cell
//!    ...
//! cells[80]   {  4,6  } {   5   } ...   last cell
//! ```
//!
//! One [`Block::sweep`] goes through all puzzles once, with the same few instructions whatever their state. First the
//! cells: a digit with one place left in a house takes it (hidden single), and cells with one digit (found) are noted.
//! Then the bands, three rows at a time: the found digits leave their houses, and locked candidates follow. A digit needs
//! three minirows of a band, no two of them in one row or one box, so a minirow keeps the digits for which the four
//! minirows of the other rows and boxes leave one of their two arrangements:
//!
//! ```text
//!  .  a  b        the digits that the first minirow keeps are those with
//!  .  c  d        a and d, or b and c  (a, b, c, d: candidates of the minirow, its three cells together)
//! ```
//!
//! Last the stacks, three columns at a time, the same way. Sweeps are repeated until nothing changes.

#![allow(clippy::needless_range_loop, reason = "cells and houses are told by their numbers")]

use crate::grid::CELLS;
use crate::houses::ALL_DIGITS;
use crate::simd::{Isa, U16s};

/// A lane each: the candidates of a puzzle.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Block<I: Isa> {
    isa: I,
    /// The candidates of each cell.
    cells: [I::U16s; CELLS],
    /// Of each cell, the digit if it was the only candidate when the sweep came to it, else nothing.
    found: [I::U16s; CELLS],
    /// Digits with two or more places in each row, column and box; may name too many, never too few: candidates that went
    /// after a house was looked at (from the rows and boxes by the stacks, from the columns by the bands) are still seen.
    rows: [I::U16s; 9],
    columns: [I::U16s; 9],
    boxes: [I::U16s; 9],
    /// The sum of the 81 candidate sets as numbers. Sets only shrink, so it falls when anything changes.
    sum: I::U16s,
}

/// What a sweep found: a bit for each lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swept {
    /// The candidates leave no solution.
    pub(super) dead: u32,
    /// Some cell had more than one candidate.
    pub(super) open: u32,
    /// Candidates were removed, or the lane is new.
    pub(super) changed: u32,
}

/// What the sweep over the cells collects for the later ones.
struct Found<V> {
    rows: [V; 9],
    columns: [V; 9],
    boxes: [V; 9],
    /// Lanes in which two digits have their only place in one cell, or in which a cell is empty, are not 0.
    clashes: V,
    /// Lanes with a cell of several candidates are not 0.
    open: V,
}

/// What the sweep over a band finds.
struct Band<V> {
    /// The digits that each of its minirows keeps.
    kept: [[V; 3]; 3],
    /// The digits that have a place in each row and box.
    present: V,
}

impl<I: Isa> Block<I> {
    /// All lanes hold the empty set in every cell.
    pub(super) fn new(isa: I) -> Block<I> {
        let zero = isa.splat(0);
        Block {
            isa,
            cells: [zero; CELLS],
            found: [zero; CELLS],
            rows: [zero; 9],
            columns: [zero; 9],
            boxes: [zero; 9],
            sum: zero,
        }
    }

    /// The candidates of each cell.
    #[inline(always)]
    pub(super) fn cells(&self) -> &[I::U16s; CELLS] {
        &self.cells
    }

    /// As [`Block::cells`], to be written to; lanes that are given other than fewer candidates are to be named as new in
    /// the next sweep.
    #[inline(always)]
    pub(super) fn cells_mut(&mut self) -> &mut [I::U16s; CELLS] {
        &mut self.cells
    }

    /// Draws conclusions once. `new` names the lanes whose candidates were put there since the last sweep, `held` those in
    /// which nothing is to change any more, as nothing has in the last one.
    ///
    /// Held lanes would not stay as they are by themselves: what a sweep learns of a house may be of use to the next one alone.
    #[inline(always)]
    pub(super) fn sweep(&mut self, new: u32, held: u32) -> Swept {
        if new | held != 0 {
            let unknown = self.isa.bits_of_lanes(new | held);
            for digits in self.rows.iter_mut().chain(&mut self.columns).chain(&mut self.boxes) {
                *digits = digits.or(unknown);
            }
        }
        let found = self.sweep_cells();
        let all_digits = self.isa.splat(ALL_DIGITS);
        let bands = [self.sweep_band(0, &found), self.sweep_band(1, &found), self.sweep_band(2, &found)];
        let mut present = bands[0].present.and3(bands[1].present, bands[2].present);
        let mut sum = self.isa.splat(0);
        for stack in 0..3 {
            present = present.and(self.sweep_stack(stack, &bands, &mut sum));
        }
        let changed = sum.differing(self.sum) | new;
        self.sum = sum;
        let zero = self.isa.splat(0);
        Swept {
            dead: present.differing(all_digits) | found.clashes.differing(zero),
            open: found.open.differing(zero),
            changed,
        }
    }

    #[inline(always)]
    fn sweep_cells(&mut self) -> Found<I::U16s> {
        let zero = self.isa.splat(0);
        let minus_one = self.isa.splat(u16::MAX);
        // Each of these on its own: as parts of one struct they would be kept in memory.
        let (mut rows, mut columns, mut boxes) = ([zero; 9], [zero; 9], [zero; 9]);
        let (mut clashes, mut open) = (zero, zero);
        let mut least = self.isa.splat(ALL_DIGITS);
        let several_in_column = self.columns;
        for row in 0..9 {
            let mut of_row = zero;
            for j in 0..3 {
                let square = row / 3 * 3 + j;
                let row_and_box = self.rows[row].and(self.boxes[square]);
                let mut of_minirow = zero;
                for k in 0..3 {
                    let column = 3 * j + k;
                    let cell = row * 9 + column;
                    let candidates = self.cells[cell];
                    let last_places = candidates.and_not_both(row_and_box, several_in_column[column]);
                    let candidates = last_places.or_else(candidates);
                    least = least.min(candidates);
                    // All candidates but the lowest; where there are last places, these are the candidates.
                    let others = candidates.and(candidates.add(minus_one));
                    clashes = clashes.or_both(last_places, others);
                    open = open.or(others);
                    let sole = candidates.where_none(others);
                    self.cells[cell] = candidates;
                    self.found[cell] = sole;
                    of_minirow = of_minirow.or(sole);
                    columns[column] = columns[column].or(sole);
                }
                of_row = of_row.or(of_minirow);
                boxes[square] = boxes[square].or(of_minirow);
            }
            rows[row] = of_row;
        }
        // A cell without candidates: `least` is 0, and only then is 0 - 1 above all digits.
        let clashes = clashes.or(least.add(minus_one).and_not(self.isa.splat(ALL_DIGITS)));
        Found { rows, columns, boxes, clashes, open }
    }

    #[inline(always)]
    fn sweep_band(&mut self, band: usize, found: &Found<I::U16s>) -> Band<I::U16s> {
        let zero = self.isa.splat(0);
        let mut once = [[zero; 3]; 3];
        let mut twice = [[zero; 3]; 3];
        for i in 0..3 {
            let row = 3 * band + i;
            for j in 0..3 {
                let row_and_box = found.rows[row].or(found.boxes[3 * band + j]);
                let [x, y, z] = [0, 1, 2].map(|k| {
                    let column = 3 * j + k;
                    let cell = row * 9 + column;
                    let taken = row_and_box.or(found.columns[column]);
                    self.cells[cell] = self.cells[cell].without_unless(taken, self.found[cell]);
                    self.cells[cell]
                });
                once[i][j] = x.or3(y, z);
                twice[i][j] = x.majority(y, z);
            }
        }
        let arranged = arranged(&once);
        let mut present = self.isa.splat(ALL_DIGITS);
        for i in 0..3 {
            for j in 0..3 {
                once[i][j] = once[i][j].and(arranged[i][j]);
                twice[i][j] = twice[i][j].and(arranged[i][j]);
            }
        }
        for i in 0..3 {
            let (once_in_box, twice_in_box) =
                ([0, 1, 2].map(|row| once[row][i]), [0, 1, 2].map(|row| twice[row][i]));
            present = present.and3(any(&once[i]), any(&once_in_box));
            self.rows[3 * band + i] = several(&once[i], &twice[i]);
            self.boxes[3 * band + i] = several(&once_in_box, &twice_in_box);
        }
        Band { kept: arranged, present }
    }

    /// Gives the digits that have a place in each column of the stack.
    #[inline(always)]
    fn sweep_stack(&mut self, stack: usize, bands: &[Band<I::U16s>; 3], sum: &mut I::U16s) -> I::U16s {
        let zero = self.isa.splat(0);
        // Minicolumns: `once[k][i]` is column k of the stack in box row i.
        let mut once = [[zero; 3]; 3];
        let mut twice = [[zero; 3]; 3];
        for i in 0..3 {
            for k in 0..3 {
                let top = 27 * i + 3 * stack + k;
                let [x, y, z] = [self.cells[top], self.cells[top + 9], self.cells[top + 18]];
                once[k][i] = x.or3(y, z);
                twice[k][i] = x.majority(y, z);
            }
        }
        let arranged = arranged(&once);
        let mut present = self.isa.splat(ALL_DIGITS);
        for k in 0..3 {
            for i in 0..3 {
                let arranged = arranged[k][i];
                once[k][i] = once[k][i].and(arranged);
                twice[k][i] = twice[k][i].and(arranged);
                let top = 27 * i + 3 * stack + k;
                for g in 0..3 {
                    let cell = top + 9 * g;
                    self.cells[cell] = self.cells[cell].and3(arranged, bands[i].kept[g][stack]);
                    *sum = sum.add(self.cells[cell]);
                }
            }
            present = present.and(any(&once[k]));
            self.columns[3 * stack + k] = several(&once[k], &twice[k]);
        }
        present
    }
}

/// For each of nine minirows (or minicolumns) of a band (or stack): the digits for which the others leave an arrangement.
#[inline(always)]
fn arranged<V: U16s>(minirows: &[[V; 3]; 3]) -> [[V; 3]; 3] {
    let mut arranged = *minirows;
    for i in 0..3 {
        let [a, b] = [&minirows[(i + 1) % 3], &minirows[(i + 2) % 3]];
        for j in 0..3 {
            let (p, q) = ((j + 1) % 3, (j + 2) % 3);
            arranged[i][j] = a[p].and(b[q]).or_both(a[q], b[p]);
        }
    }
    arranged
}

/// The digits of any of three sets.
#[inline(always)]
fn any<V: U16s>(sets: &[V; 3]) -> V {
    sets[0].or3(sets[1], sets[2])
}

/// The digits with two or more places in a house, from the digits with one or more and with two or more places in each of
/// its three minirows (or minicolumns).
#[inline(always)]
fn several<V: U16s>(once: &[V; 3], twice: &[V; 3]) -> V {
    twice[0].or3(twice[1], twice[2]).or(once[0].majority(once[1], once[2]))
}
