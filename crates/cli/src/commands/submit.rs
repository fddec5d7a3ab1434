//! `submit`: puzzles to a server as one batch, results to stdout.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, bail};
use client::{Client, MESSAGE_PUZZLES, NewBatch, Start};
use tokio::sync::{mpsc, watch};

use crate::{
    args::Submit,
    connection::{connect, resource_name},
    exit::{Exit, NotFinishedError},
    input::{Input, InputRecord, Places},
    output,
    printer::Printer,
    progress::Progress,
    record::Record,
    signals::stop,
};

/// Messages that are read ahead of the server.
const MESSAGES_AHEAD: usize = 4;

/// The user's own stop, as an error.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

pub(crate) async fn run(args: Submit) -> anyhow::Result<Exit> {
    let mut stopped = Box::pin(stop(false)?);
    let (client, name, first, input) = tokio::select! {
        begun = begin(&args) => begun?,
        _ = &mut stopped => bail!(NotFinishedError("interrupted before anything was sent".to_owned())),
    };
    let ended = tokio::select! {
        ended = submit(&args, client, &name, first, input) => ended,
        _ = stopped => Err(Interrupted.into()),
    };
    ended.map_err(|error| explain(error, &name, &args))
}

/// Opens the inputs, connects, reads the first records and makes the batch.
async fn begin(args: &Submit) -> anyhow::Result<(Client, String, Vec<InputRecord>, Input)> {
    let mut input = Input::open(&args.solving.files)?;
    let mut client = connect(&args.server).await?;
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
    let batch =
        client.create_batch(new).await.with_context(|| format!("the server at {}", args.server.server))?;
    Ok((client, batch.name, first, input))
}

/// Says of a batch that was begun what has become of it and, if sending again can help, how to go on.
fn explain(error: anyhow::Error, name: &str, args: &Submit) -> anyhow::Error {
    if error.chain().any(output::is_closed_pipe) {
        return error;
    }
    let id = name.trim_start_matches("batches/");
    let goes_on = error.is::<Interrupted>()
        || error.downcast_ref::<client::Error>().is_some_and(client::Error::is_transient);
    if !goes_on {
        return error.context(format!("batch {id}"));
    }
    let same_input = if reads_standard_input(args) { " with the same standard input" } else { "" };
    NotFinishedError(format!(
        "{error:#}; the batch {id} stays, and what was sent of it is solved: the same command{same_input} adds what is missing and prints \
         every result:\n  {}",
        again(std::env::args(), id)
    ))
    .into()
}

fn reads_standard_input(args: &Submit) -> bool {
    args.solving.files.is_empty() || args.solving.files.iter().any(|file| file.as_os_str() == "-")
}

/// The command as it was typed, for a shell, with the batch's id.
fn again(typed: impl Iterator<Item = String>, id: &str) -> String {
    let mut words = vec!["sudoku-batch".to_owned()];
    let mut has_id = false;
    for word in typed.skip(1) {
        has_id |= word == "--id" || word.starts_with("--id=");
        words.push(shlex::try_quote(&word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned));
    }
    if !has_id {
        words.extend(["--id".to_owned(), id.to_owned()]);
    }
    words.join(" ")
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
    args: &Submit,
    mut sender: Client,
    name: &str,
    first: Vec<InputRecord>,
    input: Input,
) -> anyhow::Result<Exit> {
    let (acknowledge, acknowledged) = watch::channel(0);
    let sent = Sent { places: Arc::default(), acknowledged };
    let progress = Progress::start(!args.solving.summary && !args.detach);
    let receiver = sender.clone();
    let feeding = feed(&mut sender, name, first, input, &sent, acknowledge, &progress);
    if args.detach {
        let total = feeding.await?;
        drop(progress);
        output::announce(name)?;
        output::complain(&format!("{total} puzzles submitted; follow them with `sudoku-batch get {name}`"));
        return Ok(Exit::Done);
    }
    let mut printer = Printer::new(&args.solving);
    let receiving = receive(args, receiver, name, sent.clone(), &progress, &mut printer);
    match tokio::try_join!(feeding, receiving) {
        Ok((total, ())) => printer.finish(progress, total, &format!("; {name}")),
        Err(error) => {
            // What has come is the user's, also when the rest has not.
            printer.flush()?;
            Err(error)
        }
    }
}

/// Sends all records in order and seals the batch; returns how many there were.
async fn feed(
    client: &mut Client,
    name: &str,
    first: Vec<InputRecord>,
    mut input: Input,
    sent: &Sent,
    acknowledge: watch::Sender<u64>,
    progress: &Progress,
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
    let mut offset = 0;
    while let Some(records) = inbox.recv().await {
        let mut puzzles = Vec::with_capacity(records.len());
        {
            let mut places = sent.places();
            for record in records {
                places.push(record.place);
                puzzles.push(record.text);
            }
        }
        offset = client.append(name, Some(offset), puzzles).await?;
        acknowledge.send_replace(offset);
        progress.set_total(offset);
    }
    // An input that broke in the middle must not look like a complete one.
    reading.await.context("reading the input failed")??;
    client.seal(name, Some(offset)).await?;
    Ok(offset)
}

/// Prints every result.
async fn receive(
    args: &Submit,
    mut client: Client,
    name: &str,
    mut sent: Sent,
    progress: &Progress,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let start = if args.as_finished { Start::as_finished() } else { Start::ordered(0) };
    let mut results = client.results(&resource_name(name), start).await?;
    while let Some(run) = results.next().await? {
        for result in run {
            // An existing batch may have results of what this input has not come to, or may hold other puzzles altogether.
            if *sent.acknowledged.borrow() <= result.index {
                printer.flush()?;
            }
            if sent.acknowledged.wait_for(|count| *count > result.index).await.is_err() {
                bail!("the batch holds more puzzles than this input");
            }
            let mut record = Record::of_result(result)?;
            let Some(place) = sent.places().get(record.index) else {
                bail!("result {} has no place in the input", record.index);
            };
            record.mark_unreadable(place);
            printer.print(&record, place)?;
        }
        printer.flush()?;
        progress.set_done(printer.summary.puzzles());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_is_the_one_that_was_typed_and_names_the_batch() {
        let typed = |words: &[&str]| {
            again(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter(), "abcd")
        };
        assert_eq!(
            typed(&["/x/sudoku-batch", "submit", "my file", "--tenant", "alice", "--placement-limit=off"]),
            "sudoku-batch submit 'my file' --tenant alice '--placement-limit=off' --id abcd"
        );
        assert_eq!(typed(&["sb", "submit", "--id", "abcd", "f"]), "sudoku-batch submit --id abcd f");
        assert_eq!(typed(&["sb", "submit", "--id=abcd", "f"]), "sudoku-batch submit '--id=abcd' f");
    }
}
