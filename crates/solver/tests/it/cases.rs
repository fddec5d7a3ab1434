//! Known puzzles and what is true of them.

use solver::{Givens, Outcome, Placements, Reason, Verdict};

use crate::support::{SEED_EXAMPLE, solve};

struct Case<'a> {
    id: &'a str,
    puzzle: &'a str,
    outcome: &'a str,
    placements: u64,
    first_solution: Option<&'a str>,
    cells: Vec<u8>,
}

fn cases() -> Vec<Case<'static>> {
    let lines = include_str!("../data/cases.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.skip(1).map(case).collect()
}

fn case(line: &'static str) -> Case<'static> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [id, puzzle, outcome, placements, first_solution, cells] = fields[..] else {
        panic!("six fields expected: {line}")
    };
    Case {
        id,
        puzzle,
        outcome,
        placements: placements.parse().unwrap(),
        first_solution: (first_solution != "-").then_some(first_solution),
        cells: cells.split(',').filter(|cell| *cell != "-").map(|cell| cell.parse().unwrap()).collect(),
    }
}

fn verdict(puzzle: &str, limit: u64) -> Verdict {
    match Givens::parse(puzzle) {
        Ok(givens) => solve(&givens, limit),
        Err(invalid) => Verdict::Invalid(invalid),
    }
}

fn all_cases_hold_with(limit: u64) {
    let cases = cases();
    assert_eq!(cases.len(), 24);
    for Case { id, puzzle, outcome, placements, first_solution, cells } in cases {
        let verdict = verdict(puzzle, limit);
        assert_eq!(verdict.outcome().name(), outcome, "{id}");
        let expected = if placements > limit { Placements::OverLimit } else { Placements::Exact(placements) };
        assert_eq!(verdict.placements(), Some(expected), "{id}");
        if let Some(first_solution) = first_solution {
            assert_eq!(verdict.solution().unwrap().to_string(), first_solution, "{id}");
        }
        if let Verdict::Invalid(invalid) = &verdict {
            assert_eq!(
                (invalid.reason, &invalid.cells, invalid.found_length),
                (Reason::DuplicateGiven, &cells, 81)
            );
        }
        assert_eq!(verdict.outcome() == Outcome::Invalid, !cells.is_empty(), "{id}");
    }
}

#[test]
fn all_cases_hold_with_the_default_limit() {
    all_cases_hold_with(100_000_000);
}

#[test]
fn all_cases_hold_with_a_limit_that_cuts_many_counts() {
    all_cases_hold_with(50_000);
}

/// A solver that kept a work stack from the puzzle before hung on such a file.
#[test]
fn equal_puzzles_in_a_row_get_equal_answers() {
    let no_digit_left = "...45678.1........2........3........9............................................";
    for _ in 0..200 {
        assert_eq!(verdict(SEED_EXAMPLE, 100_000).placements(), Some(Placements::Exact(4208)));
        assert_eq!(verdict(no_digit_left, 100_000), Verdict::NoSolution { placements: Placements::Exact(0) });
    }
}
