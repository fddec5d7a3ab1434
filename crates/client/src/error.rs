//! What can go wrong for a client, by what it does about it.

use std::{error::Error as _, time::Duration};

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// An error of the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be used.
    #[error("{url:?} is no server address: {reason}; it looks like http://127.0.0.1:50051")]
    BadUrl {
        /// As given.
        url: String,
        /// Why.
        reason: String,
    },
    /// The tenant's name cannot be sent.
    #[error("{0:?} is no tenant's name: it is 1 to 63 of [a-z0-9-]")]
    BadTenant(String),
    /// Nobody answers there.
    #[error("cannot reach a server at {url}: {reason}")]
    Unreachable {
        /// The server.
        url: String,
        /// In the system's words.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{}", describe(.0))]
    Status(Box<Status>),
    /// The stream ended before the batch did: go on from the index after the last result.
    #[error("the stream of results was cut off before its end")]
    Cut,
    /// The server says nothing any more, not even that it lives.
    #[error("the server has stopped answering")]
    Silent,
    /// The time that the caller gave is over. The batch goes on, and results can be asked for later.
    #[error("the deadline has come before the end of the results; the batch goes on")]
    Deadline,
    /// The server sent what its contract does not allow.
    #[error("the server broke its contract: {0}")]
    Contract(&'static str),
}

impl Error {
    /// The reason word of the server's `ErrorInfo`, such as `BATCH_NOT_FOUND`.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let Self::Status(status) = self else { return None };
        status.get_details_error_info().map(|info| info.reason)
    }

    /// After which time there may be room again, where the service takes nothing more just now. Not where there will be none: a batch that is full.
    #[must_use]
    pub fn room_after(&self) -> Option<Duration> {
        let Self::Status(status) = self else { return None };
        if status.code() != Code::ResourceExhausted {
            return None;
        }
        status.get_details_retry_info()?.retry_delay
    }

    /// After which time the server asks to try again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let Self::Status(status) = self else { return None };
        status.get_details_retry_info()?.retry_delay
    }

    /// Whether the server itself says that it cannot answer for a while: it stops, or its database is away.
    pub(crate) fn says_away(&self) -> bool {
        matches!(self, Self::Status(status) if status.code() == Code::Unavailable) && self.reason().is_some()
    }

    /// Whether an append was refused since something before it is missing.
    pub(crate) fn is_gap(&self) -> bool {
        self.reason().as_deref() == Some("OFFSET_BEYOND_END")
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Cut | Self::Silent => true,
            Self::Status(status) => match status.code() {
                Code::Unavailable | Code::Aborted | Code::DeadlineExceeded => true,
                // With a source it is the transport's word: HTTP/2's "calm down" ended the connection.
                Code::ResourceExhausted => self.room_after().is_some() || status.source().is_some(),
                // Without this service's own word it is the transport's: a connection that broke.
                Code::Unknown | Code::Internal | Code::Cancelled => status.get_details_error_info().is_none(),
                _ => false,
            },
            Self::BadUrl { .. } | Self::BadTenant(_) | Self::Contract(_) | Self::Deadline => false,
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

fn describe(status: &Status) -> String {
    let text = status.message();
    let text = if text.is_empty() { status.code().description() } else { text };
    // With a source it is the transport's word, not the server's.
    match status.source() {
        Some(cause) => format!("the connection to the server broke ({})", root_cause(cause)),
        None => text.to_owned(),
    }
}

/// The innermost cause: transports wrap it in layers that say nothing.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
