//! The only place that prints: results to stdout, everything else to stderr.

use std::{
    error::Error,
    fs::File,
    io::{self, BufWriter, Seek as _, SeekFrom, Stdout, Write},
    os::{fd::AsFd as _, unix::fs::FileTypeExt as _},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::interrupt::{Interrupted, StopFlag};

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes that a pipe takes whole or not at all: its `PIPE_BUF`.
const PIECE_BYTES: usize = if cfg!(target_os = "linux") { 4_096 } else { 512 };

/// Milliseconds between two looks at the stop flag while a reader pauses.
const ROOM_LOOK: u8 = 50;
/// How long the last words of a command may take; nobody may read them.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

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
    kind: Kind,
    stop: StopFlag,
    piece: Vec<u8>,
    /// Lines in it.
    lines: u64,
}

/// What standard output is, by how it takes a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Whole or not at all, and it says beforehand which.
    Pipe,
    /// At once; what a full disk has left of a piece can be taken back.
    File,
    /// As it likes: a terminal, a socket.
    Other,
}

impl LinePieces {
    /// `stop` ends the waiting for a reader.
    pub(crate) fn new(stop: StopFlag) -> io::Result<Self> {
        // Apart from the buffer of the standard library, which cuts where it likes.
        let out: File = io::stdout().as_fd().try_clone_to_owned().map_err(mark)?.into();
        let kind = match out.metadata().map_err(mark)?.file_type() {
            found if found.is_fifo() => Kind::Pipe,
            found if found.is_file() => Kind::File,
            _ => Kind::Other,
        };
        Ok(Self { out, kind, stop, piece: Vec::with_capacity(PIECE_BYTES), lines: 0 })
    }

    /// Adds a line. Returns how many of those before it were written out first.
    ///
    /// # Errors
    /// As [`LinePieces::flush`].
    pub(crate) fn push(&mut self, line: &[u8]) -> io::Result<u64> {
        let is_full = self.piece.len() + line.len() > PIECE_BYTES;
        let written = if is_full { self.flush()? } else { 0 };
        self.piece.extend_from_slice(line);
        self.lines += 1;
        Ok(written)
    }

    /// Writes out what there is; returns how many lines that were.
    ///
    /// # Errors
    /// Those of the output; [`Interrupted`] when the flag was raised before: then nothing was written.
    pub(crate) fn flush(&mut self) -> io::Result<u64> {
        if self.piece.is_empty() {
            return Ok(0);
        }
        // Gone in any case: neither written nor counted later, by who tells the error.
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let lines = std::mem::take(&mut self.lines);
        if self.stop.is_raised() {
            return Err(io::Error::other(Interrupted));
        }
        match self.kind {
            Kind::Pipe => {
                if !has_room(&self.out, PollTimeout::ZERO) {
                    blocking(|| self.wait_for_room())?;
                }
                self.out.write_all(&piece)
            }
            Kind::File => write_or_take_back(&mut self.out, &piece),
            Kind::Other => blocking(|| self.out.write_all(&piece)),
        }
        .map_err(mark)?;
        Ok(lines)
    }

    /// Waits until a pipe has room for a piece, or the flag is raised.
    fn wait_for_room(&self) -> io::Result<()> {
        while !has_room(&self.out, ROOM_LOOK.into()) {
            if self.stop.is_raised() {
                return Err(io::Error::other(Interrupted));
            }
        }
        Ok(())
    }
}

/// Whether a pipe has room for a piece, or comes to have it meanwhile. One whose reader is gone has: the write tells.
fn has_room(out: &File, wait: PollTimeout) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::POLLOUT)];
    poll(&mut asked, wait).is_ok_and(|ready| ready > 0)
}

/// Writes a piece to a file; if the disk does not take all of it, what it has taken is cut off again, so that the file ends with a line.
fn write_or_take_back(out: &mut File, piece: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < piece.len() {
        match out.write(&piece[written..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                if written > 0 {
                    let begin = out.stream_position()?.saturating_sub(written as u64);
                    out.set_len(begin)?;
                    out.seek(SeekFrom::Start(begin))?;
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Does what may wait where it keeps nothing else from running: a reader may pause for as long as it likes.
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

/// The last line of a command on stderr. It does not keep the command for long if nobody reads there.
pub(crate) fn last_words(line: String) {
    let (told, heard) = mpsc::channel();
    let telling = thread::Builder::new().name("last-words".to_owned()).spawn(move || {
        complain(&line);
        told.send(()).ok();
    });
    if telling.is_ok() {
        // An error means that it takes too long.
        heard.recv_timeout(LAST_WORDS_MAX).ok();
    }
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
