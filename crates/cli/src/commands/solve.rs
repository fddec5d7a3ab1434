//! `solve`: the service's answers in this process, byte for byte.
//!
//! One thread reads, some solve, one hears of signals; this one prints, in the order of the input.

use std::{
    collections::BTreeMap,
    mem,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use solver::{Givens, PlacementLimit, Solver, StopFlag, Width};

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

/// Records that one thread takes at a time, at the most: 16, and later an eighth of what was read before up to 256, for the solver is fast in batches.
const TASK_RECORDS: [u64; 2] = [16, 256];
/// A slow input's records are not kept for a task to fill.
const TASK_TIME_MAX: Duration = Duration::from_millis(20);
/// Answers that are handed on to be printed together.
const ANSWERS_TOGETHER: usize = 16;
/// Tasks under way or waiting to be printed, for each thread: bounds what is read ahead of a hard puzzle.
const TASKS_AHEAD: u64 = 16;
/// A command that is still there so long after a signal is ended all the same.
const END_MAX: Duration = Duration::from_secs(1);

struct Task {
    first_index: u64,
    records: Vec<InputRecord>,
}

/// What the printing thread hears of.
enum Event {
    /// So many more records were read, as one task.
    Read(u64),
    /// The input has ended, or failed.
    End(anyhow::Result<()>),
    /// A part of a task was answered.
    Answered(Answered),
    /// The user stops the command.
    Interrupted,
}

/// Answers of neighbouring records.
struct Answered {
    first_index: u64,
    answers: Vec<(Record, Place)>,
    /// The task is done.
    is_last: bool,
}

pub(crate) fn run(args: &Solve) -> anyhow::Result<Exit> {
    let threads = args.threads.unwrap_or_else(cores);
    let input = Input::open(&args.solving.files)?;
    let (events, heard) = mpsc::channel();
    watch_signals(events.clone())?;
    let (tasks, inbox) = mpsc::channel();
    let inbox = Arc::new(Mutex::new(inbox));
    let (limit, width) = (args.solving.placement_limit.0, args.width.get());
    // No thread is joined: when the command ends, it ends at once, whatever is being read or searched.
    for number in 0..threads {
        let (inbox, events) = (Arc::clone(&inbox), events.clone());
        spawn(format!("solver-{number}"), move || work(&inbox, &events, limit, width))?;
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
    let mut first_index = 0;
    while permits.recv().is_ok() {
        let [first, last] = TASK_RECORDS;
        let count = usize::try_from((first_index / 8).clamp(first, last))?;
        let records = input.take_within(count, TASK_TIME_MAX)?;
        if records.is_empty() {
            break;
        }
        let count = records.len() as u64;
        // Errors mean that the command is at its end. Told before it is handed out, so that no answer comes first.
        if events.send(Event::Read(count)).is_err() || tasks.send(Task { first_index, records }).is_err() {
            break;
        }
        first_index += count;
    }
    if first_index == 0 { Err(input.nothing()) } else { Ok(()) }
}

/// One solver thread: takes tasks until there are no more.
fn work(
    inbox: &Mutex<mpsc::Receiver<Task>>,
    events: &mpsc::Sender<Event>,
    limit: PlacementLimit,
    width: Width,
) {
    let mut solver = Solver::new(width);
    loop {
        let task = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        if answer(&mut solver, &task, events, limit).is_break() {
            return;
        }
    }
}

/// Answers a task and hands the answers on, a few at a time; breaks off when nobody listens any more.
fn answer(
    solver: &mut Solver,
    task: &Task,
    events: &mpsc::Sender<Event>,
    limit: PlacementLimit,
) -> ControlFlow<()> {
    let batch: Vec<_> = task.records.iter().map(|record| Givens::parse(&record.text)).collect();
    let mut places = task.records.iter().map(|record| record.place);
    let mut next_index = task.first_index;
    let mut answers = Vec::new();
    let mut flow = ControlFlow::Continue(());
    // Nobody raises the flag.
    let answered = solver.answer(&batch, limit, &StopFlag::new(), |verdict| {
        let Some(place) = places.next() else { return ControlFlow::Break(()) };
        let mut shown = Record::of_verdict(next_index, &verdict);
        shown.mark_unreadable(place);
        answers.push((shown, place));
        next_index += 1;
        let is_last = places.len() == 0;
        if is_last || answers.len() == ANSWERS_TOGETHER {
            let first_index = next_index - answers.len() as u64;
            let part = Answered { first_index, answers: mem::take(&mut answers), is_last };
            if events.send(Event::Answered(part)).is_err() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    });
    answered.map_or(ControlFlow::Break(()), |()| flow)
}

/// Prints answers in order until the input has ended and all of it is answered.
fn print(args: &Solve, heard: &mpsc::Receiver<Event>, permits: &mpsc::Sender<()>) -> anyhow::Result<Exit> {
    let progress = Progress::start(!args.solving.summary);
    let mut printer = Printer::new(args.solving.writer(), args.solving.summary, Standing::default())?;
    let mut waiting: BTreeMap<u64, Answered> = BTreeMap::new();
    let (mut next_index, mut total) = (0_u64, 0_u64);
    let mut end = None;
    while end.is_none() || next_index < total {
        let event = if let Ok(event) = heard.try_recv() {
            event
        } else {
            // Before a wait, what was printed reaches its reader.
            printer.flush()?;
            heard.recv().context("all threads are gone")?
        };
        match event {
            Event::Read(count) => {
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
            Event::Answered(part) => {
                waiting.insert(part.first_index, part);
            }
        }
        while let Some(part) = waiting.remove(&next_index) {
            for (record, place) in &part.answers {
                printer.print(record, Some(*place))?;
            }
            next_index += part.answers.len() as u64;
            progress.set_done(printer.summary.puzzles());
            if part.is_last {
                // An error means that the reader has come to its end.
                permits.send(()).ok();
            }
        }
    }
    if let Some(Err(error)) = end {
        // What came before the fault is the user's.
        printer.flush()?;
        return Err(error);
    }
    printer.finish(&progress, total, "")
}
