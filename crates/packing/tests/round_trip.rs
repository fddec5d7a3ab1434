//! What is packed comes back, compares as the puzzles do, and damage is told.
#![allow(clippy::unwrap_used, reason = "tests")]

use packing::{
    Damaged, PIECE_BYTES_MAX, PUZZLE_FORMAT, Pieces, PuzzleReader, VERDICT_FORMAT, VerdictReader,
    pack_puzzle, pack_verdict,
};
use solver::{
    Generator, Givens, Grid, InvalidPuzzle, Kind, Outcome, PlacementLimit, Placements, Reason, StopFlag,
    Verdict, answer,
};

const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

fn puzzle_entry(text: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    pack_puzzle(text.as_bytes(), &Givens::parse(text), &mut entry);
    entry
}

fn texts() -> Vec<String> {
    let full = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";
    let mut texts: Vec<String> =
        ["", "1", "hello", SEED, full, &".".repeat(81), &"1".repeat(81), &"x".repeat(81), &"9".repeat(300)]
            .map(str::to_owned)
            .into();
    texts.push(SEED.replacen('.', "٣", 1));
    for kind in [Kind::Default, Kind::Minimal, Kind::Clues(60)] {
        let made = Generator::new(5, kind).unwrap();
        texts.extend((0..300).map(|index| made.puzzle(index).unwrap().grid().to_string()));
    }
    texts
}

#[test]
fn puzzles_come_back_as_they_were_parsed_from_pieces_of_any_number() {
    let texts = texts();
    let mut pieces = Pieces::default();
    for text in &texts {
        pieces.push(&puzzle_entry(text));
    }
    let runs = pieces.finish();
    assert!(runs.len() > 2);
    let mut texts = texts.iter();
    for run in runs {
        assert!(run.data.len() <= PIECE_BYTES_MAX);
        let mut count = 0;
        for (entry, text) in
            PuzzleReader::new(PUZZLE_FORMAT, &run.data).unwrap().zip(texts.by_ref().take(run.count))
        {
            let (bytes, puzzle) = entry.unwrap();
            assert_eq!(puzzle, Givens::parse(text));
            assert_eq!(bytes, puzzle_entry(text));
            count += 1;
        }
        assert_eq!(count, run.count);
    }
    assert!(texts.next().is_none());
}

#[test]
fn a_puzzle_of_n_givens_takes_eleven_bytes_and_half_a_byte_a_given() {
    assert_eq!(puzzle_entry(&".".repeat(81)).len(), 11);
    assert_eq!(puzzle_entry(SEED).len(), 11 + 15);
}

#[test]
fn entries_are_equal_exactly_when_the_puzzles_are() {
    let texts = texts();
    for (place, one) in texts.iter().enumerate() {
        assert_eq!(puzzle_entry(one), puzzle_entry(&one.replace('.', "0")));
        for other in &texts[..place] {
            assert_ne!(puzzle_entry(one), puzzle_entry(other), "{one:?} and {other:?}");
        }
    }
}

fn verdicts() -> Vec<Verdict> {
    let mut verdicts = vec![
        Verdict::Undecided,
        Verdict::Failed,
        Verdict::Cancelled,
        Verdict::NoSolution { placements: Placements::Exact(u64::MAX) },
        Verdict::NoSolution { placements: Placements::Exact(0) },
        Verdict::NoSolution { placements: Placements::NotCounted },
        Verdict::Invalid(InvalidPuzzle { reason: Reason::Length, cells: Vec::new(), found_length: u32::MAX }),
        Verdict::Invalid(InvalidPuzzle {
            reason: Reason::Character,
            cells: (0..81).collect(),
            found_length: 81,
        }),
    ];
    let puzzles: Vec<Givens> = texts().iter().filter_map(|text| Givens::parse(text).ok()).collect();
    assert!(puzzles.len() > 900);
    for (puzzle, limit) in puzzles.iter().zip([0, 1, 127, 128, 16_384, 1_000_000].into_iter().cycle()) {
        verdicts.push(answer(puzzle, PlacementLimit(limit), &StopFlag::new()).unwrap());
    }
    let seen = |outcome| verdicts.iter().any(|verdict: &Verdict| verdict.outcome() == outcome);
    assert!(Outcome::ALL.into_iter().all(seen), "every outcome is tried");
    verdicts
}

#[test]
fn verdicts_come_back_as_they_were() {
    let verdicts = verdicts();
    let mut data = Vec::new();
    for verdict in &verdicts {
        pack_verdict(verdict, &mut data);
    }
    let back: Vec<Verdict> = VerdictReader::new(VERDICT_FORMAT, &data).unwrap().map(Result::unwrap).collect();
    assert_eq!(back, verdicts);
}

#[test]
fn an_unknown_format_is_told_by_its_number() {
    assert_eq!(PuzzleReader::new(99, &[]).unwrap_err(), Damaged::Format(99));
    assert_eq!(VerdictReader::new(99, &[]).unwrap_err(), Damaged::Format(99));
}

#[test]
fn bytes_that_end_too_early_are_told_and_end_the_reading() {
    let entry = puzzle_entry(SEED);
    for length in 1..entry.len() {
        let read: Vec<_> = PuzzleReader::new(PUZZLE_FORMAT, &entry[..length]).unwrap().collect();
        assert_eq!(read, [Err(Damaged::Short)]);
    }
    for verdict in verdicts() {
        let mut entry = Vec::new();
        pack_verdict(&verdict, &mut entry);
        for length in 1..entry.len() {
            let read: Vec<_> = VerdictReader::new(VERDICT_FORMAT, &entry[..length]).unwrap().collect();
            assert_eq!(read, [Err(Damaged::Short)]);
        }
    }
}

#[test]
fn damaged_bytes_never_give_a_wrong_solution_or_a_panic() {
    // Every single byte of some entries set to every value: what is read is either refused or obeys the rules of its type.
    let given = puzzle_entry(SEED);
    let mut found = Vec::new();
    let solved = answer(&Givens::parse(SEED).unwrap(), PlacementLimit::DEFAULT, &StopFlag::new()).unwrap();
    pack_verdict(&solved, &mut found);
    let (mut refused, mut read) = (0, 0);
    for place in 0..given.len() {
        for value in 0..=255 {
            let mut bytes = given.clone();
            bytes[place] = value;
            for entry in PuzzleReader::new(PUZZLE_FORMAT, &bytes).unwrap() {
                match entry {
                    Ok((_, Ok(givens))) => {
                        assert!(Givens::new(Grid(givens.grid().0)).is_ok());
                        read += 1;
                    }
                    Ok((_, Err(invalid))) => assert!(invalid.cells.iter().all(|cell| *cell < 81)),
                    Err(_) => refused += 1,
                }
            }
        }
    }
    let mut other_solutions = 0;
    for place in 1..33 {
        for value in (0..=255).filter(|value| *value != found[place]) {
            let mut bytes = found.clone();
            bytes[place] = value;
            match VerdictReader::new(VERDICT_FORMAT, &bytes).unwrap().next().unwrap() {
                Err(error) => assert_eq!(error, Damaged::Entry),
                // Two digits that change places can give another whole solution: valid, as its type promises.
                Ok(verdict) => {
                    assert_ne!(verdict, solved);
                    other_solutions += 1;
                }
            }
        }
    }
    assert!(other_solutions < 32);
    assert!(refused > 0 && read > 0);
}
