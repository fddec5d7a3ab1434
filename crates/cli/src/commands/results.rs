//! `results`: the results of a batch that is there already.

use std::sync::Arc;

use anyhow::Context as _;
use client::{
    Client, Position, Start,
    v1::{self, batch::State},
};
use solver::PlacementLimit;

use crate::{
    again,
    args::Results,
    connection::{at, connect, resource_name},
    exit::{Exit, NotFinishedError},
    interrupt::{Standing, interruptible},
    lines::LineWriter,
    output,
    printer::Printer,
    progress::Progress,
    record::Record,
    signals::stop,
};

pub(crate) async fn run(args: Results) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(false)?);
    let (client, batch) = tokio::select! {
        begun = begin(&args) => begun?,
        _ = &mut stopped => anyhow::bail!(NotFinishedError("interrupted before anything was asked".to_owned())),
    };
    let args = Arc::new(args);
    let name = batch.name.clone();
    let standing = Standing::default();
    let ended =
        interruptible(&standing, print(Arc::clone(&args), client, batch, standing.clone()), stopped).await;
    ended.map_err(|error| {
        let stand = standing.get();
        let place = if args.summary { again::Point::default() } else { again::Point::of(&stand) };
        let command = again::typed(std::env::args_os(), "results", &place, &args.batch.server);
        let id = name.trim_start_matches("batches/");
        again::not_finished(error, id, &stand, "is not touched by this; this goes on", &command)
    })
}

async fn begin(args: &Results) -> anyhow::Result<(Client, v1::Batch)> {
    let client = connect(&args.batch.server).await?;
    let batch =
        client.get_batch(&resource_name(&args.batch.name)).await.with_context(|| at(&args.batch.server))?;
    Ok((client, batch))
}

/// Prints what there is and what comes, until the batch has ended.
async fn print(
    args: Arc<Results>,
    client: Client,
    batch: v1::Batch,
    standing: Standing,
) -> anyhow::Result<Exit> {
    standing.set(|stand| {
        stand.total = count(&batch);
        stand.skip.clone_from(&args.skip);
        stand.is_rest =
            args.resume.is_some() || !args.skip.is_empty() || args.from.is_some_and(|from| from > 0);
    });
    let progress = Progress::start(!args.summary);
    progress.set_total(count(&batch));
    let limit = batch.options.and_then(|options| options.placement_limit).unwrap_or(0);
    let limit = PlacementLimit(u64::try_from(limit).unwrap_or(0));
    let writer = LineWriter { format: args.output, limit };
    let mut printer = Printer::new(writer, args.summary, standing.clone())?;

    let start = if args.as_finished { Start::as_finished() } else { Start::ordered(0) };
    let position = match (&args.resume, args.from) {
        (Some(token), _) => Position::Token(token.clone()),
        (None, from) => Position::Index(from.unwrap_or(0)),
    };
    let mut results = client.results(&batch.name, start.at(position)).await?;
    while let Some(run) = results.next().await? {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let range = first.index..last.index + 1;
        printer.begin_run(range.start);
        for result in run {
            if !standing.has_printed(result.index) {
                printer.print(&Record::of_result(result)?, None)?;
            }
        }
        printer.end_run(&range, results.token().map(str::to_owned))?;
        progress.set_total(standing.get().total);
        progress.set_done(printer.summary.puzzles());
    }
    let ended = results.batch().context("a stream that has ended holds its batch")?;
    finish(printer, &progress, count(ended), ended)
}

fn count(batch: &v1::Batch) -> u64 {
    u64::try_from(batch.puzzle_count).unwrap_or(0)
}

/// The end of a command that has printed a batch's results to their end. What it says of the inputs is true of the whole batch, whoever printed the
/// beginning.
pub(crate) fn finish(
    mut printer: Printer,
    progress: &Progress,
    total: u64,
    batch: &v1::Batch,
) -> anyhow::Result<Exit> {
    let done = batch.progress.unwrap_or_default();
    if done.invalid_count + done.undecided_count + done.failed_count > 0 {
        printer.mark_bad();
    }
    let exit = printer.finish(progress, total, &format!("; {}", batch.name))?;
    Ok(if batch.state() == State::Cancelled { cancelled(&batch.name) } else { exit })
}

/// The end of a command whose batch was cancelled.
pub(crate) fn cancelled(name: &str) -> Exit {
    output::complain(&format!("{name} was cancelled"));
    Exit::NotFinished
}
