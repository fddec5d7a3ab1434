//! `solve`: the service's answers in this process, byte for byte.

use std::{
    collections::BTreeMap,
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use solver::{Givens, PlacementLimit, StopFlag, Verdict, answer};

use crate::{
    args::{Solve, Solving},
    exit::{Exit, NotFinishedError},
    input::{Input, InputRecord},
    lines::LineWriter,
    output,
    progress::Progress,
    record::{Place, Record},
    signals::stop,
    summary::Summary,
};

/// Records that one thread takes at a time.
const TASK_RECORDS: usize = 16;
/// Tasks under way or waiting to be printed, for each thread: bounds what is read ahead of a hard puzzle.
const TASKS_AHEAD: usize = 64;

struct Task {
    number: u64,
    first_index: u64,
    records: Vec<InputRecord>,
}

type Answers = (u64, Vec<(Record, Place)>);

/// Set by SIGINT and SIGTERM.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// How often a waiting command looks at it.
const LOOK: Duration = Duration::from_millis(100);
/// A command that is still there so long after a signal waits for its input: it is ended.
const END_MAX: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &Solve) -> anyhow::Result<Exit> {
    watch_signals()?;
    let threads = args.threads.map_or_else(cores, |threads| threads as usize);
    let mut input = Input::open(&args.solving.files)?;
    let first = input.take(TASK_RECORDS)?;
    if first.is_empty() {
        return Err(input.nothing());
    }
    let limit = args.solving.placement_limit.0;
    let (tasks, inbox) = mpsc::channel::<Task>();
    let inbox = Arc::new(Mutex::new(inbox));
    let (outbox, answers) = mpsc::channel::<Answers>();
    for number in 0..threads {
        let (inbox, outbox) = (Arc::clone(&inbox), outbox.clone());
        // Not joined: when printing fails the command ends at once, whatever is being searched.
        thread::Builder::new()
            .name(format!("solver-{number}"))
            .spawn(move || work(&inbox, &outbox, limit))
            .context("cannot start a solver thread")?;
    }
    drop(outbox);
    pump(&args.solving, &mut input, first, &tasks, &answers, threads * TASKS_AHEAD)
}

/// Hears of signals on a thread of its own.
fn watch_signals() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stopped = runtime.block_on(async { stop(false) })?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(stopped);
            INTERRUPTED.store(true, Ordering::Relaxed);
            thread::sleep(END_MAX);
            output::complain("error: interrupted");
            std::process::exit(Exit::NotFinished.code().into());
        })
        .context("cannot watch for signals")?;
    Ok(())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// One thread: takes tasks until there are no more.
fn work(inbox: &Mutex<mpsc::Receiver<Task>>, outbox: &mpsc::Sender<Answers>, limit: PlacementLimit) {
    let never = StopFlag::new();
    loop {
        let task = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        let answered = (task.first_index..)
            .zip(task.records)
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
        if outbox.send((task.number, answered)).is_err() {
            return;
        }
    }
}

/// Hands tasks out and prints answers in order, with at most `ahead_max` tasks under way.
fn pump(
    solving: &Solving,
    input: &mut Input,
    first: Vec<InputRecord>,
    tasks: &mpsc::Sender<Task>,
    answers: &mpsc::Receiver<Answers>,
    ahead_max: usize,
) -> anyhow::Result<Exit> {
    let progress = Progress::start(!solving.summary);
    let mut printer = Printer::new(solving);
    let mut waiting: BTreeMap<u64, Vec<(Record, Place)>> = BTreeMap::new();
    let (mut handed_out, mut shown, mut total) = (0_u64, 0_u64, 0_u64);
    let mut next = Some(first);
    loop {
        while handed_out - shown < ahead_max as u64 {
            let Some(records) = next.take() else { break };
            let count = records.len() as u64;
            tasks
                .send(Task { number: handed_out, first_index: total, records })
                .map_err(|_| anyhow::anyhow!("all solver threads are gone"))?;
            handed_out += 1;
            total += count;
            next = Some(input.take(TASK_RECORDS)?).filter(|records| !records.is_empty());
            progress.set_total(total);
        }
        if shown == handed_out {
            break;
        }
        let (number, records) = if let Ok(answered) = answers.try_recv() {
            answered
        } else {
            // Before a wait, what was printed reaches its reader.
            printer.flush()?;
            wait(answers, &printer, total)?
        };
        waiting.insert(number, records);
        while let Some(records) = waiting.remove(&shown) {
            for (record, place) in &records {
                printer.print(record, *place)?;
            }
            shown += 1;
            progress.set_done(printer.summary.puzzles());
        }
    }
    printer.finish(progress, total, "")
}

/// The next answers, unless the user stops the command before they come.
fn wait(answers: &mpsc::Receiver<Answers>, printer: &Printer, total: u64) -> anyhow::Result<Answers> {
    loop {
        match answers.recv_timeout(LOOK) {
            Ok(answered) => return Ok(answered),
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("all solver threads are gone"),
            Err(mpsc::RecvTimeoutError::Timeout) if INTERRUPTED.load(Ordering::Relaxed) => {
                let done = printer.summary.puzzles();
                bail!(NotFinishedError(format!(
                    "interrupted after {done} of the {total} puzzles read so far"
                )))
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Prints results, or sums them up.
pub(crate) struct Printer {
    out: output::Results,
    writer: LineWriter,
    only_summary: bool,
    any_bad: bool,
    pub(crate) summary: Summary,
}

impl Printer {
    pub(crate) fn new(solving: &Solving) -> Self {
        Self {
            out: output::results(),
            writer: LineWriter { format: solving.output, limit: solving.placement_limit.0 },
            only_summary: solving.summary,
            any_bad: false,
            summary: Summary::default(),
        }
    }

    pub(crate) fn print(&mut self, record: &Record, place: Place) -> std::io::Result<()> {
        self.any_bad |= record.is_bad();
        self.summary.add(record);
        if self.only_summary { Ok(()) } else { self.writer.write(&mut self.out, record, place) }
    }

    /// What was shown reaches its reader.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }

    /// Prints what is left and tells the end of the command.
    pub(crate) fn finish(mut self, progress: Progress, total: u64, rest: &str) -> anyhow::Result<Exit> {
        let done = self.summary.puzzles();
        let outcomes = self.summary.outcomes();
        if self.only_summary {
            self.summary.write(&mut self.out, self.writer.format)?;
        }
        self.out.flush()?;
        progress.finish(done, total, &format!("{outcomes}{rest}"));
        Ok(if self.any_bad { Exit::SomeBad } else { Exit::Done })
    }
}
