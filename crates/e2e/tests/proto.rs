//! The wire as its tools see it: what may be released after the last release, and what `buf curl` shows of a running service.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
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

// One test for all: the first run may have to install buf.
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
