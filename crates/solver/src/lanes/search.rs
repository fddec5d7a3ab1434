//! The searches of all lanes side by side.

use std::ops::ControlFlow;

use super::block::{Block, Swept};
use super::guess::{self, Guess};
use super::lane::{self, Aim, Lane, State};
use super::{Decided, Decision, Digits, Memory};
use crate::bands::bits;
use crate::givens::Puzzle;
use crate::grid::CELLS;
use crate::simd::{Isa, Op, U16s};

/// Guesses after which a puzzle is left to a search that does without neighbours.
///
/// Published hard puzzles and variants of them took up to 2,000, those of the longest known list 76 on average.
pub(crate) const GUESSES_MAX: u32 = 10_000;

/// Guesses in order after which a puzzle begins again with better ones, if no solution was found so far.
///
/// In order, one of 3,000 random grids of 15 or 16 givens takes more than 10,000.
const GUESSES_IN_ORDER_MAX: u32 = 300;

/// Lanes are served when one in so many is done or stuck: serving fewer at a time would cost more than it saves.
const LANES_PER_SERVED: u32 = 8;

/// With so many givens a puzzle that needs a guess is likely to have many solutions, and with fewer than 17 it cannot have
/// just one (Gary `McGuire`, Bastian Tugemann and Gilles Civario, 2012).
const GIVENS_OF_MANY: [std::ops::RangeInclusive<usize>; 2] = [0..=16, 31..=80];

/// The searches of all lanes.
pub(super) struct Search<'a, I: Isa> {
    isa: I,
    block: Block<I>,
    lanes: &'a mut [Lane],
    batch: &'a [Puzzle],
    guesses_max: u32,
    /// The first puzzle that was not begun.
    next: usize,
    /// The first puzzle whose decision was not handed on.
    emitted: usize,
    /// See [`Memory`].
    decided: &'a mut [Decided],
    /// Lanes with a puzzle.
    active: u32,
    /// Lanes that are to be served.
    waiting: u32,
    swept: Swept,
}

impl<'a, I: Isa> Search<'a, I> {
    const ALL_LANES: u32 = u32::MAX >> (32 - I::U16s::COUNT);

    pub(super) fn new(
        isa: I,
        batch: &'a [Puzzle],
        ahead_max: usize,
        guesses_max: u32,
        memory: &'a mut Memory,
    ) -> Self {
        let ahead_max = batch.len().clamp(1, ahead_max).next_power_of_two();
        memory.decided.clear();
        memory.decided.resize(ahead_max, Decided::NOTHING);
        memory.lanes.resize_with(I::U16s::COUNT, Lane::new);
        Search {
            isa,
            block: Block::new(isa),
            lanes: &mut memory.lanes,
            batch,
            guesses_max,
            next: 0,
            emitted: 0,
            decided: &mut memory.decided,
            active: 0,
            waiting: Self::ALL_LANES,
            swept: Swept { dead: 0, open: 0, changed: 0 },
        }
    }

    /// Whether all decisions were handed on.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.emitted == self.batch.len()
    }

    /// The next decision in the order of the batch, if there is one, and the solution.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<(&Puzzle, Decision, &[u8; CELLS])> {
        let Decided { decision, digits } = &self.decided[self.slot(self.emitted)];
        let decision = (*decision)?;
        Some((&self.batch[self.emitted], decision, digits.0.first_chunk()?))
    }

    /// Goes on to the one after it.
    #[inline(always)]
    pub(super) fn forget_next(&mut self) {
        let slot = self.slot(self.emitted);
        self.decided[slot].decision = None;
        self.emitted += 1;
    }

    /// Where the decision of a puzzle belongs.
    #[inline(always)]
    fn slot(&self, puzzle: usize) -> usize {
        puzzle & (self.decided.len() - 1)
    }

    /// Sweeps until some lanes are done or stuck.
    #[inline(always)]
    pub(super) fn sweep(&mut self) {
        if self.active == 0 {
            // All waited for room, and the decision that makes it was found while they were served.
            self.waiting = Self::ALL_LANES;
            return;
        }
        let enough = (self.active.count_ones() / LANES_PER_SERVED).max(1);
        let mut new = self.waiting;
        // What was found dead or stuck in one sweep stays so in the next ones, up to when it is served: a later sweep might not
        // see the one again, and might get on with the other. Then it would depend on the other lanes how many guesses a
        // puzzle takes.
        let (mut dead, mut stuck) = (0, 0);
        loop {
            self.swept = self.isa.run(Sweep { block: &mut self.block, new, held: stuck });
            new = 0;
            dead |= self.swept.dead;
            self.swept.dead = dead;
            let Swept { open, changed, .. } = self.swept;
            stuck = self.active & open & !changed & !dead;
            let served = self.active & (dead | !open | !changed);
            if served.count_ones() >= enough {
                self.waiting = served | Self::ALL_LANES & !self.active;
                return;
            }
        }
    }

    /// Gives each waiting lane something to do.
    #[inline(always)]
    pub(super) fn serve(&mut self) {
        // All are read before the first is looked at: a processor waits long for vectors of words just written.
        for lane in bits(self.waiting & self.active & !self.swept.dead) {
            lane::read(self.block.cells(), lane, &mut self.lanes[lane].state);
        }
        for lane in bits(self.waiting) {
            self.serve_lane(lane);
        }
    }

    #[inline(always)]
    fn serve_lane(&mut self, lane: usize) {
        let bit = 1 << lane;
        if self.active & bit != 0 {
            let flow = if self.swept.dead & bit != 0 {
                self.go_back(lane)
            } else if self.swept.open & bit == 0 {
                self.solved(lane)
            } else {
                self.guess(lane)
            };
            let ControlFlow::Break(decision) = flow else { return };
            self.decide(lane, decision);
        }
        self.begin(lane);
    }

    #[inline(always)]
    fn decide(&mut self, lane: usize, decision: Decision) {
        let Lane { puzzle, witness, .. } = &self.lanes[lane];
        let slot = self.slot(*puzzle);
        let decided = &mut self.decided[slot];
        decided.decision = Some(decision);
        if let Decision::One | Decision::Many = decision {
            digits(self.isa, witness, &mut decided.digits);
        }
    }

    /// Loads the next puzzle, or nothing.
    #[inline(always)]
    fn begin(&mut self, lane: usize) {
        let bit = 1 << lane;
        while self.next < self.batch.len() && self.next - self.emitted < self.decided.len() {
            let number = self.next;
            self.next += 1;
            if let Ok(givens) = &self.batch[number] {
                lane::load(self.block.cells_mut(), lane, givens);
                self.lanes[lane].begin(number, givens.count());
                self.active |= bit;
                return;
            }
            let slot = self.slot(number);
            self.decided[slot].decision = Some(Decision::Invalid);
        }
        if self.active & bit != 0 {
            self.active &= !bit;
            lane::write(self.block.cells_mut(), lane, &State::EMPTY);
        }
    }

    /// All cells of the lane are filled.
    #[inline(always)]
    fn solved(&mut self, lane: usize) -> ControlFlow<Decision> {
        let slot = &mut self.lanes[lane];
        match slot.aim {
            Aim::First | Aim::FirstInOrder => {
                slot.aim = if slot.aim == Aim::First { Aim::Second } else { Aim::Another };
                slot.witness = slot.state;
                self.go_back(lane)
            }
            Aim::Second => {
                slot.aim = Aim::Smallest;
                if slot.state.0 < slot.witness.0 {
                    slot.witness = slot.state;
                }
                slot.pile.clear();
                slot.state = slot.root;
                lane::write(self.block.cells_mut(), lane, &slot.root);
                self.guess(lane)
            }
            Aim::Another => ControlFlow::Break(Decision::Many),
            Aim::Smallest => {
                slot.witness = slot.state;
                ControlFlow::Break(Decision::Many)
            }
        }
    }

    /// Makes a guess in a lane that is stuck.
    #[inline(always)]
    fn guess(&mut self, lane: usize) -> ControlFlow<Decision> {
        let slot = &mut self.lanes[lane];
        if slot.guesses == self.guesses_max {
            return ControlFlow::Break(Decision::GaveUp);
        }
        slot.guesses += 1;
        if slot.aim == Aim::First && slot.pile.is_empty() {
            slot.root = slot.state;
            if slot.guesses == 1 && GIVENS_OF_MANY.iter().any(|many| many.contains(&slot.givens)) {
                slot.aim = Aim::FirstInOrder;
            }
        }
        if slot.aim == Aim::FirstInOrder && slot.guesses > GUESSES_IN_ORDER_MAX {
            // Not one of many solutions, it seems.
            slot.aim = Aim::First;
            slot.pile.clear();
            slot.state = slot.root;
            lane::write(self.block.cells_mut(), lane, &slot.root);
        }
        let guess = match slot.aim {
            Aim::First | Aim::Second | Aim::Another => guess::choose(self.isa, &slot.state),
            Aim::Smallest if guess::extends(self.isa, &slot.state, &slot.witness) => {
                return self.follow_witness(lane);
            }
            Aim::FirstInOrder | Aim::Smallest => guess::first(self.isa, &slot.state),
        };
        self.put(lane, guess);
        ControlFlow::Continue(())
    }

    #[inline(always)]
    fn put(&mut self, lane: usize, guess: Guess) {
        I::U16s::words_mut(self.block.cells_mut())[guess.cell * I::U16s::COUNT + lane] = guess.digit;
        let slot = &mut self.lanes[lane];
        slot.pile.push(slot.state);
        if let Some(other) = slot.pile.last_mut() {
            other.0[guess.cell] &= !guess.digit;
        }
    }

    /// Goes on towards the smallest solution of a puzzle that the witness solves: as long as a cell's lowest candidate is the
    /// witness's digit, it is the digit of the smallest solution too, and needs no guess.
    #[inline(always)]
    fn follow_witness(&mut self, lane: usize) -> ControlFlow<Decision> {
        for cell in 0..CELLS {
            let slot = &mut self.lanes[lane];
            let (candidates, digit) = (slot.state.0[cell], slot.witness.0[cell]);
            if candidates == digit {
                continue;
            }
            let lowest = candidates & candidates.wrapping_neg();
            if lowest != digit {
                self.put(lane, Guess { cell, digit: lowest });
                return ControlFlow::Continue(());
            }
            slot.state.0[cell] = digit;
            I::U16s::words_mut(self.block.cells_mut())[cell * I::U16s::COUNT + lane] = digit;
        }
        ControlFlow::Break(Decision::Many)
    }

    /// Goes on with the top of the lane's pile; if there is none, all is tried.
    #[inline(always)]
    fn go_back(&mut self, lane: usize) -> ControlFlow<Decision> {
        let Lane { pile, aim, .. } = &mut self.lanes[lane];
        let Some(top) = pile.last() else {
            return ControlFlow::Break(match aim {
                Aim::First | Aim::FirstInOrder => Decision::None,
                Aim::Second | Aim::Another => Decision::One,
                Aim::Smallest => unreachable!("the smallest of several solutions is found"),
            });
        };
        lane::write(self.block.cells_mut(), lane, top);
        pile.truncate(pile.len() - 1);
        ControlFlow::Continue(())
    }
}

/// The digits of a state that has one candidate in each cell.
#[inline(always)]
fn digits<I: Isa>(isa: I, state: &State, to: &mut Digits) {
    let [one, two, four, eight] = [1, 2, 4, 8].map(|number| isa.splat(number));
    let [ones, twos, fours, eights] = [0x155, 0x66, 0x78, 0x180].map(|digits| isa.splat(digits));
    let count = I::U16s::COUNT;
    for (set, to) in state.0.chunks_exact(count).zip(to.0.chunks_exact_mut(count)) {
        // A set is one bit; its number is put together from the four bits of that.
        let set = isa.load(set);
        let number = (set.and(ones).min(one).add(set.and(twos).min(two)))
            .add(set.and(fours).min(four).add(set.and(eights).min(eight)));
        for (digit, number) in to.iter_mut().zip(I::U16s::words(&[number])) {
            *digit = number.to_le_bytes()[0];
        }
    }
}

/// One sweep, as a piece of code of its own: inlined into the search it would compete for its registers.
struct Sweep<'a, I: Isa> {
    block: &'a mut Block<I>,
    new: u32,
    held: u32,
}

impl<I: Isa> Op for Sweep<'_, I> {
    type Output = Swept;

    #[inline(always)]
    fn call<J: Isa>(self, _isa: J) -> Swept {
        self.block.sweep(self.new, self.held)
    }
}
