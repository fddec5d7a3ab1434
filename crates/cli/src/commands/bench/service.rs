//! `bench service`: the whole, durable, from a client's puzzles to its answers; and two yardsticks on the same PostgreSQL.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use ::solver::PlacementLimit;
use client::Client;
use serde::Serialize;
use store::{Measured, Yardsticks};

use super::{
    Tally, per_second, plural,
    private::{self, cleaned, interrupted, unbroken},
    puzzles::{Outcomes, Source, Texts},
    run::{Ran, exchange_all},
    usage::{Parts, cpu_times, folder_bytes, memory_bytes},
    whole,
};
use crate::{
    args::{BenchFormat, BenchService},
    exit::Exit,
    lines::grouped,
    output,
    progress::Progress,
    signals::stop,
    stack::{self, Processes},
};

/// Puzzles of the raw limit, at the most: their bytes are held in memory.
const RAW_MAX: u64 = 4_000_000;
/// Puzzles of the queue with one row a puzzle, at the most: it is slow, and its rate is the same for more.
const ROWS_MAX: usize = 200_000;
/// Puzzles of the warm-up where none are asked for, at the most.
const WARM_UP_MAX: u64 = 500_000;
/// How long the connections of the yardsticks may take to end.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The figures, as they are published in JSON.
#[derive(Serialize, Debug)]
struct Figures {
    puzzles: u64,
    seconds: f64,
    puzzles_per_second: f64,
    /// Placements counted, of each puzzle up to the limit; null where counting is off.
    placements: Option<u64>,
    first_result_ms: f64,
    /// During the timed run only.
    cpu_seconds: Parts<Option<f64>>,
    raw_puzzles_per_second: f64,
    row_per_puzzle_per_second: f64,
    peak_memory_bytes: Parts<Option<u64>>,
    /// How much the data folder has grown by the timed run, the write-ahead log with it.
    disk_bytes: i64,
}

/// What the timed run showed.
struct Served {
    ran: Ran,
    cpu: Parts<Option<Duration>>,
    memory: Parts<Option<u64>>,
    disk_bytes: i64,
}

/// What is measured: copies, since the stack itself is being watched meanwhile.
struct Target {
    url: String,
    database_url: String,
    data_dir: PathBuf,
    processes: Processes,
}

pub(crate) async fn run(args: BenchService) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(false)?);
    let (count, files) = (args.puzzles, args.files.clone());
    let warm_up = args.warm_up.unwrap_or(count.min(WARM_UP_MAX));
    let load = tokio::select! {
        made = tokio::task::spawn_blocking(move || make(&files, count, warm_up)) => made??,
        _ = &mut stopped => return Ok(interrupted()),
    };
    let Some(mut stack) = private::start(args.workers, args.threads, &mut stopped).await? else {
        return Ok(interrupted());
    };
    let target = Target {
        url: stack.url().to_owned(),
        database_url: stack.postgres().url(),
        data_dir: stack.postgres().data_dir().to_owned(),
        processes: stack.processes()?,
    };
    let yardsticks = Yardsticks::connect(&target.database_url, args.workers).await?;
    let limit = args.placement_limit.0;
    let served = tokio::select! {
        served = serve(&target, &yardsticks, load, limit) => served.map(Some),
        error = stack.watch() => Err(error),
        _ = &mut stopped => Ok(None),
    };
    let served = unbroken(&target.processes, stack.processes(), served);
    // The yardsticks have the machine for themselves.
    let postgres = stack.stop_roles().await;
    let measured = match served {
        Ok(Some(served)) => tokio::select! {
            measured = measure(&yardsticks, &served.ran.name, warm_up) => measured.map(|by| Some((served, by))),
            _ = &mut stopped => Ok(None),
        },
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    // An error means that a statement which nobody waits for any more takes long.
    tokio::time::timeout(CLOSE_MAX, yardsticks.close()).await.ok();
    let Some((served, yardsticks)) = cleaned(measured, stack::stop_postgres(postgres).await)? else {
        return Ok(interrupted());
    };
    print(&args, &figures(&served, limit, yardsticks), &served.ran.tally)?;
    Ok(Exit::Done)
}

/// What is sent.
struct Load {
    warm_up: Arc<Texts>,
    timed: Arc<Texts>,
    outcomes: Outcomes,
}

/// The puzzles of the warm-up and those that are measured, each on passes of its own.
fn make(files: &[PathBuf], count: u64, warm_up: u64) -> anyhow::Result<Load> {
    let source = Source::open(files, count)?;
    let timed = Arc::new(source.texts(0, count));
    let warm_up = Arc::new(source.texts(source.passes(count), warm_up));
    Ok(Load { warm_up, timed, outcomes: source.outcomes() })
}

/// The warm-up and the timed run.
async fn serve(
    target: &Target,
    yardsticks: &Yardsticks,
    Load { warm_up, timed, mut outcomes }: Load,
    limit: PlacementLimit,
) -> anyhow::Result<Served> {
    let client = Client::connect(&target.url).await?;
    if !warm_up.is_empty() {
        batch(&client, &warm_up, limit, &mut outcomes, "warm-up, ").await?;
    }
    yardsticks.settle().await?;
    let disk_before = folder_bytes(&target.data_dir);
    let cpu_before = cpu_times(&target.processes);
    let ran = batch(&client, &timed, limit, &mut outcomes, "").await?;
    let cpu_after = cpu_times(&target.processes);
    let used = cpu_before.with(&cpu_after, |before, after| after?.checked_sub(before?));
    let disk_bytes = folder_bytes(&target.data_dir).cast_signed() - disk_before.cast_signed();
    Ok(Served { ran, cpu: used, memory: memory_bytes(&target.processes), disk_bytes })
}

/// One batch, with its progress.
async fn batch(
    client: &Client,
    texts: &Arc<Texts>,
    limit: PlacementLimit,
    outcomes: &mut Outcomes,
    what: &str,
) -> anyhow::Result<Ran> {
    let progress = Progress::start(false);
    progress.set_total(texts.len() as u64);
    let ran = exchange_all(client, texts, limit, outcomes, &progress).await?;
    progress.finish(&format!("bench: {what}{} puzzles", grouped(ran.tally.puzzles())), "");
    Ok(ran)
}

/// The raw limit, and one row a puzzle.
async fn measure(yardsticks: &Yardsticks, batch: &str, warm_up: u64) -> anyhow::Result<[Measured; 2]> {
    let id = batch.trim_start_matches("batches/");
    let load = Arc::new(yardsticks.load(id, RAW_MAX).await?);
    let raw = yardsticks.raw(&load, warm_up).await?;
    complain("the raw limit", raw);
    let count = usize::try_from(load.puzzles()).unwrap_or(ROWS_MAX).min(ROWS_MAX);
    let rows = yardsticks.row_per_puzzle(count).await?;
    complain("one row a puzzle", rows);
    Ok([raw, rows])
}

fn complain(what: &str, Measured { puzzles, took }: Measured) {
    output::complain(&format!("bench: {what}, {} puzzles in {:.2} s", grouped(puzzles), took.as_secs_f64()));
}

fn figures(served: &Served, limit: PlacementLimit, yardsticks: [Measured; 2]) -> Figures {
    let Served { ran, cpu, memory, disk_bytes } = served;
    let puzzles = ran.tally.puzzles();
    let seconds = ran.took.as_secs_f64();
    let [raw, rows] = yardsticks.map(|by| per_second(by.puzzles, by.took.as_secs_f64()));
    Figures {
        puzzles,
        seconds,
        puzzles_per_second: per_second(puzzles, seconds),
        placements: (limit != PlacementLimit::OFF).then_some(ran.tally.placements),
        first_result_ms: ran.first_result.as_secs_f64() * 1e3,
        cpu_seconds: cpu.map(|time| time.map(|time| time.as_secs_f64())),
        raw_puzzles_per_second: raw,
        row_per_puzzle_per_second: rows,
        peak_memory_bytes: *memory,
        disk_bytes: *disk_bytes,
    }
}

fn print(args: &BenchService, figures: &Figures, tally: &Tally) -> anyhow::Result<()> {
    let mut out = output::results();
    match args.output {
        BenchFormat::Json => writeln!(out, "{}", serde_json::to_string(figures)?)?,
        BenchFormat::Text => text(&mut out, args, figures, tally)?,
    }
    out.flush()?;
    Ok(())
}

/// The figures for people.
#[allow(clippy::cast_precision_loss, reason = "rates and sizes for people")]
fn text(out: &mut impl Write, args: &BenchService, figures: &Figures, tally: &Tally) -> io::Result<()> {
    let BenchService { workers, threads, .. } = *args;
    writeln!(
        out,
        "{} puzzles in {:.3} s: {workers} worker{} of {threads} solver thread{}",
        grouped(figures.puzzles),
        figures.seconds,
        plural(workers),
        plural(threads)
    )?;
    writeln!(out, "{:>15} puzzles/s", whole(figures.puzzles_per_second))?;
    if let Some(placements) = figures.placements {
        writeln!(out, "{:>15} placements/s", whole(per_second(placements, figures.seconds)))?;
    }
    writeln!(out, "{:>15.1} ms to the first result", figures.first_result_ms)?;
    for (rate, what) in [
        (
            figures.raw_puzzles_per_second,
            "the raw limit: the same bytes through PostgreSQL, and nothing else",
        ),
        (figures.row_per_puzzle_per_second, "one row a puzzle, and a solver that does nothing"),
    ] {
        let times = figures.puzzles_per_second / rate;
        writeln!(out, "{times:>15.2} times {what}: {} puzzles/s", whole(rate))?;
    }
    let mega = |bytes: u64| bytes as f64 / 1e6;
    for ((name, cpu), (_, memory)) in
        figures.cpu_seconds.named().into_iter().zip(figures.peak_memory_bytes.named())
    {
        let cpu = cpu.map_or("?".to_owned(), |cpu| format!("{:.3}", cpu * 1e6 / figures.puzzles as f64));
        let memory = memory.map_or("?".to_owned(), |bytes| format!("{:.0}", mega(bytes)));
        writeln!(out, "{cpu:>15} us of CPU a puzzle, {memory:>5} MB: {name}")?;
    }
    let bytes = figures.disk_bytes as f64 / figures.puzzles as f64;
    writeln!(out, "{bytes:>15.1} bytes a puzzle: growth of the data folder")?;
    for (outcome, count) in tally.outcomes() {
        writeln!(out, "{:>15} {outcome}", grouped(count))?;
    }
    Ok(())
}
