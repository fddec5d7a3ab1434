//! Arguments of `bench`.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{VectorWidth, seconds};
use crate::record::Limit;

#[derive(Subcommand, Debug)]
pub(crate) enum Bench {
    /// The solver alone, on the puzzles of files; every pass over them has other names for the digits.
    Solver(BenchSolver),
}

/// How figures are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BenchFormat {
    /// For people.
    Text,
    /// One JSON object: `puzzles`, `seconds`, `puzzles_per_second`, `placements` (those counted, of each puzzle up to the limit; null with `off`).
    Json,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchSolver {
    /// Puzzle files, one puzzle a line (what is none counts as one that is invalid); `-` or nothing: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Placements counted at the most for one puzzle, up to 10^10; `off` counts none.
    #[arg(long, default_value = "100000000", value_name = "N|off")]
    pub(crate) placement_limit: Limit,

    /// Solver threads.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,

    #[command(flatten)]
    pub(crate) width: VectorWidth,

    /// Goes on until solving took so long, and for one pass over the files at least. Counted is CPU time: that of the busiest thread, or of all by core if there are more threads than cores.
    #[arg(long, default_value = "2", value_name = "S", value_parser = seconds)]
    pub(crate) seconds: Duration,

    /// How the figures are shown.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub(crate) output: BenchFormat,
}
