//! Printing results as they come, or summing them up.

use std::io::Write as _;

use crate::{
    args::Solving,
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
