//! A column of texts is what a `Vec<String>` would be.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use proto::Grids;

fn texts() -> Vec<String> {
    let grid = |digit: &str| digit.repeat(81);
    vec![
        grid("1"),
        grid("2"),
        String::new(),
        "三".repeat(27),
        grid("3"),
        "x".repeat(82),
        grid("4"),
        grid("5"),
    ]
}

#[test]
fn texts_come_back_in_order_by_place_and_in_slices() {
    let texts = texts();
    for start in 0..=texts.len() {
        for end in start..=texts.len() {
            let part = &texts[start..end];
            let grids: Grids = part.iter().collect();
            assert_eq!(grids, *part);
            assert_eq!((grids.len(), grids.is_empty()), (part.len(), part.is_empty()));
            assert_eq!(grids.text_bytes(), part.concat().len());
            assert!(grids.iter_bytes().eq(part.iter().map(String::as_bytes)));
            assert_eq!((grids.get(part.len()), grids.bytes(usize::MAX)), (None, None));
            assert!(part.iter().enumerate().all(|(place, text)| grids[place] == **text));
            let all: Grids = texts.clone().into();
            let slice = all.slice(start..end);
            assert_eq!(slice, grids, "equal, and so nothing but the texts is kept where all are grids");
            assert_eq!(HashSet::from([slice, grids]).len(), 1);
            assert_eq!(all.slice(end..texts.len() + 9), texts[end..]);
        }
    }
}

#[test]
fn a_column_grows_by_any_text_after_any_other() {
    let mut grids = Grids::new();
    let mut expected: Vec<String> = Vec::new();
    for text in texts().iter().chain(&texts()) {
        grids.push(text);
        grids.push_ascii(&[b'7'; 81]);
        expected.extend([text.clone(), "7".repeat(81)]);
        assert_eq!(grids, expected[..]);
        assert_ne!(grids, expected[1..]);
    }
    assert_eq!(format!("{grids:?}"), format!("{expected:?}"));
    grids.clear();
    assert_eq!(grids, Grids::default());
}

#[test]
#[should_panic(expected = "not ASCII")]
fn bytes_that_are_no_ascii_do_not_get_in() {
    Grids::new().push_ascii(&[0xff; 81]);
}

#[test]
#[should_panic(expected = "grid 3 of 3")]
fn a_place_beyond_the_end_is_named() {
    let grids: Grids = texts()[..3].iter().collect();
    assert_eq!(&grids[3], "");
}
