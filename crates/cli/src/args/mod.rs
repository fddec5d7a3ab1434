//! The command line as it is typed.

mod bench;
mod service;

use std::{ops::Range, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};
use solver::{PlacementLimit, UnknownWidth, Width};

pub(crate) use self::{
    bench::{Bench, BenchFormat, BenchLatency, BenchService, BenchSolver},
    service::Service,
};
use crate::{lines::LineWriter, record::Limit};

const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:50051";

/// Solve sudokus by the million: every puzzle answered exactly once, with the exact number of placements of plain backtracking.
///
/// Start with `sudoku-batch demo`, which needs nothing but installed PostgreSQL programs and leaves nothing behind.
#[derive(Parser, Debug)]
#[command(name = "sudoku-batch", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// What is logged to stderr: off, error, warn, info, debug, or a filter such as `warn,store=debug`.
    #[arg(long, global = true, env = "SUDOKU_BATCH_LOG", default_value = "info", value_name = "FILTER")]
    pub(crate) log: String,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Show it all on this machine: private PostgreSQL, server, two workers, a bundled batch; then stop everything.
    Demo(Demo),
    /// Run a private PostgreSQL, a server and workers until stopped; the batches stay in the data folder.
    Up(Up),
    /// Run one gRPC server against a database.
    Serve(Serve),
    /// Run one worker process against a database.
    Work(Work),
    /// Bring a database's schema up to date. `serve` and `work` do the same when they start.
    Migrate(Migrate),
    /// Submit puzzles to a server as one batch and print the results.
    Submit(Submit),
    /// Print the results of a batch, from its beginning or from where another command stopped.
    Results(Results),
    /// Follow a batch as it goes on, until it has ended.
    Watch(Watch),
    /// List batches, newest first.
    List(List),
    /// Show one batch and how far it is.
    Get(Get),
    /// Stop what has not run yet of a batch. What is done stays.
    Cancel(Cancel),
    /// Remove a batch with its results.
    Delete(Delete),
    /// Solve puzzles in this process: the same answers, without a server or a database.
    Solve(Solve),
    /// Make puzzles with exactly one solution.
    Generate(Generate),
    /// Measure how fast this machine is.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Demo {}

#[derive(ClapArgs, Debug)]
pub(crate) struct Up {
    /// Address of the server; port 0 takes a free one. Loopback only.
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "HOST:PORT")]
    pub(crate) listen: String,

    /// Folder of the private PostgreSQL [default: sudoku-batch in the user's data folder; /var/lib/sudoku-batch for root].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Worker processes [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: Option<u32>,

    #[command(flatten)]
    pub(crate) service: Service,
}

/// The database of a role.
#[derive(ClapArgs, Debug)]
pub(crate) struct Database {
    /// PostgreSQL 14 or newer: postgres://USER:PASSWORD@HOST:PORT/DATABASE.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub(crate) database_url: String,

    /// The URL leads to PgBouncer or another pooler in transaction mode, any version: statements are run without names, nothing is listened to, and new work is
    /// found by looking, within about a second. Slower for small batches.
    #[arg(long, env = "SUDOKU_BATCH_PGBOUNCER", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) pgbouncer: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) database: Database,

    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "HOST:PORT")]
    pub(crate) listen: String,

    /// Listen beyond loopback although there is neither TLS nor authentication yet: only behind something that has both.
    #[arg(long)]
    pub(crate) allow_insecure_remote: bool,

    /// Greatest placement limit that a batch may ask for, up to 10^12.
    #[arg(long, env = "SUDOKU_BATCH_PLACEMENT_LIMIT_MAX", default_value_t = PlacementLimit::GREATEST_DEFAULT.0, value_name = "N", value_parser = clap::value_parser!(u64).range(..=PlacementLimit::GREATEST.0))]
    pub(crate) placement_limit_max: u64,

    #[command(flatten)]
    pub(crate) service: Service,

    /// Seconds that running calls may take to end after SIGTERM.
    #[arg(long, default_value = "8", value_name = "S", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Stop when standard input closes.
    #[arg(long, hide = true)]
    pub(crate) exit_with_parent: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) database: Database,

    /// Solver threads [default: one for each core]. Puzzles that may count more than 100,000,000 placements have their own, one less, but one at least.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,

    #[command(flatten)]
    pub(crate) width: VectorWidth,

    /// Seconds that a job stays reserved for a worker that has fallen silent.
    #[arg(long, env = "SUDOKU_BATCH_LEASE", default_value = "30", value_name = "S", value_parser = lease_seconds)]
    pub(crate) lease: Duration,

    /// Seconds that running searches may go on after SIGTERM before their jobs are given back.
    #[arg(long, default_value = "3", value_name = "S", value_parser = seconds)]
    pub(crate) grace: Duration,

    /// Stop when standard input closes.
    #[arg(long, hide = true)]
    pub(crate) exit_with_parent: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) database: Database,
}

/// Which server, and for whom.
#[derive(ClapArgs, Debug)]
pub(crate) struct Server {
    /// Address of the server, or of several of one service with commas in between: when one goes, the command goes on at the next.
    #[arg(long, env = "SUDOKU_BATCH_SERVER", default_value = DEFAULT_SERVER, value_name = "URL[,URL…]")]
    pub(crate) server: String,

    /// Tenant that the batches belong to.
    #[arg(long, env = "SUDOKU_BATCH_TENANT", value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// How wide the solver's vectors are.
#[derive(ClapArgs, Clone, Copy, Debug)]
pub(crate) struct VectorWidth {
    /// Vectors of the solver: portable, sse2, avx2 or avx512 [default: the widest that this machine has]. Never changes an answer.
    #[arg(long, env = "SUDOKU_BATCH_WIDTH", value_name = "WIDTH", value_parser = width)]
    pub(crate) width: Option<Width>,
}

impl VectorWidth {
    /// What was asked for, or the widest there is.
    pub(crate) fn get(self) -> Width {
        self.width.unwrap_or_else(Width::widest)
    }
}

/// How results are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OutputFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Jsonl,
}

/// How one batch is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BatchFormat {
    /// For people.
    Text,
    /// The proto's JSON, on one line.
    #[value(alias = "jsonl")]
    Json,
}

/// What both ways of solving share.
#[derive(ClapArgs, Debug)]
pub(crate) struct Solving {
    /// Puzzle files, one puzzle a line: 81 characters, `.` or `0` for empty, `#` for remarks; `-` or nothing: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How results are shown.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    /// Placements counted at the most for one puzzle, up to 10^12 (a server may take less: 10^10, unless it was set up otherwise); `off` counts none. Never changes an outcome.
    #[arg(long, default_value = "100000000", value_name = "N|off")]
    pub(crate) placement_limit: Limit,

    /// Print counts by outcome and the spread of the placements instead of the results.
    #[arg(long)]
    pub(crate) summary: bool,
}

impl Solving {
    /// How its results are written.
    pub(crate) fn writer(&self) -> LineWriter {
        LineWriter { format: self.output, limit: self.placement_limit.0 }
    }
}

#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) solving: Solving,

    #[command(flatten)]
    pub(crate) server: Server,

    /// Print results as they finish, not in the order of the input.
    #[arg(long)]
    pub(crate) as_finished: bool,

    /// Do not wait for results: print the batch's name and end.
    #[arg(long, conflicts_with_all = ["as_finished", "summary"])]
    pub(crate) detach: bool,

    /// Name the batch, 4 to 63 of a-z, 0-9 and -. The same id and the same puzzles again are the same batch: a broken submit goes on this way.
    #[arg(long, value_name = "ID", value_parser = batch_id)]
    pub(crate) id: Option<String>,

    /// Print only the results after those that this token stands for: an interrupted submit tells it.
    #[arg(long, value_name = "TOKEN", requires = "id", conflicts_with_all = ["detach", "summary"])]
    pub(crate) resume: Option<String>,

    /// Leave out the results of these indexes: an interrupted submit had printed them beyond its token. May be repeated.
    #[arg(long, value_name = "LO..HI", value_parser = index_range, requires = "id", conflicts_with_all = ["detach", "summary"])]
    pub(crate) skip: Vec<Range<u64>>,
}

/// Which batch, where.
#[derive(ClapArgs, Debug)]
pub(crate) struct Batch {
    /// The batch: its id, or batches/ID.
    #[arg(value_name = "BATCH", value_parser = batch)]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Results {
    #[command(flatten)]
    pub(crate) batch: Batch,

    /// How results are shown. An invalid puzzle has no line number here: only `submit` knows the file.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    /// Go on after the results that this token stands for: an interrupted command tells it. It fits no other batch.
    #[arg(long, value_name = "TOKEN", conflicts_with = "from")]
    pub(crate) resume: Option<String>,

    /// Leave out the results of these indexes: an interrupted command had printed them beyond its token. May be repeated.
    #[arg(long, value_name = "LO..HI", value_parser = index_range, conflicts_with = "summary")]
    pub(crate) skip: Vec<Range<u64>>,

    /// Begin at this index.
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) from: Option<u64>,

    /// Print results as they finish, not in order of index.
    #[arg(long)]
    pub(crate) as_finished: bool,

    /// Print counts by outcome and the spread of the placements instead of the results.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) summary: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) batch: Batch,

    /// Least seconds between two looks, 0.1 to 60.
    #[arg(long, default_value = "1", value_name = "S", value_parser = watch_seconds)]
    pub(crate) interval: Duration,

    /// How the batch is shown: a bar on a terminal, one line a change elsewhere; or the proto's JSON, one line a change.
    #[arg(long, value_enum, default_value_t = BatchFormat::Text)]
    pub(crate) output: BatchFormat,
}

/// A state of a batch.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum State {
    /// Takes puzzles.
    Open,
    /// Complete, being solved.
    Sealed,
    /// Every puzzle has an outcome.
    Succeeded,
    /// Being cancelled.
    Cancelling,
    /// Cancelled.
    Cancelled,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) server: Server,

    /// Only batches in this state; may be repeated.
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) state: Vec<State>,

    /// Batches at the most.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,

    /// How they are shown: a table, or the proto's JSON on one line.
    #[arg(long, value_enum, default_value_t = BatchFormat::Text)]
    pub(crate) output: BatchFormat,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) batch: Batch,

    /// How the batch is shown.
    #[arg(long, value_enum, default_value_t = BatchFormat::Text)]
    pub(crate) output: BatchFormat,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) batch: Batch,

    /// How the answer is shown.
    #[arg(long, value_enum, default_value_t = BatchFormat::Text)]
    pub(crate) output: BatchFormat,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) batch: Batch,

    /// Also a batch that has not ended: it is cancelled with it.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(ClapArgs, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Solve {
    #[command(flatten)]
    pub(crate) solving: Solving,

    /// Solver threads [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,

    #[command(flatten)]
    pub(crate) width: VectorWidth,
}

#[derive(ClapArgs, Debug)]
#[command(group = ArgGroup::new("kind").args(["clues", "minimal"]))]
pub(crate) struct Generate {
    /// How many.
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N")]
    pub(crate) count: u64,

    /// Givens of each puzzle, 17 to 80. Below 22 they become rare and take long; below 20 hardly one is found.
    #[arg(long, value_name = "K")]
    pub(crate) clues: Option<u8>,

    /// Minimal puzzles: without any one of the givens there would be more than one solution.
    #[arg(long)]
    pub(crate) minimal: bool,

    /// The same seed gives the same puzzles.
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub(crate) seed: u64,
}

const EXIT_CODES: &str = "Exit codes: 0 every puzzle answered; 1 an error; 2 wrong usage; 3 finished, but some inputs were invalid, \
undecided or failed; 4 not finished, the message says how to go on.";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| *duration <= Duration::from_secs(3_600))
        .ok_or_else(|| "give 0 to 3600 seconds".to_owned())
}

fn width(text: &str) -> Result<Width, String> {
    let width: Width = text.parse().map_err(|unknown: UnknownWidth| unknown.to_string())?;
    if width.is_available() {
        Ok(width)
    } else {
        Err(format!("this machine has no {width}; its widest is {}", Width::widest()))
    }
}

fn watch_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|interval| (Duration::from_millis(100)..=Duration::from_secs(60)).contains(interval))
        .ok_or_else(|| "give 0.1 to 60 seconds".to_owned())
}

fn lease_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .ok()
        .filter(|lease| *lease >= Duration::from_secs(1))
        .ok_or_else(|| "give 1 to 3600 seconds".to_owned())
}

fn index_range(text: &str) -> Result<Range<u64>, String> {
    text.split_once("..")
        .and_then(|(lo, hi)| Some(lo.parse().ok()?..hi.parse().ok()?))
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "give two indexes such as 20..25, the second one left out".to_owned())
}

fn batch_id(text: &str) -> Result<String, String> {
    let fits = (4..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if fits { Ok(text.to_owned()) } else { Err("give 4 to 63 of a-z, 0-9 and -".to_owned()) }
}

fn batch(text: &str) -> Result<String, String> {
    batch_id(text.strip_prefix("batches/").unwrap_or(text))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_unlimited_count_is_refused_with_the_hint_what_to_write() {
        let parse = |limit: &str| Args::try_parse_from(["sudoku-batch", "solve", "--placement-limit", limit]);
        let refused = parse("none").expect_err("refused").to_string();
        assert!(refused.contains("\"off\""), "{refused}");
        // As far as any server can be set up for; what this one takes, it says itself.
        assert!(parse("off").is_ok() && parse("0").is_ok() && parse("1000000000000").is_ok());
        assert!(parse("1000000000001").is_err() && parse("-1").is_err() && parse("1e6").is_err());
    }
}
