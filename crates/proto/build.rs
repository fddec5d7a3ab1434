//! Generates `sudoku.v1` from `proto/` without an installed protoc, and keeps its descriptor set for reflection and JSON.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

const FILES: [&str; 3] =
    ["sudoku/v1/puzzle.proto", "sudoku/v1/batch_service.proto", "sudoku/v1/solver_service.proto"];

/// Messages with a puzzle's text for each of thousands of puzzles: their types are in `src/`, with the same bytes on the wire.
const BY_HAND: [&str; 2] = ["PuzzleChunk", "ResultChunk"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo:rerun-if-changed={}", root.display());

    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("sudoku_v1.bin"), descriptors.encode_to_vec())?;
    let mut generated = tonic_prost_build::configure().bytes(".sudoku.v1");
    for message in BY_HAND {
        generated = generated.extern_path(format!(".sudoku.v1.{message}"), format!("crate::{message}"));
    }
    generated.compile_fds(descriptors)?;
    Ok(())
}
