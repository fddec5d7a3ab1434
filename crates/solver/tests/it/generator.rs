//! Generated puzzles: exactly one solution, the givens asked for, and the same ones for ever.

use std::collections::HashSet;

use solver::{CELLS, GenerateError, Generator, Givens, Kind, Outcome};

use crate::support::{generate, solve};

fn clues(givens: &Givens) -> usize {
    givens.grid().0.iter().filter(|&&digit| digit != 0).count()
}

#[test]
fn every_puzzle_is_unique_and_no_two_are_equal() {
    let mut seen = HashSet::new();
    for kind in [Kind::Default, Kind::Minimal, Kind::Clues(26), Kind::Clues(40), Kind::Clues(80)] {
        for givens in generate(31, kind, 400) {
            assert_eq!(solve(&givens, 0).outcome(), Outcome::Unique, "{}", givens.grid());
            assert!(seen.insert(givens), "{} came twice", givens.grid());
        }
    }
    assert_eq!(seen.len(), 5 * 400);
}

#[test]
fn the_number_of_givens_is_as_asked_for() {
    for asked in [22, 23, 24, 30, 50, 80] {
        for givens in generate(32, Kind::Clues(asked), 10) {
            assert_eq!(clues(&givens), usize::from(asked));
        }
    }
    let mut seen = HashSet::new();
    for givens in generate(32, Kind::Default, 1000) {
        seen.insert(clues(&givens));
    }
    assert_eq!(seen, (24..=34).collect());
}

#[test]
fn a_minimal_puzzle_can_spare_no_given() {
    for givens in generate(33, Kind::Minimal, 100) {
        for cell in (0..CELLS).filter(|&cell| givens.grid().0[cell] != 0) {
            let mut fewer = *givens.grid();
            fewer.0[cell] = 0;
            let fewer = Givens::new(fewer).unwrap();
            assert_eq!(solve(&fewer, 0).outcome(), Outcome::Multiple, "{}", givens.grid());
        }
    }
}

#[test]
fn a_puzzle_depends_on_seed_kind_and_index_alone() {
    for kind in [Kind::Default, Kind::Minimal, Kind::Clues(28)] {
        let series = generate(34, kind, 20);
        assert_eq!(series, generate(34, kind, 20));
        assert_ne!(series, generate(35, kind, 20));
        let generator = Generator::new(34, kind).unwrap();
        for (index, givens) in (0_u32..20).zip(&series).rev() {
            assert_eq!(generator.puzzle(u64::from(index)).as_ref(), Ok(givens));
        }
    }
}

/// A seed is a contract: if this fails, the generator has to be mended, not the test.
#[test]
fn the_puzzles_of_a_seed_never_change() {
    let first_two = |seed, kind| {
        let puzzles = generate(seed, kind, 2);
        [puzzles[0].grid().to_string(), puzzles[1].grid().to_string()]
    };
    assert_eq!(
        first_two(1, Kind::Default),
        [
            "..31.76.42.854.......26.......8947..5.....9...796..2...4......1....3......1...8.2",
            "9.7....6...1..6..5....5.4...9......66.5......17.6..84..3.5....8..68...7.7.2....93"
        ]
    );
    assert_eq!(
        first_two(1, Kind::Minimal),
        [
            "5.4........1...3...874..2.....94...26....7.1.3....6...1....89.7.............24.8.",
            "...62....3..1..7...2....1499..2...85.4..1......8...4...9548..2...7.5............4"
        ]
    );
    assert_eq!(
        first_two(u64::MAX, Kind::Clues(24)),
        [
            "....18..............3.6..785.73.6...9......3...4.2.6..38......6.1...5.9...6.84...",
            "6....3.2..8...7......8.95..56....1..7.1.6..........9.583..95.1.............3.2..7"
        ]
    );
}

#[test]
fn numbers_of_givens_that_cannot_be_made_are_refused() {
    for asked in [0, 16, 81, 255] {
        let refusal = Generator::new(0, Kind::Clues(asked)).unwrap_err();
        assert_eq!(refusal, GenerateError::CluesOutOfRange(asked));
        assert_eq!(refusal.to_string(), format!("{asked} givens asked for; 17 to 80 can be made"));
    }
    assert!(Generator::new(0, Kind::Clues(17)).is_ok());
}
