//! What the tests share: a reproducible random source and puzzles made with it.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use solver::{
    CELLS, Generator, Givens, Grid, Kind, PlacementLimit, Puzzle, Solver, StopFlag, Verdict, Width, answer,
};

pub(crate) const SEED_EXAMPLE: &str =
    "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

/// 15 givens, and 43,225,199,513 placements to the first of very many solutions.
pub(crate) const HOSTILE: &str =
    "..1......2..........3......4.......5..5...6..6......4...71.3...8..........9.2....";

/// No solution, after 2,549,798,780 placements.
pub(crate) const HOPELESS: &str =
    ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4.........";

/// No solution, after some 10^15 placements: its last cell can hold nothing, and row by row that is found out last.
pub(crate) const ENDLESS: &str =
    "..1......2..........3..................................................174258396.";

/// Xorshift64*, so that no test depends on a random source of the crate.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number in `0..bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from((self.next() >> 11) % bound as u64).unwrap()
    }

    pub(crate) fn digit(&mut self) -> u8 {
        u8::try_from(self.below(9) + 1).unwrap()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

pub(crate) fn generate(seed: u64, kind: Kind, number: usize) -> Vec<Givens> {
    Generator::new(seed, kind).unwrap().take(number).map(|puzzle| puzzle.unwrap()).collect()
}

/// The verdict with a flag that nobody raises.
pub(crate) fn solve(givens: &Givens, limit: u64) -> Verdict {
    answer(givens, PlacementLimit(limit), &StopFlag::new()).unwrap()
}

/// The widths that this machine has.
pub(crate) fn widths() -> &'static [Width] {
    static WIDTHS: LazyLock<Vec<Width>> =
        LazyLock::new(|| Width::ALL.into_iter().filter(|width| width.is_available()).collect());
    &WIDTHS
}

/// The verdicts on a batch, with a flag that nobody raises.
pub(crate) fn answer_all(width: Width, puzzles: &[Puzzle], limit: u64) -> Vec<Verdict> {
    let mut verdicts = Vec::with_capacity(puzzles.len());
    let answered = Solver::new(width).answer(puzzles, PlacementLimit(limit), &StopFlag::new(), |verdict| {
        verdicts.push(verdict);
        ControlFlow::Continue(())
    });
    assert_eq!(answered, Ok(()));
    verdicts
}

/// Up to two solutions, by a search that shares nothing with the crate: always in the cell with the fewest candidates.
pub(crate) fn solutions_up_to_two(grid: &Grid) -> Vec<Grid> {
    fn candidates(grid: &Grid, cell: usize) -> u32 {
        let (row, column) = (cell / 9, cell % 9);
        let corner = row / 3 * 27 + column / 3 * 3;
        let seen = (0..9).fold(0, |seen, i| {
            seen | 1 << grid.0[row * 9 + i]
                | 1 << grid.0[i * 9 + column]
                | 1 << grid.0[corner + i / 3 * 9 + i % 3]
        });
        !seen & 0b11_1111_1110
    }
    fn search(grid: &mut Grid, found: &mut Vec<Grid>) {
        let open = (0..CELLS).filter(|&cell| grid.0[cell] == 0);
        let Some((cell, digits)) =
            open.map(|cell| (cell, candidates(grid, cell))).min_by_key(|(_, digits)| digits.count_ones())
        else {
            found.push(*grid);
            return;
        };
        for digit in (1..=9).filter(|digit| digits >> digit & 1 == 1) {
            grid.0[cell] = digit;
            search(grid, found);
            if found.len() == 2 {
                break;
            }
        }
        grid.0[cell] = 0;
    }
    let mut found = Vec::new();
    search(&mut grid.clone(), &mut found);
    found
}

pub(crate) fn share_a_house(a: usize, b: usize) -> bool {
    a / 9 == b / 9 || a % 9 == b % 9 || (a / 27 == b / 27 && a % 9 / 3 == b % 9 / 3)
}

/// A few givens that do not clash, among them nine that leave no digit for one cell.
pub(crate) fn with_dead_cell(random: &mut Random) -> Givens {
    loop {
        let dead = random.below(CELLS);
        let mut peers: Vec<usize> =
            (0..CELLS).filter(|&cell| cell != dead && share_a_house(cell, dead)).collect();
        random.shuffle(&mut peers);
        let mut grid = Grid::EMPTY;
        for (digit, &cell) in (1..=9).zip(&peers) {
            grid.0[cell] = digit;
        }
        if let Ok(givens) = Givens::new(grid) {
            return givens;
        }
    }
}

/// A full grid that completes a puzzle.
pub(crate) fn completed(givens: &Givens) -> Grid {
    Grid(*solve(givens, 0).solution().unwrap().digits())
}

/// The grid with `number` random digits taken out, or all of them.
pub(crate) fn without(grid: &Grid, number: usize, random: &mut Random) -> Grid {
    let mut given: Vec<usize> = (0..CELLS).filter(|&cell| grid.0[cell] != 0).collect();
    random.shuffle(&mut given);
    let mut fewer = *grid;
    given.iter().take(number).for_each(|&cell| fewer.0[cell] = 0);
    fewer
}

/// The puzzle with one given changed so that no givens clash.
pub(crate) fn with_one_given_changed(givens: &Givens, random: &mut Random) -> Givens {
    loop {
        let mut grid = *givens.grid();
        let cell = random.below(CELLS);
        let digit = random.digit();
        if grid.0[cell] != 0 && grid.0[cell] != digit {
            grid.0[cell] = digit;
            if let Ok(changed) = Givens::new(grid) {
                return changed;
            }
        }
    }
}
