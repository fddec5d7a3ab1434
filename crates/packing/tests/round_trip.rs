//! What is packed comes back, compares as the puzzles do, and damage is told.
#![allow(clippy::unwrap_used, reason = "tests")]

use packing::{
    Damaged, Entries, PIECE_BYTES_MAX, PUZZLE_FORMAT, Pieces, PuzzleReader, StoredVerdict, VERDICT_FORMAT,
    VerdictReader, pack_bytes, pack_text, pack_verdict,
};
use solver::{
    CELLS, Generator, Givens, Grid, InvalidPuzzle, Kind, Outcome, PlacementLimit, Placements, Reason,
    Solution, StopFlag, Verdict, answer,
};

const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

fn puzzle_entry(text: &str) -> Vec<u8> {
    let mut entry = Vec::new();
    pack_text(text, &mut entry);
    entry
}

fn verdict_entry(verdict: &Verdict) -> Vec<u8> {
    let mut entry = Vec::new();
    pack_verdict(verdict, &mut entry);
    entry
}

/// All verdicts of a piece up to the first damage, each with its solution.
fn read_verdicts(data: &[u8]) -> Vec<Result<(StoredVerdict, Option<String>), Damaged>> {
    let mut reader = VerdictReader::new(VERDICT_FORMAT, data).unwrap();
    let mut text = [0; CELLS];
    std::iter::from_fn(|| reader.next_into(&mut text).map(|read| (read, text)))
        .map(|(read, text)| {
            let text = String::from_utf8_lossy(&text).into_owned();
            read.map(|verdict| (verdict.clone(), verdict.has_solution().then_some(text)))
        })
        .collect()
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
        pieces.push(|data| pack_text(text, data));
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
fn one_place_is_read_into_again_and_again_whatever_it_held() {
    let texts = [SEED, "hello", "", SEED, &".".repeat(81), &"9".repeat(81), SEED];
    let data: Vec<u8> = texts.iter().flat_map(|text| puzzle_entry(text)).collect();
    let mut reader = PuzzleReader::new(PUZZLE_FORMAT, &data).unwrap();
    let mut place = Ok(Givens::NONE);
    for text in texts {
        assert_eq!(reader.next_into(&mut place).unwrap().unwrap(), puzzle_entry(text));
        assert_eq!(place, Givens::parse(text));
    }
    assert_eq!(reader.next_into(&mut place), None);
}

#[test]
fn entries_cut_later_make_the_same_pieces_as_entries_cut_at_once() {
    let texts = texts();
    let mut entries = Entries::default();
    for text in &texts {
        entries.push(|data| pack_text(text, data));
    }
    assert_eq!(entries.len(), texts.len());
    for places in [0..texts.len(), 0..0, 5..6, 7..texts.len() - 1, 0..texts.len() / 2] {
        let mut pieces = Pieces::default();
        for place in places.clone() {
            assert_eq!(entries.entry(place), puzzle_entry(&texts[place]));
            pieces.push(|data| pack_text(&texts[place], data));
        }
        assert_eq!(entries.pieces(places).collect::<Vec<_>>(), pieces.finish());
    }
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
    let data: Vec<u8> = verdicts.iter().flat_map(verdict_entry).collect();
    let back = read_verdicts(&data);
    assert_eq!(back.len(), verdicts.len());
    for (back, verdict) in back.into_iter().zip(&verdicts) {
        let (stored, solution) = back.unwrap();
        assert_eq!(stored.outcome, verdict.outcome());
        assert_eq!(stored.placements, verdict.placements());
        assert_eq!(solution, verdict.solution().map(ToString::to_string));
        let invalid = match verdict {
            Verdict::Invalid(invalid) => Some(invalid),
            _ => None,
        };
        assert_eq!(stored.invalid.as_ref(), invalid);
    }
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
        let entry = verdict_entry(&verdict);
        for length in 1..entry.len() {
            assert_eq!(read_verdicts(&entry[..length]), [Err(Damaged::Short)]);
        }
    }
}

#[test]
fn stored_bytes_are_those_of_format_one_for_ever() {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let clash = format!("1.......1{}", ".".repeat(72));
    for (text, golden) in [
        (SEED, "1372188a9832a2309c9001537619598686348317266284195879"),
        ("hello", "000000000000000000008205000000b3319d594b3181704fd98342d5efe1e3"),
        (&clash, "0101000000000000000086510000000185702a65bd6ece383e85892681eed7"),
    ] {
        assert_eq!(puzzle_entry(text), bytes(golden), "{text}");
    }
    let solved = answer(&Givens::parse(SEED).unwrap(), PlacementLimit::DEFAULT, &StopFlag::new()).unwrap();
    let golden = "115346789167219534198342568597614242685379713924859615372828741963f020";
    assert_eq!(verdict_entry(&solved), bytes(golden));
}

/// The format as its description says it, cell by cell.
fn plain_entry(givens: &Givens) -> Vec<u8> {
    let digits = &givens.grid().0;
    let mask = (0..CELLS).filter(|&cell| digits[cell] != 0).fold(0_u128, |mask, cell| mask | 1 << cell);
    let mut entry = mask.to_le_bytes()[..11].to_vec();
    let given: Vec<u8> = digits.iter().copied().filter(|&digit| digit != 0).collect();
    entry.extend(given.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)));
    entry
}

#[test]
fn givens_of_any_number_are_packed_as_the_format_says_and_clashes_are_the_solvers() {
    let full =
        Grid::from_text("534678912672195348198342567859761423426853791713924856961537284287419635345286179");
    let full = full.unwrap().0;
    // A simple series of numbers that look random.
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let (mut good, mut bad) = (0, 0);
    for round in 0..20_000 {
        let kept = round % 82;
        let mut text: Vec<u8> = full
            .iter()
            .map(|digit| if random(81) < kept { b'0' + digit } else { [b'.', b'0'][random(2)] })
            .collect();
        if random(2) == 0 {
            text[random(81)] = b"123456789x"[random(10)];
        }
        let text = String::from_utf8(text).unwrap();
        let entry = puzzle_entry(&text);
        match Givens::parse(&text) {
            Ok(givens) => {
                assert_eq!(entry, plain_entry(&givens), "{text}");
                good += 1;
            }
            Err(_) => bad += 1,
        }
        let read: Vec<_> = PuzzleReader::new(PUZZLE_FORMAT, &entry).unwrap().collect();
        assert_eq!(read, [Ok((&entry[..], Givens::parse(&text)))], "{text}");
        let mut bytes = Vec::new();
        pack_bytes(text.as_bytes(), &mut bytes);
        assert_eq!(bytes, entry);
    }
    assert!(good > 5_000 && bad > 5_000, "{good} good, {bad} bad");
}

#[test]
fn characters_are_counted_in_texts_and_bytes_in_packed_grids() {
    let found = |entry: &[u8]| {
        let (_, puzzle) = PuzzleReader::new(PUZZLE_FORMAT, entry).unwrap().next().unwrap().unwrap();
        puzzle.unwrap_err()
    };
    let text = format!("é{}", ".".repeat(79));
    let mut entry = Vec::new();
    pack_text(&text, &mut entry);
    assert_eq!((found(&entry).reason, found(&entry).found_length), (Reason::Length, 80));
    for no_text in [text.as_bytes(), &[0xff; 81]] {
        entry.clear();
        pack_bytes(no_text, &mut entry);
        assert_eq!(found(&entry), Givens::parse_bytes(no_text).unwrap_err());
    }
    let mut as_text = Vec::new();
    pack_text([0xff; 81], &mut as_text);
    assert_eq!(as_text, entry, "what is no text is taken as bytes");
}

#[test]
fn damaged_puzzles_are_refused_or_read_as_other_puzzles() {
    // Every single byte of an entry set to every value.
    let given = puzzle_entry(SEED);
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
    assert!(refused > 0 && read > 0);
}

#[test]
fn a_damaged_byte_of_a_solution_is_found_out_and_nothing_but_digits_is_ever_read() {
    let solved = answer(&Givens::parse(SEED).unwrap(), PlacementLimit::DEFAULT, &StopFlag::new()).unwrap();
    let found = verdict_entry(&solved);
    let (mut refused, mut exchanged) = (0, 0);
    for place in 1..33 {
        for value in (0..=255).filter(|value| *value != found[place]) {
            let mut bytes = found.clone();
            bytes[place] = value;
            match &read_verdicts(&bytes)[..] {
                [Err(error)] => {
                    assert_eq!(*error, Damaged::Entry);
                    refused += 1;
                }
                [Ok((_, Some(text)))] => {
                    assert!(text.bytes().all(|digit| digit.is_ascii_digit() && digit != b'0'));
                    exchanged += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    // Two neighbours of a row that change by opposite amounts may keep all sums.
    assert!(exchanged * 100 < refused, "{exchanged} of {refused}");
}

#[test]
fn solutions_of_any_puzzle_come_back_digit_by_digit() {
    for puzzle in Generator::new(9, Kind::Clues(60)).unwrap().take(2_000) {
        let verdict = answer(&puzzle.unwrap(), PlacementLimit::OFF, &StopFlag::new()).unwrap();
        let back = read_verdicts(&verdict_entry(&verdict));
        assert_eq!(back[0].as_ref().unwrap().1, verdict.solution().map(Solution::to_string));
    }
}
