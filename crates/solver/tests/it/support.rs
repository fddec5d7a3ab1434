//! What the tests share: a reproducible random source and puzzles made with it.

use solver::{CELLS, Generator, Givens, Grid, Kind, PlacementLimit, StopFlag, Verdict, answer};

pub(crate) const SEED_EXAMPLE: &str =
    "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

/// 15 givens, and 43,225,199,513 placements to the first of very many solutions.
pub(crate) const HOSTILE: &str =
    "..1......2..........3......4.......5..5...6..6......4...71.3...8..........9.2....";

/// No solution, after 2,549,798,780 placements.
pub(crate) const HOPELESS: &str =
    ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4.........";

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
