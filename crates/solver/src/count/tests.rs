//! Every width against the plain search and the literal recipe, on one counter each from the first puzzle to the
//! last, so that anything a puzzle left behind would be found.

use std::{panic, thread};

use super::plain::{self, Counted};
use super::*;
use crate::generate::{Generator, Kind};
use crate::grid::Grid;
use crate::random::SplitMix64;
use crate::recipe;
use crate::search::{Effort, Found, SEARCH_BUDGET_NODES, find};

/// Longer counts are compared up to this limit only.
const PLACEMENTS_MAX: u64 = 300_000;
/// The literal recipe is a hundred times slower.
const RECIPE_PLACEMENTS_MAX: u64 = 3_000;

/// 15 givens, and 43,225,199,513 placements to the first of very many solutions.
const HOSTILE: &str = "..1......2..........3......4.......5..5...6..6......4...71.3...8..........9.2....";
/// No solution, after 2,549,798,780 placements.
const HOPELESS: &str = ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4.........";

/// Where counts of which nobody looks how far they are show it, those of all tests.
static RUNNING: RunningPlacements = RunningPlacements::new();

fn counters() -> Vec<Counter> {
    Width::ALL.into_iter().filter(|width| width.is_available()).map(Counter::new).collect()
}

fn givens(text: &str) -> Givens {
    Givens::parse(text).unwrap()
}

fn first_solution(givens: &Givens) -> Option<[u8; CELLS]> {
    let stop = StopFlag::new();
    match find(givens, &mut Effort::new(SEARCH_BUDGET_NODES, &stop)).unwrap() {
        Found::None => None,
        Found::One(digits) | Found::Many(digits) => Some(digits),
    }
}

fn plainly(givens: &Givens, limit: u64) -> Placements {
    match plain::count(givens, limit, &StopFlag::new()).unwrap() {
        Counted::OverLimit => Placements::OverLimit,
        Counted::Solved { placements, .. } | Counted::Exhausted { placements } => {
            Placements::Exact(placements)
        }
    }
}

fn limited(placements: u64, limit: u64) -> Placements {
    if placements > limit { Placements::OverLimit } else { Placements::Exact(placements) }
}

/// Compares all counters at many limits; gives the number of placements if it is not too great.
fn compare(counters: &mut [Counter], givens: &Givens, random: &mut SplitMix64) -> Option<u64> {
    let first = first_solution(givens);
    let stop = StopFlag::new();
    let raised = StopFlag::new();
    raised.raise();
    let mut expect = |limit: u64, expected: Placements| {
        for counter in &mut *counters {
            let counted = counter.count(givens, first.as_ref(), limit, &stop, &RUNNING);
            assert_eq!(counted, Ok(expected), "{} {limit} {}", givens.grid(), counter.width);
            assert_eq!(counter.count(givens, first.as_ref(), limit, &raised, &RUNNING), Err(Stopped));
        }
    };
    let Placements::Exact(placements) = plainly(givens, PLACEMENTS_MAX) else {
        expect(PLACEMENTS_MAX, Placements::OverLimit);
        expect(1 + random.next() % PLACEMENTS_MAX, Placements::OverLimit);
        return None;
    };
    if placements <= RECIPE_PLACEMENTS_MAX {
        let mut literal = 0;
        recipe::solve_counting(&mut givens.grid().clone(), &mut literal);
        assert_eq!(placements, literal, "{}", givens.grid());
    }
    let below_double = 1 + random.next() % (2 * placements + 1);
    for limit in [u64::MAX, 1, placements.saturating_sub(1), placements, below_double, placements + 1] {
        expect(limit, limited(placements, limit));
    }
    Some(placements)
}

/// The puzzle with some givens taken out, then some put in.
fn changed(givens: &Givens, out: usize, put_in: usize, random: &mut SplitMix64) -> Givens {
    let mut grid = *givens.grid();
    let mut given: Vec<usize> = (0..CELLS).filter(|&cell| grid.0[cell] != 0).collect();
    random.shuffle(&mut given);
    given.iter().take(out).for_each(|&cell| grid.0[cell] = 0);
    for _ in 0..put_in {
        let before = grid;
        let digit = u8::try_from(1 + random.below(9)).unwrap();
        grid.0[random.below(CELLS)] = digit;
        if Givens::new(grid).is_err() {
            grid = before;
        }
    }
    Givens::new(grid).unwrap()
}

fn generated(seed: u64, kind: Kind, number: usize) -> impl Iterator<Item = Givens> {
    Generator::new(seed, kind).unwrap().take(number).map(Result::unwrap)
}

#[test]
fn every_width_counts_as_the_plain_search_and_the_recipe_do() {
    let mut random = SplitMix64::new(31);
    let mut counters = counters();
    let mut total = 0;
    let mut compared = 0;
    for (kind, number) in [(Kind::Clues(45), 60), (Kind::Default, 150), (Kind::Minimal, 60)] {
        for givens in generated(31, kind, number) {
            let full = Givens::new(Grid(first_solution(&givens).unwrap())).unwrap();
            let empty_cells = random.below(25);
            let fewer = 1 + random.below(8);
            let puzzles = [
                givens,
                changed(&givens, 1, 2, &mut random),
                changed(&givens, fewer, 0, &mut random),
                changed(&full, empty_cells, 0, &mut random),
                changed(&full, empty_cells, 3, &mut random),
            ];
            for puzzle in puzzles {
                if let Some(placements) = compare(&mut counters, &puzzle, &mut random) {
                    total += placements;
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1000 && total > 5_000_000, "{compared} puzzles, {total} placements");
}

#[test]
fn grids_with_few_givens() {
    let mut random = SplitMix64::new(32);
    let mut counters = counters();
    let empty = Givens::new(Grid::EMPTY).unwrap();
    assert_eq!(compare(&mut counters, &empty, &mut random), Some(391));
    for round in 0..60 {
        compare(&mut counters, &changed(&empty, 0, round % 18, &mut random), &mut random);
    }
}

#[test]
fn grids_with_nothing_to_place() {
    let mut random = SplitMix64::new(33);
    let mut counters = counters();
    let full = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
    let dead = "...45678.1........2........3........9............................................";
    for text in [full, dead] {
        assert_eq!(compare(&mut counters, &givens(text), &mut random), Some(0));
    }
}

/// Rows of every length from one to nine empty cells, first, last and between others.
#[test]
fn rows_of_every_length() {
    let mut random = SplitMix64::new(34);
    let mut counters = counters();
    for givens in generated(34, Kind::Minimal, 12) {
        let full = first_solution(&givens).unwrap();
        for round in 0..12 {
            let mut grid = Grid(full);
            for row in 0..9 {
                let mut columns: Vec<usize> = (0..9).collect();
                random.shuffle(&mut columns);
                let empty_cells = if row % 4 == round % 4 { 9 - round / 4 } else { random.below(6) };
                columns.iter().take(empty_cells).for_each(|column| grid.0[row * 9 + column] = 0);
            }
            compare(&mut counters, &Givens::new(grid).unwrap(), &mut random);
        }
    }
}

/// More placements than 31 bits hold, on the width that is fastest.
#[test]
fn a_count_of_thousands_of_millions_is_exact() {
    let mut counter = Counter::new(Width::widest());
    let placements = counter.count(&givens(HOPELESS), None, 10_000_000_000, &StopFlag::new(), &RUNNING);
    assert_eq!(placements, Ok(Placements::Exact(2_549_798_780)));
}

#[test]
fn a_count_ended_on_its_way_leaves_nothing_behind() {
    let hostile = givens(HOSTILE);
    let first = first_solution(&hostile);
    let mut random = SplitMix64::new(35);
    let puzzles: Vec<Givens> = generated(35, Kind::Default, 10).collect();
    for mut counter in counters() {
        let over = counter.count(&hostile, first.as_ref(), 1_000_000, &StopFlag::new(), &RUNNING);
        assert_eq!(over, Ok(Placements::OverLimit));
        let stop = StopFlag::new();
        thread::scope(|scope| {
            let counting = scope.spawn(|| {
                let result = counter.count(&hostile, first.as_ref(), u64::MAX, &stop, &RUNNING);
                (counter, result)
            });
            // Work that is longer than the start of a thread, so that the count is on its way by now.
            plainly(&givens(HOPELESS), 3_000_000);
            stop.raise();
            let (counter, result) = counting.join().unwrap();
            assert_eq!(result, Err(Stopped));
            let mut counters = [counter];
            for givens in &puzzles {
                compare(&mut counters, givens, &mut random);
            }
        });
    }
}

/// The search and the count hold each other to the same first solution.
#[test]
#[should_panic(expected = "no solution comes before the first one")]
fn a_solution_before_the_first_one_is_noticed() {
    count_past_a_solution(&RUNNING);
}

#[test]
fn a_count_that_ends_in_a_panic_is_not_shown_as_running() {
    let running = RunningPlacements::new();
    running.show(5);
    assert!(panic::catch_unwind(|| count_past_a_solution(&running)).is_err());
    assert_eq!(running.get(), 0);
}

/// Panics: it takes a puzzle of two solutions for one that has none.
fn count_past_a_solution(running: &RunningPlacements) {
    let two_solutions = "534678912672195348198342567859761423426853791713924856961.3728.287.1963.345286179";
    let mut counter = Counter::new(Width::widest());
    counter.count(&givens(two_solutions), None, 1000, &StopFlag::new(), running).unwrap();
}

#[test]
fn scratch_memory_is_made_when_it_is_needed_and_stays_below_the_bound() {
    let mut counter = Counter::new(Width::widest());
    assert_eq!(counter.scratch_bytes(), 0);
    let minimal = generated(36, Kind::Minimal, 1).next().unwrap();
    let first = first_solution(&minimal);
    counter.count(&minimal, first.as_ref(), u64::MAX, &StopFlag::new(), &RUNNING).unwrap();
    assert!(counter.scratch_bytes() > 0);
    assert!(counter.scratch_bytes() <= SCRATCH_BYTES_MAX, "{}", counter.scratch_bytes());
}
