//! How fast the two bulk messages are written and read, as they travel.
//!
//! ```text
//! cargo bench -p proto               all four
//! cargo bench -p proto -- decode     some of them
//! ```

// A bench that cannot go on ends.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use prost::Message;
use proto::v1;

/// Puzzles of a message.
const PUZZLES: usize = 4_096;
/// Bytes that tonic makes room for before it knows a message.
const FIRST_BYTES: usize = 8 << 10;

const PUZZLE: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";
const SOLVED: &str = "534678912672195348198342567859761423426853791713924856961537284287419635345286179";

fn round_trip<M: Message + Default>(criterion: &mut Criterion, name: &str, message: &M) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(PUZZLES as u64));
    group.bench_function("encode", |bencher| {
        bencher.iter(|| {
            let mut buffer = BytesMut::with_capacity(FIRST_BYTES);
            message.encode(&mut buffer).unwrap();
            black_box(buffer)
        });
    });
    let bytes = message.encode_to_vec();
    group.bench_function("decode", |bencher| {
        let received = || BytesMut::from(&bytes[..]);
        bencher.iter_batched(received, |bytes| black_box(M::decode(bytes).unwrap()), BatchSize::SmallInput);
    });
}

fn bench(criterion: &mut Criterion) {
    let append = v1::AppendPuzzlesRequest {
        name: "batches/a-batch".to_owned(),
        offset: Some(0),
        chunk: Some(v1::PuzzleChunk { grids: vec![PUZZLE; PUZZLES].into(), ..v1::PuzzleChunk::default() }),
    };
    round_trip(criterion, "append", &append);
    let results = v1::StreamResultsResponse {
        results: Some(v1::ResultChunk {
            outcomes: vec![1; PUZZLES].into(),
            solutions: vec![SOLVED; PUZZLES].into(),
            ..v1::ResultChunk::default()
        }),
        ..v1::StreamResultsResponse::default()
    };
    round_trip(criterion, "results", &results);
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bench
}
criterion_main!(benches);
