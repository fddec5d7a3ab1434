//! The only place that prints: results to stdout, everything else to stderr.

use std::{
    error::Error,
    io::{self, BufWriter, Stdout, Write},
};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output for results, buffered. Its errors can be told from those of other streams.
pub(crate) type Results = BufWriter<Marked>;

/// Standard output whose errors carry a mark.
#[derive(Debug)]
pub(crate) struct Marked(Stdout);

#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
struct StdoutError(io::Error);

impl Write for Marked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(mark)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(mark)
    }
}

fn mark(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), StdoutError(error))
}

/// Whether an error says that the reader of standard output has had enough.
pub(crate) fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| {
        error.kind() == io::ErrorKind::BrokenPipe
            && error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<StdoutError>)
    })
}

pub(crate) fn results() -> Results {
    BufWriter::with_capacity(BUFFER_BYTES, Marked(io::stdout()))
}

/// One line on stdout, at once: for other programs that wait for it.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut stdout = Marked(io::stdout());
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// One line on stderr. If nobody reads there, nobody is told: that is no reason to fail.
pub(crate) fn complain(line: &str) {
    writeln!(io::stderr(), "{line}").ok();
}

/// Standard error for log lines; a reader that has gone away ends nothing.
#[derive(Debug)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Written or lost: there is nobody to tell.
        io::stderr().write_all(bytes).ok();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush().ok();
        Ok(())
    }
}
