//! Searches that take long: for ever where a test needs a solver thread that is busy, and a given time where it waits for the answer.
//!
//! A solver becomes faster from version to version and from machine to machine. No fixed number of placements is long enough for one test and short
//! enough for another, so none is written into a test.

use std::{process::Command, sync::OnceLock, time::Duration};

use crate::binary;

/// A legal grid without a solution, whose search takes the recipe some 10^15 placements (estimated by random descents): its last cell can hold nothing, and
/// row by row that is found out last. What [`ENDLESS_LIMIT`] leaves of it is a real search of minutes: ten at 1,700 million placements a second.
pub const ENDLESS: &str = "..1......2..........3..................................................174258396.";
/// The greatest limit that there is. The servers of this harness take it; by default they would take a hundredth of it, which may be over in two seconds.
pub const ENDLESS_LIMIT: u64 = 1_000_000_000_000;
/// The same for a command line.
pub const ENDLESS_OPTIONS: [&str; 2] = ["--placement-limit", "1000000000000"];
/// For the environment of a server, or of `up`, that is to take it.
pub const ENDLESS_TAKEN: (&str, &str) = ("SUDOKU_BATCH_PLACEMENT_LIMIT_MAX", "1000000000000");

/// The limit under which [`ENDLESS`] keeps a core of this machine busy for about `time`: for a test that waits for the answer. Measured once for each process
/// of tests. It is the core's own time: a machine that does other things as well takes some times longer, and hardly ever less.
///
/// # Panics
/// When `solve` fails.
#[must_use]
pub fn limit_for(time: Duration) -> u64 {
    static PER_SECOND: OnceLock<f64> = OnceLock::new();
    let rate = *PER_SECOND.get_or_init(placements_per_second);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "about so many, and positive"
    )]
    let limit = (rate * time.as_secs_f64()) as u64;
    assert!(
        limit < ENDLESS_LIMIT,
        "{ENDLESS_LIMIT} placements are not enough for {time:?}: find another grid"
    );
    limit
}

/// `puzzles` with [`ENDLESS`] in the place of `count` of them, spread evenly: what lets a test reach the middle of a batch that would be solved before the
/// next look at it. To be submitted with a limit of [`limit_for`].
#[must_use]
pub fn with_long_searches(puzzles: &str, count: usize) -> String {
    let every = puzzles.lines().count() / count;
    let long = |number: usize| number % every == every / 2;
    let lines = puzzles.lines().enumerate().map(|(number, line)| if long(number) { ENDLESS } else { line });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Of one thread of `solve` and in a second of its own, the fastest of three.
fn placements_per_second() -> f64 {
    const LONG_ENOUGH: Duration = Duration::from_millis(200);
    let mut limit: u64 = 50_000_000;
    while search(limit) < LONG_ENOUGH {
        limit *= 2;
    }
    let fastest = (0..3).map(|_| search(limit)).min().expect("three");
    #[expect(clippy::cast_precision_loss, reason = "about so many")]
    let placements = limit as f64;
    placements / fastest.as_secs_f64()
}

/// How long a core works on a search with this limit.
fn search(limit: u64) -> Duration {
    const SCRIPT: &str = r#"TIMEFORMAT=%3U; time "$0" solve - --threads 1 --placement-limit "$1" <<< "$2" 2> /dev/null > /dev/null"#;
    let done = Command::new("bash")
        .args(["-c", SCRIPT])
        .arg(binary())
        .args([&limit.to_string(), ENDLESS])
        // So that it writes 0.250 whatever the user's language.
        .env("LC_ALL", "C")
        .output()
        .expect("bash can be run");
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}");
    Duration::from_secs_f64(told.trim().parse().expect("a number of seconds"))
}
