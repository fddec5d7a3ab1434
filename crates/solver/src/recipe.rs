//! The recipe itself, readable and unoptimised: the oracle that every faster path is tested against.
//!
//! Find the first empty cell in row-major order; try the digits 1 to 9 that do not already stand in its row,
//! column or box, ascending; place one, go on with the next empty cell; if that fails, take it back and try the
//! next digit.
//!
//! The recipe looks at empty cells only and never checks its givens. On givens that clash it may therefore
//! answer `true`, with a grid that is no solution; [`Givens`](crate::Givens) refuses those. It has no limit
//! either: some legal puzzles with 15 givens take it more than 43,000,000,000 placements.

use crate::grid::Grid;

/// Whether `digit` does not stand yet in the row, column and box of a cell.
///
/// `row` and `col` are 0..9, `digit` is 1..=9.
///
/// # Panics
/// If `row` or `col` is above 8.
#[must_use]
pub fn can_place(grid: &Grid, row: usize, col: usize, digit: u8) -> bool {
    let (top, left) = (row / 3 * 3, col / 3 * 3);
    (0..9).all(|i| {
        let in_row = grid.0[row * 9 + i];
        let in_column = grid.0[i * 9 + col];
        let in_box = grid.0[(top + i / 3) * 9 + left + i % 3];
        in_row != digit && in_column != digit && in_box != digit
    })
}

/// The digits that can be placed in a cell, ascending. `row` and `col` are 0..9.
///
/// # Panics
/// When the iterator is used, if `row` or `col` is above 8.
pub fn candidates(grid: &Grid, row: usize, col: usize) -> impl Iterator<Item = u8> + use<> {
    let grid = *grid;
    (1..=9).filter(move |&digit| can_place(&grid, row, col, digit))
}

/// Completes the grid in place and returns `true`, or leaves it as it was and returns `false`.
pub fn solve(grid: &mut Grid) -> bool {
    solve_counting(grid, &mut 0)
}

/// [`solve`], adding one to `placements` for every digit placed.
pub fn solve_counting(grid: &mut Grid, placements: &mut u64) -> bool {
    let Some((row, col)) = first_empty(grid) else { return true };
    for digit in candidates(grid, row, col) {
        grid.0[row * 9 + col] = digit;
        *placements += 1;
        if solve_counting(grid, placements) {
            return true;
        }
        grid.0[row * 9 + col] = 0;
    }
    false
}

/// Row and column of the first empty cell.
fn first_empty(grid: &Grid) -> Option<(usize, usize)> {
    let cell = grid.0.iter().position(|&digit| digit == 0)?;
    Some((cell / 9, cell % 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
    const SEED_SOLVED: &str =
        "534678912672195348198342567859761423426853791713924856961537284287419635345286179";

    fn run(text: &str) -> (bool, u64, Grid) {
        let mut grid = Grid::from_text(text).unwrap();
        let mut placements = 0;
        let solved = solve_counting(&mut grid, &mut placements);
        (solved, placements, grid)
    }

    #[test]
    fn candidates_are_the_digits_missing_from_all_three_houses() {
        let grid = Grid::from_text(SEED).unwrap();
        assert_eq!(candidates(&grid, 0, 2).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(can_place(&grid, 0, 2, 4));
        assert!(!can_place(&grid, 0, 2, 7), "7 stands in the row");
        assert!(!can_place(&grid, 0, 2, 9), "9 stands in the box");
        assert!(!can_place(&grid, 2, 0, 4), "4 stands in the column");
    }

    #[test]
    fn the_seed_example_takes_4208_placements() {
        let (solved, placements, grid) = run(SEED);
        assert!(solved);
        assert_eq!(placements, 4208);
        assert_eq!(grid.to_string(), SEED_SOLVED);
        let mut again = Grid::from_text(SEED).unwrap();
        assert!(solve(&mut again));
        assert_eq!(again, grid);
    }

    #[test]
    fn a_first_empty_cell_without_candidates_fails_at_once() {
        let text = "...45678.1........2........3........9............................................";
        let (solved, placements, grid) = run(text);
        assert_eq!((solved, placements), (false, 0));
        assert_eq!(grid.to_string(), text);
    }

    #[test]
    fn a_failed_search_leaves_the_grid_unchanged() {
        let text = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8.97.";
        let (solved, placements, grid) = run(text);
        assert!(!solved);
        assert!(placements > 0);
        assert_eq!(grid.to_string(), text);
    }

    #[test]
    fn clashing_givens_are_not_noticed() {
        let nines = "...............................................................9..9.....9..9.....";
        let repeated = "349618572782359...651742389273895...195476238864231957527146893918523764436987125";
        assert_eq!((run(nines).0, run(nines).1), (true, 384));
        assert_eq!((run(repeated).0, run(repeated).1), (true, 6));
    }
}
