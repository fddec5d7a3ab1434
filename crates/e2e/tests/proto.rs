//! The wire as its tools see it: what may be released after the last release, and what `buf curl` shows of a running service.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::OnceLock,
};

use e2e::{SEED_SOLUTION, Service};
use tonic_types::pb::ErrorInfo;

/// A file of `proto/`, and what is changed in it.
struct Change {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const BATCHES: &str = "sudoku/v1/batch_service.proto";
const PUZZLES: &str = "sudoku/v1/puzzle.proto";

/// What must not be, with a part of what is said about it.
const BREAKING: [(Change, &str); 5] = [
    (
        Change { file: BATCHES, from: "int64 next_offset = 1;", to: "int64 next_offset = 3;" },
        "field \"1\" with name \"next_offset\"",
    ),
    (Change { file: BATCHES, from: "bool duplicate = 2;", to: "int32 duplicate = 2;" }, "duplicate"),
    (Change { file: BATCHES, from: "bool duplicate = 2;", to: "bool is_duplicate = 2;" }, "is_duplicate"),
    (Change { file: PUZZLES, from: "OUTCOME_FAILED = 6;", to: "OUTCOME_FAILED = 9;" }, "enum value \"6\""),
    (
        Change {
            file: BATCHES,
            from: "rpc GetBatch(GetBatchRequest) returns (Batch);",
            to: "rpc ReadBatch(GetBatchRequest) returns (Batch);",
        },
        "GetBatch",
    ),
];

/// What may be added.
const GROWING: [Change; 3] = [
    Change {
        file: BATCHES,
        from: "bool duplicate = 2;",
        to: "bool duplicate = 2;\n  // New.\n  int64 stored_count = 3;",
    },
    Change {
        file: PUZZLES,
        from: "OUTCOME_CANCELLED = 7;",
        to: "OUTCOME_CANCELLED = 7;\n  // New.\n  OUTCOME_NEW = 8;",
    },
    Change {
        file: BATCHES,
        from: "rpc GetBatch(GetBatchRequest) returns (Batch);",
        to: "rpc GetBatch(GetBatchRequest) returns (Batch);\n  // New.\n  rpc ReadBatch(GetBatchRequest) returns (Batch);",
    },
];

/// The root of the repository, where `.ci/buf` has installed buf if there was none.
fn root() -> &'static Path {
    static ROOT: OnceLock<&Path> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let there = Command::new(root.join(".ci/buf")).arg("--version").output().unwrap();
        assert!(there.status.success(), "buf cannot be had: {there:?}");
        root
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// What the check says of a copy of `proto/` with this change in it.
fn checked(change: &Change) -> Output {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("proto"), folder.path());
    let file = folder.path().join(change.file);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(change.from).count(), 1, "{:?} in {}", change.from, change.file);
    fs::write(&file, text.replace(change.from, change.to)).unwrap();
    Command::new(root().join(".ci/proto-breaking")).arg(folder.path()).output().unwrap()
}

#[test]
fn what_a_released_client_relies_on_stays_and_the_rest_may_grow() {
    let now = Command::new(root().join(".ci/proto-breaking")).output().unwrap();
    assert!(now.status.success(), "{now:?}");
    for (change, told) in BREAKING {
        let done = checked(&change);
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(!done.status.success() && said.contains(told), "{}: {done:?}", change.to);
    }
    for change in GROWING {
        let done = checked(&change);
        assert!(done.status.success(), "{}: {done:?}", change.to);
    }
}

/// The commands of a README that are calls by `buf curl`, in order, as a shell takes them.
fn buf_curls(readme: &str) -> Vec<String> {
    let blocks = readme.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines =
        blocks.flat_map(|block| block.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with("buf curl ")).collect()
}

/// Runs such a command against a service; gives its exit code and what it printed.
fn curled(command: &str, service: &Service) -> (i32, String) {
    const LISTEN: &str = "http://127.0.0.1:50051";
    assert_eq!(command.matches(LISTEN).count(), 1, "{command}");
    let command = command.replace(LISTEN, &service.url).replacen("buf", ".ci/buf", 1);
    let done = Command::new("sh").args(["-c", &command]).current_dir(root()).output().unwrap();
    let printed = [done.stdout, done.stderr].concat();
    (done.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

/// The bytes of base64 without padding.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets: Vec<u32> =
        text.chars().map(|digit| u32::try_from(DIGITS.find(digit).unwrap()).unwrap()).collect();
    let four = |four: &[u32]| {
        let bits = four.iter().fold(0, |bits, sextet| bits << 6 | sextet) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    sextets.chunks(4).flat_map(four).collect()
}

/// What each of the README's commands calls, its exit code, and what it prints among other things.
const CURLED: [(&str, i32, &[&str]); 9] = [
    (
        "--list-services",
        0,
        &["grpc.health.v1.Health\n", "sudoku.v1.BatchService\n", "sudoku.v1.SolverService\n"],
    ),
    ("--list-methods", 0, &["sudoku.v1.BatchService/AppendPuzzles\n", "sudoku.v1.SolverService/Solve\n"]),
    ("/grpc.health.v1.Health/Check", 0, &["\"status\": \"SERVING\""]),
    ("/CreateBatch", 0, &["\"batches/by-hand\"", "STATE_OPEN", "\"placementLimit\": \"1000000\""]),
    ("/AppendPuzzles", 0, &["\"nextOffset\": \"1\""]),
    ("/SealBatch", 0, &["\"batches/by-hand\"", "\"puzzleCount\": \"1\""]),
    (
        "/StreamResults",
        0,
        &["OUTCOME_UNIQUE", SEED_SOLUTION, "\"4208\"", "\"resumeToken\"", "STATE_SUCCEEDED"],
    ),
    ("/GetBatch", 0, &["STATE_SUCCEEDED", "\"doneCount\": \"1\"", "\"endTime\""]),
    (
        "/AppendPuzzles",
        11 << 3,
        &["\"code\": \"out_of_range\"", "the next offset is 1", "google.rpc.ErrorInfo"],
    ),
];

#[test]
fn the_readmes_calls_by_buf_curl_do_what_it_says() {
    let service = Service::start(1, &[]);
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let commands = buf_curls(&readme);
    assert_eq!(commands.len(), CURLED.len(), "{commands:#?}");
    for (command, (called, code, parts)) in commands.iter().zip(CURLED) {
        assert!(command.contains(called), "{called}: {command}");
        let (ended, printed) = curled(command, &service);
        assert_eq!(ended, code, "{command}: {printed}");
        for part in parts {
            assert!(printed.contains(part), "{part}: {command}: {printed}");
        }
        if called == "--list-services" || code != 0 {
            assert!(readme.contains(&printed), "the README says it otherwise: {printed}");
        }
        if called.starts_with("--list") {
            for version in ["v1", "v1alpha"] {
                let (ended, listed) =
                    curled(&format!("{command} --reflect-protocol grpc-{version}"), &service);
                assert_eq!((ended, &listed), (0, &printed), "both versions list everything");
            }
        }
        if code != 0 {
            let error: serde_json::Value = serde_json::from_str(&printed).unwrap();
            let info = base64(error["details"][0]["value"].as_str().unwrap());
            let info = <ErrorInfo as prost::Message>::decode(&*info).unwrap();
            assert_eq!((&*info.reason, &*info.domain), ("OFFSET_BEYOND_END", "sudoku-batch"));
            assert_eq!(info.metadata["next_offset"], "1");
        }
    }
}
