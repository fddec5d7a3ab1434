//! The only place that prints: results to stdout, everything else to stderr.

use std::{
    error::Error,
    fs::File,
    io::{self, BufWriter, Stdout, Write},
    os::fd::AsFd as _,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that a pipe takes whole or not at all: its `PIPE_BUF`.
const PIECE_BYTES: usize = if cfg!(target_os = "linux") { 4_096 } else { 512 };

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

/// Whether an error is of standard output.
pub(crate) fn is_output(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
        .is_some_and(<dyn Error + Send + Sync>::is::<StdoutError>)
}

/// Whether an error says that the reader of standard output has had enough.
pub(crate) fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    is_output(error)
        && error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Standard output for lines of results. They are written in pieces that end with a line and that a pipe takes whole or not at all, so that what
/// has arrived is known at any moment, also while nobody reads.
pub(crate) struct LinePieces {
    out: File,
    piece: Vec<u8>,
}

impl LinePieces {
    pub(crate) fn new() -> io::Result<Self> {
        // Apart from the buffer of the standard library, which cuts where it likes.
        let out = io::stdout().as_fd().try_clone_to_owned().map_err(mark)?;
        Ok(Self { out: out.into(), piece: Vec::with_capacity(PIECE_BYTES) })
    }

    /// Adds a line. Returns whether those before it were written out first.
    pub(crate) fn push(&mut self, line: &[u8]) -> io::Result<bool> {
        let is_full = !self.piece.is_empty() && self.piece.len() + line.len() > PIECE_BYTES;
        if is_full {
            self.flush()?;
        }
        self.piece.extend_from_slice(line);
        Ok(is_full)
    }

    /// Writes out what there is.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            // Where there is room for the whole piece the write does not wait: no need to make way for others.
            if has_room(&self.out) {
                self.out.write_all(&self.piece).map_err(mark)?;
            } else {
                blocking(|| self.out.write_all(&self.piece)).map_err(mark)?;
            }
            self.piece.clear();
        }
        Ok(())
    }
}

/// Whether a pipe has room for a piece. A file always says so.
fn has_room(out: &File) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
    poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Writes where it keeps nothing else from running: a reader may pause for as long as it likes.
fn blocking<T>(write: impl FnOnce() -> T) -> T {
    if Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread) {
        tokio::task::block_in_place(write)
    } else {
        write()
    }
}

pub(crate) fn results() -> Results {
    BufWriter::with_capacity(BUFFER_BYTES, Marked(io::stdout()))
}

/// One line on stdout, at once: for other programs that wait for it.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    blocking(|| {
        let mut stdout = Marked(io::stdout());
        writeln!(stdout, "{line}")?;
        stdout.flush()
    })
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
