//! More than 20,000 made puzzles of all kinds: every width gives the answers of the literal recipe and of a plain search,
//! at many limits.
//!
//! `SOLVER_TEST_SCALE=100` makes a hundred times as many: the long mode.

use std::collections::BTreeMap;

use solver::{Givens, Grid, Kind, Placements, Puzzle, Verdict, Width, recipe};

use crate::support::{
    Random, answer_all, completed, generate, solutions_up_to_two, widths, with_dead_cell,
    with_one_given_changed, without,
};

/// Of puzzles with more placements only the search is compared with another one: the literal recipe takes too long.
const RECIPE_PLACEMENTS_MAX: u64 = 400_000;

/// How many times as many puzzles are compared.
fn scale() -> usize {
    std::env::var("SOLVER_TEST_SCALE")
        .map_or(1, |scale| scale.parse().expect("SOLVER_TEST_SCALE is a number"))
}

/// What the comparison of a class came to.
#[derive(Default, Debug)]
struct Tally {
    /// Placements compared with the recipe's.
    counted: usize,
    outcomes: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Answers the puzzles on every width, in one batch, and compares.
    fn of(puzzles: &[Puzzle], random: &mut Random) -> Tally {
        let mut tally = Tally::default();
        let uncounted = on_all_widths(puzzles, 0);
        let counted = on_all_widths(puzzles, RECIPE_PLACEMENTS_MAX);
        for (i, puzzle) in puzzles.iter().enumerate() {
            *tally.outcomes.entry(uncounted[i].outcome().name()).or_default() += 1;
            match puzzle {
                Ok(givens) => {
                    compare_search(givens, &uncounted[i]);
                    let placements = counted[i].placements().expect("decided");
                    assert_eq!(counted[i], with_placements(uncounted[i].clone(), placements));
                    if let Placements::Exact(placements) = placements {
                        compare_count(
                            givens,
                            &uncounted[i],
                            placements,
                            widths()[i % widths().len()],
                            random,
                        );
                        tally.counted += 1;
                    }
                }
                Err(invalid) => {
                    assert_eq!(uncounted[i], Verdict::Invalid(invalid.clone()));
                    assert_eq!(counted[i], uncounted[i]);
                }
            }
        }
        tally
    }

    fn number_of(&self, outcome: &str) -> usize {
        self.outcomes.get(outcome).copied().unwrap_or(0)
    }
}

fn on_all_widths(puzzles: &[Puzzle], limit: u64) -> Vec<Verdict> {
    let verdicts = answer_all(widths()[0], puzzles, limit);
    assert_eq!(verdicts.len(), puzzles.len());
    for &width in &widths()[1..] {
        for (i, verdict) in answer_all(width, puzzles, limit).into_iter().enumerate() {
            assert_eq!(verdict, verdicts[i], "{width}, limit {limit}: {:?}", puzzles[i]);
        }
    }
    verdicts
}

/// Compares the outcome with that of a plain search.
fn compare_search(givens: &Givens, verdict: &Verdict) {
    let expected = match solutions_up_to_two(givens.grid()).as_slice() {
        [] => "no_solution",
        [solution] => {
            assert_eq!(verdict.solution().unwrap().digits(), &solution.0);
            "unique"
        }
        [solution, another, ..] => {
            let smallest = verdict.solution().unwrap();
            assert!(smallest.extends(givens));
            assert!(smallest.digits() <= &solution.0.min(another.0), "{}", givens.grid());
            "multiple"
        }
    };
    assert_eq!(verdict.outcome().name(), expected, "{}", givens.grid());
}

/// Compares the solution and the placements with those of the literal recipe, at limits around them.
fn compare_count(givens: &Givens, verdict: &Verdict, placements: u64, width: Width, random: &mut Random) {
    let mut grid = *givens.grid();
    let mut placed = 0;
    let solved = recipe::solve_counting(&mut grid, &mut placed);
    assert_eq!(placements, placed, "{}", givens.grid());
    assert_eq!(verdict.solution().map(|solution| Grid(*solution.digits())), solved.then_some(grid));
    let below_double = 1 + random.next() % (2 * placed + 2);
    for limit in [1, placed.saturating_sub(1), placed, placed + 1, below_double, u64::MAX] {
        let expected = match limit {
            0 => Placements::NotCounted,
            _ if placed > limit => Placements::OverLimit,
            _ => Placements::Exact(placed),
        };
        assert_eq!(
            answer_all(width, &[Ok(*givens)], limit),
            [with_placements(verdict.clone(), expected)],
            "{width}: {} {limit}",
            givens.grid()
        );
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

fn puzzles(givens: impl IntoIterator<Item = Givens>) -> Vec<Puzzle> {
    givens.into_iter().map(Ok).collect()
}

#[test]
fn easy_puzzles() {
    let number = 5_000 * scale();
    let tally = Tally::of(&puzzles(generate(10, Kind::Clues(40), number)), &mut Random::new(10));
    assert_eq!((tally.counted, tally.number_of("unique")), (number, number), "{tally:?}");
}

#[test]
fn newspaper_puzzles() {
    let number = 3_000 * scale();
    let tally = Tally::of(&puzzles(generate(11, Kind::Default, number)), &mut Random::new(11));
    assert_eq!(tally.number_of("unique"), number, "{tally:?}");
    assert!(tally.counted >= number / 100 * 98, "{tally:?}");
}

#[test]
fn minimal_puzzles() {
    let number = 500 * scale();
    let tally = Tally::of(&puzzles(generate(12, Kind::Minimal, number)), &mut Random::new(12));
    assert_eq!(tally.number_of("unique"), number, "{tally:?}");
    assert!(tally.counted >= number / 100 * 85, "{tally:?}");
}

#[test]
fn puzzles_with_one_given_changed() {
    let number = 2_500 * scale();
    let mut random = Random::new(13);
    let mut given = generate(13, Kind::Default, number);
    given.extend(generate(13, Kind::Minimal, number / 5));
    let changed: Vec<Givens> =
        given.iter().map(|givens| with_one_given_changed(givens, &mut random)).collect();
    let tally = Tally::of(&puzzles(changed), &mut random);
    assert!(
        tally.number_of("no_solution") >= number / 2 && tally.number_of("multiple") >= number / 20,
        "{tally:?}"
    );
}

#[test]
fn puzzles_with_a_few_givens_too_few() {
    let number = 3_000 * scale();
    let mut random = Random::new(14);
    let fewer: Vec<Givens> = generate(14, Kind::Default, number)
        .iter()
        .map(|givens| Givens::new(without(givens.grid(), 1 + random.below(6), &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles(fewer), &mut Random::new(15));
    assert!(tally.number_of("multiple") >= number / 100 * 70, "{tally:?}");
}

#[test]
fn nearly_empty_grids() {
    let number = 2_000 * scale();
    let mut random = Random::new(16);
    let given: Vec<Givens> = generate(16, Kind::Default, number)
        .iter()
        .enumerate()
        .map(|(i, givens)| Givens::new(without(&completed(givens), 81 - i % 18, &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles(given), &mut random);
    assert_eq!(tally.number_of("multiple"), number, "{tally:?}");
    assert!(tally.counted >= number / 100 * 80, "{tally:?}");
}

#[test]
fn nearly_empty_grids_in_which_a_cell_has_no_digit_left() {
    let number = 700 * scale();
    let mut random = Random::new(17);
    let dead: Vec<Givens> = (0..number).map(|_| with_dead_cell(&mut random)).collect();
    let tally = Tally::of(&puzzles(dead), &mut random);
    assert_eq!(tally.number_of("no_solution"), number, "{tally:?}");
    assert!(tally.counted >= number / 20, "{tally:?}");
}

#[test]
fn full_and_nearly_full_grids() {
    let number = 2_000 * scale();
    let mut random = Random::new(18);
    let given: Vec<Givens> = generate(18, Kind::Clues(60), number)
        .iter()
        .enumerate()
        .map(|(i, givens)| Givens::new(without(&completed(givens), i % 40, &mut random)).unwrap())
        .collect();
    let tally = Tally::of(&puzzles(given), &mut random);
    assert_eq!(tally.counted, number, "{tally:?}");
    assert!(tally.number_of("multiple") >= number / 50, "{tally:?}");
}

#[test]
fn clashing_givens_among_puzzles() {
    let number = 2_000 * scale();
    let mut random = Random::new(19);
    let given: Vec<Puzzle> = generate(19, Kind::Clues(32), number)
        .into_iter()
        .map(|givens| {
            if random.below(2) == 0 {
                return Ok(givens);
            }
            let mut grid = *givens.grid();
            let cell = random.below(81);
            grid.0[cell] = random.digit();
            Givens::new(grid)
        })
        .collect();
    let tally = Tally::of(&given, &mut random);
    assert!(tally.number_of("invalid") >= number / 4 && tally.number_of("unique") >= number / 3, "{tally:?}");
}
