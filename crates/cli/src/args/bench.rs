//! Arguments of `bench`.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{VectorWidth, seconds};
use crate::record::Limit;

#[derive(Subcommand, Debug)]
pub(crate) enum Bench {
    /// The solver alone, on the puzzles of files; every pass over them has other names for the digits, of which there are 362,880.
    Solver(BenchSolver),
    /// The whole on this machine: a private PostgreSQL, a server and workers; one batch through gRPC, durable, every solution checked; then two yardsticks on the same PostgreSQL.
    Service(BenchService),
    /// One puzzle at a time through the same service, idle: how long from the first call to its answer.
    Latency(BenchLatency),
}

/// How figures are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BenchFormat {
    /// For people.
    Text,
    /// One JSON object: `puzzles`, `seconds`, `puzzles_per_second`, `placements` (those counted, of each puzzle up to the limit; null with `off`), and more by bench.
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

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchService {
    /// Puzzle files, one puzzle a line, used again as often as it takes, each time with other names for the digits, of which there are 362,880; `-`: standard input; nothing: generated puzzles.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Puzzles of the batch that is measured: from its creation to the last message of its results.
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) puzzles: u64,

    /// Puzzles of a batch before it that is not measured: a fresh PostgreSQL is slow at first [default: as many, 500000 at the most].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    pub(crate) warm_up: Option<u64>,

    /// Worker processes.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,

    /// Solver threads of each of them.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: u32,

    /// Placements counted at the most for one puzzle, up to 10^10; `off` counts none.
    #[arg(long, default_value = "100000000", value_name = "N|off")]
    pub(crate) placement_limit: Limit,

    /// How the figures are shown.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub(crate) output: BenchFormat,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchLatency {
    /// Puzzles that are measured, after 20 that are not.
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) puzzles: u64,

    /// How the figures are shown.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text)]
    pub(crate) output: BenchFormat,
}
