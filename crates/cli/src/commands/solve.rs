//! `solve`: the service's answers in this process, byte for byte.
//!
//! One thread reads, some solve, one hears of signals; this one prints, in the order of the input.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use solver::{Givens, PlacementLimit, StopFlag, Verdict, answer};

use crate::{
    args::Solve,
    exit::{Exit, NotFinishedError},
    input::{Input, InputRecord},
    interrupt::Standing,
    machine::cores,
    output,
    printer::Printer,
    progress::Progress,
    record::{Place, Record},
    signals::stop,
};

/// Records that one thread takes at a time.
const TASK_RECORDS: usize = 16;
/// Tasks under way or waiting to be printed, for each thread: bounds what is read ahead of a hard puzzle.
const TASKS_AHEAD: u64 = 64;
/// A command that is still there so long after a signal is ended all the same.
const END_MAX: Duration = Duration::from_secs(1);

struct Task {
    number: u64,
    first_index: u64,
    records: Vec<InputRecord>,
}

/// What the printing thread hears of.
enum Event {
    /// So many more records were read, as one task.
    Read(u64),
    /// The input has ended, or failed.
    End(anyhow::Result<()>),
    /// A task was answered.
    Answered { number: u64, answers: Vec<(Record, Place)> },
    /// The user stops the command.
    Interrupted,
}

pub(crate) fn run(args: &Solve) -> anyhow::Result<Exit> {
    let threads = args.threads.unwrap_or_else(cores);
    let input = Input::open(&args.solving.files)?;
    let (events, heard) = mpsc::channel();
    watch_signals(events.clone())?;
    let (tasks, inbox) = mpsc::channel();
    let inbox = Arc::new(Mutex::new(inbox));
    let limit = args.solving.placement_limit.0;
    // No thread is joined: when the command ends, it ends at once, whatever is being read or searched.
    for number in 0..threads {
        let (inbox, events) = (Arc::clone(&inbox), events.clone());
        spawn(format!("solver-{number}"), move || work(&inbox, &events, limit))?;
    }
    let (permits, taken) = mpsc::channel();
    for _ in 0..u64::from(threads) * TASKS_AHEAD {
        // Cannot fail: the other end is in this function.
        permits.send(()).ok();
    }
    spawn("reader".to_owned(), move || {
        let ended = read(input, &taken, &tasks, &events);
        events.send(Event::End(ended)).ok();
    })?;
    print(args, &heard, &permits)
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    thread::Builder::new().name(name).spawn(work).context("cannot start a thread")?;
    Ok(())
}

fn watch_signals(events: mpsc::Sender<Event>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stopped = runtime.block_on(async { stop(false) })?;
    spawn("signals".to_owned(), move || {
        runtime.block_on(stopped);
        // An error means that the command is at its end.
        events.send(Event::Interrupted).ok();
        thread::sleep(END_MAX);
        output::last_words("error: interrupted".to_owned());
        std::process::exit(Exit::NotFinished.code().into());
    })
}

/// Cuts the input into tasks, one for each permit.
fn read(
    mut input: Input,
    permits: &mpsc::Receiver<()>,
    tasks: &mpsc::Sender<Task>,
    events: &mpsc::Sender<Event>,
) -> anyhow::Result<()> {
    let (mut number, mut first_index) = (0, 0);
    while permits.recv().is_ok() {
        let records = input.take(TASK_RECORDS)?;
        if records.is_empty() {
            break;
        }
        let count = records.len() as u64;
        // Errors mean that the command is at its end. Told before it is handed out, so that no answer comes first.
        if events.send(Event::Read(count)).is_err()
            || tasks.send(Task { number, first_index, records }).is_err()
        {
            break;
        }
        number += 1;
        first_index += count;
    }
    if first_index == 0 { Err(input.nothing()) } else { Ok(()) }
}

/// One solver thread: takes tasks until there are no more.
fn work(inbox: &Mutex<mpsc::Receiver<Task>>, events: &mpsc::Sender<Event>, limit: PlacementLimit) {
    let never = StopFlag::new();
    loop {
        let task = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { number, first_index, records }) = task else { return };
        let answers = (first_index..)
            .zip(records)
            .map(|(index, record)| {
                let verdict = match Givens::parse(&record.text) {
                    Err(invalid) => Verdict::Invalid(invalid),
                    // A panic of the solver fails its own puzzle, as in the service. Nobody raises the flag.
                    Ok(givens) => catch_unwind(AssertUnwindSafe(|| answer(&givens, limit, &never)))
                        .map_or(Verdict::Failed, |answered| answered.unwrap_or(Verdict::Cancelled)),
                };
                let mut shown = Record::of_verdict(index, &verdict);
                shown.mark_unreadable(record.place);
                (shown, record.place)
            })
            .collect();
        if events.send(Event::Answered { number, answers }).is_err() {
            return;
        }
    }
}

/// Prints answers in order until the input has ended and all of it is answered.
fn print(args: &Solve, heard: &mpsc::Receiver<Event>, permits: &mpsc::Sender<()>) -> anyhow::Result<Exit> {
    let progress = Progress::start(!args.solving.summary);
    let mut printer = Printer::new(args.solving.writer(), args.solving.summary, Standing::default())?;
    let mut waiting: BTreeMap<u64, Vec<(Record, Place)>> = BTreeMap::new();
    let (mut tasks, mut next, mut total) = (0_u64, 0_u64, 0_u64);
    let mut end = None;
    while end.is_none() || next < tasks {
        let event = if let Ok(event) = heard.try_recv() {
            event
        } else {
            // Before a wait, what was printed reaches its reader.
            printer.flush()?;
            heard.recv().context("all threads are gone")?
        };
        match event {
            Event::Read(count) => {
                tasks += 1;
                total += count;
                progress.set_total(total);
            }
            Event::End(ended) => end = Some(ended),
            Event::Interrupted => {
                printer.flush()?;
                let done = printer.summary.puzzles();
                bail!(NotFinishedError(format!(
                    "interrupted after {done} of the {total} puzzles read so far"
                )));
            }
            Event::Answered { number, answers } => {
                waiting.insert(number, answers);
            }
        }
        while let Some(answers) = waiting.remove(&next) {
            for (record, place) in &answers {
                printer.print(record, Some(*place))?;
            }
            next += 1;
            progress.set_done(printer.summary.puzzles());
            // An error means that the reader has come to its end.
            permits.send(()).ok();
        }
    }
    if let Some(Err(error)) = end {
        // What came before the fault is the user's.
        printer.flush()?;
        return Err(error);
    }
    printer.finish(&progress, total, "")
}
