//! The search in lanes depends on nothing but the puzzle.

use std::ops::ControlFlow;

use super::block::Block;
use super::lane::{self, State};
use super::{Decide, Decision, GUESSES_MAX, Memory, guess};
use crate::generate::{Generator, Kind};
use crate::givens::{Givens, Puzzle};
use crate::grid::{CELLS, Grid};
use crate::random::SplitMix64;
use crate::simd::{Isa, Op, Width, with};
use crate::stop::StopFlag;

/// 15 givens, and many solutions.
const HOSTILE: &str = "..1......2..........3......4.......5..5...6..6......4...71.3...8..........9.2....";

type Decided = (Decision, Option<[u8; CELLS]>);

fn decide(width: Width, batch: &[Puzzle], ahead_max: usize, guesses_max: u32) -> Vec<Decided> {
    let mut memory = Memory::new();
    let mut decided = Vec::new();
    let mut sink = |puzzle: &Puzzle, decision, digits: &[u8; CELLS]| {
        assert_eq!(puzzle, &batch[decided.len()]);
        let has_solution = matches!(decision, Decision::One | Decision::Many);
        decided.push((decision, has_solution.then_some(*digits)));
        ControlFlow::Continue(())
    };
    let stop = StopFlag::new();
    let memory = &mut memory;
    let decide = Decide { batch, ahead_max, guesses_max, memory, stop: &stop, sink: &mut sink };
    assert_eq!(with(width, decide), Ok(()));
    decided
}

/// Puzzles with one, several and no solutions, near-empty ones among them.
fn puzzles() -> Vec<Puzzle> {
    let mut random = SplitMix64::new(41);
    let mut puzzles = vec![Givens::parse(HOSTILE), Ok(Givens::new(Grid::EMPTY).unwrap())];
    for givens in Generator::new(41, Kind::Minimal).unwrap().take(200) {
        let givens = givens.unwrap();
        puzzles.push(Ok(givens));
        let mut fewer = *givens.grid();
        for _ in 0..random.next() % 40 {
            fewer.0[usize::try_from(random.next() % 81).unwrap()] = 0;
        }
        puzzles.push(Givens::new(fewer));
        let mut changed = fewer;
        changed.0[usize::try_from(random.next() % 81).unwrap()] = 5;
        // Some of these clash.
        puzzles.push(Givens::new(changed));
    }
    puzzles
}

fn widths() -> impl Iterator<Item = Width> {
    Width::ALL.into_iter().filter(|width| width.is_available())
}

/// Otherwise it would depend on a puzzle's neighbours or on the machine whether it is left undecided.
#[test]
fn a_puzzle_takes_the_same_guesses_on_every_width_and_in_any_company() {
    let puzzles = puzzles();
    let mut reversed = puzzles.clone();
    reversed.reverse();
    for guesses_max in [0, 1, 2, 3, 5, 8, 13, 40] {
        let expected = decide(Width::Portable, &puzzles, 1024, guesses_max);
        let given_up = expected.iter().filter(|(decision, _)| *decision == Decision::GaveUp).count();
        assert!(given_up > 1 && given_up < puzzles.len(), "{given_up} given up");
        for width in widths() {
            assert_eq!(decide(width, &puzzles, 1024, guesses_max), expected, "{width}");
            let mut backwards = decide(width, &reversed, 1024, guesses_max);
            backwards.reverse();
            assert_eq!(backwards, expected, "{width}, in reversed order");
            let alone: Vec<Decided> =
                puzzles.chunks(1).flat_map(|one| decide(width, one, 1024, guesses_max)).collect();
            assert_eq!(alone, expected, "{width}, alone");
        }
    }
}

/// All lanes may wait for the first of them: when that is decided, they have to go on. A search once ran for ever here.
#[test]
fn a_narrow_window_holds_up_lanes_and_stops_none() {
    let puzzles = puzzles();
    let expected = decide(Width::Portable, &puzzles, 1024, GUESSES_MAX);
    assert!(expected.iter().all(|(decision, _)| *decision != Decision::GaveUp));
    for width in widths() {
        for ahead_max in [1, 2, 3, 8, 31] {
            assert_eq!(decide(width, &puzzles, ahead_max, GUESSES_MAX), expected, "{width}, {ahead_max}");
        }
    }
}

/// The search of a puzzle in the first lane, which is made to wait whenever it is stuck.
struct Waiting(Puzzle);

impl Op for Waiting {
    /// How often the lane was stuck, and how often it would not have been after another sweep.
    type Output = (u32, u32);

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) -> (u32, u32) {
        let mut block = Block::new(isa);
        lane::load(block.cells_mut(), 0, &self.0.expect("givens"));
        let (mut state, mut pile) = (State::EMPTY, Vec::new());
        let (mut stuck, mut would_go_on, mut new) = (0, 0, 1);
        loop {
            let swept = block.sweep(new, 0);
            new = 0;
            let is = |lanes: u32| lanes & 1 == 1;
            if is(swept.dead) || !is(swept.open) {
                let Some(next) = pile.pop() else { return (stuck, would_go_on) };
                lane::write(block.cells_mut(), 0, &next);
                new = 1;
            } else if !is(swept.changed) {
                stuck += 1;
                would_go_on += block.clone().sweep(0, 0).changed & 1;
                for _ in 0..3 {
                    assert!(!is(block.sweep(0, 1).changed));
                }
                lane::read(block.cells(), 0, &mut state);
                let guess = guess::choose(isa, &state);
                let mut other = state;
                other.0[guess.cell] &= !guess.digit;
                pile.push(other);
                state.0[guess.cell] = guess.digit;
                lane::write(block.cells_mut(), 0, &state);
                new = 1;
            }
        }
    }
}

/// The guesses of this puzzle were once 38 alone and 37 beside others: a lane that was stuck was swept on while others were not,
/// and what the last sweep had learned of a house was of use to the next one.
#[test]
fn a_lane_that_is_stuck_learns_nothing_more_while_it_waits_for_others() {
    let puzzle =
        Givens::parse("....5..8..5..8.1.3...1....62.......7.3.5...1...4.9......7..4....6.8...3.9...2....");
    for width in widths() {
        let (stuck, would_go_on) = with(width, Waiting(puzzle.clone()));
        assert!(
            stuck > 30 && would_go_on > 0,
            "{width}: {stuck} times stuck, {would_go_on} times for the moment"
        );
    }
}
