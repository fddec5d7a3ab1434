//! Wire to domain and back: the only place that knows both.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use packing::StoredVerdict;
use prost_types::Timestamp;
use proto::{Grids, Outcomes, v1};
use solver::{CELLS, InvalidPuzzle, Outcome, PlacementLimit, Placements, Reason};
use store::{Batch, BatchState, NewBatch, Progress};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    limits::{
        BATCH_ID_CHARS, DISPLAY_NAME_CHARS_MAX, LABEL_KEY_CHARS, LABEL_VALUE_CHARS_MAX, LABELS_MAX,
        PAGE_BATCHES_DEFAULT, PAGE_BATCHES_MAX, PRIORITY_MAX, WATCH_INTERVAL_DEFAULT, WATCH_INTERVALS,
    },
    status::{Refusal, Violation, clip},
};

const NAME_PREFIX: &str = "batches/";
/// On the wire, a count that went over the batch's limit.
const OVER_LIMIT: i64 = -1;

/// The id in a resource name.
pub(crate) fn batch_id(name: &str) -> Result<&str, Refusal> {
    name.strip_prefix(NAME_PREFIX).filter(|id| is_batch_id(id)).ok_or_else(|| Refusal::BadArgument {
        field: "name",
        why: format!("must be \"batches/\" and 4 to 63 of [a-z0-9-], not {:?}", clip(name)),
    })
}

/// The resource name of a batch.
pub(crate) fn batch_name(id: &str) -> String {
    format!("{NAME_PREFIX}{id}")
}

fn is_batch_id(id: &str) -> bool {
    BATCH_ID_CHARS.contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Checks the fields of a request, all of them: whoever mends one should not meet the next by the next call.
#[derive(Default)]
struct Checks(Vec<Violation>);

impl Checks {
    fn require(&mut self, field: &'static str, holds: bool, why: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation { field, why: why() });
        }
    }

    /// A value that is good, or another in its place until [`Checks::done`].
    fn take<T: Default>(&mut self, checked: Result<T, Refusal>) -> Result<T, Refusal> {
        match checked {
            Err(Refusal::BadArgument { field, why }) => {
                self.0.push(Violation { field, why });
                Ok(T::default())
            }
            other => other,
        }
    }

    fn done(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::BadArguments(self.0)) }
    }
}

/// A create request, checked. `limit_max` is the server's greatest placement limit.
pub(crate) fn new_batch(request: v1::CreateBatchRequest, limit_max: u64) -> Result<NewBatch, Refusal> {
    let mut checks = Checks::default();
    let batch = request.batch.unwrap_or_default();
    let name_is_chosen = !request.batch_id.is_empty();
    checks.require("batch_id", !name_is_chosen || is_batch_id(&request.batch_id), || {
        format!("must be 4 to 63 of [a-z0-9-], not {:?}", clip(&request.batch_id))
    });
    let request_id = checks.take(request_id(&request.request_id))?;
    let options = batch.options.unwrap_or_default();
    let limit = checks.take(placement_limit("batch.options.placement_limit", options, limit_max))?;
    checks.require("batch.priority", (0..=PRIORITY_MAX).contains(&batch.priority), || {
        format!("must be 0 to {PRIORITY_MAX}, not {}", batch.priority)
    });
    no_control(&mut checks, "batch.display_name", &batch.display_name);
    let length = batch.display_name.chars().count();
    checks.require("batch.display_name", length <= DISPLAY_NAME_CHARS_MAX, || {
        format!("must be at most {DISPLAY_NAME_CHARS_MAX} characters, not {length}")
    });
    let labels: BTreeMap<String, String> = batch.labels.into_iter().collect();
    check_labels(&mut checks, &labels);
    checks.done()?;
    Ok(NewBatch {
        name: if name_is_chosen { request.batch_id } else { Uuid::new_v4().to_string() },
        name_is_chosen,
        request_id,
        placement_limit: limit,
        priority: i16::try_from(batch.priority).unwrap_or_default(),
        display_name: batch.display_name,
        labels,
    })
}

fn request_id(text: &str) -> Result<Option<Uuid>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = Uuid::parse_str(text);
    parsed.map(Some).map_err(|_| Refusal::BadArgument {
        field: "request_id",
        why: format!("must be a UUID, not {:?}", clip(text)),
    })
}

/// A batch of the given options alone, as a Solve call makes it.
pub(crate) fn solve_batch(options: Option<v1::SolveOptions>, limit_max: u64) -> Result<NewBatch, Refusal> {
    Ok(NewBatch {
        name: Uuid::new_v4().to_string(),
        name_is_chosen: false,
        request_id: None,
        placement_limit: placement_limit(
            "config.options.placement_limit",
            options.unwrap_or_default(),
            limit_max,
        )?,
        priority: 0,
        display_name: String::new(),
        labels: BTreeMap::new(),
    })
}

fn placement_limit(field: &'static str, options: v1::SolveOptions, limit_max: u64) -> Result<u64, Refusal> {
    let Some(asked) = options.placement_limit else { return Ok(PlacementLimit::DEFAULT.0) };
    u64::try_from(asked).ok().filter(|limit| *limit <= limit_max).ok_or_else(|| Refusal::BadArgument {
        field,
        why: format!("must be 0 (do not count) to {limit_max}, not {asked}"),
    })
}

/// The database cannot store every one of them, and nobody can read any.
fn no_control(checks: &mut Checks, field: &'static str, text: &str) {
    if let Some(letter) = text.chars().find(|letter| letter.is_control()) {
        checks.require(field, false, || {
            format!("must hold no control characters; it holds U+{:04X}", u32::from(letter))
        });
    }
}

fn check_labels(checks: &mut Checks, labels: &BTreeMap<String, String>) {
    let field = "batch.labels";
    checks.require(field, labels.len() <= LABELS_MAX, || {
        format!("must be at most {LABELS_MAX}, not {}", labels.len())
    });
    for (key, value) in labels.iter().take(LABELS_MAX) {
        no_control(checks, field, key);
        no_control(checks, field, value);
        checks.require(field, LABEL_KEY_CHARS.contains(&key.chars().count()), || {
            format!("keys must be 1 to 63 characters, not {:?}", clip(key))
        });
        checks.require(field, value.chars().count() <= LABEL_VALUE_CHARS_MAX, || {
            format!("values must be at most 255 characters; {:?} has more", clip(key))
        });
    }
}

/// A count that the wire carries with a sign.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// An index or a count that must not be negative.
pub(crate) fn unsigned(field: &'static str, value: i64) -> Result<u64, Refusal> {
    u64::try_from(value)
        .map_err(|_| Refusal::BadArgument { field, why: format!("must be 0 or more, not {value}") })
}

/// What a list is asked for: the length of a page, and the states.
pub(crate) fn list(request: &v1::ListBatchesRequest) -> Result<(usize, Vec<BatchState>), Refusal> {
    let mut checks = Checks::default();
    let asked = (checks.take(page_size(request.page_size))?, checks.take(states(&request.states))?);
    checks.done()?;
    Ok(asked)
}

/// The states that a list is asked for, each once and in their order, however often they are named.
fn states(states: &[i32]) -> Result<Vec<BatchState>, Refusal> {
    use v1::batch::State;
    let state = |number: &i32| match State::try_from(*number) {
        Ok(State::Open) => Ok(BatchState::Open),
        Ok(State::Sealed) => Ok(BatchState::Sealed),
        Ok(State::Succeeded) => Ok(BatchState::Succeeded),
        Ok(State::Cancelling) => Ok(BatchState::Cancelling),
        Ok(State::Cancelled) => Ok(BatchState::Cancelled),
        Ok(State::Unspecified) | Err(_) => {
            Err(Refusal::BadArgument { field: "states", why: format!("must be states, not {number}") })
        }
    };
    let states: BTreeSet<BatchState> = states.iter().map(state).collect::<Result<_, _>>()?;
    Ok(states.into_iter().collect())
}

/// The length of a page.
fn page_size(asked: i32) -> Result<usize, Refusal> {
    match usize::try_from(asked) {
        Ok(0) => Ok(PAGE_BATCHES_DEFAULT),
        Ok(size) => Ok(size.min(PAGE_BATCHES_MAX)),
        Err(_) => {
            Err(Refusal::BadArgument { field: "page_size", why: format!("must be 0 or more, not {asked}") })
        }
    }
}

/// The least time between two messages of a watch.
pub(crate) fn watch_interval(asked: Option<prost_types::Duration>) -> Result<Duration, Refusal> {
    let Some(asked) = asked else { return Ok(WATCH_INTERVAL_DEFAULT) };
    Duration::try_from(asked).ok().filter(|interval| WATCH_INTERVALS.contains(interval)).ok_or_else(|| {
        let (least, most) = (WATCH_INTERVALS.start(), WATCH_INTERVALS.end());
        Refusal::BadArgument {
            field: "min_interval",
            why: format!("must be {least:?} to {most:?}, not {asked}"),
        }
    })
}

/// A batch for the wire.
pub(crate) fn batch(batch: Batch, progress: Progress) -> v1::Batch {
    use v1::batch::State;
    let state = match batch.state {
        BatchState::Open => State::Open,
        BatchState::Sealed => State::Sealed,
        BatchState::Succeeded => State::Succeeded,
        BatchState::Cancelling => State::Cancelling,
        BatchState::Cancelled => State::Cancelled,
    };
    v1::Batch {
        name: batch_name(&batch.name),
        state: state.into(),
        options: Some(v1::SolveOptions { placement_limit: Some(signed(batch.placement_limit)) }),
        priority: batch.priority.into(),
        display_name: batch.display_name,
        labels: batch.labels.into_iter().collect(),
        puzzle_count: signed(batch.puzzle_count),
        progress: Some(v1::BatchProgress {
            done_count: signed(progress.done),
            unique_count: signed(progress.unique),
            multiple_count: signed(progress.multiple),
            no_solution_count: signed(progress.no_solution),
            invalid_count: signed(progress.invalid),
            undecided_count: signed(progress.undecided),
            failed_count: signed(progress.failed),
            cancelled_count: signed(progress.cancelled),
            over_limit_count: signed(progress.over_limit),
            placement_count: signed(progress.placements),
            running_placement_count: signed(progress.running_placements),
        }),
        create_time: Some(timestamp(batch.created_at)),
        seal_time: batch.sealed_at.map(timestamp),
        end_time: batch.ended_at.map(timestamp),
        expire_time: batch.expires_at.map(timestamp),
    }
}

fn timestamp(instant: OffsetDateTime) -> Timestamp {
    Timestamp {
        seconds: instant.unix_timestamp(),
        nanos: i32::try_from(instant.nanosecond()).unwrap_or_default(),
    }
}

/// How results are to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultForm {
    /// Solutions as one field of bytes.
    pub(crate) packed: bool,
    /// Whether placements were counted.
    pub(crate) counted: bool,
}

/// Collects verdicts into the columns of one message.
#[derive(Debug)]
pub(crate) struct ResultColumns {
    form: ResultForm,
    chunk: v1::ResultChunk,
    packed: Vec<u8>,
}

impl ResultColumns {
    /// Empty columns with room for so many puzzles.
    pub(crate) fn new(start_index: u64, puzzles: u64, form: ResultForm) -> Self {
        let room = usize::try_from(puzzles).unwrap_or_default();
        let room_if = |is_filled: bool| if is_filled { room } else { 0 };
        let chunk = v1::ResultChunk {
            start_index: signed(start_index),
            outcomes: Outcomes::with_capacity(room),
            solutions: Grids::with_capacity(room_if(!form.packed)),
            placements: Vec::with_capacity(room_if(form.counted)),
            ..v1::ResultChunk::default()
        };
        Self { form, chunk, packed: Vec::with_capacity(room_if(form.packed) * CELLS) }
    }

    pub(crate) fn len(&self) -> usize {
        self.chunk.outcomes.len()
    }

    /// Adds a verdict; `solution` is looked at only if it has one.
    pub(crate) fn push(&mut self, verdict: &StoredVerdict, solution: &[u8; CELLS]) {
        if let Some(invalid) = &verdict.invalid {
            let index = self.chunk.start_index + signed(self.len() as u64);
            self.chunk.invalid.push(invalid_puzzle(index, invalid));
        }
        self.chunk.outcomes.push(outcome(verdict.outcome));
        match (self.form.packed, verdict.has_solution()) {
            (true, true) => self.packed.extend_from_slice(solution),
            (true, false) => self.packed.extend_from_slice(&[b'.'; CELLS]),
            (false, true) => self.chunk.solutions.push_ascii(solution),
            (false, false) => self.chunk.solutions.push(""),
        }
        if self.form.counted {
            self.chunk.placements.push(placements(verdict.placements));
        }
    }

    /// Adds the verdict of puzzles that were given it together, so many times.
    pub(crate) fn push_bare(&mut self, outcome: Outcome, puzzles: u64) {
        let verdict = StoredVerdict { outcome, placements: None, invalid: None };
        for _ in 0..puzzles {
            self.push(&verdict, &[b'.'; CELLS]);
        }
    }

    pub(crate) fn finish(mut self) -> v1::ResultChunk {
        self.chunk.packed_solutions = self.packed.into();
        self.chunk
    }
}

fn outcome(outcome: Outcome) -> v1::Outcome {
    match outcome {
        Outcome::Unique => v1::Outcome::Unique,
        Outcome::Multiple => v1::Outcome::Multiple,
        Outcome::NoSolution => v1::Outcome::NoSolution,
        Outcome::Invalid => v1::Outcome::Invalid,
        Outcome::Undecided => v1::Outcome::Undecided,
        Outcome::Failed => v1::Outcome::Failed,
        Outcome::Cancelled => v1::Outcome::Cancelled,
    }
}

fn placements(placements: Option<Placements>) -> i64 {
    match placements {
        Some(Placements::Exact(count)) => signed(count),
        Some(Placements::OverLimit) => OVER_LIMIT,
        Some(Placements::NotCounted) | None => 0,
    }
}

fn invalid_puzzle(index: i64, invalid: &InvalidPuzzle) -> v1::InvalidPuzzle {
    let reason = match invalid.reason {
        Reason::Length => v1::invalid_puzzle::Reason::Length,
        Reason::Character => v1::invalid_puzzle::Reason::Character,
        Reason::DuplicateGiven => v1::invalid_puzzle::Reason::DuplicateGiven,
    };
    let found_length = match invalid.reason {
        Reason::Length => i32::try_from(invalid.found_length).unwrap_or(i32::MAX),
        _ => 0,
    };
    v1::InvalidPuzzle {
        index,
        reason: reason.into(),
        cells: invalid.cells.iter().copied().map(i32::from).collect(),
        found_length,
    }
}
