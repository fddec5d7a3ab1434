//! The messages that are not generated are, on the wire, what generated ones would be: compared with twins that prost derives.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::{Buf, Bytes};
use prost::{DecodeError, Message};
use proto::v1;

/// As `prost-build` writes them.
mod twin {
    use std::fmt::Debug;

    use prost::Message;
    use proto::v1::{InvalidPuzzle, Outcome};

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct PuzzleChunk {
        #[prost(string, repeated, tag = "1")]
        pub(crate) grids: Vec<String>,
        #[prost(bytes = "bytes", tag = "2")]
        pub(crate) packed_grids: bytes::Bytes,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct ResultChunk {
        #[prost(int64, tag = "1")]
        pub(crate) start_index: i64,
        #[prost(enumeration = "Outcome", repeated, tag = "2")]
        pub(crate) outcomes: Vec<i32>,
        #[prost(string, repeated, tag = "3")]
        pub(crate) solutions: Vec<String>,
        #[prost(bytes = "bytes", tag = "4")]
        pub(crate) packed_solutions: bytes::Bytes,
        #[prost(sint64, repeated, tag = "5")]
        pub(crate) placements: Vec<i64>,
        #[prost(message, repeated, tag = "6")]
        pub(crate) invalid: Vec<InvalidPuzzle>,
    }

    /// Both within another message, as they travel.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(crate) struct Outer<P: Message + Default + Debug, R: Message + Default + Debug> {
        #[prost(message, optional, tag = "1")]
        pub(crate) puzzles: Option<P>,
        #[prost(message, optional, tag = "2")]
        pub(crate) results: Option<R>,
        #[prost(string, tag = "3")]
        pub(crate) name: String,
    }
}

type Ours = twin::Outer<v1::PuzzleChunk, v1::ResultChunk>;
type Theirs = twin::Outer<twin::PuzzleChunk, twin::ResultChunk>;

fn ours(theirs: &Theirs) -> Ours {
    let puzzles = theirs
        .puzzles
        .clone()
        .map(|chunk| v1::PuzzleChunk { grids: chunk.grids.into(), packed_grids: chunk.packed_grids });
    let results = theirs.results.clone().map(|chunk| v1::ResultChunk {
        start_index: chunk.start_index,
        outcomes: chunk.outcomes.into(),
        solutions: chunk.solutions.into(),
        packed_solutions: chunk.packed_solutions,
        placements: chunk.placements,
        invalid: chunk.invalid,
    });
    Ours { puzzles, results, name: theirs.name.clone() }
}

fn grid() -> String {
    (0..81).map(|_| fastrand::choice(['.', '0', '1', '9']).unwrap()).collect()
}

fn text() -> String {
    match fastrand::usize(..8) {
        0 => String::new(),
        1 => "x".repeat(fastrand::usize(..300)),
        2 => "\u{ff11}".repeat(27),
        3 => "é".repeat(fastrand::usize(..70)),
        _ => grid(),
    }
}

fn texts() -> Vec<String> {
    let count = fastrand::choice([0, 1, 3, 63, 64, 65, 130]).unwrap();
    if fastrand::bool() { (0..count).map(|_| grid()).collect() } else { (0..count).map(|_| text()).collect() }
}

fn made() -> Theirs {
    let invalid = |index| v1::InvalidPuzzle { index, reason: 2, cells: vec![0, 80], found_length: 0 };
    let count = fastrand::usize(..200);
    Theirs {
        puzzles: fastrand::bool().then(|| twin::PuzzleChunk {
            grids: texts(),
            packed_grids: Bytes::from(grid().repeat(fastrand::usize(..3))),
        }),
        results: fastrand::bool().then(|| twin::ResultChunk {
            start_index: fastrand::choice([0, 1, -1, i64::MAX]).unwrap(),
            outcomes: (0..count)
                .map(|_| fastrand::choice([0, 1, 2, 3, 7, 99, 127, 128, 255]).unwrap())
                .collect(),
            solutions: texts(),
            packed_solutions: Bytes::from(grid().repeat(fastrand::usize(..3))),
            placements: (0..count).map(|_| fastrand::i64(-1..100_000)).collect(),
            invalid: (0..fastrand::i64(..3)).map(invalid).collect(),
        }),
        name: text(),
    }
}

/// What two decoders make of the same bytes is the same, also when they are in two parts.
fn assert_same(bytes: &[u8]) -> bool {
    let expected: Result<Theirs, DecodeError> = Message::decode(bytes);
    let found: Result<Ours, DecodeError> = Message::decode(bytes);
    match (&expected, &found) {
        (Ok(expected), Ok(found)) => {
            assert_eq!(*found, ours(expected));
            assert_eq!(
                found.encode_to_vec(),
                ours(expected).encode_to_vec(),
                "what is equal is written alike, however it was read"
            );
        }
        (Err(expected), Err(found)) => assert_eq!(found.to_string(), expected.to_string()),
        _ => panic!("{found:?}, but prost: {expected:?}"),
    }
    let (head, tail) = bytes.split_at(fastrand::usize(..=bytes.len()));
    let parts: Result<Ours, DecodeError> = Message::decode(head.chain(tail));
    assert_eq!(parts.map_err(|error| error.to_string()), found.map_err(|error| error.to_string()));
    expected.is_ok()
}

#[test]
fn the_same_bytes_are_written_and_read_back() {
    fastrand::seed(1);
    for _ in 0..2_000 {
        let theirs = made();
        let bytes = theirs.encode_to_vec();
        let ours = ours(&theirs);
        assert_eq!(ours.encoded_len(), bytes.len());
        assert_eq!(ours.encode_to_vec(), bytes);
        let mut buffer = bytes::BytesMut::with_capacity(8);
        ours.encode(&mut buffer).unwrap();
        assert_eq!(buffer, bytes);
        assert!(assert_same(&bytes));
    }
}

#[test]
fn damaged_messages_are_read_or_refused_as_prost_does() {
    fastrand::seed(2);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let bytes = made().encode_to_vec();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..10 {
            let mut bytes = bytes.clone();
            for _ in 0..fastrand::usize(1..4) {
                let place = fastrand::usize(..bytes.len());
                bytes[place] = fastrand::u8(..);
            }
            bytes.truncate(fastrand::usize(..2 * bytes.len()));
            *(if assert_same(&bytes) { &mut read } else { &mut refused }) += 1;
        }
    }
    assert!(read > 1_000 && refused > 1_000, "{read} read, {refused} refused");
}

fn field(tag: u8, wire_type: u8, content: &[u8]) -> Vec<u8> {
    [&[tag << 3 | wire_type], content].concat()
}

fn sized(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

#[test]
fn fields_come_in_any_order_in_either_form_and_merge() {
    let packed = sized(2, &[1, 3, 0x80, 0x01, 99]);
    let negative = field(2, 0, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    let parts = [
        sized(3, grid().as_bytes()),
        packed,
        sized(3, b""),
        field(2, 0, &[7]),
        field(1, 0, &[5]),
        // Unknown fields of each type.
        field(9, 0, &[0x96, 0x01]),
        sized(10, b"unknown"),
        field(11, 5, &[1, 2, 3, 4]),
        field(12, 1, &[0; 8]),
        field(5, 0, &[3]),
        sized(5, &[2, 4]),
        sized(4, grid().as_bytes()),
        sized(6, &field(1, 0, &[4])),
        sized(4, b"the last one counts"),
        field(1, 0, &[6]),
    ];
    fastrand::seed(3);
    for _ in 0..300 {
        let mut parts = parts.clone();
        fastrand::shuffle(&mut parts);
        let (first, second) = parts.split_at(fastrand::usize(..parts.len()));
        // In two fields of the outer message: they merge.
        let bytes = [sized(2, &first.concat()), sized(3, b"name"), sized(2, &second.concat())].concat();
        assert!(assert_same(&bytes));
    }
    // Numbers that do not fit a byte, which no version of the contract has, keep their place.
    let chunk = v1::ResultChunk::decode(&[negative, field(2, 0, &[0x80, 0x02])].concat()[..]).unwrap();
    assert!(chunk.outcomes.iter().eq([v1::Outcome::Unspecified; 2]));
}

#[test]
fn a_field_of_the_outer_message_is_never_taken_for_another_grid() {
    let name = "a".repeat(81);
    // The outer field's key and length look just like those of a grid.
    let bytes = [sized(1, &sized(1, grid().as_bytes())), sized(1, name.as_bytes())].concat();
    assert_same(&bytes);
    let bytes = [sized(1, &sized(1, grid().as_bytes())), sized(3, name.as_bytes())].concat();
    assert!(assert_same(&bytes));
}

#[test]
fn what_is_no_text_is_refused() {
    for wrong in [&[0xff; 81][..], &[0xc3; 5], &[b'1', 0x80]] {
        for tag in [1, 3] {
            assert_same(&sized(tag.min(2), &sized(tag, wrong)));
        }
        let error = v1::PuzzleChunk::decode(&sized(1, wrong)[..]).unwrap_err();
        assert!(error.to_string().contains("PuzzleChunk.grids: invalid string value"), "{error}");
    }
}

#[test]
fn clearing_leaves_nothing() {
    fastrand::seed(4);
    for _ in 0..50 {
        let mut message = ours(&made());
        if let Some(chunk) = &mut message.puzzles {
            chunk.clear();
            assert_eq!(*chunk, v1::PuzzleChunk::default());
        }
        if let Some(chunk) = &mut message.results {
            chunk.clear();
            assert_eq!(*chunk, v1::ResultChunk::default());
        }
    }
}
