//! `submit`: puzzles to a server as one batch, results to stdout.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, bail};
use client::{
    Client, Grids, MESSAGE_PUZZLES, NewBatch, Position, Start,
    v1::{self, batch::State},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    again,
    args::Submit,
    commands::results::finish,
    connection::{at, connect, resource_name},
    exit::{Exit, NotFinishedError},
    input::{Input, InputRecord, Places},
    interrupt::{Stand, Standing, interruptible},
    lines::grouped,
    output,
    printer::Printer,
    progress::Progress,
    record::Record,
    signals::stop,
};

/// Messages that are read ahead of the server.
const MESSAGES_AHEAD: usize = 4;

pub(crate) async fn run(args: Submit) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(false)?);
    let (client, name, first, input) = tokio::select! {
        begun = begin(&args) => begun?,
        _ = &mut stopped => bail!(NotFinishedError("interrupted before anything was sent".to_owned())),
    };
    let args = Arc::new(args);
    let standing = Standing::default();
    standing.set(|stand| {
        stand.skip.clone_from(&args.skip);
        stand.is_rest = args.resume.is_some() || !args.skip.is_empty();
    });
    let work = submit(Arc::clone(&args), client, name.clone(), first, input, standing.clone());
    let ended = interruptible(&standing, work, stopped).await;
    ended.map_err(|error| explain(error, &name, &args, &standing.get()))
}

/// Results have come of puzzles that were not sent.
#[derive(Debug, thiserror::Error)]
#[error("the batch holds more puzzles than this input")]
struct MorePuzzles;

/// Opens the inputs, connects, reads the first records and makes the batch.
async fn begin(args: &Submit) -> anyhow::Result<(Client, String, Vec<InputRecord>, Input)> {
    let mut input = Input::open(&args.solving.files)?;
    let client = connect(&args.server).await?;
    let (first, input) = tokio::task::spawn_blocking(move || (input.take(MESSAGE_PUZZLES), input)).await?;
    let first = first?;
    if first.is_empty() {
        return Err(input.nothing());
    }
    let new = NewBatch {
        id: args.id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        placement_limit: Some(args.solving.placement_limit.0.0),
        ..NewBatch::default()
    };
    let batch = client.create_batch(new).await.with_context(|| at(&args.server))?;
    Ok((client, batch.name, first, input))
}

/// Says of a batch that was begun what has become of it and, if sending again can help, how to go on.
fn explain(error: anyhow::Error, name: &str, args: &Submit, stand: &Stand) -> anyhow::Error {
    let id = name.trim_start_matches("batches/");
    // A summary is of everything, so it begins anew.
    let place = if args.solving.summary { again::Point::default() } else { again::Point::of(stand) };
    let begins_later = place.token.is_some() || args.resume.is_some() || !place.skip.is_empty();
    let rest = match (args.detach, begins_later) {
        (true, _) if stand.is_sealed => "prints its results",
        (true, _) => "sends the rest",
        (false, true) => "prints the other results",
        (false, false) => "prints every result",
    };
    let again_readable = can_be_read_again(args);
    let (told, command) = if stand.is_sealed && (args.detach || !again_readable) {
        let command = again::results(&program(), args, id, &place);
        (format!("is complete and is solved on; this {rest}"), command)
    } else {
        let place = again::Point { id: Some(id.to_owned()), ..place };
        let state = if stand.is_sealed {
            "is complete and is solved on"
        } else {
            "stays, and what was sent of it is solved"
        };
        let input = if again_readable { "" } else { " with the same input" };
        let adds = if stand.is_sealed || args.detach { "" } else { "adds what is missing and " };
        let command = again::typed(std::env::args_os(), "submit", &place, &args.server);
        (format!("{state}: the same command{input} {adds}{rest}"), command)
    };
    again::not_finished(error, id, stand, &told, &command)
}

/// Whether all inputs are files: not standard input, nor what a shell puts in the place of one.
fn can_be_read_again(args: &Submit) -> bool {
    let is_file = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|found| found.is_file());
    !args.solving.files.is_empty() && args.solving.files.iter().all(is_file)
}

/// How this program was called.
fn program() -> OsString {
    std::env::args_os().next().unwrap_or_else(|| "sudoku-batch".into())
}

/// What sending tells to printing.
#[derive(Clone)]
struct Sent {
    places: Arc<Mutex<Places>>,
    /// Puzzles of this input that the server has: only their results are this command's to print.
    acknowledged: watch::Receiver<u64>,
}

impl Sent {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends and, unless it detaches, receives side by side.
async fn submit(
    args: Arc<Submit>,
    sender: Client,
    name: String,
    first: Vec<InputRecord>,
    input: Input,
    standing: Standing,
) -> anyhow::Result<Exit> {
    let (acknowledge, acknowledged) = watch::channel(0);
    let sent = Sent { places: Arc::default(), acknowledged };
    let progress = Arc::new(Progress::start(!args.solving.summary && !args.detach));
    let told = Told { acknowledge, progress: Arc::clone(&progress), standing: standing.clone() };
    let other = sender.clone();
    // A task of its own, for a reader who pauses must not keep the puzzles back. It ends with this one.
    let mut feeding = JoinSet::new();
    feeding.spawn(feed(sender, name.clone(), first, input, sent.clone(), told));
    if args.detach {
        let total = fed(&mut feeding).await?;
        drop(progress);
        return detached(&args, &name, total);
    }
    let mut printer = Printer::new(args.solving.writer(), args.solving.summary, standing.clone())?;
    let mut total = None;
    let received = {
        let mut receiving = Box::pin(receive(&args, other, &name, sent, &progress, &standing, &mut printer));
        tokio::select! {
            received = &mut receiving => received,
            fed = fed(&mut feeding) => match fed {
                Ok(fed) => {
                    total = Some(fed);
                    receiving.await
                }
                Err(error) => Err(error),
            },
        }
    };
    if total.is_none() && received.as_ref().is_err_and(anyhow::Error::is::<MorePuzzles>) {
        // Nothing more is sent. If that failed, its own error says why.
        total = Some(fed(&mut feeding).await?);
    }
    let gone = received.as_ref().is_err_and(|error| error.chain().any(output::is_closed_pipe));
    if total.is_none() && (received.is_ok() || (gone && can_be_read_again(&args))) {
        // A reader who has had enough of the results still wants them solved.
        total = Some(fed(&mut feeding).await?);
    }
    match received {
        Ok(batch) => finish(printer, &progress, total.unwrap_or_default(), &batch),
        Err(error) => {
            // What has come is the user's, also when the rest has not.
            printer.flush()?;
            Err(error)
        }
    }
}

/// The end of a submit that waits for nothing.
fn detached(args: &Submit, name: &str, total: u64) -> anyhow::Result<Exit> {
    output::announce(name)?;
    let id = name.trim_start_matches("batches/");
    let follow = again::results(&program(), args, id, &again::Point::default());
    output::complain(&format!(
        "{} puzzles submitted; this prints their results:\n  {follow}",
        grouped(total)
    ));
    Ok(Exit::Done)
}

/// Waits until everything is sent; gives how many that were.
async fn fed(feeding: &mut JoinSet<anyhow::Result<u64>>) -> anyhow::Result<u64> {
    feeding.join_next().await.context("the sending has ended already")?.context("sending failed")?
}

/// What sending tells to the others.
struct Told {
    acknowledge: watch::Sender<u64>,
    progress: Arc<Progress>,
    standing: Standing,
}

impl Told {
    fn acknowledged(&self, puzzles: u64) {
        self.acknowledge.send_replace(puzzles);
        self.progress.set_total(puzzles);
        self.standing.set(|stand| stand.total = puzzles);
    }
}

/// Keeps where records stood; gives their texts.
fn take_places(records: Vec<InputRecord>, sent: &Sent) -> Grids {
    let mut grids = Grids::with_capacity(records.len());
    let mut places = sent.places();
    for record in records {
        places.push(record.place);
        grids.push(&record.text);
    }
    grids
}

/// Sends all records in order and seals the batch; returns how many there were. A batch that is cancelled meanwhile takes no more of them.
async fn feed(
    client: Client,
    name: String,
    first: Vec<InputRecord>,
    mut input: Input,
    sent: Sent,
    told: Told,
) -> anyhow::Result<u64> {
    let (messages, mut inbox) = mpsc::channel(MESSAGES_AHEAD);
    // Reading blocks, so it has a thread of its own.
    let reading = tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        let mut records = first;
        while !records.is_empty() {
            if messages.blocking_send(records).is_err() {
                return Ok(());
            }
            records = input.take(MESSAGE_PUZZLES)?;
        }
        Ok(())
    });
    let mut appender = client.appender(&name, 0);
    let mut is_read = false;
    while !is_read || appender.is_busy() {
        // What is taken is told at once, also while nothing more comes to be sent.
        let step = tokio::select! {
            settled = appender.settled(), if appender.is_busy() => settled,
            records = inbox.recv(), if !is_read => if let Some(records) = records {
                appender.push(take_places(records, &sent)).await
            } else {
                is_read = true;
                Ok(())
            },
        };
        if let Err(error) = step {
            if was_cancelled(&client, &name, &error).await {
                return Ok(appender.acknowledged());
            }
            return Err(error.into());
        }
        told.acknowledged(appender.acknowledged());
    }
    let offset = appender.acknowledged();
    // An input that broke in the middle must not look like a complete one.
    reading.await.context("reading the input failed")??;
    match client.seal(&name, Some(offset)).await {
        Err(error) if !was_cancelled(&client, &name, &error).await => return Err(error.into()),
        Ok(_) | Err(_) => {}
    }
    told.standing.set(|stand| stand.is_sealed = true);
    Ok(offset)
}

/// Whether a batch took nothing more because somebody has cancelled it.
async fn was_cancelled(client: &Client, name: &str, error: &client::Error) -> bool {
    error.reason().as_deref() == Some("BATCH_NOT_OPEN")
        && client
            .get_batch(name)
            .await
            .is_ok_and(|batch| matches!(batch.state(), State::Cancelling | State::Cancelled))
}

/// Prints every result; returns the batch as it ended.
async fn receive(
    args: &Submit,
    client: Client,
    name: &str,
    mut sent: Sent,
    progress: &Progress,
    standing: &Standing,
    printer: &mut Printer,
) -> anyhow::Result<v1::Batch> {
    let mut start = if args.as_finished { Start::as_finished() } else { Start::ordered(0) };
    if let Some(token) = &args.resume {
        start = start.at(Position::Token(token.clone()));
    }
    let mut results = client.results(&resource_name(name), start).await?;
    while let Some(run) = results.next().await? {
        // An existing batch may have results of what this input has not come to, or may hold other puzzles altogether. A run is printed whole, for its
        // token stands for the whole.
        let end = run.last().map_or(0, |last| last.index + 1);
        if sent.acknowledged.wait_for(|count| *count >= end).await.is_err() {
            bail!(MorePuzzles);
        }
        let range = run.first().map_or(end, |first| first.index)..end;
        printer.begin_run(range.start);
        for result in run {
            if standing.has_printed(result.index) {
                continue;
            }
            let mut record = Record::of_result(result)?;
            let Some(place) = sent.places().get(record.index) else {
                bail!("result {} has no place in the input", record.index);
            };
            record.mark_unreadable(place);
            printer.print(&record, Some(place))?;
        }
        printer.end_run(&range, results.token().map(str::to_owned))?;
        progress.set_done(printer.summary.puzzles());
    }
    results.batch().cloned().context("a stream that has ended holds its batch")
}
