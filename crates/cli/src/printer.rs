//! Printing results as they come, or summing them up.

use std::ops::Range;

use crate::{
    exit::Exit,
    interrupt::Standing,
    lines::{LineWriter, grouped},
    output::{self, LinePieces},
    progress::Progress,
    record::{Place, Record},
    summary::Summary,
};

/// Prints results, or sums them up.
pub(crate) struct Printer {
    out: LinePieces,
    line: Vec<u8>,
    writer: LineWriter,
    only_summary: bool,
    any_bad: bool,
    standing: Standing,
    /// First index of the run that is being printed.
    run: Option<u64>,
    /// Index after the last line.
    end: u64,
    pub(crate) summary: Summary,
}

impl Printer {
    /// `only_summary`: counts instead of results. What has been written out is told to `standing`.
    pub(crate) fn new(writer: LineWriter, only_summary: bool, standing: Standing) -> std::io::Result<Self> {
        Ok(Self {
            out: LinePieces::new(standing.stop_flag())?,
            line: Vec::new(),
            writer,
            only_summary,
            any_bad: false,
            standing,
            run: None,
            end: 0,
            summary: Summary::default(),
        })
    }

    /// A run of results begins: what is printed of it is kept apart until it is printed whole.
    pub(crate) fn begin_run(&mut self, first_index: u64) {
        self.run = Some(first_index);
    }

    /// The run has ended, and `token` stands for it and all before it.
    pub(crate) fn end_run(&mut self, run: &Range<u64>, token: Option<String>) -> std::io::Result<()> {
        self.flush()?;
        self.run = None;
        let counted = if self.only_summary { self.summary.puzzles() } else { 0 };
        self.standing.set(|stand| {
            stand.end_run(run, token);
            stand.printed = stand.printed.max(counted);
        });
        Ok(())
    }

    /// Prints one result; `place` is where it stood in its input, where that is known.
    pub(crate) fn print(&mut self, record: &Record, place: Option<Place>) -> std::io::Result<()> {
        self.any_bad |= record.is_bad();
        self.summary.add(record);
        if self.only_summary {
            return Ok(());
        }
        self.line.clear();
        self.writer.write(&mut self.line, record, place)?;
        let written = self.out.push(&self.line)?;
        self.tell(written);
        self.end = record.index + 1;
        Ok(())
    }

    /// What was shown reaches its reader.
    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        let written = self.out.flush()?;
        self.tell(written);
        Ok(())
    }

    /// So many lines more, the last of them that of `end`, have been written out.
    fn tell(&mut self, written: u64) {
        if written > 0 {
            let part = self.run.map(|first| first..self.end);
            self.standing.set(|stand| {
                stand.printed += written;
                stand.part = part;
            });
        }
    }

    /// Some of the inputs were bad, although perhaps not of those that were printed here.
    pub(crate) fn mark_bad(&mut self) {
        self.any_bad = true;
    }

    /// Prints what is left and tells the end of the command. `rest` is told too.
    pub(crate) fn finish(mut self, progress: &Progress, total: u64, rest: &str) -> anyhow::Result<Exit> {
        let done = self.summary.puzzles();
        let outcomes = self.summary.outcomes();
        self.flush()?;
        if self.only_summary {
            let mut out = output::results();
            self.summary.write(&mut out, self.writer.format)?;
            std::io::Write::flush(&mut out)?;
        }
        let told = if self.standing.get().is_rest {
            format!("{} more results of {} puzzles", grouped(done), grouped(total))
        } else {
            format!("{}/{} puzzles", grouped(done), grouped(total))
        };
        let outcomes = if outcomes.is_empty() { outcomes } else { format!(": {outcomes}") };
        progress.finish(&told, &format!("{outcomes}{rest}"));
        Ok(if self.any_bad { Exit::SomeBad } else { Exit::Done })
    }
}
