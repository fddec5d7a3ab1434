//! `generate`: puzzles with exactly one solution.

use std::io::Write as _;

use solver::{Generator, Kind};

use crate::{
    args::Generate,
    exit::{Exit, UsageError},
    output,
};

pub(crate) fn run(args: &Generate) -> anyhow::Result<Exit> {
    let kind = match (args.clues, args.minimal) {
        (Some(clues), _) => Kind::Clues(clues),
        (None, true) => Kind::Minimal,
        (None, false) => Kind::Default,
    };
    let generator = Generator::new(args.seed, kind).map_err(|error| UsageError(error.to_string()))?;
    let mut out = output::results();
    for index in 0..args.count {
        writeln!(out, "{}", generator.puzzle(index)?.grid())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
