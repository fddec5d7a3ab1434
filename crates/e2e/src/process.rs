//! Processes of the one binary: started, heard, stopped, never left behind.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::wait::{eventually, guard_against_hanging};

/// The binary under test: the one that `SUDOKU_BATCH_BIN` names, or the one that cargo builds now.
///
/// # Panics
/// When it cannot be built.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(given) = std::env::var_os("SUDOKU_BATCH_BIN") {
            return given.into();
        }
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "cli", "--bin", "sudoku-batch"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo can be run");
        assert!(built.success(), "sudoku-batch cannot be built");
        let test = std::env::current_exe().expect("this test's own file");
        let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
        profile.join("sudoku-batch")
    })
}

/// A command with a clean environment of our own variables.
fn command(args: &[&str]) -> Command {
    guard_against_hanging();
    let mut command = Command::new(binary());
    command.args(args);
    for name in [
        "DATABASE_URL",
        "SUDOKU_BATCH_PGBOUNCER",
        "SUDOKU_BATCH_SERVER",
        "SUDOKU_BATCH_TENANT",
        "SUDOKU_BATCH_LOG",
        "SUDOKU_BATCH_LEASE",
        "SUDOKU_BATCH_PLACEMENT_LIMIT_MAX",
        "SUDOKU_BATCH_KEEP_DAYS",
        "SUDOKU_BATCH_KEEP_CANCELLED_DAYS",
        "SUDOKU_BATCH_QUEUED_MAX_TENANT",
        "SUDOKU_BATCH_QUEUED_MAX",
        "SUDOKU_BATCH_DATABASE_BYTES_MAX",
        "SUDOKU_BATCH_KEEPALIVE",
        "RUST_LOG",
        "XDG_DATA_HOME",
    ] {
        command.env_remove(name);
    }
    command
}

/// What a command that has ended left.
#[derive(Debug)]
pub struct Finished {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its results.
    pub stdout: String,
    /// Everything else that it said.
    pub stderr: String,
}

/// Runs a command to its end, with `input` as its standard input and `environment` added.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn run(args: &[&str], environment: &[(&str, &str)], input: &str) -> Finished {
    let mut child = command(args)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sudoku-batch can be started");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    // A command that ends early closes its input: that is its right.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()).ok());
    let output = child.wait_with_output().expect("its output can be read");
    writer.join().expect("the writer does not panic");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

/// The processes whose command line or environment names `word`, by their numbers; not this one.
///
/// # Panics
/// When there is no `/proc`.
#[must_use]
pub fn processes_naming(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ends meanwhile has nothing to read any more.
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let text = [read("cmdline"), read("environ")].concat();
        if pid != std::process::id() && String::from_utf8_lossy(&text).contains(word) {
            found.push(pid);
        }
    }
    found
}

/// What a stream has brought so far.
#[derive(Clone, Default, Debug)]
struct Stream(Arc<Mutex<Heard>>);

#[derive(Default, Debug)]
struct Heard {
    lines: Vec<String>,
    has_ended: bool,
}

/// How long the last words of a process that has ended may take to be heard. Its children may hold its streams for longer.
const LAST_WORDS_MAX: Duration = Duration::from_secs(2);

/// A running command.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Held open: roles that were told to end with their parent do when it closes.
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
    allowed: Vec<&'static str>,
}

impl Process {
    /// Starts a command in a process group of its own.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = command(args)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("sudoku-batch can be started");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let stdin = child.stdin.take();
        Self { child, stdin, stdout, stderr, allowed: Vec::new() }
    }

    /// Lets log lines of level WARN or ERROR pass that hold one of these texts.
    #[must_use]
    pub fn allowing(mut self, texts: &[&'static str]) -> Self {
        self.allowed.extend(texts);
        self
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has had since [`Process::forget_memory_peak`], or since its start, in bytes. (Resident, as the kernel counts it.)
    ///
    /// # Panics
    /// When there is no `/proc`.
    #[must_use]
    pub fn memory_peak(&self) -> u64 {
        let status = fs::read_to_string(self.proc("status")).expect("/proc");
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        kilobytes.and_then(|number| number.parse::<u64>().ok()).expect("a number") * 1_024
    }

    /// Forgets how much memory it has had before.
    ///
    /// # Panics
    /// When there is no `/proc`.
    pub fn forget_memory_peak(&self) {
        fs::write(self.proc("clear_refs"), "5").expect("the peak can be forgotten");
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(file)
    }

    /// Waits for a line on stdout that begins with `prefix`; gives the rest of it.
    ///
    /// # Panics
    /// When it does not come.
    pub fn line(&mut self, prefix: &str) -> String {
        eventually(&format!("a line {prefix:?} on stdout"), || {
            let found =
                lines(&self.stdout).iter().find_map(|line| line.strip_prefix(prefix).map(str::to_owned));
            if found.is_none()
                && let Some(status) = self.child.try_wait().expect("can be waited for")
            {
                panic!("ended ({status}) without {prefix:?} on stdout; stderr: {:#?}", lines(&self.stderr));
            }
            found
        })
    }

    /// Every line on stdout so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        lines(&self.stdout)
    }

    /// All of stdout so far, as it was written.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.lines().into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
    }

    /// Writes to its standard input, which stays open.
    ///
    /// # Panics
    /// When it is closed.
    pub fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("still open");
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).expect("the process reads");
    }

    /// Everything on stderr so far.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        lines(&self.stderr)
    }

    /// Waits for a line on stderr that holds `text`.
    ///
    /// # Panics
    /// When it does not come.
    pub fn logged(&self, text: &str) {
        eventually(&format!("{text:?} on stderr"), || {
            self.log().iter().any(|line| line.contains(text)).then_some(())
        });
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn signal(&self, signal: Signal) {
        kill(pid(self.child.id()), signal).expect("the process is there");
    }

    /// Waits for its end and its last words; gives the exit code, or the signal that ended it as a negative number.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(&mut self) -> i32 {
        let status =
            eventually("the end of the process", || self.child.try_wait().expect("can be waited for"));
        self.hear_last_words();
        status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// SIGTERM, and its exit code.
    pub fn stop(&mut self) -> i32 {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// After its end: waits until its streams have ended too.
    fn hear_last_words(&self) {
        let ended = Instant::now();
        while !(has_ended(&self.stdout) && has_ended(&self.stderr)) && ended.elapsed() < LAST_WORDS_MAX {
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn unexpected(&self) -> Vec<String> {
        lines(&self.stderr)
            .into_iter()
            .filter(|line| line.contains(" WARN ") || line.contains(" ERROR ") || line.contains("panicked"))
            .filter(|line| !self.allowed.iter().any(|text| line.contains(text)))
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        self.hear_last_words();
        let unexpected = self.unexpected();
        if thread::panicking() {
            // What it said is the first thing that whoever reads the failure wants.
            let said = lines(&self.stderr).join("\n");
            std::io::stderr()
                .write_all(format!("--- stderr of process {}:\n{said}\n", self.child.id()).as_bytes())
                .ok();
        } else {
            assert!(unexpected.is_empty(), "unexpected log lines: {unexpected:#?}");
        }
    }
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("process ids fit"))
}

fn collect(stream: impl Read + Send + 'static) -> Stream {
    let kept = Stream::default();
    let filled = kept.clone();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            heard(&filled).lines.push(line);
        }
        heard(&filled).has_ended = true;
    });
    kept
}

fn heard(stream: &Stream) -> MutexGuard<'_, Heard> {
    stream.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lines(stream: &Stream) -> Vec<String> {
    heard(stream).lines.clone()
}

fn has_ended(stream: &Stream) -> bool {
    heard(stream).has_ended
}
