//! Puzzles for benches of the service: texts in one run of bytes, their digits named anew on every pass over the source.

use std::path::PathBuf;

use ::solver::{CELLS, Generator, Grid, Kind, Outcome};
use anyhow::bail;

use super::digit_names;
use crate::input::Input;

/// Puzzles that are made where no file is given, at the most; they are used again with other names for the digits.
const GENERATED_MAX: u64 = 20_000;
/// The same ones every time.
const SEED: u64 = 1;

/// One puzzle's text.
pub(crate) type Text = [u8; CELLS];

/// Texts of puzzles, one after the other.
pub(crate) type Texts = Vec<Text>;

/// Where puzzles come from.
pub(crate) struct Source {
    grids: Vec<Grid>,
    /// They were made to have one solution.
    is_generated: bool,
}

/// What each puzzle of a source is, as far as it is known. Other names for its digits change nothing of that.
pub(crate) struct Outcomes(Vec<Option<Outcome>>);

impl Outcomes {
    /// Takes the outcome of the puzzle at a place of a batch, which begins with the first of the source. An error is the outcome that it had before.
    pub(crate) fn take(&mut self, place: usize, outcome: Outcome) -> Result<(), Outcome> {
        let count = self.0.len();
        let known = *self.0[place % count].get_or_insert(outcome);
        if known == outcome { Ok(()) } else { Err(known) }
    }
}

impl Source {
    /// The puzzles of files; without any, such as `generate` makes, as many as `count` takes.
    pub(crate) fn open(files: &[PathBuf], count: u64) -> anyhow::Result<Self> {
        if files.is_empty() {
            let generator = Generator::new(SEED, Kind::Default)?;
            let grids = (0..count.min(GENERATED_MAX)).map(|index| Ok(*generator.puzzle(index)?.grid()));
            return Ok(Self { grids: grids.collect::<anyhow::Result<_>>()?, is_generated: true });
        }
        let mut input = Input::open(files)?;
        let mut grids = Vec::new();
        while let Some(record) = input.next()? {
            let Ok(grid) = Grid::from_text(&record.text) else {
                bail!("line {} of {} is no puzzle", record.place.line, input.names());
            };
            grids.push(grid);
        }
        if grids.is_empty() {
            return Err(input.nothing());
        }
        Ok(Self { grids, is_generated: false })
    }

    /// Generated puzzles have one solution; what those of files are, their first answers tell.
    pub(crate) fn outcomes(&self) -> Outcomes {
        Outcomes(vec![self.is_generated.then_some(Outcome::Unique); self.grids.len()])
    }

    /// Passes that so many puzzles take.
    pub(crate) fn passes(&self, count: u64) -> u64 {
        count.div_ceil(self.grids.len() as u64)
    }

    /// So many puzzles, from a pass on; pass 0 has the digits of the source.
    pub(crate) fn texts(&self, first_pass: u64, count: u64) -> Texts {
        let named = |pass: u64| {
            let names = digit_names(pass).map(|digit| if digit == 0 { b'.' } else { b'0' + digit });
            self.grids.iter().map(move |grid| grid.0.map(|digit| names[usize::from(digit)]))
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut texts = Vec::with_capacity(count);
        texts.extend((first_pass..).flat_map(named).take(count));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_puzzle_comes_twice_whatever_the_passes() {
        let source = Source::open(&[], 50).expect("generated");
        let mut texts = source.texts(0, 120);
        let first: Vec<Text> = source.grids.iter().map(|grid| text(&grid.to_string())).collect();
        assert_eq!(texts[..50], first);
        assert_eq!(source.passes(120), 3);
        texts.extend(source.texts(3, 70));
        assert_eq!(texts.len(), 190);
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 190);
    }

    #[test]
    fn an_outcome_stays_what_it_was_on_every_pass() {
        let mut generated = Source::open(&[], 2).expect("generated").outcomes();
        assert_eq!(generated.take(3, Outcome::Unique), Ok(()));
        assert_eq!(generated.take(0, Outcome::NoSolution), Err(Outcome::Unique));
        let mut of_files = Outcomes(vec![None; 2]);
        for (place, outcome) in [(0, Outcome::Invalid), (1, Outcome::Multiple), (2, Outcome::Invalid)] {
            assert_eq!(of_files.take(place, outcome), Ok(()));
        }
        assert_eq!(of_files.take(5, Outcome::Unique), Err(Outcome::Multiple));
    }

    fn text(grid: &str) -> Text {
        grid.as_bytes().try_into().expect("81 characters")
    }
}
