//! Tokens that clients keep for the server: what of a batch was delivered, where a list goes on.
//!
//! A token holds all that it says, so any server can read it. To a client it is opaque. A check over it and over what it belongs to finds damage and
//! mix-ups; it is no secret and no proof.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use store::Batch;

use crate::{intervals::Delivered, limits::RESUME_RANGES_MAX, status::Refusal};

/// First byte of a resume token: its format.
const RESUME: u8 = 1;
/// First byte of a page token.
const PAGE: u8 = 2;
/// Bytes of the check at a token's end.
const CHECK_BYTES: usize = 6;
/// Characters of a token, at the most.
const TOKEN_CHARS_MAX: usize = 4_096;

/// Whom a batch's resume tokens belong to: more than its name, which may be given again after a delete.
pub(crate) fn owner(batch: &Batch) -> String {
    format!("{} {}", batch.name, batch.created_at.unix_timestamp_nanos())
}

/// What was delivered of a batch: the watermark, then each range above it by its distance from what comes before and its length.
pub(crate) fn resume(owner: &str, delivered: &Delivered) -> String {
    let mut body = vec![RESUME];
    push(&mut body, delivered.watermark());
    let mut end = delivered.watermark();
    for (lo, hi) in delivered.above() {
        push(&mut body, lo - end);
        push(&mut body, hi - lo);
        end = *hi;
    }
    seal(body, owner)
}

/// Reads a resume token of this batch.
///
/// # Errors
/// [`Refusal::BadArgument`]: it is damaged, or of another batch.
pub(crate) fn read_resume(token: &str, owner: &str) -> Result<Delivered, Refusal> {
    let refused = || {
        Refusal::BadArgument {
        field: "resume_token",
        why: "is not a token of this batch, or is damaged; use one as a stream of this batch gave it, or start_index".to_owned(),
    }
    };
    open(token, RESUME, owner).and_then(|body| delivered(&body)).ok_or_else(refused)
}

fn delivered(mut body: &[u8]) -> Option<Delivered> {
    let mut end = pull(&mut body)?;
    let mut delivered = Delivered::up_to(end);
    let mut ranges = 0;
    while !body.is_empty() {
        let lo = end.checked_add(pull(&mut body)?).filter(|lo| *lo > end)?;
        let hi = lo.checked_add(pull(&mut body)?).filter(|hi| *hi > lo)?;
        delivered.insert(lo, hi);
        end = hi;
        ranges += 1;
    }
    (ranges <= RESUME_RANGES_MAX).then_some(delivered)
}

/// Where a list goes on: after this batch, with the same filter.
pub(crate) fn page(after: i64, filter: &str) -> String {
    let mut body = vec![PAGE];
    push(&mut body, after.unsigned_abs());
    seal(body, filter)
}

/// Reads a page token of a list with this filter.
///
/// # Errors
/// [`Refusal::BadArgument`]: it is damaged, or of a list with another filter.
pub(crate) fn read_page(token: &str, filter: &str) -> Result<i64, Refusal> {
    let number = |body: Vec<u8>| {
        let mut rest = &*body;
        pull(&mut rest).filter(|_| rest.is_empty()).and_then(|number| i64::try_from(number).ok())
    };
    open(token, PAGE, filter).and_then(number).ok_or_else(|| Refusal::BadArgument {
        field: "page_token",
        why: "is not a token of a list with these states, or is damaged; use one as ListBatches gave it"
            .to_owned(),
    })
}

fn seal(mut body: Vec<u8>, owner: &str) -> String {
    let check = check(&body, owner);
    body.extend(check);
    URL_SAFE_NO_PAD.encode(body)
}

/// What is between a token's format byte and its check.
fn open(token: &str, format: u8, owner: &str) -> Option<Vec<u8>> {
    if token.len() > TOKEN_CHARS_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (body, found) = bytes.split_at_checked(bytes.len().checked_sub(CHECK_BYTES)?)?;
    let (first, rest) = body.split_first()?;
    (*first == format && *found == check(body, owner)).then(|| rest.to_vec())
}

fn check(body: &[u8], owner: &str) -> [u8; CHECK_BYTES] {
    let hash = Sha256::new().chain_update(body).chain_update(owner).finalize();
    std::array::from_fn(|place| hash[place])
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(first & 0x7f);
        value |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BATCH_PUZZLES_MAX;

    fn full() -> Delivered {
        let mut delivered = Delivered::up_to(7);
        let step = BATCH_PUZZLES_MAX / RESUME_RANGES_MAX as u64;
        for range in 0..RESUME_RANGES_MAX as u64 {
            delivered.insert(100 + range * step, 100 + range * step + step / 2);
        }
        assert_eq!(delivered.above().len(), RESUME_RANGES_MAX);
        delivered
    }

    #[test]
    fn a_token_says_what_was_delivered_and_the_longest_is_within_its_limit() {
        for delivered in [Delivered::up_to(0), Delivered::up_to(BATCH_PUZZLES_MAX), full()] {
            let token = resume("batch 1", &delivered);
            assert!(token.len() <= TOKEN_CHARS_MAX, "{}", token.len());
            assert_eq!(read_resume(&token, "batch 1").expect("its own"), delivered);
        }
    }

    #[test]
    fn a_token_of_another_batch_or_kind_or_with_any_character_changed_is_refused() {
        let mut delivered = Delivered::up_to(5);
        delivered.insert(70, 90);
        let token = resume("batch 1", &delivered);
        assert!(read_resume(&token, "batch 2").is_err() && read_resume(&page(5, ""), "").is_err());
        assert!(read_page(&token, "batch 1").is_err() && read_resume("", "batch 1").is_err());
        assert!(read_resume(&"A".repeat(1 << 20), "batch 1").is_err());
        for place in 0..token.len() {
            for other in ["A", "b", "-", "ä", "="] {
                let mut changed = token.clone();
                changed.replace_range(place..=place, other);
                assert!(changed == token || read_resume(&changed, "batch 1").is_err(), "{changed}");
            }
            assert!(read_resume(&token[..place], "batch 1").is_err());
        }
    }

    #[test]
    fn ranges_that_are_no_ranges_are_refused_although_their_check_is_right() {
        for numbers in [vec![5, 0, 1], vec![5, 1, 0], vec![5, 1], vec![u64::MAX, 1, 1], vec![]] {
            let mut body = vec![RESUME];
            for number in numbers {
                push(&mut body, number);
            }
            assert!(read_resume(&seal(body, ""), "").is_err());
        }
        let mut body = vec![RESUME, 0];
        body.extend([1; 2].repeat(RESUME_RANGES_MAX + 1));
        assert!(read_resume(&seal(body, ""), "").is_err(), "more ranges than any stream keeps");
    }

    #[test]
    fn a_page_token_is_for_its_own_filter() {
        assert_eq!(read_page(&page(1 << 40, "[]"), "[]").expect("its own"), 1 << 40);
        assert!(read_page(&page(7, "[]"), "[1]").is_err());
    }
}
