//! Log lines: to stderr, never with puzzles or passwords.

use std::{io::IsTerminal as _, sync::OnceLock};

use tracing_subscriber::EnvFilter;

use crate::output;

static FILTER: OnceLock<String> = OnceLock::new();

/// Begins to log with the given filter, such as `info` or `warn,store=debug`; an unreadable one is told and taken as `info`.
pub(crate) fn start(filter: &str) {
    // sqlx would show parameters of the database's URL that it does not know, values and all.
    let parsed = EnvFilter::try_new(format!("{filter},sqlx_postgres::options=off"));
    let unreadable = parsed.as_ref().err().map(ToString::to_string);
    let kept = if unreadable.is_some() { "info" } else { filter };
    tracing_subscriber::fmt()
        .with_env_filter(parsed.unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(|| output::Log)
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    FILTER.get_or_init(|| kept.to_owned());
    if let Some(error) = unreadable {
        tracing::warn!(filter, error, "the log filter cannot be read; logging at info");
    }
}

/// The filter in use, for child processes.
pub(crate) fn filter() -> String {
    FILTER.get().cloned().unwrap_or_else(|| "info".to_owned())
}
