//! Whether a solution is one: a complete valid grid that keeps the givens. Cheap enough to check every one while it is measured.
//!
//! Written apart from [`solver::Solution`], with nothing of the solver in it: what checks the answers of a program must not share its faults. And it takes texts
//! as they lie in the message, where a `Solution` would be parsed first.

use super::puzzles::Text;

/// Bits of the low halves of the characters `1` to `9`.
const BITS: [u16; 16] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 0, 0, 0, 0, 0, 0];
/// Each of them.
const ALL: u16 = 0x1ff;

/// Whether a text of 81 characters solves a puzzle's text.
pub(crate) fn solves(solution: &Text, puzzle: &Text) -> bool {
    // Without branches, so that the compiler takes many cells at a time.
    let wrong = solution.iter().zip(puzzle).fold(0, |wrong, (&digit, &given)| {
        let lost = if given == b'.' { 0 } else { given ^ digit };
        wrong | lost | (digit ^ b'0') & 0xf0
    });
    // Three columns at a time, whose sets stay in registers.
    let cells = solution.as_chunks::<3>().0;
    let mut rows = [0; 9];
    let mut all = ALL;
    for stack in 0..3 {
        let mut columns = [0; 3];
        for band in 0..3 {
            let mut in_box = 0;
            for row in 3 * band..3 * band + 3 {
                let [a, b, c] = cells[3 * row + stack];
                let three = [BITS[usize::from(a & 15)], BITS[usize::from(b & 15)], BITS[usize::from(c & 15)]];
                columns[0] |= three[0];
                columns[1] |= three[1];
                columns[2] |= three[2];
                let triple = three[0] | three[1] | three[2];
                rows[row] |= triple;
                in_box |= triple;
            }
            all &= in_box;
        }
        all &= columns[0] & columns[1] & columns[2];
    }
    wrong == 0 && rows.into_iter().fold(all, |all, row| all & row) == ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUZZLE: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
    const SOLVED: &str = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";

    fn text(grid: &str) -> Text {
        grid.as_bytes().try_into().expect("81 characters")
    }

    #[test]
    fn only_a_solution_of_the_puzzle_solves_it() {
        let (puzzle, solved) = (text(PUZZLE), text(SOLVED));
        assert!(solves(&solved, &puzzle) && solves(&solved, &text(&".".repeat(81))));
        for cell in 0..81 {
            for other in 0..=255 {
                let mut changed = solved;
                changed[cell] = other;
                assert_eq!(solves(&changed, &puzzle), other == solved[cell], "{other} in cell {cell}");
            }
        }
        let renamed = solved.map(|digit| if digit == b'9' { b'1' } else { digit + 1 });
        assert!(solves(&renamed, &text(&".".repeat(81))));
        assert!(!solves(&renamed, &puzzle), "the givens are others");
    }

    #[test]
    fn two_digits_that_have_changed_places_do_not_solve() {
        let (empty, solved) = (text(&".".repeat(81)), text(SOLVED));
        for one in 0..81 {
            for other in (one + 1..81).filter(|&other| solved[other] != solved[one]) {
                let mut changed = solved;
                changed.swap(one, other);
                assert!(!solves(&changed, &empty), "{one} and {other}");
            }
        }
    }

    #[test]
    fn rows_alone_or_rows_and_columns_alone_do_not_solve() {
        let empty = text(&".".repeat(81));
        let rows: Text = std::array::from_fn(|cell| b"123456789"[cell % 9]);
        let latin: Text = std::array::from_fn(|cell| b"123456789"[(cell / 9 + cell) % 9]);
        let columns: Text = std::array::from_fn(|cell| b"123456789"[cell / 9]);
        for grid in [rows, latin, columns] {
            assert!(!solves(&grid, &empty));
        }
    }
}
