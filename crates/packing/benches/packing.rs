//! How fast puzzles and verdicts are packed and read, by how many givens there are.
//!
//! ```text
//! cargo bench -p packing               all of it
//! cargo bench -p packing -- sparse     some of it
//! ```

// A bench that cannot go on ends.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use packing::{PUZZLE_FORMAT, Pieces, PuzzleReader, VERDICT_FORMAT, VerdictReader, pack_text, pack_verdict};
use solver::{CELLS, Generator, Givens, Kind, PlacementLimit, StopFlag, Verdict, answer};

/// Puzzles of a message and of a chunk.
const PUZZLES: usize = 4_096;
/// Givens of easy puzzles.
const GIVENS: u8 = 40;

/// The puzzle with each second of its givens taken out, up to 17 of them left: as few as the hardest collections have.
fn sparse(givens: &Givens) -> String {
    let mut given = 0;
    let keep = |character: char| {
        let is_given = character != '.';
        given += usize::from(is_given);
        if is_given && given % 2 == 1 && given < 2 * 17 { character } else { '.' }
    };
    givens.grid().to_string().chars().map(keep).collect()
}

fn bench_puzzles(criterion: &mut Criterion, name: &str, texts: &[String]) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(PUZZLES as u64));
    let mut entries = Vec::new();
    group.bench_function("text_to_entry", |bencher| {
        bencher.iter(|| {
            entries.clear();
            for text in texts {
                pack_text(text, &mut entries);
            }
            black_box(entries.len())
        });
    });
    let mut puzzles = vec![Ok(Givens::NONE); texts.len()];
    group.bench_function("entry_to_givens", |bencher| {
        bencher.iter(|| {
            let mut reader = PuzzleReader::new(PUZZLE_FORMAT, &entries).unwrap();
            for puzzle in &mut puzzles {
                reader.next_into(puzzle).unwrap().unwrap();
            }
            black_box(&puzzles).len()
        });
    });
}

fn bench_verdicts(criterion: &mut Criterion, verdicts: &[Verdict]) {
    let mut group = criterion.benchmark_group("verdicts");
    group.throughput(Throughput::Elements(PUZZLES as u64));
    group.bench_function("verdict_to_entry", |bencher| {
        bencher.iter(|| {
            let mut pieces = Pieces::default();
            for verdict in verdicts {
                pieces.push(|data| pack_verdict(verdict, data));
            }
            black_box(pieces.finish().len())
        });
    });
    let mut entries = Vec::new();
    for verdict in verdicts {
        pack_verdict(verdict, &mut entries);
    }
    let mut texts = Vec::new();
    group.bench_function("entry_to_text", |bencher| {
        bencher.iter(|| {
            texts.clear();
            let mut reader = VerdictReader::new(VERDICT_FORMAT, &entries).unwrap();
            let mut text = [0; CELLS];
            while let Some(verdict) = reader.next_into(&mut text) {
                if verdict.unwrap().has_solution() {
                    texts.extend_from_slice(&text);
                }
            }
            black_box(texts.len())
        });
    });
}

fn bench(criterion: &mut Criterion) {
    let made = Generator::new(1, Kind::Clues(GIVENS)).unwrap().take(PUZZLES);
    let puzzles: Vec<Givens> = made.map(|puzzle| puzzle.unwrap()).collect();
    let easy: Vec<String> = puzzles.iter().map(|givens| givens.grid().to_string()).collect();
    let sparse: Vec<String> = puzzles.iter().map(sparse).collect();
    bench_puzzles(criterion, "sparse", &sparse);
    bench_puzzles(criterion, "easy", &easy);
    let verdict = |givens| answer(givens, PlacementLimit::OFF, &StopFlag::new()).unwrap();
    let verdicts: Vec<Verdict> = puzzles.iter().map(verdict).collect();
    bench_verdicts(criterion, &verdicts);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bench
}
criterion_main!(benches);
