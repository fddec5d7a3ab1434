//! How fast batches are answered, by kind of puzzle and by width, with the count of placements and without.
//!
//! ```text
//! cargo bench -p solver                          generated puzzles of each kind
//! cargo bench -p solver -- uncounted/minimal     some of them
//! SOLVER_BENCH_FILE=puzzles.txt cargo bench -p solver -- file     those of a file, one a line
//! ```

// A bench that cannot go on ends.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use solver::{CELLS, Generator, Givens, Grid, Kind, PlacementLimit, Puzzle, Solver, StopFlag, Width};

/// Puzzles of a batch without counting.
const BATCH: usize = 4_096;
/// Puzzles of a batch with counting, which takes longer.
const COUNTED_BATCH: usize = 256;
/// Counts end here, so that no run of a bench takes minutes.
const LIMIT: PlacementLimit = PlacementLimit(10_000_000);

/// A kind of puzzles, and a batch of it.
type Class = (&'static str, Vec<Puzzle>);

fn generated(seed: u64, kind: Kind) -> Vec<Puzzle> {
    Generator::new(seed, kind).unwrap().take(BATCH).map(|puzzle| Ok(puzzle.unwrap())).collect()
}

/// The puzzles with some of their givens changed.
fn changed(puzzles: &[Puzzle], change: impl Fn(usize, u8) -> u8) -> Vec<Puzzle> {
    let changed = puzzles.iter().enumerate().map(|(number, puzzle)| {
        let mut grid = *puzzle.as_ref().unwrap().grid();
        let given: Vec<usize> = (0..CELLS).filter(|&cell| grid.0[cell] != 0).collect();
        for (i, &cell) in given.iter().enumerate() {
            let digit = grid.0[cell];
            grid.0[cell] = change(i + number, digit);
            if Givens::new(grid).is_err() {
                grid.0[cell] = digit;
            }
        }
        Givens::new(grid)
    });
    changed.collect()
}

fn classes() -> Vec<Class> {
    if let Ok(file) = std::env::var("SOLVER_BENCH_FILE") {
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {file}: {error}"));
        return vec![("file", text.lines().map(Givens::parse).collect())];
    }
    let minimal = generated(2, Kind::Minimal);
    vec![
        ("easy", generated(1, Kind::Clues(42))),
        ("newspaper", generated(1, Kind::Default)),
        // Every ninth given is taken out; the one before it is made another digit where that does not clash.
        ("several_solutions", changed(&minimal, |i, digit| if i % 9 == 0 { 0 } else { digit })),
        ("mostly_none", changed(&minimal, |i, digit| if i % 9 == 1 { digit % 9 + 1 } else { digit })),
        ("near_empty", changed(&minimal, |i, digit| if i % 9 == 0 { digit } else { 0 })),
        ("empty", vec![Givens::new(Grid::EMPTY); BATCH]),
        ("minimal", minimal),
    ]
}

fn bench(criterion: &mut Criterion) {
    let classes = classes();
    for (group, limit, batch_max) in
        [("uncounted", PlacementLimit::OFF, BATCH), ("counted", LIMIT, COUNTED_BATCH), ("alone", LIMIT, 1)]
    {
        for (class, puzzles) in &classes {
            let batch = &puzzles[..puzzles.len().min(batch_max)];
            let mut group = criterion.benchmark_group(format!("{group}/{class}"));
            group.throughput(Throughput::Elements(batch.len() as u64));
            for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
                let mut solver = Solver::new(width);
                group.bench_function(width.name(), |bencher| {
                    bencher.iter(|| {
                        solver.answer(batch, limit, &StopFlag::new(), |verdict| {
                            black_box(verdict);
                            ControlFlow::Continue(())
                        })
                    });
                });
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = bench
}
criterion_main!(benches);
