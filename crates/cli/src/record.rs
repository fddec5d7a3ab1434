//! One puzzle's result as the command line shows it, whether it was solved here or by a server.

use client::v1;
use solver::{InvalidPuzzle, Outcome, PlacementLimit, Placements, Reason, Verdict};

/// Where a record stood in its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Line, from 1.
    pub(crate) line: u64,
    /// The record could not be read; it travels as an empty text.
    pub(crate) unreadable: bool,
}

/// Why a record is no puzzle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) reason: &'static str,
    pub(crate) cells: Vec<u8>,
    /// Characters found, for a wrong length.
    pub(crate) found_length: u32,
}

/// One result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) index: u64,
    pub(crate) outcome: Outcome,
    pub(crate) solution: Option<String>,
    /// `None` where there is no count to show.
    pub(crate) placements: Option<Placements>,
    pub(crate) fault: Option<Fault>,
}

impl Record {
    /// Of a verdict that was reached in this process.
    pub(crate) fn of_verdict(index: u64, verdict: &Verdict) -> Self {
        let fault = match verdict {
            Verdict::Invalid(InvalidPuzzle { reason, cells, found_length }) => Some(Fault {
                reason: match reason {
                    Reason::Length => "length",
                    Reason::Character => "character",
                    Reason::DuplicateGiven => "duplicate_given",
                },
                cells: cells.clone(),
                found_length: *found_length,
            }),
            _ => None,
        };
        Self {
            index,
            outcome: verdict.outcome(),
            solution: verdict.solution().map(ToString::to_string),
            placements: verdict.placements().filter(|count| *count != Placements::NotCounted),
            fault,
        }
    }

    /// Of a result that a server sent.
    pub(crate) fn of_result(result: client::PuzzleResult) -> anyhow::Result<Self> {
        let fault = result.invalid.map(|invalid| Fault {
            reason: match invalid.reason {
                v1::invalid_puzzle::Reason::Length => "length",
                v1::invalid_puzzle::Reason::Character => "character",
                v1::invalid_puzzle::Reason::DuplicateGiven => "duplicate_given",
                v1::invalid_puzzle::Reason::Unspecified => "unknown",
            },
            cells: invalid.cells,
            found_length: invalid.found_length,
        });
        Ok(Self {
            index: result.index,
            outcome: outcome(result.outcome)?,
            solution: result.solution,
            placements: placements(result.placements),
            fault,
        })
    }

    /// What only the reader of the input knows: that the record was no text at all.
    pub(crate) fn mark_unreadable(&mut self, place: Place) {
        if place.unreadable && self.outcome == Outcome::Invalid {
            self.fault = Some(Fault { reason: "unreadable", cells: Vec::new(), found_length: 0 });
        }
    }

    /// Whether the input of this result was at fault, or the service could not answer.
    pub(crate) fn is_bad(&self) -> bool {
        matches!(self.outcome, Outcome::Invalid | Outcome::Undecided | Outcome::Failed)
    }
}

/// An outcome as a server tells it.
pub(crate) fn outcome(told: v1::Outcome) -> anyhow::Result<Outcome> {
    Ok(match told {
        v1::Outcome::Unique => Outcome::Unique,
        v1::Outcome::Multiple => Outcome::Multiple,
        v1::Outcome::NoSolution => Outcome::NoSolution,
        v1::Outcome::Invalid => Outcome::Invalid,
        v1::Outcome::Undecided => Outcome::Undecided,
        v1::Outcome::Failed => Outcome::Failed,
        v1::Outcome::Cancelled => Outcome::Cancelled,
        v1::Outcome::Unspecified => {
            anyhow::bail!(
                "the server sent an outcome that this program does not know: is it a newer version?"
            )
        }
    })
}

/// A count as a server tells it.
pub(crate) fn placements(told: client::Count) -> Option<Placements> {
    match told {
        client::Count::None => None,
        client::Count::Exact(count) => Some(Placements::Exact(count)),
        client::Count::OverLimit => Some(Placements::OverLimit),
    }
}

/// Placements that were counted at the most, as the user gave them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit(pub(crate) PlacementLimit);

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(PlacementLimit::OFF)),
            "none" | "unlimited" => Err(format!(
                "there is no unlimited count; give a number up to {}, or \"off\" to count nothing",
                PlacementLimit::GREATEST.0
            )),
            _ => {
                let number: u64 =
                    text.replace('_', "").parse().map_err(|_| "give a number, or \"off\"".to_owned())?;
                if number > PlacementLimit::GREATEST.0 {
                    return Err(format!("the greatest limit is {}", PlacementLimit::GREATEST.0));
                }
                Ok(Self(PlacementLimit(number)))
            }
        }
    }
}
