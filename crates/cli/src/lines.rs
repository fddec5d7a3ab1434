//! Results as lines: text for people, JSON lines for programs. The JSON is a contract.

use std::io::{self, Write};

use serde::Serialize;
use solver::{PlacementLimit, Placements};

use crate::{
    args::OutputFormat,
    record::{Fault, Place, Record},
};

#[derive(Serialize)]
struct JsonLine<'a> {
    index: u64,
    outcome: &'static str,
    solution: Option<&'a str>,
    placements: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placements_over: Option<u64>,
    #[serde(flatten)]
    fault: Option<JsonFault<'a>>,
}

#[derive(Serialize)]
struct JsonFault<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    reason: &'static str,
    cells: &'a [u8],
}

/// Writes records in one format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineWriter {
    pub(crate) format: OutputFormat,
    /// The limit that counts over it name.
    pub(crate) limit: PlacementLimit,
}

impl LineWriter {
    /// Writes one record; `place` is where it stood in its input, where that is known.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        record: &Record,
        place: Option<Place>,
    ) -> io::Result<()> {
        match self.format {
            OutputFormat::Jsonl => self.json(out, record, place),
            OutputFormat::Text => self.text(out, record, place),
        }
    }

    fn json(&self, out: &mut impl Write, record: &Record, place: Option<Place>) -> io::Result<()> {
        let (placements, placements_over) = match record.placements {
            Some(Placements::Exact(count)) => (Some(count), None),
            Some(Placements::OverLimit) => (None, Some(self.limit.0)),
            Some(Placements::NotCounted) | None => (None, None),
        };
        let line = JsonLine {
            index: record.index,
            outcome: record.outcome.name(),
            solution: record.solution.as_deref(),
            placements,
            placements_over,
            fault: record.fault.as_ref().map(|fault| JsonFault {
                line: place.map(|place| place.line),
                reason: fault.reason,
                cells: &fault.cells,
            }),
        };
        serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
        out.write_all(b"\n")
    }

    fn text(&self, out: &mut impl Write, record: &Record, place: Option<Place>) -> io::Result<()> {
        let outcome = record.outcome.name();
        write!(out, "{:>7}  {outcome:<11}", record.index)?;
        if let Some(fault) = &record.fault {
            let line = place.map(|place| format!("line {}: ", place.line)).unwrap_or_default();
            return writeln!(out, "  {line}{}", explain(fault));
        }
        let solution = record.solution.as_deref().unwrap_or("-");
        match record.placements {
            Some(Placements::Exact(count)) => {
                writeln!(out, "  {solution:<81}  {} placements", grouped(count))
            }
            Some(Placements::OverLimit) => {
                writeln!(out, "  {solution:<81}  over {} placements", grouped(self.limit.0))
            }
            Some(Placements::NotCounted) | None => writeln!(out, "  {solution}"),
        }
    }
}

/// A fault in words, its cells as people name them.
pub(crate) fn explain(fault: &Fault) -> String {
    let cells: Vec<String> =
        fault.cells.iter().map(|cell| format!("r{}c{}", cell / 9 + 1, cell % 9 + 1)).collect();
    match fault.reason {
        "length" => format!("{} characters, not 81", fault.found_length),
        "character" => format!("neither a digit nor an empty cell at column {}", columns(&fault.cells)),
        "duplicate_given" => format!("givens clash: {}", cells.join(" ")),
        "unreadable" => "not text, or far too long".to_owned(),
        other => other.to_owned(),
    }
}

fn columns(cells: &[u8]) -> String {
    cells.iter().map(|cell| (cell + 1).to_string()).collect::<Vec<_>>().join(", ")
}

/// A number with its thousands set apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use solver::{Givens, Outcome, StopFlag, answer};

    use super::*;

    const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

    fn json(text: &str, limit: u64) -> String {
        let limit = PlacementLimit(limit);
        let verdict = match Givens::parse(text) {
            Ok(givens) => answer(&givens, limit, &StopFlag::new()).expect("not stopped"),
            Err(invalid) => solver::Verdict::Invalid(invalid),
        };
        let mut out = Vec::new();
        let place = Place { line: 7, unreadable: false };
        LineWriter { format: OutputFormat::Jsonl, limit }
            .write(&mut out, &Record::of_verdict(3, &verdict), Some(place))
            .expect("memory does not fail");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn json_lines_are_byte_for_byte_the_contract() {
        let solution = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
        assert_eq!(
            json(SEED, 100_000_000),
            format!(
                "{{\"index\":3,\"outcome\":\"unique\",\"solution\":\"{solution}\",\"placements\":4208}}\n"
            )
        );
        assert_eq!(
            json(SEED, 4_207),
            format!(
                "{{\"index\":3,\"outcome\":\"unique\",\"solution\":\"{solution}\",\"placements\":null,\"placements_over\":4207}}\n"
            )
        );
        assert_eq!(
            json(SEED, 0),
            format!(
                "{{\"index\":3,\"outcome\":\"unique\",\"solution\":\"{solution}\",\"placements\":null}}\n"
            )
        );
        let clash = format!("11{}", ".".repeat(79));
        assert_eq!(
            json(&clash, 0),
            "{\"index\":3,\"outcome\":\"invalid\",\"solution\":null,\"placements\":0,\"line\":7,\"reason\":\"duplicate_given\",\"cells\":[0,1]}\n"
        );
    }

    #[test]
    fn outcomes_without_a_count_show_null() {
        let record =
            Record { index: 0, outcome: Outcome::Cancelled, solution: None, placements: None, fault: None };
        let mut out = Vec::new();
        let writer = LineWriter { format: OutputFormat::Jsonl, limit: PlacementLimit::DEFAULT };
        writer.write(&mut out, &record, None).expect("memory does not fail");
        assert_eq!(out, b"{\"index\":0,\"outcome\":\"cancelled\",\"solution\":null,\"placements\":null}\n");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 69_175_316].map(grouped), ["0", "999", "1,000", "69,175,316"]);
    }
}
