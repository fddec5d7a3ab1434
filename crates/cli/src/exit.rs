//! Exit codes, and the one place that tells an error.

use std::error::Error;

use crate::output;

/// How a command ended; the first that holds in the order 2, 1, 4, 3, 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// Everything was done.
    Done,
    /// Something failed: server away, I/O, no puzzle in the input.
    Failed,
    /// Wrong usage.
    Usage,
    /// Finished, but some inputs were invalid, undecided or failed.
    SomeBad,
    /// Not finished: interrupted or cut off.
    NotFinished,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::SomeBad => 3,
            Self::NotFinished => 4,
        }
    }
}

/// Wrong usage that only shows after the arguments were read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A batch that was begun and not received to its end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotFinishedError(pub(crate) String);

/// Tells an error in one line and gives its exit code. A closed pipe is told to nobody: its reader had enough.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if error.chain().any(output::is_closed_pipe) {
        return Exit::Done;
    }
    // Each cause once: some errors repeat their source in their own text.
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
    }
    output::last_words(format!("error: {text}"));
    if error.chain().any(is_usage) {
        Exit::Usage
    } else if error.chain().any(<dyn Error>::is::<NotFinishedError>) {
        Exit::NotFinished
    } else {
        Exit::Failed
    }
}

fn is_usage(error: &(dyn Error + 'static)) -> bool {
    error.is::<UsageError>()
        || matches!(error.downcast_ref(), Some(store::Error::BadUrl(_)))
        || matches!(error.downcast_ref(), Some(client::Error::BadUrl { .. } | client::Error::BadTenant(_)))
}
