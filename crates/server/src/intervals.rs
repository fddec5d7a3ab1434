//! Which indexes of a batch a stream has delivered.

/// All indexes below a watermark, and some above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Delivered {
    watermark: u64,
    /// Ranges `[lo, hi)` above the watermark, ascending, apart from each other and from the watermark.
    above: Vec<(u64, u64)>,
}

impl Delivered {
    /// Everything below `index` counts as delivered.
    pub(crate) fn up_to(index: u64) -> Self {
        Self { watermark: index, above: Vec::new() }
    }

    pub(crate) fn watermark(&self) -> u64 {
        self.watermark
    }

    /// The ranges above the watermark, ascending, apart from each other and from it.
    pub(crate) fn above(&self) -> &[(u64, u64)] {
        &self.above
    }

    /// The first index from `from` on that was not delivered.
    pub(crate) fn first_missing(&self, from: u64) -> u64 {
        let from = from.max(self.watermark);
        let known = self.above.partition_point(|range| range.0 <= from);
        known.checked_sub(1).map_or(from, |last| from.max(self.above[last].1))
    }

    /// The parts of `[lo, hi)` that are still to be delivered, ascending. Finished ranges mostly come whole, but not always: what a crash of
    /// the database has lost is solved again, and may be cut elsewhere then.
    pub(crate) fn missing(&self, lo: u64, hi: u64) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        let mut next = self.first_missing(lo);
        while next < hi {
            let following = self.above.partition_point(|range| range.0 <= next);
            let end = self.above.get(following).map_or(hi, |range| range.0.min(hi));
            parts.push((next, end));
            next = self.first_missing(end);
        }
        parts
    }

    /// Whether a missing part can be delivered without more than `ranges_max` ranges above the watermark.
    pub(crate) fn has_room(&self, lo: u64, hi: u64, ranges_max: usize) -> bool {
        let touches = || self.above.iter().any(|range| range.1 == lo || range.0 == hi);
        lo <= self.watermark || self.above.len() < ranges_max || touches()
    }

    /// Adds a range.
    pub(crate) fn insert(&mut self, lo: u64, hi: u64) {
        let first = self.above.partition_point(|range| range.1 < lo);
        let after = self.above.partition_point(|range| range.0 <= hi);
        let joined = self.above[first..after]
            .iter()
            .fold((lo, hi), |joined, range| (joined.0.min(range.0), joined.1.max(range.1)));
        self.above.splice(first..after, [joined]);
        let reached = self.above.partition_point(|range| range.0 <= self.watermark);
        for range in self.above.drain(..reached) {
            self.watermark = self.watermark.max(range.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_in_any_order_are_each_missing_once_and_end_as_a_watermark() {
        // Ten ranges of three, in an order that joins to the left, to the right and on both sides.
        for order in
            [[4, 2, 3, 0, 9, 1, 7, 8, 6, 5], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]]
        {
            let mut delivered = Delivered::up_to(0);
            for range in order {
                let (lo, hi) = (range * 3, range * 3 + 3);
                assert_eq!(delivered.missing(lo, hi), [(lo, hi)]);
                delivered.insert(lo, hi);
                assert_eq!(delivered.missing(lo, hi), []);
            }
            assert_eq!(delivered, Delivered::up_to(30));
        }
    }

    #[test]
    fn any_ranges_at_all_leave_what_a_plain_set_of_indexes_leaves() {
        // A small generator of its own: the numbers only have to be many and mixed.
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let start = random(5);
            let mut delivered = Delivered::up_to(start);
            let mut plain: BTreeSet<u64> = (0..start).collect();
            for _ in 0..30 {
                let lo = random(60);
                let hi = lo + 1 + random(12);
                let missing: Vec<u64> =
                    delivered.missing(lo, hi).into_iter().flat_map(|(lo, hi)| lo..hi).collect();
                assert_eq!(missing, (lo..hi).filter(|index| !plain.contains(index)).collect::<Vec<_>>());
                for (lo, hi) in delivered.missing(lo, hi) {
                    delivered.insert(lo, hi);
                }
                plain.extend(lo..hi);
                let first =
                    |from: u64| (from..100).find(|index| !plain.contains(index)).expect("a hole below 100");
                let watermark = first(0);
                assert_eq!(delivered.watermark(), watermark);
                for from in 0..80 {
                    assert_eq!(delivered.first_missing(from), first(from.max(watermark)));
                }
                let mut end = delivered.watermark();
                for range in delivered.above() {
                    assert!(range.0 > end && range.0 < range.1, "{delivered:?}");
                    end = range.1;
                }
            }
        }
    }

    #[test]
    fn a_full_set_takes_only_what_joins() {
        let mut delivered = Delivered::up_to(2);
        delivered.insert(5, 9);
        delivered.insert(20, 30);
        assert!(!delivered.has_room(12, 14, 2) && delivered.has_room(12, 14, 3));
        for (lo, hi) in [(2, 4), (2, 5), (9, 12), (15, 20), (30, 31), (9, 20)] {
            assert!(delivered.has_room(lo, hi, 2), "{lo}..{hi}");
            let mut more = delivered.clone();
            more.insert(lo, hi);
            assert!(more.above().len() <= 2);
        }
    }
}
