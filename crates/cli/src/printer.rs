//! Printing results as they come, or summing them up.

use std::io::Write as _;

use crate::{
    exit::Exit,
    lines::LineWriter,
    output,
    progress::Progress,
    record::{Place, Record},
    summary::Summary,
};

/// Prints results, or sums them up.
pub(crate) struct Printer {
    out: output::Results,
    writer: LineWriter,
    only_summary: bool,
    any_bad: bool,
    pub(crate) summary: Summary,
}

impl Printer {
    /// `only_summary`: counts instead of results.
    pub(crate) fn new(writer: LineWriter, only_summary: bool) -> Self {
        Self { out: output::results(), writer, only_summary, any_bad: false, summary: Summary::default() }
    }

    /// Prints one result; `place` is where it stood in its input, where that is known.
    pub(crate) fn print(&mut self, record: &Record, place: Option<Place>) -> std::io::Result<()> {
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
