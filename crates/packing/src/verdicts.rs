//! Verdicts to and from bytes.

use solver::{CELLS, InvalidPuzzle, Outcome, Placements, Verdict};

use crate::{
    Damaged,
    cursor::{Cursor, is_escape, put_invalid, put_varint},
    solutions::{self, SOLUTION_BYTES},
};

/// The verdict format that is written.
pub const VERDICT_FORMAT: i16 = 1;

const COUNTED: u8 = 1 << 4;
const OVER_LIMIT: u8 = 1 << 5;

/// Appends a verdict's entry to `out`.
#[inline]
pub fn pack_verdict(verdict: &Verdict, out: &mut Vec<u8>) {
    let (flags, count) = match verdict {
        Verdict::Unique { placements, .. }
        | Verdict::Multiple { placements, .. }
        | Verdict::NoSolution { placements } => match placements {
            Placements::NotCounted => (0, None),
            Placements::Exact(count) => (COUNTED, Some(*count)),
            Placements::OverLimit => (OVER_LIMIT, None),
        },
        _ => (0, None),
    };
    let head = code(verdict.outcome()) | flags;
    match verdict.solution() {
        Some(solution) => {
            let mut entry = [head; 1 + SOLUTION_BYTES];
            entry[1..].copy_from_slice(&solutions::pack(solution));
            out.extend_from_slice(&entry);
        }
        None => out.push(head),
    }
    if let Some(count) = count {
        put_varint(count, out);
    }
    if let Verdict::Invalid(invalid) = verdict {
        put_invalid(invalid, out);
    }
}

fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Unique => 1,
        Outcome::Multiple => 2,
        Outcome::NoSolution => 3,
        Outcome::Invalid => 4,
        Outcome::Undecided => 5,
        Outcome::Failed => 6,
        Outcome::Cancelled => 7,
    }
}

/// A verdict as it is stored, but for its solution, which is read as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredVerdict {
    /// The verdict in one word.
    pub outcome: Outcome,
    /// As [`Verdict::placements`] tells them.
    pub placements: Option<Placements>,
    /// Why the puzzle is none, if it is none.
    pub invalid: Option<InvalidPuzzle>,
}

impl StoredVerdict {
    /// Whether there is a solution.
    #[inline]
    #[must_use]
    pub fn has_solution(&self) -> bool {
        matches!(self.outcome, Outcome::Unique | Outcome::Multiple)
    }
}

/// Reads a piece of verdicts from the front.
#[derive(Clone, Debug)]
pub struct VerdictReader<'a> {
    cursor: Cursor<'a>,
}

impl<'a> VerdictReader<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`Damaged::Format`] for a format that this program does not know.
    pub fn new(format: i16, data: &'a [u8]) -> Result<Self, Damaged> {
        if format != VERDICT_FORMAT {
            return Err(Damaged::Format(format));
        }
        Ok(Self { cursor: Cursor(data) })
    }

    /// The next verdict, and in `solution` the 81 digits of its solution, if it has one: text, and nothing to be parsed. `None` at the end, and
    /// after damage.
    ///
    /// What is stored was a solution when it was packed; of that, the digits and the sums of all houses are checked, and
    /// nothing but digits is ever in `solution` when this succeeds.
    #[inline]
    pub fn next_into(&mut self, solution: &mut [u8; CELLS]) -> Option<Result<StoredVerdict, Damaged>> {
        self.cursor.step(|cursor| read(cursor, solution))
    }
}

#[inline]
fn read(cursor: &mut Cursor<'_>, solution: &mut [u8; CELLS]) -> Result<StoredVerdict, Damaged> {
    let head = cursor.byte()?;
    let outcome = match head & 15 {
        1 => Outcome::Unique,
        2 => Outcome::Multiple,
        3 => Outcome::NoSolution,
        4 => return invalid(cursor),
        5 => Outcome::Undecided,
        6 => Outcome::Failed,
        7 => Outcome::Cancelled,
        _ => return Err(Damaged::Entry),
    };
    let mut verdict = StoredVerdict { outcome, placements: None, invalid: None };
    if verdict.has_solution() {
        let packed = cursor.take_array::<SOLUTION_BYTES>()?;
        if !solutions::unpack(packed, solution) {
            return Err(Damaged::Entry);
        }
    }
    if verdict.has_solution() || outcome == Outcome::NoSolution {
        verdict.placements = Some(placements(cursor, head)?);
    }
    Ok(verdict)
}

#[cold]
fn invalid(cursor: &mut Cursor<'_>) -> Result<StoredVerdict, Damaged> {
    let mask = cursor.mask()?;
    if !is_escape(mask) {
        return Err(Damaged::Entry);
    }
    let invalid = Some(cursor.invalid(mask)?);
    Ok(StoredVerdict { outcome: Outcome::Invalid, placements: Some(Placements::Exact(0)), invalid })
}

#[inline]
fn placements(cursor: &mut Cursor<'_>, head: u8) -> Result<Placements, Damaged> {
    Ok(match head & !15 {
        0 => Placements::NotCounted,
        COUNTED => Placements::Exact(cursor.varint()?),
        OVER_LIMIT => Placements::OverLimit,
        _ => return Err(Damaged::Entry),
    })
}
