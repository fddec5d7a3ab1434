//! What must hold for every puzzle, whatever its answer.

use solver::{CELLS, Givens, Grid, Kind, Outcome, Reason};

use crate::support::{HOSTILE, Random, generate, share_a_house, solve, with_one_given_changed, without};

/// Puzzles with one, many and no solutions.
fn mixed(seed: u64, number_each: usize) -> Vec<Givens> {
    let mut random = Random::new(seed);
    let unique = generate(seed, Kind::Minimal, number_each);
    let mut puzzles = unique.clone();
    for givens in &unique {
        puzzles.push(with_one_given_changed(givens, &mut random));
        puzzles.push(Givens::new(without(givens.grid(), 1 + random.below(10), &mut random)).unwrap());
    }
    puzzles
}

/// The grid with its cells moved and its digits renamed: `moved[to]` is the cell that a digit comes from.
fn transformed(grid: &Grid, moved: &[usize], names: &[u8; 10]) -> Grid {
    let mut other = Grid::EMPTY;
    for (to, &from) in moved.iter().enumerate() {
        other.0[to] = names[usize::from(grid.0[from])];
    }
    other
}

#[test]
fn symmetries_keep_the_outcome_and_carry_the_only_solution_along() {
    let mut random = Random::new(21);
    let mut seen = [0; 3];
    let in_place: Vec<usize> = (0..CELLS).collect();
    let transposed: Vec<usize> = (0..CELLS).map(|cell| cell % 9 * 9 + cell / 9).collect();
    let turned: Vec<usize> = (0..CELLS).map(|cell| (8 - cell % 9) * 9 + cell / 9).collect();
    for givens in mixed(21, 500) {
        let mut names = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        random.shuffle(&mut names[1..]);
        let verdict = solve(&givens, 0);
        for moved in [&in_place, &transposed, &turned] {
            let other = Givens::new(transformed(givens.grid(), moved, &names)).unwrap();
            let other_verdict = solve(&other, 0);
            assert_eq!(other_verdict.outcome(), verdict.outcome(), "{} {}", givens.grid(), other.grid());
            if verdict.outcome() == Outcome::Unique {
                let solution = Grid(*verdict.solution().unwrap().digits());
                let carried = transformed(&solution, moved, &names);
                assert_eq!(other_verdict.solution().unwrap().digits(), &carried.0);
            }
        }
        seen[Outcome::ALL.iter().position(|outcome| *outcome == verdict.outcome()).unwrap()] += 1;
    }
    assert!(seen.iter().all(|&number| number >= 100), "unique, multiple, no solution: {seen:?}");
}

#[test]
fn solutions_extend_their_givens_and_those_of_more_givens_do_not_extend_others() {
    let mut solved = 0;
    for givens in mixed(22, 500) {
        let verdict = solve(&givens, 0);
        if let Some(solution) = verdict.solution() {
            solved += 1;
            assert!(solution.extends(&givens));
            let cell = (0..CELLS).find(|&cell| givens.grid().0[cell] != 0).unwrap();
            let mut other = Grid::EMPTY;
            other.0[cell] = givens.grid().0[cell] % 9 + 1;
            assert!(!solution.extends(&Givens::new(other).unwrap()));
        }
    }
    assert!(solved > 700, "{solved}");
}

/// With the first solution's digits given up to some cell and a smaller one there, nothing is left: also for
/// puzzles that the recipe does not get through.
#[test]
fn no_solution_is_smaller_than_the_one_given_for_many() {
    let mut random = Random::new(23);
    let mut puzzles = vec![Givens::parse(HOSTILE).unwrap(), Givens::new(Grid::EMPTY).unwrap()];
    for givens in generate(23, Kind::Minimal, 60) {
        puzzles.push(Givens::new(without(givens.grid(), 3 + random.below(12), &mut random)).unwrap());
    }
    let mut refuted = 0;
    for givens in puzzles {
        let verdict = solve(&givens, 0);
        assert_eq!(verdict.outcome(), Outcome::Multiple, "{}", givens.grid());
        let first = verdict.solution().unwrap().digits();
        for cell in (0..CELLS).filter(|&cell| givens.grid().0[cell] == 0) {
            for smaller in 1..first[cell] {
                let mut grid = *givens.grid();
                grid.0[..cell].copy_from_slice(&first[..cell]);
                grid.0[cell] = smaller;
                if let Ok(prefix) = Givens::new(grid) {
                    assert_eq!(solve(&prefix, 0).outcome(), Outcome::NoSolution, "{grid}");
                    refuted += 1;
                }
            }
        }
    }
    assert!(refuted > 500, "{refuted}");
}

#[test]
fn the_cells_of_a_clash_are_all_that_clash_and_no_others() {
    let mut random = Random::new(24);
    let (mut clashing, mut clean) = (0, 0);
    for round in 0..5000 {
        let mut grid = Grid::EMPTY;
        for _ in 0..=round % 30 {
            grid.0[random.below(CELLS)] = random.digit();
        }
        let expected: Vec<u8> = (0..81_u8)
            .filter(|&cell| {
                let a = usize::from(cell);
                grid.0[a] != 0 && (0..CELLS).any(|b| b != a && grid.0[b] == grid.0[a] && share_a_house(a, b))
            })
            .collect();
        match Givens::new(grid) {
            Ok(givens) => {
                assert_eq!(expected, []);
                assert_eq!(givens.grid(), &grid);
                clean += 1;
            }
            Err(invalid) => {
                assert_eq!((invalid.reason, invalid.found_length), (Reason::DuplicateGiven, 81));
                assert_eq!(invalid.cells, expected, "{grid}");
                clashing += 1;
            }
        }
        assert_eq!(Givens::parse(&grid.to_string()), Givens::new(grid));
    }
    assert!(clashing > 1000 && clean > 1000, "{clashing} {clean}");
}
