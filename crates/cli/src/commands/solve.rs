//! `solve`: the service's answers in this process, byte for byte.

use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use anyhow::Context as _;
use solver::{Givens, PlacementLimit, StopFlag, Verdict, answer};

use crate::{
    args::{Solve, Solving},
    exit::Exit,
    input::{Input, InputRecord},
    lines::LineWriter,
    output,
    progress::Progress,
    record::{Place, Record},
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

pub(crate) fn run(args: &Solve) -> anyhow::Result<Exit> {
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
                    // Nobody raises this flag.
                    Ok(givens) => answer(&givens, limit, &never).unwrap_or(Verdict::Cancelled),
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
    let progress = Progress::start();
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
        let (number, records) = answers.recv().context("all solver threads are gone")?;
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

/// Prints results, or sums them up.
pub(crate) struct Printer {
    out: std::io::BufWriter<std::io::Stdout>,
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
