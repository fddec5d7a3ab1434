//! More than 5,000 made puzzles of several kinds: the same answers as the literal recipe, at many limits.

use std::collections::BTreeMap;

use solver::{Givens, Grid, Kind, Placements, Verdict, recipe};

use crate::support::{Random, completed, generate, solve, with_one_given_changed, without};

/// Puzzles with more placements are skipped here: the literal recipe takes too long. The few there are get counted.
const RECIPE_PLACEMENTS_MAX: u64 = 1_000_000;

/// Steps of the literal proof that there is no second solution; beyond it only one solution is compared.
const PROOF_STEPS_MAX: u64 = 4_000_000;

/// What the comparison of a class came to.
#[derive(Default, Debug)]
struct Tally {
    compared: usize,
    skipped: usize,
    unproven: usize,
    outcomes: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn of(puzzles: &[Givens], random: &mut Random) -> Tally {
        let mut tally = Tally::default();
        for givens in puzzles {
            if solve(givens, RECIPE_PLACEMENTS_MAX).placements() == Some(Placements::OverLimit) {
                tally.skipped += 1;
            } else {
                tally.compare(givens, random);
            }
        }
        tally
    }

    fn compare(&mut self, givens: &Givens, random: &mut Random) {
        let mut grid = *givens.grid();
        let mut placements = 0;
        let solved = recipe::solve_counting(&mut grid, &mut placements);
        let proven = if solved { solutions_up_to_two(givens.grid()) } else { Some(0) };
        let verdict = solve(givens, 0);

        assert_eq!(verdict.solution().map(|solution| Grid(*solution.digits())), solved.then_some(grid));
        let expected = match (proven, solved) {
            (Some(0), _) => "no_solution",
            (Some(1), _) => "unique",
            (Some(_), _) => "multiple",
            (None, _) => {
                self.unproven += 1;
                verdict.outcome().name()
            }
        };
        assert_eq!(verdict.outcome().name(), expected, "{}", givens.grid());
        let below_double = random.next() % (2 * placements + 2);
        for limit in [0, 1, placements.saturating_sub(1), placements, placements + 1, below_double, u64::MAX]
        {
            let expected = match limit {
                0 => Placements::NotCounted,
                _ if placements > limit => Placements::OverLimit,
                _ => Placements::Exact(placements),
            };
            assert_eq!(
                solve(givens, limit),
                with_placements(verdict.clone(), expected),
                "{} {limit}",
                givens.grid()
            );
        }
        self.compared += 1;
        *self.outcomes.entry(expected).or_default() += 1;
    }

    fn number_of(&self, outcome: &str) -> usize {
        self.outcomes.get(outcome).copied().unwrap_or(0)
    }
}

fn with_placements(mut verdict: Verdict, counted: Placements) -> Verdict {
    match &mut verdict {
        Verdict::Unique { placements, .. }
        | Verdict::Multiple { placements, .. }
        | Verdict::NoSolution { placements } => *placements = counted,
        other => panic!("not a verdict of the solver: {other:?}"),
    }
    verdict
}

/// The literal search gone on past the first solution; `None` if that takes too many steps.
fn solutions_up_to_two(grid: &Grid) -> Option<u32> {
    fn search(grid: &mut Grid, found: &mut u32, steps: &mut u64) -> Option<()> {
        let Some(cell) = grid.0.iter().position(|&digit| digit == 0) else {
            *found += 1;
            return Some(());
        };
        for digit in recipe::candidates(grid, cell / 9, cell % 9) {
            *steps += 1;
            if *steps > PROOF_STEPS_MAX {
                return None;
            }
            grid.0[cell] = digit;
            search(grid, found, steps)?;
            grid.0[cell] = 0;
            if *found == 2 {
                break;
            }
        }
        Some(())
    }
    let mut found = 0;
    search(&mut grid.clone(), &mut found, &mut 0).map(|()| found)
}

#[test]
fn newspaper_puzzles() {
    let tally = Tally::of(&generate(11, Kind::Default, 1500), &mut Random::new(11));
    assert_eq!(tally.compared, tally.number_of("unique"), "{tally:?}");
    assert!(tally.compared >= 1480, "{tally:?}");
}

#[test]
fn minimal_puzzles() {
    let tally = Tally::of(&generate(12, Kind::Minimal, 400), &mut Random::new(12));
    assert_eq!(tally.compared + tally.skipped, 400);
    assert!(tally.compared >= 380 && tally.unproven <= 20, "{tally:?}");
}

#[test]
fn puzzles_with_one_given_changed() {
    let mut random = Random::new(13);
    let mut puzzles = generate(13, Kind::Default, 1000);
    puzzles.extend(generate(13, Kind::Minimal, 200));
    let puzzles: Vec<Givens> =
        puzzles.iter().map(|givens| with_one_given_changed(givens, &mut random)).collect();
    let tally = Tally::of(&puzzles, &mut random);
    assert!(tally.compared >= 1150, "{tally:?}");
    assert!(tally.number_of("no_solution") >= 500 && tally.number_of("multiple") >= 50, "{tally:?}");
}

#[test]
fn puzzles_with_a_few_givens_too_few() {
    let mut random = Random::new(14);
    let puzzles: Vec<Givens> = generate(14, Kind::Default, 1000)
        .iter()
        .map(|givens| Givens::new(without(givens.grid(), 1 + random.below(6), &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles, &mut Random::new(15));
    assert!(tally.compared >= 980 && tally.number_of("multiple") >= 700, "{tally:?}");
}

#[test]
fn nearly_empty_grids() {
    let mut random = Random::new(16);
    let puzzles: Vec<Givens> = generate(16, Kind::Default, 800)
        .iter()
        .enumerate()
        .map(|(i, givens)| Givens::new(without(&completed(givens), 81 - i % 18, &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles, &mut random);
    assert_eq!(tally.compared, tally.number_of("multiple"), "{tally:?}");
    assert!(tally.compared >= 700, "{tally:?}");
}

#[test]
fn full_and_nearly_full_grids() {
    let mut random = Random::new(17);
    let puzzles: Vec<Givens> = generate(17, Kind::Clues(60), 1000)
        .iter()
        .enumerate()
        .map(|(i, givens)| Givens::new(without(&completed(givens), i % 40, &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles, &mut random);
    assert_eq!((tally.compared, tally.skipped, tally.unproven), (1000, 0, 0), "{tally:?}");
    assert!(tally.number_of("multiple") >= 20, "{tally:?}");
}
