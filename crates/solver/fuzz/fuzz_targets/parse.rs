//! Any text is read without a crash, and what is read or refused is told truly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use solver::{CELLS, Givens, Reason};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let characters: Vec<char> = text.chars().collect();
    match Givens::parse(&text) {
        Ok(givens) => {
            assert_eq!(characters.len(), CELLS);
            assert_eq!(givens.grid().to_string(), text.replace('0', "."));
            assert_eq!(Givens::new(*givens.grid()), Ok(givens));
            assert_eq!(Givens::parse_bytes(text.as_bytes()), Ok(givens));
            assert_eq!(givens.count(), characters.iter().filter(|c| ('1'..='9').contains(c)).count());
        }
        Err(invalid) => {
            assert_eq!(invalid.found_length as usize, characters.len());
            assert!(invalid.cells.is_sorted_by(|a, b| a < b));
            assert!(invalid.cells.iter().all(|&cell| usize::from(cell) < CELLS));
            match invalid.reason {
                Reason::Length => assert!(characters.len() != CELLS && invalid.cells.is_empty()),
                Reason::Character => {
                    let is_wrong = |c: &char| !matches!(c, '0'..='9' | '.');
                    let wrong = (0..CELLS).filter(|&cell| is_wrong(&characters[cell]));
                    assert!(wrong.eq(invalid.cells.iter().map(|&cell| usize::from(cell))));
                }
                Reason::DuplicateGiven => assert!(invalid.cells.len() >= 2),
            }
        }
    }
    // Bytes that are no text are read too.
    drop(Givens::parse_bytes(data));
});
