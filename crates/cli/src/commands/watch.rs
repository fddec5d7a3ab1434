//! `watch`: one batch as it goes on.

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};
use client::v1::{self, batch::State};

use crate::{
    args::{BatchFormat, Watch},
    commands::{
        get::{counts, show, text, word},
        results::cancelled,
    },
    connection::{at, connect, resource_name},
    exit::{Exit, NotFinishedError},
    output,
    progress::Progress,
    proto_json,
    signals::stop,
};

pub(crate) async fn run(args: Watch) -> anyhow::Result<Exit> {
    let stopped = stop(false)?;
    tokio::select! {
        ended = watch(&args) => ended,
        _ = stopped => bail!(NotFinishedError(format!(
            "interrupted; the batch {} goes on without a watcher",
            resource_name(&args.batch.name)
        ))),
    }
}

async fn watch(args: &Watch) -> anyhow::Result<Exit> {
    let mut client = connect(&args.batch.server).await?;
    let name = resource_name(&args.batch.name);
    let mut watch = client.watch(&name, Some(args.interval)).await.with_context(|| at(&args.batch.server))?;
    let shows_bar = args.output == BatchFormat::Text && std::io::stdout().is_terminal();
    let progress = Progress::start(!shows_bar);
    let mut last = None;
    loop {
        let batch = match watch.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) if error.is_transient() => bail!(NotFinishedError(format!(
                "{error}; the batch goes on, look again with\n  sudoku-batch watch {name} --server {}",
                args.batch.server.server
            ))),
            Err(error) => return Err(error).with_context(|| at(&args.batch.server)),
        };
        if args.output == BatchFormat::Json {
            output::announce(&proto_json::line("Batch", &batch)?)?;
        } else if shows_bar {
            progress.set_total(u64::try_from(batch.puzzle_count).unwrap_or(0));
            let done = batch.progress.unwrap_or_default().done_count;
            progress.set_done(u64::try_from(done).unwrap_or(0));
            progress.set_rest(outcomes(&batch));
        } else {
            output::announce(&line(&batch))?;
        }
        last = Some(batch);
    }
    drop(progress);
    let batch = last.context("a watch that has ended has shown its batch")?;
    if args.output == BatchFormat::Text {
        let mut out = output::results();
        text(&mut out, &batch)?;
        out.flush()?;
    }
    Ok(exit(&batch))
}

/// One line: `1,200/5,000 puzzles, sealed: unique 1,199, invalid 1`.
fn line(batch: &v1::Batch) -> String {
    let done = batch.progress.unwrap_or_default().done_count;
    let state = word(batch.state());
    let line = format!("{}/{} puzzles, {state}: {}", show(done), show(batch.puzzle_count), outcomes(batch));
    line.trim_end_matches([' ', ':']).to_owned()
}

fn outcomes(batch: &v1::Batch) -> String {
    let counted = counts(&batch.progress.unwrap_or_default()).into_iter().filter(|(_, count)| *count != 0);
    counted.map(|(name, count)| format!("{name} {}", show(count))).collect::<Vec<_>>().join(", ")
}

fn exit(batch: &v1::Batch) -> Exit {
    let progress = batch.progress.unwrap_or_default();
    if batch.state() == State::Cancelled {
        cancelled(&batch.name)
    } else if progress.invalid_count + progress.undecided_count + progress.failed_count > 0 {
        Exit::SomeBad
    } else {
        Exit::Done
    }
}
