//! `PuzzleChunk` and `ResultChunk`: the messages of `puzzle.proto` that are not generated.

use bytes::{Buf, BufMut, Bytes};
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, WireType, bytes as bytes_field, int64, message, sint64, skip_field},
};

use crate::{Grids, Outcomes, v1::InvalidPuzzle};

/// Puzzles in order: 1 to 10,000 and at most 5 MB (5,000,000 bytes) in one message. Set exactly one form.
/// A grid that is no puzzle is taken all the same; its outcome is INVALID.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct PuzzleChunk {
    /// One grid each: 81 characters, row-major, '1'..'9', and '.' or '0' for empty.
    /// An empty string stands for a record that its sender could not read; its reason is `REASON_LENGTH`.
    pub grids: Grids,
    /// The same grids end to end, 81 bytes each, each byte one character: a whole number of puzzles.
    pub packed_grids: Bytes,
}

/// Results in columns, one entry for each puzzle of one run of indexes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ResultChunk {
    /// Index of the first puzzle; the rest follow without a gap.
    pub start_index: i64,
    /// One outcome a puzzle; always filled.
    pub outcomes: Outcomes,
    /// Solutions, "" where there is none. Empty when packed was asked.
    pub solutions: Grids,
    /// The same end to end, 81 bytes each, '.' x 81 where there is none.
    pub packed_solutions: Bytes,
    /// Placements of the plain recipe for each puzzle; -1: more than the batch's `placement_limit`.
    /// Empty when counting is off. 0 for INVALID; 0 too where there is no count to give (UNDECIDED, FAILED, CANCELLED): read the outcome first.
    pub placements: Vec<i64>,
    /// Why and where, for the INVALID ones only.
    pub invalid: Vec<InvalidPuzzle>,
}

/// Says in which field reading failed, as generated code does.
fn within(message: &'static str, field: &'static str) -> impl FnOnce(DecodeError) -> DecodeError {
    move |mut error| {
        error.push(message, field);
        error
    }
}

mod puzzle_tag {
    pub(super) const GRIDS: u32 = 1;
    pub(super) const PACKED_GRIDS: u32 = 2;
}

impl Message for PuzzleChunk {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.grids.encode(puzzle_tag::GRIDS, buf);
        if !self.packed_grids.is_empty() {
            bytes_field::encode(puzzle_tag::PACKED_GRIDS, &self.packed_grids, buf);
        }
    }

    #[inline]
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let within = |field| within("PuzzleChunk", field);
        match tag {
            puzzle_tag::GRIDS => self.grids.merge(wire_type, buf, context).map_err(within("grids")),
            puzzle_tag::PACKED_GRIDS => bytes_field::merge(wire_type, &mut self.packed_grids, buf, context)
                .map_err(within("packed_grids")),
            _ => skip_field(wire_type, tag, buf, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let packed = if self.packed_grids.is_empty() {
            0
        } else {
            bytes_field::encoded_len(puzzle_tag::PACKED_GRIDS, &self.packed_grids)
        };
        self.grids.encoded_len(puzzle_tag::GRIDS) + packed
    }

    fn clear(&mut self) {
        self.grids.clear();
        self.packed_grids.clear();
    }
}

mod result_tag {
    pub(super) const START_INDEX: u32 = 1;
    pub(super) const OUTCOMES: u32 = 2;
    pub(super) const SOLUTIONS: u32 = 3;
    pub(super) const PACKED_SOLUTIONS: u32 = 4;
    pub(super) const PLACEMENTS: u32 = 5;
    pub(super) const INVALID: u32 = 6;
}

impl Message for ResultChunk {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if self.start_index != 0 {
            int64::encode(result_tag::START_INDEX, &self.start_index, buf);
        }
        self.outcomes.encode(result_tag::OUTCOMES, buf);
        self.solutions.encode(result_tag::SOLUTIONS, buf);
        if !self.packed_solutions.is_empty() {
            bytes_field::encode(result_tag::PACKED_SOLUTIONS, &self.packed_solutions, buf);
        }
        sint64::encode_packed(result_tag::PLACEMENTS, &self.placements, buf);
        message::encode_repeated(result_tag::INVALID, &self.invalid, buf);
    }

    #[inline]
    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let within = |field| within("ResultChunk", field);
        match tag {
            result_tag::SOLUTIONS => {
                self.solutions.merge(wire_type, buf, context).map_err(within("solutions"))
            }
            result_tag::START_INDEX => {
                int64::merge(wire_type, &mut self.start_index, buf, context).map_err(within("start_index"))
            }
            result_tag::OUTCOMES => self.outcomes.merge(wire_type, buf, context).map_err(within("outcomes")),
            result_tag::PACKED_SOLUTIONS => {
                bytes_field::merge(wire_type, &mut self.packed_solutions, buf, context)
                    .map_err(within("packed_solutions"))
            }
            result_tag::PLACEMENTS => sint64::merge_repeated(wire_type, &mut self.placements, buf, context)
                .map_err(within("placements")),
            result_tag::INVALID => {
                message::merge_repeated(wire_type, &mut self.invalid, buf, context).map_err(within("invalid"))
            }
            _ => skip_field(wire_type, tag, buf, context),
        }
    }

    fn encoded_len(&self) -> usize {
        let start_index = match self.start_index {
            0 => 0,
            index => int64::encoded_len(result_tag::START_INDEX, &index),
        };
        let packed = if self.packed_solutions.is_empty() {
            0
        } else {
            bytes_field::encoded_len(result_tag::PACKED_SOLUTIONS, &self.packed_solutions)
        };
        start_index
            + self.outcomes.encoded_len(result_tag::OUTCOMES)
            + self.solutions.encoded_len(result_tag::SOLUTIONS)
            + packed
            + sint64::encoded_len_packed(result_tag::PLACEMENTS, &self.placements)
            + message::encoded_len_repeated(result_tag::INVALID, &self.invalid)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}
