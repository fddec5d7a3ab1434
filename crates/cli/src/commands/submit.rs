//! `submit`: puzzles to a server as one batch, results to stdout.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use client::{Client, MESSAGE_PUZZLES, NewBatch, Start};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::{
    args::Submit,
    commands::{
        get::{connect, resource_name},
        solve::Printer,
    },
    exit::{Exit, NotFinishedError},
    input::{Input, InputRecord, Places},
    output,
    progress::Progress,
    record::{Place, Record},
};

/// Messages that are read ahead of the server.
const MESSAGES_AHEAD: usize = 4;

/// What reading the input tells to printing the results.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Places>>);

impl Sent {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn run(args: Submit) -> anyhow::Result<Exit> {
    let mut input = Input::open(&args.solving.files)?;
    let mut client = connect(&args.server).await?;
    let (first, input) = tokio::task::spawn_blocking(move || (input.take(MESSAGE_PUZZLES), input)).await?;
    let first = first?;
    if first.is_empty() {
        return Err(input.nothing());
    }
    let batch = client
        .create_batch(NewBatch {
            id: args.id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            placement_limit: Some(args.solving.placement_limit.0.0),
            display_name: shortened(input.names()),
            ..NewBatch::default()
        })
        .await?;
    if args.detach {
        return detach(client, &batch.name, first, input).await;
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let ended = tokio::select! {
        ended = submit(&args, client, &batch.name, first, input) => ended,
        _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow::anyhow!("interrupted")),
    };
    ended.map_err(|error| explain(error, &batch.name, &args))
}

/// What a display name may hold at the most.
fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Says of a batch that was begun what has become of it and how to go on.
fn explain(error: anyhow::Error, name: &str, args: &Submit) -> anyhow::Error {
    let is_closed_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    });
    let is_refused = matches!(
        error.downcast_ref::<client::Error>(),
        Some(error) if !error.is_transient()
    );
    if is_closed_pipe || is_refused {
        return error;
    }
    let id = name.trim_start_matches("batches/");
    let files: Vec<String> = args.solving.files.iter().map(|file| file.display().to_string()).collect();
    NotFinishedError(format!(
        "{error:#}; the batch {id} stays and goes on as far as it was sent: look at it with `sudoku-batch get {id} --server {0}`, or send \
         the same puzzles again with `sudoku-batch submit {1} --id {id} --server {0}`, which adds what is missing and prints every result",
        args.server.server,
        files.join(" "),
    ))
    .into()
}

async fn detach(
    mut client: Client,
    name: &str,
    first: Vec<InputRecord>,
    input: Input,
) -> anyhow::Result<Exit> {
    let sent = Sent::default();
    let total = feed(&mut client, name, first, input, &sent, &|_| {}).await?;
    output::announce(name)?;
    output::complain(&format!("{total} puzzles submitted; follow them with `sudoku-batch get {name}`"));
    Ok(Exit::Done)
}

/// Sends and receives side by side.
async fn submit(
    args: &Submit,
    client: Client,
    name: &str,
    first: Vec<InputRecord>,
    input: Input,
) -> anyhow::Result<Exit> {
    let sent = Sent::default();
    let progress = Progress::start();
    let mut printer = Printer::new(&args.solving);
    let mut sender = client.clone();
    let on_sent = |total| progress.set_total(total);
    let feeding = feed(&mut sender, name, first, input, &sent, &on_sent);
    let receiving = receive(args, client, name, &sent, &progress, &mut printer);
    match tokio::try_join!(feeding, receiving) {
        Ok((total, ())) => printer.finish(progress, total, &format!("; {name}")),
        Err(error) => {
            progress.abandon();
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
    on_sent: &(dyn Fn(u64) + Sync),
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
            // Told before they are sent, so that no result comes before its place.
            let mut places = sent.places();
            for record in records {
                places.push(record.place);
                puzzles.push(record.text);
            }
        }
        offset = client.append(name, Some(offset), puzzles).await?;
        on_sent(offset);
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
    sent: &Sent,
    progress: &Progress,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let start = if args.as_finished { Start::as_finished() } else { Start::ordered(0) };
    let mut results = client.results(&resource_name(name), start).await?;
    while let Some(run) = results.next().await? {
        for result in run {
            let mut record = Record::of_result(result)?;
            // An existing batch may hold more than this input: those results have no line here.
            let place = sent.places().get(record.index).unwrap_or(Place { line: 0, unreadable: false });
            record.mark_unreadable(place);
            printer.print(&record, place)?;
        }
        printer.flush()?;
        progress.set_done(printer.summary.puzzles());
    }
    Ok(())
}
