//! Puzzle files in: records with their lines out.
//!
//! One puzzle a line: 81 characters, digits `1` to `9`, and `.` or `0` (also `*`, `_`, `X`, `x`) for an empty cell. Blank lines and lines that
//! begin with `#` are passed over; white space around a puzzle is too, and so is a byte order mark. Lines end with LF, CRLF or a lone CR.
//! A line that is no puzzle is a record like any other: it says so when it is solved, and its neighbours keep their places.
#![forbid(unsafe_code)]

use std::io::{self, BufRead};

/// Bytes of a line, at the most. What is longer is no puzzle in any encoding, and is not kept.
pub const LINE_BYTES_MAX: usize = 4_096;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One record of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its line, from 1.
    pub line: u64,
    /// What it holds.
    pub content: Content,
}

/// What a record holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A text that is meant to be a puzzle, with `.` for every empty cell; nothing else is checked.
    Puzzle(String),
    /// Not text, or too long to be kept.
    Unreadable,
}

/// Reads the records of an input in order.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    line: u64,
    /// The last line ended with CR: an LF right after it belongs to the same end.
    after_cr: bool,
    failed: bool,
}

impl<R: BufRead> Records<R> {
    /// Begins to read.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, after_cr: false, failed: false }
    }

    /// The next line without its end; `None` at the end of the input. The flag says whether it was cut at [`LINE_BYTES_MAX`].
    fn next_line(&mut self) -> io::Result<Option<(Vec<u8>, bool)>> {
        let mut line = Vec::new();
        let mut is_cut = false;
        let mut any = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some((line, is_cut)));
            }
            if self.after_cr {
                self.after_cr = false;
                if buffer[0] == b'\n' {
                    self.input.consume(1);
                    continue;
                }
            }
            any = true;
            let end = buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = LINE_BYTES_MAX - line.len();
            is_cut |= part.len() > room;
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.after_cr = end.is_some_and(|end| buffer[end] == b'\r');
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some((line, is_cut)));
            }
        }
    }

    fn next_record(&mut self) -> io::Result<Option<Record>> {
        while let Some((line, is_cut)) = self.next_line()? {
            self.line += 1;
            let text =
                if self.line == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
            let text = text.trim_ascii();
            if text.is_empty() || text[0] == b'#' {
                continue;
            }
            let content = match std::str::from_utf8(text) {
                Ok(text) if !is_cut => Content::Puzzle(text.replace(['0', '*', '_', 'X', 'x'], ".")),
                _ => Content::Unreadable,
            };
            return Ok(Some(Record { line: self.line, content }));
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = io::Result<Record>;

    /// The next record; an error of the input ends the iteration.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.next_record().transpose();
        self.failed = matches!(record, Some(Err(_)));
        record
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn records(input: &[u8]) -> Vec<(u64, Content)> {
        // A buffer of three bytes puts every boundary somewhere awkward.
        let reader = BufReader::with_capacity(3, input);
        Records::new(reader)
            .map(|record| record.expect("memory does not fail"))
            .map(|r| (r.line, r.content))
            .collect()
    }

    fn puzzle(text: &str) -> Content {
        Content::Puzzle(text.to_owned())
    }

    #[test]
    fn every_kind_of_line_end_counts_one_line() {
        let got = records(b"1..\n2..\r\n3..\r4..\r\r5..\n\r6..");
        let want = [(1, "1.."), (2, "2.."), (3, "3.."), (4, "4.."), (6, "5.."), (8, "6..")];
        assert_eq!(got, want.map(|(line, text)| (line, puzzle(text))));
    }

    #[test]
    fn remarks_blank_lines_a_byte_order_mark_and_margins_are_no_part_of_a_puzzle() {
        let got = records(b"\xef\xbb\xbf1.. \n# 123\n\n  \t\n  # not this\n\t2..\t\n");
        assert_eq!(got, [(1, puzzle("1..")), (6, puzzle("2.."))]);
    }

    #[test]
    fn every_mark_of_an_empty_cell_becomes_a_dot_and_others_stay() {
        assert_eq!(records(b"10.*_Xx?9\n"), [(1, puzzle("1......?9"))]);
    }

    #[test]
    fn a_line_that_is_no_text_keeps_its_place() {
        let got = records(b"1..\n\xff\xfe\n2..\n");
        assert_eq!(got, [(1, puzzle("1..")), (2, Content::Unreadable), (3, puzzle("2.."))]);
    }

    #[test]
    fn a_line_at_the_limit_is_kept_and_one_above_is_not() {
        let mut input = vec![b'1'; LINE_BYTES_MAX];
        input.push(b'\n');
        input.extend(vec![b'2'; LINE_BYTES_MAX + 1]);
        input.extend(b"\n3..\n");
        let got = records(&input);
        assert_eq!(got[0], (1, puzzle(&"1".repeat(LINE_BYTES_MAX))));
        assert_eq!(got[1..], [(2, Content::Unreadable), (3, puzzle("3.."))]);
    }

    #[test]
    fn an_error_of_the_input_is_told_once_and_ends_it() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut records = Records::new(BufReader::new(Broken));
        assert!(records.next().is_some_and(|record| record.is_err()));
        assert!(records.next().is_none());
    }
}
