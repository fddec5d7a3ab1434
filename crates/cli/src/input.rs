//! Input files and standard input, read as one run of records.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use formats::{Content, Records};

use crate::record::Place;

/// A record of the whole input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InputRecord {
    /// What travels; empty for what could not be read.
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// All inputs, opened: a missing file is told before anything is sent.
pub(crate) struct Input {
    sources: Vec<Source>,
    /// All of them, for messages.
    names: String,
}

struct Source {
    name: String,
    records: Records<Box<dyn BufRead + Send>>,
}

impl Input {
    /// Opens files, `-` being standard input; none at all is standard input too.
    pub(crate) fn open(files: &[PathBuf]) -> anyhow::Result<Self> {
        let standard = [PathBuf::from("-")];
        let files = if files.is_empty() { &standard[..] } else { files };
        let mut sources = Vec::new();
        for file in files.iter().rev() {
            sources.push(open(file)?);
        }
        let names: Vec<&str> = sources.iter().rev().map(|source| &*source.name).collect();
        let names = names.join(", ");
        Ok(Self { sources, names })
    }

    /// The names of the inputs, for messages.
    pub(crate) fn names(&self) -> &str {
        &self.names
    }

    /// The next record; `None` at the end of the last input.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<InputRecord>> {
        while let Some(source) = self.sources.last_mut() {
            let Some(record) = source.records.next() else {
                self.sources.pop();
                continue;
            };
            let record = record.with_context(|| format!("cannot read {}", source.name))?;
            let (text, unreadable) = match record.content {
                Content::Puzzle(text) => (text, false),
                Content::Unreadable => (String::new(), true),
            };
            return Ok(Some(InputRecord { text, place: Place { line: record.line, unreadable } }));
        }
        Ok(None)
    }

    /// Up to `count` records; empty at the end.
    pub(crate) fn take(&mut self, count: usize) -> anyhow::Result<Vec<InputRecord>> {
        self.take_within(count, Duration::MAX)
    }

    /// The same, and no more once so much time has passed: one at least, unless it is the end.
    pub(crate) fn take_within(&mut self, count: usize, time: Duration) -> anyhow::Result<Vec<InputRecord>> {
        let began = Instant::now();
        let mut records = Vec::new();
        while records.len() < count {
            let Some(record) = self.next()? else { break };
            records.push(record);
            if began.elapsed() >= time {
                break;
            }
        }
        Ok(records)
    }

    /// The error of an input without any puzzle.
    pub(crate) fn nothing(&self) -> anyhow::Error {
        anyhow::anyhow!("there is no puzzle in {}", self.names())
    }
}

fn open(file: &Path) -> anyhow::Result<Source> {
    let (name, reader): (String, Box<dyn BufRead + Send>) = if file == Path::new("-") {
        ("standard input".to_owned(), Box::new(BufReader::new(io::stdin())))
    } else {
        let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        if opened.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            bail!("cannot read {}: it is a folder", file.display());
        }
        (file.display().to_string(), Box::new(BufReader::with_capacity(1 << 16, opened)))
    };
    Ok(Source { name, records: Records::new(reader) })
}

/// Remembers where each index stood, in runs: one for every stretch of neighbouring lines.
#[derive(Clone, Default, Debug)]
pub(crate) struct Places {
    /// First index of a run, and the place of that index.
    runs: Vec<(u64, Place)>,
    count: u64,
}

impl Places {
    /// Adds the place of the next index.
    pub(crate) fn push(&mut self, place: Place) {
        if self.extended(self.count) != Some(place) {
            self.runs.push((self.count, place));
        }
        self.count += 1;
    }

    /// The place of an index that was added.
    pub(crate) fn get(&self, index: u64) -> Option<Place> {
        if index < self.count { self.extended(index) } else { None }
    }

    /// The place of an index if the last run before it goes on that far.
    fn extended(&self, index: u64) -> Option<Place> {
        let after = self.runs.partition_point(|(first, _)| *first <= index);
        let (first, place) = self.runs[after.checked_sub(1)?];
        Some(Place { line: place.line + (index - first), unreadable: place.unreadable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_neighbouring_lines_share_a_run() {
        let mut places = Places::default();
        let place = |line, unreadable| Place { line, unreadable };
        let all = [
            place(1, false),
            place(2, false),
            place(5, false),
            place(6, true),
            place(7, true),
            place(8, false),
            place(1, false),
        ];
        for one in all {
            places.push(one);
        }
        for (index, one) in (0..).zip(all) {
            assert_eq!(places.get(index), Some(one));
        }
        assert_eq!(places.runs.len(), 5);
        assert_eq!(places.get(7), None, "what was not read has no place");
    }
}
