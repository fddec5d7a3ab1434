//! A stream of results: columns on the wire, one value a puzzle here.

use proto::v1;
use tonic::Streaming;

use crate::Error;

/// Where a stream of results begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// At this index.
    Index(u64),
    /// Where another stream of the same batch was: a token from [`Results::token`].
    Token(String),
}

/// Where a stream of results begins and how it goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Where it begins.
    pub position: Position,
    /// By index; otherwise as they finish.
    pub ordered: bool,
    /// Stay until the batch has ended; otherwise stop at what is there.
    pub follow: bool,
}

impl Start {
    /// By index from `index` on, until the batch has ended.
    #[must_use]
    pub fn ordered(index: u64) -> Self {
        Self { position: Position::Index(index), ordered: true, follow: true }
    }

    /// As they finish, until the batch has ended.
    #[must_use]
    pub fn as_finished() -> Self {
        Self { ordered: false, ..Self::ordered(0) }
    }

    /// The same from another beginning.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        Self { position, ..self }
    }
}

/// A puzzle's placements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// There is no count: counting was off, or the outcome has none.
    None,
    /// So many.
    Exact(u64),
    /// More than the batch's limit.
    OverLimit,
}

/// Why a puzzle is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidReason {
    /// What is wrong.
    pub reason: v1::invalid_puzzle::Reason,
    /// The cells to blame, 0 to 80, ascending.
    pub cells: Vec<u8>,
    /// Characters found, for a wrong length.
    pub found_length: u32,
}

/// One puzzle's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PuzzleResult {
    /// Its index in the batch.
    pub index: u64,
    /// How it ended; unspecified for an outcome that only a newer client knows.
    pub outcome: v1::Outcome,
    /// 81 digits, if it has a solution.
    pub solution: Option<String>,
    /// Its placements.
    pub placements: Count,
    /// Why it is no puzzle, if it is none.
    pub invalid: Option<InvalidReason>,
}

/// Results as they come.
#[derive(Debug)]
pub struct Results {
    stream: Streaming<v1::StreamResultsResponse>,
    token: Option<String>,
    end: Option<v1::Batch>,
}

impl Results {
    pub(crate) fn new(stream: Streaming<v1::StreamResultsResponse>) -> Self {
        Self { stream, token: None, end: None }
    }

    /// The next run of results. `None`: the stream is complete, and [`Results::batch`] has the batch.
    ///
    /// # Errors
    /// [`Error::Cut`] when the stream ends without its last message; [`Error::Status`]; [`Error::Contract`].
    pub async fn next(&mut self) -> Result<Option<Vec<PuzzleResult>>, Error> {
        loop {
            if self.end.is_some() {
                return Ok(None);
            }
            let message = self.stream.message().await?.ok_or(Error::Cut)?;
            self.end = message.batch;
            if !message.resume_token.is_empty() {
                self.token = Some(message.resume_token);
            }
            if let Some(results) = message.results {
                return unpack(results).map(Some);
            }
        }
    }

    /// What to give to [`Position::Token`] for everything after the runs that came so far: keep it together with them. `None` before the first.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The batch as the stream's last message told it; `None` before that.
    #[must_use]
    pub fn batch(&self) -> Option<&v1::Batch> {
        self.end.as_ref()
    }
}

fn unpack(chunk: v1::ResultChunk) -> Result<Vec<PuzzleResult>, Error> {
    let count = chunk.outcomes.len();
    if chunk.solutions.len() != count || !(chunk.placements.is_empty() || chunk.placements.len() == count) {
        return Err(Error::Contract("the columns of a result message differ in length"));
    }
    let start = u64::try_from(chunk.start_index).map_err(|_| Error::Contract("start_index is negative"))?;
    // Not by the generated iterator: it leaves unknown values out, and every later column would shift.
    let outcomes: Vec<v1::Outcome> = chunk
        .outcomes
        .iter()
        .map(|value| v1::Outcome::try_from(*value).unwrap_or(v1::Outcome::Unspecified))
        .collect();
    let mut invalid = chunk.invalid.into_iter().peekable();
    let mut results = Vec::with_capacity(count);
    for (place, (outcome, solution)) in outcomes.into_iter().zip(chunk.solutions).enumerate() {
        let index = start + place as u64;
        let reason =
            invalid.next_if(|reason| u64::try_from(reason.index) == Ok(index)).map(|wire| reason(&wire));
        results.push(PuzzleResult {
            index,
            outcome,
            solution: (!solution.is_empty()).then_some(solution),
            placements: placements(outcome, chunk.placements.get(place).copied()),
            invalid: reason,
        });
    }
    Ok(results)
}

fn placements(outcome: v1::Outcome, column: Option<i64>) -> Count {
    use v1::Outcome;
    match outcome {
        Outcome::Invalid => Count::Exact(0),
        Outcome::Unique | Outcome::Multiple | Outcome::NoSolution => match column {
            None => Count::None,
            Some(count) => u64::try_from(count).map_or(Count::OverLimit, Count::Exact),
        },
        _ => Count::None,
    }
}

fn reason(wire: &v1::InvalidPuzzle) -> InvalidReason {
    InvalidReason {
        reason: wire.reason(),
        cells: wire.cells.iter().filter_map(|cell| u8::try_from(*cell).ok()).collect(),
        found_length: u32::try_from(wire.found_length).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_of_a_newer_server_shifts_no_other_result() {
        let chunk = v1::ResultChunk {
            start_index: 7,
            outcomes: vec![1, 99, 3],
            solutions: vec!["1".repeat(81), String::new(), String::new()],
            placements: vec![5, 0, -1],
            ..v1::ResultChunk::default()
        };
        let results = unpack(chunk).expect("columns of one length");
        let seen: Vec<_> =
            results.iter().map(|result| (result.index, result.outcome, result.placements)).collect();
        assert_eq!(
            seen,
            [
                (7, v1::Outcome::Unique, Count::Exact(5)),
                (8, v1::Outcome::Unspecified, Count::None),
                (9, v1::Outcome::NoSolution, Count::OverLimit),
            ]
        );
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let chunk = v1::ResultChunk {
            outcomes: vec![1, 1],
            solutions: vec![String::new()],
            ..v1::ResultChunk::default()
        };
        assert!(matches!(unpack(chunk), Err(Error::Contract(_))));
    }
}
