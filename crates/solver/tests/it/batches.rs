//! Batches: the verdict on a puzzle does not depend on the others, on where a batch is cut, or on what came before.

use std::ops::ControlFlow;

use solver::{CELLS, Givens, Grid, Kind, PlacementLimit, Puzzle, Solver, StopFlag, Stopped, Verdict};

use crate::support::{
    HOPELESS, HOSTILE, Random, answer_all, generate, solve, widths, with_dead_cell, with_one_given_changed,
    without,
};

/// Puzzles of all kinds, mixed: also hostile ones, and such as are none.
fn mixed(seed: u64, number_each: usize) -> Vec<Puzzle> {
    let mut random = Random::new(seed);
    let mut puzzles: Vec<Puzzle> = Vec::new();
    for givens in generate(seed, Kind::Minimal, number_each) {
        puzzles.push(Ok(givens));
        puzzles.push(Ok(with_one_given_changed(&givens, &mut random)));
        puzzles.push(Givens::new(without(givens.grid(), 1 + random.below(25), &mut random)));
        puzzles.push(Ok(with_dead_cell(&mut random)));
        puzzles.push(Givens::parse("not a puzzle"));
    }
    puzzles.extend(generate(seed, Kind::Clues(45), 2 * number_each).into_iter().map(Ok));
    for _ in 0..number_each / 10 {
        puzzles.extend([Givens::parse(HOSTILE), Givens::parse(HOPELESS), Givens::new(Grid::EMPTY)]);
    }
    random.shuffle(&mut puzzles);
    puzzles
}

fn alone(puzzle: &Puzzle, limit: u64) -> Verdict {
    match puzzle {
        Ok(givens) => solve(givens, limit),
        Err(invalid) => Verdict::Invalid(invalid.clone()),
    }
}

/// A lane that waits for one hard puzzle must neither hold up nor change the others; one batch of this kind once stopped for
/// good, when the puzzle that all others waited for was decided while nothing else was under way.
#[test]
fn a_batch_of_all_kinds_gets_the_verdicts_of_its_puzzles_alone_on_every_width() {
    for (seed, limit) in [(31, 0), (32, 20_000)] {
        let puzzles = mixed(seed, 400);
        let expected: Vec<Verdict> = puzzles.iter().map(|puzzle| alone(puzzle, limit)).collect();
        for &width in widths() {
            assert_eq!(answer_all(width, &puzzles, limit), expected, "{width}");
        }
    }
}

#[test]
fn slices_of_any_size_give_the_same_verdicts() {
    let puzzles = mixed(33, 150);
    let limit = PlacementLimit(5_000);
    for &width in widths() {
        let expected = answer_all(width, &puzzles, limit.0);
        let mut random = Random::new(33);
        let mut solver = Solver::new(width);
        let mut verdicts = Vec::new();
        // Each slice is given up to the end of the batch and broken off somewhere.
        while verdicts.len() < puzzles.len() {
            let most = 1 << random.below(9);
            let mut wanted = 1 + random.below(most);
            let answered = solver.answer(&puzzles[verdicts.len()..], limit, &StopFlag::new(), |verdict| {
                verdicts.push(verdict);
                wanted -= 1;
                if wanted == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(answered, Ok(()));
        }
        assert_eq!(verdicts, expected, "{width}");
    }
}

#[test]
fn a_flag_raised_on_the_way_leaves_right_verdicts_up_to_there_and_a_solver_that_can_be_used_on() {
    let puzzles = mixed(34, 100);
    let limit = PlacementLimit(100_000);
    for &width in widths() {
        let expected = answer_all(width, &puzzles, limit.0);
        let mut solver = Solver::new(width);
        for raised_after in [0, 1, 17, puzzles.len() - 2] {
            let stop = StopFlag::new();
            let mut verdicts = Vec::new();
            if raised_after == 0 {
                stop.raise();
            }
            let answered = solver.answer(&puzzles, limit, &stop, |verdict| {
                verdicts.push(verdict);
                if verdicts.len() == raised_after {
                    stop.raise();
                }
                ControlFlow::Continue(())
            });
            assert_eq!(answered, Err(Stopped), "{width}, raised after {raised_after} verdicts");
            assert!(verdicts.len() >= raised_after && verdicts.len() < puzzles.len());
            assert_eq!(verdicts, expected[..verdicts.len()]);
        }
        assert_eq!(solver_verdicts(&mut solver, &puzzles, limit), expected);
    }
}

fn solver_verdicts(solver: &mut Solver, puzzles: &[Puzzle], limit: PlacementLimit) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let answered = solver.answer(puzzles, limit, &StopFlag::new(), |verdict| {
        verdicts.push(verdict);
        ControlFlow::Continue(())
    });
    assert_eq!(answered, Ok(()));
    verdicts
}

#[test]
fn batches_without_a_puzzle_or_with_none_but_invalid_ones_end() {
    for &width in widths() {
        assert_eq!(answer_all(width, &[], 1), []);
        let invalid = vec![Givens::parse(&"1".repeat(CELLS)); 3_000];
        let verdicts = answer_all(width, &invalid, 1);
        assert_eq!(verdicts.len(), 3_000);
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Invalid(_))));
    }
}
