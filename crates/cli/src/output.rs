//! The only place that prints: results to stdout, everything else to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is this module's job")]

use std::io::{self, BufWriter, Stdout, Write};

/// Standard output for results, buffered; an error of a closed pipe ends the command quietly.
pub(crate) fn results() -> BufWriter<Stdout> {
    BufWriter::with_capacity(64 << 10, io::stdout())
}

/// One line on stdout, at once: for other programs that wait for it.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// One line on stderr.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
