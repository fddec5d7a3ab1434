//! Errors to gRPC statuses: the only place that knows codes and details.

use std::collections::HashMap;

use store::BatchState;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{
    admission::Full,
    limits::{
        BATCH_PUZZLES_MAX, DATABASE_LOOK, DECODED_BYTES_MAX, ECHO_BYTES_MAX, RETRY_DELAY,
        VIOLATIONS_BYTES_MAX, VIOLATIONS_MAX,
    },
    wire,
};

const DOMAIN: &str = "sudoku-batch";
const BATCH_TYPE: &str = "sudoku.example.com/Batch";

/// A field that is out of its limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) field: &'static str,
    pub(crate) why: String,
}

/// Why a call is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A field is out of its limits.
    BadArgument { field: &'static str, why: String },
    /// Several are.
    BadArguments(Vec<Violation>),
    /// No such batch for this tenant.
    BatchNotFound { name: String },
    /// The name or the request id is taken by a batch with other options.
    BatchExists { name: String },
    /// Other puzzles stand there; the first that differs.
    OffsetTaken { first_index: u64 },
    /// A gap.
    OffsetBeyondEnd { next_offset: u64 },
    /// Takes no more puzzles.
    BatchNotOpen { name: String, state: BatchState },
    /// Deleting what has not ended.
    BatchNotEnded { name: String, state: BatchState },
    /// Sealing with another count.
    CountMismatch { expected: u64, found: u64 },
    /// More puzzles than a batch may hold.
    BatchFull,
    /// A quota is used up; there will be room again.
    Full(Full),
    /// Others append to the same batch without naming an offset, faster than this call could.
    Contended,
    /// Draining.
    Stopping,
    /// The client's deadline.
    DeadlineExceeded,
    /// Other streams have the database, and it does not answer them in time.
    Crowded,
    /// From the database.
    Store(store::Error),
    /// Stored bytes cannot be read.
    Damaged(packing::Damaged),
    /// A task of the service ended by a panic.
    Panicked,
}

impl Refusal {
    /// Of an error of the store about the batch of that id, which the store does not know by its name.
    pub(crate) fn of_batch(error: store::Error, id: &str) -> Self {
        match error {
            store::Error::BatchNotFound => Self::BatchNotFound { name: wire::batch_name(id) },
            store::Error::Contended => Self::Contended,
            other => Self::Store(other),
        }
    }
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<packing::Damaged> for Refusal {
    fn from(error: packing::Damaged) -> Self {
        Self::Damaged(error)
    }
}

impl From<tokio::task::JoinError> for Refusal {
    fn from(_: tokio::task::JoinError) -> Self {
        Self::Panicked
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadArgument { field, why } => bad_arguments(vec![Violation { field, why }]),
            Refusal::BadArguments(violations) => bad_arguments(violations),
            Refusal::BatchNotFound { name } => batch_not_found(&name),
            Refusal::BatchExists { name } => batch_exists(&name),
            Refusal::OffsetTaken { first_index } => status(
                Code::AlreadyExists,
                format!("another puzzle is stored at index {first_index}; nothing was added"),
                reason("OFFSET_TAKEN", &[("first_index", first_index)]),
            ),
            Refusal::OffsetBeyondEnd { next_offset } => status(
                Code::OutOfRange,
                format!("the batch holds {next_offset} puzzles; the next offset is {next_offset}"),
                reason("OFFSET_BEYOND_END", &[("next_offset", next_offset)]),
            ),
            Refusal::BatchNotOpen { name, state } => batch_not_open(&name, state),
            Refusal::BatchNotEnded { name, state } => batch_not_ended(&name, state),
            Refusal::CountMismatch { expected, found } => count_mismatch(expected, found),
            Refusal::BatchFull => status(
                Code::ResourceExhausted,
                format!("a batch holds {BATCH_PUZZLES_MAX} puzzles at the most; begin another"),
                reason("BATCH_FULL", &[("puzzles_max", BATCH_PUZZLES_MAX)]),
            ),
            Refusal::Full(full) => quota(full),
            Refusal::Contended => retry(
                Code::Aborted,
                "others change this batch at the same time; try again, and name an offset when appending",
                "CONTENDED",
            ),
            Refusal::Stopping => retry(
                Code::Unavailable,
                "this server is stopping; the batch is safe, go on at another server or here in a moment",
                "SERVER_STOPPING",
            ),
            Refusal::DeadlineExceeded => status(
                Code::DeadlineExceeded,
                "the call's deadline has come; its batch stays: repeat the call, or go on from the last resume token".to_owned(),
                reason("DEADLINE_EXCEEDED", &[]),
            ),
            Refusal::Crowded => retry(
                Code::Unavailable,
                "the database does not answer in time just now; try again",
                "DATABASE_UNAVAILABLE",
            ),
            Refusal::Store(error) => database(&error),
            Refusal::Damaged(error) => {
                tracing::error!(%error, "a call failed by damaged data");
                internal()
            }
            // The panic itself has been written already.
            Refusal::Panicked => internal(),
        }
    }
}

fn bad_arguments(mut violations: Vec<Violation>) -> Status {
    let found = violations.len();
    violations.truncate(VIOLATIONS_MAX);
    let mut bytes = 0;
    violations.retain(|violation| {
        bytes += violation.field.len() + violation.why.len();
        bytes <= VIOLATIONS_BYTES_MAX
    });
    let first = violations.first().map(|first| format!("{}: {}", first.field, first.why)).unwrap_or_default();
    let text = if found > 1 { format!("{first} (and {} more)", found - 1) } else { first };
    let mut details = reason("BAD_ARGUMENT", &[]);
    for violation in violations {
        details.add_bad_request_violation(violation.field, violation.why);
    }
    status(Code::InvalidArgument, text, details)
}

fn batch_not_found(name: &str) -> Status {
    let name = clip(name);
    let mut details = reason("BATCH_NOT_FOUND", &[]);
    details.set_resource_info(BATCH_TYPE, &*name, "", "no such batch for this tenant");
    status(Code::NotFound, format!("{name:?}: no such batch for this tenant"), details)
}

fn batch_exists(name: &str) -> Status {
    let mut details = reason("BATCH_EXISTS", &[]);
    details.set_resource_info(BATCH_TYPE, name, "", "taken by a batch with other options");
    status(Code::AlreadyExists, format!("{name:?} is there already, with other options"), details)
}

fn batch_not_open(name: &str, state: BatchState) -> Status {
    let word = state_word(state);
    let mut details = reason("BATCH_NOT_OPEN", &[]);
    details.add_precondition_failure_violation("BATCH_STATE", name, format!("it is {word}"));
    status(Code::FailedPrecondition, format!("{name:?} is {word} and takes no more puzzles"), details)
}

fn batch_not_ended(name: &str, state: BatchState) -> Status {
    let word = state_word(state);
    let mut details = reason("BATCH_NOT_ENDED", &[]);
    details.add_precondition_failure_violation("BATCH_STATE", name, format!("it is {word}"));
    let text = format!("{name:?} is {word}; cancel it first, or delete it with force");
    status(Code::FailedPrecondition, text, details)
}

fn state_word(state: BatchState) -> &'static str {
    match state {
        BatchState::Open => "open",
        BatchState::Sealed => "sealed",
        BatchState::Succeeded => "finished",
        BatchState::Cancelling => "being cancelled",
        BatchState::Cancelled => "cancelled",
    }
}

fn count_mismatch(expected: u64, found: u64) -> Status {
    let text = format!("the batch holds {found} puzzles, not {expected}; it was not sealed");
    let mut details = reason("COUNT_MISMATCH", &[("puzzle_count", found)]);
    details.add_precondition_failure_violation("PUZZLE_COUNT", "expected_puzzle_count", text.clone());
    status(Code::FailedPrecondition, text, details)
}

fn quota(full: Full) -> Status {
    let (word, subject, text, numbers, delay) = match full {
        Full::Tenant { queued, queued_max } => (
            "QUEUE_FULL",
            "tenant/queued_puzzles",
            format!("the queue is full: {queued} of at most {queued_max} puzzles of this tenant are queued"),
            vec![("queued", queued), ("queued_max", queued_max)],
            RETRY_DELAY,
        ),
        Full::Queue { queued_max } => (
            "QUEUE_FULL",
            "service/queued_puzzles",
            format!("the queue is full: it takes {queued_max} puzzles of all tenants"),
            vec![("queued_max", queued_max)],
            RETRY_DELAY,
        ),
        Full::Database { bytes_max } => (
            "DATABASE_FULL",
            "service/database_bytes",
            format!("the database is full: it takes {bytes_max} bytes"),
            vec![("bytes_max", bytes_max)],
            DATABASE_LOOK,
        ),
    };
    let mut details = reason(word, &numbers);
    details.add_quota_failure_violation(subject, text.clone());
    details.set_retry_info(Some(delay));
    status(Code::ResourceExhausted, text, details)
}

fn database(error: &store::Error) -> Status {
    if error.is_transient() {
        tracing::warn!(%error, "the database is not available");
        return retry(
            Code::Unavailable,
            "the database is not available just now; try again",
            "DATABASE_UNAVAILABLE",
        );
    }
    tracing::error!(%error, "a call failed by an error of the database");
    internal()
}

fn internal() -> Status {
    status(Code::Internal, "a fault of the service; see its log".to_owned(), reason("INTERNAL", &[]))
}

fn retry(code: Code, text: &str, word: &str) -> Status {
    let mut details = reason(word, &[]);
    details.set_retry_info(Some(RETRY_DELAY));
    status(code, text.to_owned(), details)
}

fn reason(word: &str, numbers: &[(&str, u64)]) -> ErrorDetails {
    let metadata: HashMap<String, String> =
        numbers.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect();
    ErrorDetails::with_error_info(word, DOMAIN, metadata)
}

fn status(code: Code, text: String, details: ErrorDetails) -> Status {
    Status::with_error_details(code, text, details)
}

/// The transport's own refusal of a request, with the details that every status has. One of this service is as it was.
pub(crate) fn of_transport(refused: Status) -> Status {
    if !refused.details().is_empty() || refused.code() == Code::Ok {
        return refused;
    }
    let (word, numbers) = match refused.code() {
        Code::OutOfRange => ("MESSAGE_TOO_LARGE", vec![("bytes_max", DECODED_BYTES_MAX as u64)]),
        Code::Unimplemented => ("UNKNOWN_METHOD", Vec::new()),
        Code::Internal => ("MESSAGE_UNREADABLE", Vec::new()),
        _ => ("TRANSPORT", Vec::new()),
    };
    status(refused.code(), refused.message().to_owned(), reason(word, &numbers))
}

/// What a client sent, cut to a length that fits a status.
pub(crate) fn clip(text: &str) -> String {
    if text.len() <= ECHO_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(ECHO_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_long_violations_fit_a_status_and_the_first_is_told_in_its_text() {
        for (count, length) in [(1, 10), (19, 20), (21, 20), (100, 200), (100, 400)] {
            let violations = vec![Violation { field: "batch.labels", why: "x".repeat(length) }; count];
            let refused = Status::from(Refusal::BadArguments(violations));
            assert!(refused.message().len() + refused.details().len() < 4_096, "{count} of {length}");
            let told = refused.get_details_bad_request().expect("it says which").field_violations.len();
            assert!((1..=VIOLATIONS_MAX.min(count)).contains(&told), "{told}");
            assert!(refused.message().starts_with("batch.labels: x"));
            assert_eq!(refused.message().contains("more)"), count > 1);
        }
    }
}
