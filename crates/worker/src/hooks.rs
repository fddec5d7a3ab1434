//! Faults on demand, for tests: in debug builds only (`debug_assertions`), so that no released program has them.
//!
//! `SUDOKU_BATCH_TEST_ABORT` names a puzzle (81 characters, `.` for empty) that ends its process as a crash would, `SUDOKU_BATCH_TEST_PANIC` one over which
//! the solver panics.

use std::{env, process, sync::OnceLock};

use solver::{Givens, Puzzle, test_panic};

/// Does to the process what the variables say of these puzzles.
pub(crate) fn before(batch: &[Puzzle]) {
    static ABORTS: OnceLock<Option<Givens>> = OnceLock::new();
    let puzzle = |name| env::var(name).ok().and_then(|puzzle| Givens::parse(&puzzle).ok());
    let aborts = ABORTS.get_or_init(|| {
        if let Some(panics) = puzzle("SUDOKU_BATCH_TEST_PANIC") {
            test_panic::set(panics);
        }
        puzzle("SUDOKU_BATCH_TEST_ABORT")
    });
    if aborts.is_some_and(|aborts| batch.contains(&Ok(aborts))) {
        process::abort();
    }
}
