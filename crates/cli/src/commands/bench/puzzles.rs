//! Puzzles for benches of the service: texts in one run of bytes, their digits named anew on every pass over the source.

use std::path::PathBuf;

use ::solver::{CELLS, Generator, Grid, Kind};
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
pub(crate) struct Source(Vec<Grid>);

impl Source {
    /// The puzzles of files; without any, such as `generate` makes, as many as `count` takes.
    pub(crate) fn open(files: &[PathBuf], count: u64) -> anyhow::Result<Self> {
        if files.is_empty() {
            let generator = Generator::new(SEED, Kind::Default)?;
            let grids = (0..count.min(GENERATED_MAX)).map(|index| Ok(*generator.puzzle(index)?.grid()));
            return Ok(Self(grids.collect::<anyhow::Result<_>>()?));
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
        Ok(Self(grids))
    }

    /// Passes that so many puzzles take.
    pub(crate) fn passes(&self, count: u64) -> u64 {
        count.div_ceil(self.0.len() as u64)
    }

    /// So many puzzles, from a pass on; pass 0 has the digits of the source.
    pub(crate) fn texts(&self, first_pass: u64, count: u64) -> Texts {
        let named = |pass: u64| {
            let names = digit_names(pass).map(|digit| if digit == 0 { b'.' } else { b'0' + digit });
            self.0.iter().map(move |grid| grid.0.map(|digit| names[usize::from(digit)]))
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
        let first: Vec<Text> = source.0.iter().map(|grid| text(&grid.to_string())).collect();
        assert_eq!(texts[..50], first);
        assert_eq!(source.passes(120), 3);
        texts.extend(source.texts(3, 70));
        assert_eq!(texts.len(), 190);
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 190);
    }

    fn text(grid: &str) -> Text {
        grid.as_bytes().try_into().expect("81 characters")
    }
}
