//! Counts by outcome and the spread of the placements.

use std::io::{self, Write};

use serde::Serialize;
use solver::{Outcome, Placements};

use crate::{args::OutputFormat, lines::grouped, record::Record};

/// What was seen so far. Keeps 8 bytes for every counted puzzle, for the quantiles.
#[derive(Clone, Default, Debug)]
pub(crate) struct Summary {
    counts: [u64; Outcome::ALL.len()],
    over_limit: u64,
    placements: Vec<u64>,
}

#[derive(Serialize)]
struct Spread {
    min: u64,
    median: u64,
    p90: u64,
    p99: u64,
    max: u64,
    total: u128,
}

impl Summary {
    pub(crate) fn add(&mut self, record: &Record) {
        if let Some(place) = Outcome::ALL.iter().position(|outcome| *outcome == record.outcome) {
            self.counts[place] += 1;
        }
        match record.placements {
            Some(Placements::Exact(count)) if record.fault.is_none() => self.placements.push(count),
            Some(Placements::OverLimit) => self.over_limit += 1,
            _ => {}
        }
    }

    pub(crate) fn puzzles(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Outcomes that occurred, such as `48 unique, 1 invalid`.
    pub(crate) fn outcomes(&self) -> String {
        let parts: Vec<String> = Outcome::ALL
            .iter()
            .zip(self.counts)
            .filter(|(_, count)| *count > 0)
            .map(|(outcome, count)| format!("{} {}", grouped(count), outcome.name()))
            .collect();
        parts.join(", ")
    }

    fn spread(&mut self) -> Option<Spread> {
        self.placements.sort_unstable();
        let sorted = &self.placements;
        let last = sorted.len().checked_sub(1)?;
        let at = |percent: usize| sorted[last * percent / 100];
        Some(Spread {
            min: sorted[0],
            median: at(50),
            p90: at(90),
            p99: at(99),
            max: sorted[last],
            total: sorted.iter().copied().map(u128::from).sum(),
        })
    }

    pub(crate) fn write(mut self, out: &mut impl Write, format: OutputFormat) -> io::Result<()> {
        let spread = self.spread();
        match format {
            OutputFormat::Jsonl => self.json(out, spread),
            OutputFormat::Text => self.text(out, spread),
        }
    }

    fn json(&self, out: &mut impl Write, spread: Option<Spread>) -> io::Result<()> {
        let mut object = serde_json::Map::new();
        object.insert("puzzles".to_owned(), self.puzzles().into());
        for (outcome, count) in Outcome::ALL.iter().zip(self.counts) {
            object.insert(outcome.name().to_owned(), count.into());
        }
        object.insert("over_limit".to_owned(), self.over_limit.into());
        let spread = serde_json::to_value(spread).map_err(io::Error::from)?;
        object.insert("placements".to_owned(), spread);
        writeln!(out, "{}", serde_json::Value::Object(object))
    }

    fn text(&self, out: &mut impl Write, spread: Option<Spread>) -> io::Result<()> {
        for (outcome, count) in Outcome::ALL.iter().zip(self.counts).filter(|(_, count)| *count > 0) {
            writeln!(out, "{:<12} {:>15}", outcome.name(), grouped(count))?;
        }
        if self.over_limit > 0 {
            writeln!(
                out,
                "{:<12} {:>15}  (placements over the limit)",
                "of these",
                grouped(self.over_limit)
            )?;
        }
        if let Some(spread) = spread {
            writeln!(out, "placements")?;
            for (name, value) in [
                ("min", spread.min),
                ("median", spread.median),
                ("p90", spread.p90),
                ("p99", spread.p99),
                ("max", spread.max),
            ] {
                writeln!(out, "  {name:<10} {:>15}", grouped(value))?;
            }
        }
        Ok(())
    }
}
