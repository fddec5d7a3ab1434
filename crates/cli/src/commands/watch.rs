//! `watch`: one batch as it goes on.

use std::{
    io::{IsTerminal as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use anyhow::Context as _;
use client::v1::{self, batch::State};

use crate::{
    again,
    args::{BatchFormat, Watch},
    commands::{
        get::{counts, running, show, text, word},
        results::cancelled,
    },
    connection::{at, connect, resource_name},
    exit::{Exit, NotFinishedError},
    interrupt::{Standing, interruptible, is_interrupted},
    output,
    progress::Progress,
    proto_json,
    signals::stop,
};

pub(crate) async fn run(args: Watch) -> anyhow::Result<Exit> {
    let stopped = stop(false)?;
    let args = Arc::new(args);
    let seen = Arc::new(AtomicBool::new(false));
    let work = watch(Arc::clone(&args), Arc::clone(&seen));
    let ended = interruptible(&Standing::default(), work, stopped).await;
    ended.map_err(|error| {
        let goes_on = is_interrupted(&error)
            || error.downcast_ref::<client::Error>().is_some_and(client::Error::is_transient);
        if !goes_on || !seen.load(SeqCst) {
            return error;
        }
        let name = resource_name(&args.batch.name);
        let command =
            again::typed(std::env::args_os(), "watch", &again::Point::default(), &args.batch.server);
        NotFinishedError(format!(
            "{error:#}; {name} goes on without a watcher, this looks again:\n  {command}"
        ))
        .into()
    })
}

/// Shows the batch until it has ended; `seen` is raised when it was shown for the first time.
async fn watch(args: Arc<Watch>, seen: Arc<AtomicBool>) -> anyhow::Result<Exit> {
    let client = connect(&args.batch.server).await?;
    let name = resource_name(&args.batch.name);
    let mut watch = client.watch(&name, Some(args.interval)).await.with_context(|| at(&args.batch.server))?;
    let shows_bar = args.output == BatchFormat::Text
        && std::io::stdout().is_terminal()
        && std::io::stderr().is_terminal();
    let progress = shows_bar.then(|| Progress::start(false));
    let mut last = None;
    while let Some(batch) = watch.next().await? {
        if let Some(progress) = &progress {
            progress.set_total(u64::try_from(batch.puzzle_count).unwrap_or(0));
            let done = batch.progress.unwrap_or_default().done_count;
            progress.set_done(u64::try_from(done).unwrap_or(0));
            progress.set_rest(outcomes(&batch));
        } else if args.output == BatchFormat::Json {
            output::announce(&proto_json::line("Batch", &batch)?)?;
        } else {
            output::announce(&line(&batch))?;
        }
        seen.store(true, SeqCst);
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

/// One line: `1,200/5,000 puzzles, sealed: unique 1,199, invalid 1, running 3,000,000,000 placements so far`.
fn line(batch: &v1::Batch) -> String {
    let done = batch.progress.unwrap_or_default().done_count;
    let state = word(batch.state());
    let line = format!("{}/{} puzzles, {state}: {}", show(done), show(batch.puzzle_count), outcomes(batch));
    line.trim_end_matches([' ', ':']).to_owned()
}

fn outcomes(batch: &v1::Batch) -> String {
    let progress = batch.progress.unwrap_or_default();
    let counted = counts(&progress).into_iter().filter(|(_, count)| *count != 0);
    let counted = counted.map(|(name, count)| format!("{name} {}", show(count)));
    let running = running(&progress).map(|running| format!("running {running}"));
    counted.chain(running).collect::<Vec<_>>().join(", ")
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
