//! How what is left of a job goes back: in parts that take a slice each, so that hard puzzles spread over all who are idle.

use std::time::Duration;

use store::Rest;

/// Parts of one job, at the most.
const PARTS_MAX: u64 = 64;

/// The rest `[mid, hi)` of a job of which `done` puzzles took `spent` in a slice of that length, and were charged `cost` each.
pub(crate) fn of(mid: u64, hi: u64, done: u64, spent: Duration, cost: Duration, slice: Duration) -> Rest {
    let done = u32::try_from(done).unwrap_or(u32::MAX).max(1);
    let each = spent / done;
    let in_a_slice = slice.as_nanos() / each.as_nanos().max(1);
    let left = hi - mid;
    let part = u64::try_from(in_a_slice).unwrap_or(u64::MAX).clamp(left.div_ceil(PARTS_MAX), left);
    let step = usize::try_from(part).unwrap_or(usize::MAX);
    let ends = (mid..hi).step_by(step).skip(1).chain([hi]).collect();
    Rest { ends, excess: spent.saturating_sub(cost * done), puzzle_cost: each }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(250);
    const CHEAP: Duration = Duration::from_micros(1);

    #[test]
    fn parts_take_a_slice_each_and_cover_the_rest() {
        // 25 puzzles in a slice of 250 ms: 10 ms each.
        let rest = of(125, 300, 25, SLICE, CHEAP, SLICE);
        assert_eq!(rest.ends, [150, 175, 200, 225, 250, 275, 300]);
        assert_eq!(rest.puzzle_cost, Duration::from_millis(10));
        assert_eq!(rest.excess, SLICE.saturating_sub(CHEAP * 25));
    }

    #[test]
    fn hard_puzzles_go_back_one_by_one_and_never_in_more_than_so_many_parts() {
        assert_eq!(of(1, 32, 1, SLICE, CHEAP, SLICE).ends, (2..=32).collect::<Vec<_>>());
        let many = of(1, 4_096, 1, SLICE, CHEAP, SLICE);
        assert_eq!((many.ends.len(), many.ends.last()), (64, Some(&4_096)));
        assert!(many.ends.is_sorted());
    }

    #[test]
    fn what_fits_a_slice_stays_one_part() {
        assert_eq!(of(3_000, 4_096, 3_000, SLICE, CHEAP, SLICE).ends, [4_096]);
        assert_eq!(of(5, 6, 5, Duration::ZERO, CHEAP, SLICE).ends, [6]);
    }
}
