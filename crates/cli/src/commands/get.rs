//! `get`: one batch and how far it is.

use std::io::{self, Write};

use anyhow::Context as _;
use client::v1::{self, batch::State};

use crate::{
    args::{BatchFormat, Get},
    connection::{at, connect, resource_name},
    exit::Exit,
    lines::grouped,
    output, proto_json,
};

pub(crate) async fn run(args: Get) -> anyhow::Result<Exit> {
    let client = connect(&args.batch.server).await?;
    let batch =
        client.get_batch(&resource_name(&args.batch.name)).await.with_context(|| at(&args.batch.server))?;
    let mut out = output::results();
    match args.output {
        BatchFormat::Json => writeln!(out, "{}", proto_json::line("Batch", &batch)?)?,
        BatchFormat::Text => text(&mut out, &batch)?,
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// A batch for people.
pub(crate) fn text(out: &mut impl Write, batch: &v1::Batch) -> io::Result<()> {
    let progress = batch.progress.unwrap_or_default();
    writeln!(out, "{}", batch.name)?;
    writeln!(out, "{:<12} {}", "state", state(batch.state()))?;
    if !batch.display_name.is_empty() {
        writeln!(out, "{:<12} {}", "name", batch.display_name)?;
    }
    writeln!(out, "{:<12} {} of {}", "done", show(progress.done_count), show(batch.puzzle_count))?;
    let more = [("over limit", progress.over_limit_count), ("placements", progress.placement_count)];
    for (name, count) in counts(&progress).into_iter().chain(more) {
        if count != 0 {
            writeln!(out, "{name:<12} {}", show(count))?;
        }
    }
    if let Some(running) = running(&progress) {
        writeln!(out, "{:<12} {running}", "running")?;
    }
    if let Some(expires) = expires(batch) {
        writeln!(out, "{:<12} {expires}", "expires")?;
    }
    Ok(())
}

/// How far the searches are that are running; `None` while there is nothing to say.
pub(crate) fn running(progress: &v1::BatchProgress) -> Option<String> {
    let placements = progress.running_placement_count;
    (placements != 0).then(|| format!("{} placements so far", show(placements)))
}

/// When the server deletes a batch, to the second; `None` while it is open.
pub(crate) fn expires(batch: &v1::Batch) -> Option<String> {
    let mut instant = batch.expire_time?;
    instant.nanos = 0;
    Some(instant.to_string())
}

/// A state for people.
fn state(state: State) -> &'static str {
    match state {
        State::Unspecified => "unknown",
        State::Open => "open: takes more puzzles",
        State::Sealed => "sealed: being solved",
        State::Succeeded => "succeeded: every puzzle has an outcome",
        State::Cancelling => "cancelling: running searches are being stopped",
        State::Cancelled => "cancelled",
    }
}

/// A state in one word.
pub(crate) fn word(state: State) -> &'static str {
    match state {
        State::Unspecified => "unknown",
        State::Open => "open",
        State::Sealed => "sealed",
        State::Succeeded => "succeeded",
        State::Cancelling => "cancelling",
        State::Cancelled => "cancelled",
    }
}

/// The counts by outcome, by their names.
pub(crate) fn counts(progress: &v1::BatchProgress) -> [(&'static str, i64); 7] {
    [
        ("unique", progress.unique_count),
        ("multiple", progress.multiple_count),
        ("no_solution", progress.no_solution_count),
        ("invalid", progress.invalid_count),
        ("undecided", progress.undecided_count),
        ("failed", progress.failed_count),
        ("cancelled", progress.cancelled_count),
    ]
}

pub(crate) fn show(count: i64) -> String {
    grouped(u64::try_from(count).unwrap_or(0))
}
