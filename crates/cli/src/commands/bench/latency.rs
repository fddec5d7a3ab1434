//! `bench latency`: one puzzle at a time through an idle service, from the first call to its answer.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use ::solver::{Outcome, PlacementLimit};
use anyhow::{Context as _, bail};
use client::Client;
use serde::Serialize;

use super::{
    Tally,
    check::solves,
    exchange, per_second,
    private::{self, cleaned, interrupted, unbroken},
    puzzles::{Source, Text},
};
use crate::{
    args::{BenchFormat, BenchLatency},
    exit::Exit,
    lines::grouped,
    output,
    progress::Progress,
    signals::stop,
};

const WORKERS: u32 = 2;
const THREADS: u32 = 1;
/// Puzzles before the first that is measured.
const WARM_UP: u64 = 20;
/// The pass over the source that they are of: its digits have other names.
const PASS: u64 = 1;

/// The figures, as they are published in JSON.
#[derive(Serialize, Debug)]
struct Figures {
    puzzles: u64,
    seconds: f64,
    puzzles_per_second: f64,
    placements: u64,
    p50_ms: f64,
    p99_ms: f64,
}

pub(crate) async fn run(args: BenchLatency) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(false)?);
    let count = args.puzzles + WARM_UP;
    let texts = move || anyhow::Ok(Source::open(&[], count)?.texts(PASS, count));
    let texts = tokio::select! {
        made = tokio::task::spawn_blocking(texts) => made??,
        _ = &mut stopped => return Ok(interrupted()),
    };
    let Some(mut stack) = private::start(WORKERS, THREADS, &mut stopped).await? else {
        return Ok(interrupted());
    };
    let (url, processes) = (stack.url().to_owned(), stack.processes()?);
    let measured = tokio::select! {
        measured = measure(&url, &texts) => measured.map(Some),
        error = stack.watch() => Err(error),
        _ = &mut stopped => Ok(None),
    };
    let measured = unbroken(&processes, stack.processes(), measured);
    let Some((times, tally)) = cleaned(measured, stack.stop().await)? else { return Ok(interrupted()) };
    print(&args, times, &tally)?;
    Ok(Exit::Done)
}

/// How long each puzzle took, and what was answered.
async fn measure(url: &str, texts: &[Text]) -> anyhow::Result<(Vec<Duration>, Tally)> {
    let client = Client::connect(url).await?;
    let progress = Progress::start(false);
    let warm_up = usize::try_from(WARM_UP).unwrap_or(usize::MAX);
    progress.set_total((texts.len() - warm_up) as u64);
    let (mut times, mut tally) = (Vec::new(), Tally::default());
    for (number, text) in texts.iter().enumerate() {
        let mut answered = Tally::default();
        let took = answer(&client, text, &mut answered).await?;
        if number >= warm_up {
            times.push(took);
            tally.add_all(&answered);
            progress.set_done(tally.puzzles());
        }
    }
    progress.finish(&format!("bench: {} puzzles, one at a time", grouped(tally.puzzles())), "");
    Ok((times, tally))
}

/// One puzzle as a batch of its own. The time ends with its answer; the stream is read to its end, so that nothing of it goes on beside the next.
async fn answer(client: &Client, text: &Text, tally: &mut Tally) -> anyhow::Result<Duration> {
    let limit = PlacementLimit::DEFAULT;
    let began = Instant::now();
    let name = exchange::open(client, limit).await?;
    let mut appender = client.appender(&name, 0);
    exchange::send(&mut appender, std::slice::from_ref(text)).await?;
    appender.finish().await?;
    exchange::seal(client, &name, 1).await?;
    let mut results = exchange::answers(client, &name).await?;
    let mut took = None;
    while exchange::receive(&mut results, |answer| {
        took.get_or_insert_with(|| began.elapsed());
        let solution = answer.solution.and_then(|solution| solution.try_into().ok());
        if answer.outcome != Outcome::Unique || !solution.is_some_and(|solution| solves(solution, text)) {
            bail!("a wrong answer to puzzle {}", String::from_utf8_lossy(text));
        }
        tally.add(answer.outcome, answer.placements, limit);
        Ok(())
    })
    .await?
    {}
    took.context("there was no answer")
}

fn print(args: &BenchLatency, mut times: Vec<Duration>, tally: &Tally) -> anyhow::Result<()> {
    times.sort_unstable();
    let seconds = times.iter().sum::<Duration>().as_secs_f64();
    let milliseconds = |part| percentile(&times, part).as_secs_f64() * 1e3;
    let figures = Figures {
        puzzles: tally.puzzles(),
        seconds,
        puzzles_per_second: per_second(tally.puzzles(), seconds),
        placements: tally.placements,
        p50_ms: milliseconds(50),
        p99_ms: milliseconds(99),
    };
    let mut out = output::results();
    match args.output {
        BenchFormat::Json => writeln!(out, "{}", serde_json::to_string(&figures)?)?,
        BenchFormat::Text => {
            writeln!(out, "{} puzzles, one at a time, in {seconds:.3} s", grouped(figures.puzzles))?;
            writeln!(out, "{:>15.2} ms for half of them at the most (p50)", figures.p50_ms)?;
            writeln!(out, "{:>15.2} ms for 99 of 100 (p99)", figures.p99_ms)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The least time that so many percent do not exceed; of none, zero.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times = |count| (1..=count).map(Duration::from_millis).collect::<Vec<_>>();
        let percentiles =
            |count| [1, 50, 99, 100].map(|percent| percentile(&times(count), percent).as_millis());
        assert_eq!(percentiles(1), [1, 1, 1, 1]);
        assert_eq!(percentiles(2), [1, 1, 2, 2]);
        assert_eq!(percentiles(5), [1, 3, 5, 5]);
        assert_eq!(percentiles(200), [2, 100, 198, 200]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }
}
