//! Faults on demand, for tests: in debug builds only (`debug_assertions`), so that no released program has them.
//!
//! `SUDOKU_BATCH_TEST_ABORT` names a puzzle (81 characters, `.` for empty) that ends its process as a crash would, `SUDOKU_BATCH_TEST_PANIC` one over which
//! the solver panics.

use std::{env, process, sync::OnceLock};

use solver::Givens;

/// Does to the process what the variables say of this puzzle.
pub(crate) fn before(givens: &Givens) {
    static PUZZLES: OnceLock<[Option<Givens>; 2]> = OnceLock::new();
    let [aborts, panics] = PUZZLES.get_or_init(|| {
        ["SUDOKU_BATCH_TEST_ABORT", "SUDOKU_BATCH_TEST_PANIC"]
            .map(|name| env::var(name).ok().and_then(|puzzle| Givens::parse(&puzzle).ok()))
    });
    if aborts.as_ref() == Some(givens) {
        process::abort();
    }
    assert!(panics.as_ref() != Some(givens), "a test asked for this panic");
}
