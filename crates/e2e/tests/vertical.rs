//! The main job: puzzles in over gRPC, solved by worker processes, every answer back once and in order.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, fs};

use e2e::{SEED, SEED_SOLUTION, Service, run};

/// Puzzles whose answers are known from the solver's own table of cases.
const TELLING: &str = include_str!("../../solver/tests/data/cases.tsv");

fn telling() -> Vec<&'static str> {
    let puzzles: Vec<&str> = TELLING
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').nth(1))
        .collect();
    assert!(puzzles.len() > 20, "the table of cases is there");
    puzzles.into_iter().filter(|text| text.len() == 81).collect()
}

#[test]
fn the_seed_example_comes_back_as_the_contract_says() {
    let service = Service::start(1, &[]);
    let done = run(&["submit", "-", "--output", "jsonl", "--server", &service.url], &[], SEED);
    let line = format!(
        "{{\"index\":0,\"outcome\":\"unique\",\"solution\":\"{SEED_SOLUTION}\",\"placements\":4208}}\n"
    );
    assert_eq!((done.code, done.stdout), (Some(0), line));
    assert!(done.stderr.starts_with("1/1 puzzles"), "{}", done.stderr);
}

#[test]
fn a_server_and_this_process_answer_the_same_bytes_whatever_the_input() {
    let service = Service::start(2, &[]);
    let mut text = String::from("# a remark\n\n");
    for puzzle in telling() {
        text.push_str(puzzle);
        text.push('\n');
    }
    text.push_str(
        "  \nshort\n53..7....6..195....98....6.8...6...34..8q3..17...2...6.6....28....419..5....8..79\n0\r\n",
    );
    text.push_str(&"1".repeat(5_000));
    text.push('\n');
    for (output, limit) in [("jsonl", "100000000"), ("jsonl", "50000"), ("jsonl", "off"), ("text", "4208")] {
        let options = ["--output", output, "--placement-limit", limit];
        let here = run(&[&["solve", "-"], &options[..]].concat(), &[], &text);
        let there = run(&[&["submit", "-", "--server", &service.url], &options[..]].concat(), &[], &text);
        assert_eq!(here.stdout, there.stdout);
        assert_eq!((here.code, there.code), (Some(3), Some(3)), "some inputs were invalid");
        if output == "jsonl" {
            assert_eq!(here.stdout.matches("\"reason\":\"unreadable\",\"cells\":[]").count(), 1);
            assert!(here.stdout.contains("\"reason\":\"character\",\"cells\":[40]"), "{}", here.stdout);
        }
    }
}

#[test]
fn fifty_thousand_puzzles_through_two_workers_come_back_once_in_order_and_right() {
    const PUZZLES: usize = 50_000;
    let service = Service::start(2, &[]);
    let made = run(&["generate", "-n", &PUZZLES.to_string(), "--seed", "20261129"], &[], "");
    let puzzles: Vec<&str> = made.stdout.lines().collect();
    assert_eq!(puzzles.len(), PUZZLES);
    let done = run(
        &["submit", "-", "--output", "jsonl", "--id", "fifty", "--server", &service.url],
        &[],
        &made.stdout,
    );
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), PUZZLES);
    for (index, (line, puzzle)) in lines.iter().zip(&puzzles).enumerate() {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (result["index"].as_u64(), result["outcome"].as_str()),
            (Some(index as u64), Some("unique"))
        );
        assert_solves(result["solution"].as_str().unwrap(), puzzle);
        assert!(result["placements"].as_u64().unwrap() > 0);
    }
    assert_eq!(service.database.value("select count(*) from job"), "0", "nothing is left to do");
    assert_eq!(
        service.database.value("select sum(hi - lo) from result"),
        "50000",
        "and nothing was stored twice"
    );
    let again = run(
        &["submit", "-", "--output", "jsonl", "--id", "fifty", "--server", &service.url],
        &[],
        &made.stdout,
    );
    assert!(again.stdout == done.stdout, "the same submit again is the same batch and the same bytes");
    assert_eq!(service.database.value("select count(*) from batch"), "1");
}

fn assert_solves(solution: &str, puzzle: &str) {
    assert!(solution.bytes().zip(puzzle.bytes()).all(|(digit, given)| given == b'.' || digit == given));
    let digits = solution.as_bytes();
    for house in 0..9 {
        let row: BTreeSet<u8> = (0..9).map(|place| digits[house * 9 + place]).collect();
        let column: BTreeSet<u8> = (0..9).map(|place| digits[place * 9 + house]).collect();
        let corner = house / 3 * 27 + house % 3 * 3;
        let square: BTreeSet<u8> = (0..9).map(|place| digits[corner + place / 3 * 9 + place % 3]).collect();
        for set in [row, column, square] {
            assert_eq!(set, (b'1'..=b'9').collect());
        }
    }
}

#[test]
fn results_as_they_finish_are_the_same_set_of_lines() {
    let service = Service::start(2, &[]);
    let made = run(&["generate", "-n", "3000", "--seed", "3"], &[], "");
    let submit = |more: &[&str]| {
        run(
            &[&["submit", "-", "--output", "jsonl", "--server", &service.url], more].concat(),
            &[],
            &made.stdout,
        )
        .stdout
    };
    let (ordered, finished) = (submit(&[]), submit(&["--as-finished"]));
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(ordered.lines().count(), 3_000);
    assert_eq!(sorted(&ordered), sorted(&finished));
}

#[test]
fn several_files_and_their_lines_are_told_and_progress_is_one_plain_line() {
    let service = Service::start(1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.txt"), folder.path().join("two.txt"));
    fs::write(&one, format!("# x\n{SEED}\n")).unwrap();
    fs::write(&two, format!("{SEED}\n\n11{}\n", ".".repeat(79))).unwrap();
    let files = [one.to_str().unwrap(), two.to_str().unwrap()];
    let args = ["submit", files[0], files[1], "--output", "jsonl", "--server", &service.url];
    let done = run(&args, &[], "");
    assert_eq!(done.code, Some(3));
    let last = done.stdout.lines().last().unwrap();
    assert_eq!(
        last,
        "{\"index\":2,\"outcome\":\"invalid\",\"solution\":null,\"placements\":0,\"line\":3,\"reason\":\"duplicate_given\",\"cells\":[0,1]}"
    );
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    assert!(done.stderr.starts_with("3/3 puzzles") && !done.stderr.contains(['\r', '\u{1b}']));
}

#[test]
fn summary_counts_outcomes_and_get_shows_the_batch_as_text_and_as_the_protos_json() {
    let service = Service::start(1, &[]);
    let text = format!("{SEED}\n11{}\n", ".".repeat(79));
    let args =
        ["submit", "-", "--summary", "--output", "jsonl", "--id", "summed-up", "--server", &service.url];
    let done = run(&args, &[], &text);
    let summary: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&summary["puzzles"], &summary["unique"], &summary["invalid"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(summary["placements"]["median"], 4_208);

    let shown = run(&["get", "summed-up", "--output", "json", "--server", &service.url], &[], "");
    let batch: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&batch["name"], &batch["state"]), (&"batches/summed-up".into(), &"STATE_SUCCEEDED".into()));
    assert_eq!((&batch["puzzleCount"], &batch["progress"]["doneCount"]), (&"2".into(), &"2".into()));
    assert_eq!(batch["progress"]["placementCount"], "4208");
    let shown = run(&["get", "batches/summed-up", "--server", &service.url], &[], "");
    assert!(shown.stdout.contains("2 of 2") && shown.stdout.contains("succeeded"), "{}", shown.stdout);
}

#[test]
fn a_detached_submit_names_its_batch_and_leaves() {
    let service = Service::start(1, &[]);
    let done = run(&["submit", "-", "--detach", "--server", &service.url], &[], SEED);
    assert_eq!(done.code, Some(0));
    let name = done.stdout.trim();
    assert!(name.starts_with("batches/"), "{name}");
    e2e::eventually("the batch is done", || {
        let shown = run(&["get", name, "--server", &service.url], &[], "");
        shown.stdout.contains("1 of 1").then_some(())
    });
}

#[test]
fn a_submit_that_finds_its_batch_already_solved_prints_each_result_with_its_own_line() {
    // The first version printed stored results before it had read the lines that they belong to.
    let service = Service::start(1, &[]);
    let mut text = format!("{SEED}\n").repeat(4_095).into_bytes();
    text.extend(b"\xff\xfe\n");
    text.extend(format!("{SEED}\n").repeat(200).bytes());
    text.extend(b"\n\nbad\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, &text).unwrap();
    let args =
        ["submit", file.to_str().unwrap(), "--id", "again", "--output", "jsonl", "--server", &service.url];
    let first = run(&args, &[], "");
    assert_eq!(first.code, Some(3), "{}", first.stderr);
    assert!(first.stdout.contains("\"line\":4096,\"reason\":\"unreadable\""));
    assert!(first.stdout.ends_with("\"line\":4299,\"reason\":\"length\",\"cells\":[]}\n"));
    // From another path: the name of the file is no part of the batch.
    let copy = folder.path().join("copy.txt");
    fs::copy(&file, &copy).unwrap();
    let args =
        ["submit", copy.to_str().unwrap(), "--id", "again", "--output", "jsonl", "--server", &service.url];
    let second = run(&args, &[], "");
    assert!(second.code == first.code && second.stdout == first.stdout, "{}", second.stderr);
}

#[test]
fn results_of_other_puzzles_are_never_printed() {
    let service = Service::start(1, &[]);
    let submit = |text: &str| {
        run(&["submit", "-", "--id", "taken", "--output", "jsonl", "--server", &service.url], &[], text)
    };
    let three = format!("{SEED}\n").repeat(3);
    let done = submit(&three);
    assert_eq!(done.code, Some(0));
    let three_results = done.stdout;
    for other in [format!("11{}", ".".repeat(79)), format!("{}\n{SEED}\n", ".".repeat(81))] {
        let refused = submit(&other);
        assert_eq!((refused.code, &*refused.stdout), (Some(1), ""), "{}", refused.stderr);
        assert!(refused.stderr.contains("index 0") && refused.stderr.contains("taken"), "{}", refused.stderr);
    }
    let shorter = submit(&format!("{SEED}\n"));
    assert_eq!(shorter.code, Some(1), "{}", shorter.stderr);
    let own = three_results.lines().next().unwrap();
    assert!(
        shorter.stdout.lines().all(|line| line == own) && shorter.stdout.lines().count() <= 1,
        "{}",
        shorter.stdout
    );
}
