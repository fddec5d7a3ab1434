//! Any batch gets the same verdicts on every width, and they are those of the literal recipe.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use solver::{
    CELLS, Givens, Grid, Outcome, PlacementLimit, Placements, Puzzle, Solver, StopFlag, Verdict, Width,
    recipe,
};

/// Counts up to this are compared with the recipe's.
const LIMIT_MAX: u64 = 30_000;
const PUZZLES_MAX: usize = 40;

fuzz_target!(|data: &[u8]| {
    let Some((limit, cells)) = data.split_first_chunk::<2>() else { return };
    let limit = u64::from(u16::from_le_bytes(*limit)) % LIMIT_MAX;
    let batch: Vec<Puzzle> = cells.chunks(CELLS).take(PUZZLES_MAX).map(puzzle).collect();
    let verdicts = answer(Width::Portable, &batch, limit);
    assert_eq!(verdicts.len(), batch.len());
    for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
        assert_eq!(answer(width, &batch, limit), verdicts, "{width}");
    }
    for (puzzle, verdict) in batch.iter().zip(&verdicts) {
        check(puzzle, verdict, limit);
    }
});

/// A byte a cell: an empty one, or a digit. For most first bytes a digit that clashes with those before is left out.
fn puzzle(bytes: &[u8]) -> Puzzle {
    let may_clash = bytes[0] & 0x81 == 0x81;
    let mut grid = Grid::EMPTY;
    for (cell, &byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte >= 0xa0) {
        grid.0[cell] = byte % 9 + 1;
        if !may_clash && Givens::new(grid).is_err() {
            grid.0[cell] = 0;
        }
    }
    Givens::new(grid)
}

fn answer(width: Width, batch: &[Puzzle], limit: u64) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    Solver::new(width)
        .answer(batch, PlacementLimit(limit), &StopFlag::new(), |verdict| {
            verdicts.push(verdict);
            ControlFlow::Continue(())
        })
        .expect("nobody raises the flag");
    verdicts
}

fn check(puzzle: &Puzzle, verdict: &Verdict, limit: u64) {
    let givens = match puzzle {
        Ok(givens) => givens,
        Err(invalid) => return assert_eq!(*verdict, Verdict::Invalid(invalid.clone())),
    };
    let solution = verdict.solution();
    assert!(solution.is_none_or(|solution| solution.extends(givens)));
    assert_eq!(solution.is_some(), matches!(verdict.outcome(), Outcome::Unique | Outcome::Multiple));
    if let Some(Placements::Exact(placements)) = verdict.placements() {
        assert!(placements <= limit);
        let (mut grid, mut placed) = (*givens.grid(), 0);
        let solved = recipe::solve_counting(&mut grid, &mut placed);
        assert_eq!(placements, placed, "{}", givens.grid());
        assert_eq!(solution.map(|solution| Grid(*solution.digits())), solved.then_some(grid));
    }
}
