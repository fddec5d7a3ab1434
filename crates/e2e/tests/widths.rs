//! Widths, threads and slices change the speed and never a byte; figures are told in the published form.
#![allow(clippy::unwrap_used)]

use e2e::{ENDLESS, SEED, Service, run};
use serde_json::Value;

/// The narrowest and the widest that any machine here may have; what a machine lacks is refused, by name.
const WIDTHS: [&str; 4] = ["portable", "sse2", "avx2", "avx512"];

/// The widths that this machine has: at least two, or nothing would be compared.
fn widths() -> Vec<&'static str> {
    let has = |width: &&str| {
        let done = run(&["solve", "--width", width], &[], SEED);
        if done.code != Some(0) {
            assert_eq!(done.code, Some(2), "{}", done.stderr);
            assert!(done.stderr.contains(&format!("this machine has no {width}")), "{}", done.stderr);
        }
        done.code == Some(0)
    };
    let widths: Vec<&str> = WIDTHS.into_iter().filter(has).collect();
    assert!(widths.len() >= 2 || cfg!(not(target_arch = "x86_64")), "{widths:?}");
    widths
}

/// Puzzles of all kinds: generated ones, such as have several solutions or none, hostile ones, and lines that are no puzzle.
fn mixed() -> String {
    let generated = |args: &str| {
        let done = run(&["generate"].into_iter().chain(args.split(' ')).collect::<Vec<_>>(), &[], "");
        assert_eq!(done.code, Some(0));
        done.stdout
    };
    let mut text = generated("-n 1500 --seed 7") + &generated("-n 300 --minimal --seed 8");
    let fewer: Vec<String> =
        text.lines().step_by(3).map(|puzzle| puzzle.replacen(|c| c != '.', ".", 6)).collect();
    let other = |puzzle: &str| puzzle.replacen('1', "2", 1);
    let changed: Vec<String> = text.lines().skip(1).step_by(3).map(other).collect();
    text += &(fewer.join("\n") + "\n" + &changed.join("\n") + "\n");
    // Many solutions, none after 2,549,798,780 placements, and the empty grid.
    let hopeless = ".....5.8....6.1.43..........1.5........1.6...3.......553.....61........4.........";
    for grid in [ENDLESS, hopeless, &".".repeat(81), ENDLESS] {
        text += &[grid, "too short", SEED, ""].join("\n");
    }
    text
}

#[test]
fn every_width_number_of_threads_and_slicing_gives_the_same_bytes() {
    let text = mixed();
    let args = ["solve", "--output", "jsonl", "--placement-limit", "200000"];
    let expected = run(&[&args[..], &["--threads", "1", "--width", "portable"]].concat(), &[], &text);
    assert_eq!(expected.code, Some(3), "{}", expected.stderr);
    for outcome in ["unique", "multiple", "no_solution", "invalid"] {
        let name = format!("\"outcome\":\"{outcome}\"");
        assert!(expected.stdout.matches(&name).count() > 3, "{outcome}");
    }
    for width in widths() {
        for threads in ["1", "2", "5"] {
            let done =
                run(&[&args[..], &["--threads", threads]].concat(), &[("SUDOKU_BATCH_WIDTH", width)], &text);
            assert!(done.stdout == expected.stdout, "{width}, {threads} threads");
        }
    }
    // Jobs and slices are cut by workers, by time: the bytes are the same.
    let service = Service::start(2, &[]);
    let submitted = service.run(&["submit", "--output", "jsonl", "--placement-limit", "200000"], &text);
    assert_eq!(submitted.code, Some(3), "{}", submitted.stderr);
    assert!(submitted.stdout == expected.stdout);
}

#[test]
fn figures_of_the_solver_are_one_json_object() {
    let puzzles = run(&["generate", "-n", "50"], &[], "").stdout;
    let bench = ["bench", "solver", "-", "--seconds", "0", "--output", "json"];
    let figures = |more: &[&str]| {
        let done = run(&[&bench[..], more].concat(), &[], &puzzles);
        assert_eq!((done.code, &*done.stderr), (Some(0), ""));
        let figures: Value = serde_json::from_str(&done.stdout).unwrap();
        let names: Vec<&str> = figures.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["puzzles", "seconds", "puzzles_per_second", "placements"]);
        assert!(figures["seconds"].as_f64().unwrap() > 0.0);
        assert!(figures["puzzles_per_second"].as_f64().unwrap() > 0.0);
        figures
    };
    let counted = figures(&["--threads", "2"]);
    assert_eq!(counted["puzzles"], 50);
    let summary = run(&["solve", "--output", "jsonl"], &[], &puzzles).stdout;
    let placements =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["placements"].as_u64().unwrap();
    // The first pass is over the file as it is.
    assert_eq!(counted["placements"], summary.lines().map(placements).sum::<u64>());
    for width in widths() {
        assert_eq!(figures(&["--width", width])["placements"], counted["placements"]);
        assert_eq!(figures(&["--width", width, "--placement-limit", "off"])["placements"], Value::Null);
    }
}
