//! Verdicts to and from bytes.

use solver::{CELLS, Outcome, Placements, Solution, Verdict};

use crate::{
    Damaged,
    cursor::{Cursor, is_escape, put_invalid, put_varint},
};

/// The verdict format that is written.
pub const VERDICT_FORMAT: i16 = 1;

const COUNTED: u8 = 1 << 4;
const OVER_LIMIT: u8 = 1 << 5;
const SOLUTION_BYTES: usize = 32;
/// What the nine digits of a house sum up to.
const HOUSE_SUM: u8 = 45;

/// Appends a verdict's entry to `out`.
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
    out.push(code(verdict.outcome()) | flags);
    if let Some(solution) = verdict.solution() {
        put_solution(solution, out);
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

fn put_solution(solution: &Solution, out: &mut Vec<u8>) {
    for row in solution.digits().chunks_exact(9).take(8) {
        out.extend(row[..8].chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
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
}

fn read(cursor: &mut Cursor<'_>) -> Result<Verdict, Damaged> {
    let head = cursor.byte()?;
    Ok(match head & 15 {
        1 => {
            let solution = solution(cursor)?;
            Verdict::Unique { solution, placements: placements(cursor, head)? }
        }
        2 => {
            let solution = solution(cursor)?;
            Verdict::Multiple { solution, placements: placements(cursor, head)? }
        }
        3 => Verdict::NoSolution { placements: placements(cursor, head)? },
        4 => {
            let mask = cursor.mask()?;
            if !is_escape(mask) {
                return Err(Damaged::Entry);
            }
            Verdict::Invalid(cursor.invalid(mask)?)
        }
        5 => Verdict::Undecided,
        6 => Verdict::Failed,
        7 => Verdict::Cancelled,
        _ => return Err(Damaged::Entry),
    })
}

fn placements(cursor: &mut Cursor<'_>, head: u8) -> Result<Placements, Damaged> {
    Ok(match head & !15 {
        0 => Placements::NotCounted,
        COUNTED => Placements::Exact(cursor.varint()?),
        OVER_LIMIT => Placements::OverLimit,
        _ => return Err(Damaged::Entry),
    })
}

fn solution(cursor: &mut Cursor<'_>) -> Result<Solution, Damaged> {
    let bytes = cursor.take(SOLUTION_BYTES)?;
    let mut digits = [0_u8; CELLS];
    for (place, byte) in bytes.iter().enumerate() {
        let cell = place / 4 * 9 + place % 4 * 2;
        digits[cell] = byte >> 4;
        digits[cell + 1] = byte & 15;
    }
    for row in 0..8 {
        digits[row * 9 + 8] = rest(digits[row * 9..row * 9 + 8].iter())?;
    }
    for column in 0..9 {
        digits[72 + column] = rest(digits[column..72].iter().step_by(9))?;
    }
    Solution::new(digits).ok_or(Damaged::Entry)
}

/// The ninth digit of a house, from the other eight.
fn rest<'a>(eight: impl Iterator<Item = &'a u8>) -> Result<u8, Damaged> {
    let sum = eight.fold(0_u8, |sum, digit| sum.saturating_add(*digit));
    HOUSE_SUM.checked_sub(sum).ok_or(Damaged::Entry)
}

impl Iterator for VerdictReader<'_> {
    type Item = Result<Verdict, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.step(read)
    }
}
