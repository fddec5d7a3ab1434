//! Which indexes of a batch a stream has delivered.

/// All indexes below a watermark, and some above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Delivered {
    watermark: u64,
    /// Ranges `[lo, hi)` above the watermark, ascending, apart from each other.
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

    /// The first index from `from` on that was not delivered.
    pub(crate) fn first_missing(&self, from: u64) -> u64 {
        let from = from.max(self.watermark);
        let known = self.above.partition_point(|range| range.0 <= from);
        known.checked_sub(1).map_or(from, |last| from.max(self.above[last].1))
    }

    /// The part of `[lo, hi)` that is still to be delivered. Ranges come whole, so what is missing is always its tail.
    pub(crate) fn missing(&self, lo: u64, hi: u64) -> Option<(u64, u64)> {
        let lo = lo.max(self.watermark);
        let known = self.above.partition_point(|range| range.0 <= lo);
        let covered = known.checked_sub(1).is_some_and(|last| self.above[last].1 > lo);
        (lo < hi && !covered).then_some((lo, hi))
    }

    /// Adds a range that was missing.
    pub(crate) fn insert(&mut self, lo: u64, hi: u64) {
        if lo <= self.watermark {
            self.watermark = self.watermark.max(hi);
        } else {
            let place = self.above.partition_point(|range| range.0 < lo);
            self.above.insert(place, (lo, hi));
            self.join_neighbours(place);
        }
        let reached = self.above.iter().take_while(|range| range.0 <= self.watermark).count();
        if let Some(range) = self.above.drain(..reached).next_back() {
            self.watermark = self.watermark.max(range.1);
        }
    }

    fn join_neighbours(&mut self, place: usize) {
        if let Some(next) = self.above.get(place + 1).copied()
            && self.above[place].1 == next.0
        {
            self.above[place].1 = next.1;
            self.above.remove(place + 1);
        }
        if let Some(before) = place.checked_sub(1)
            && self.above[before].1 == self.above[place].0
        {
            self.above[before].1 = self.above[place].1;
            self.above.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
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
                assert_eq!(delivered.missing(lo, hi), Some((lo, hi)));
                delivered.insert(lo, hi);
                assert_eq!(delivered.missing(lo, hi), None);
            }
            assert_eq!(delivered, Delivered::up_to(30));
        }
    }

    #[test]
    fn what_was_delivered_above_a_gap_is_stepped_over() {
        let mut delivered = Delivered::up_to(2);
        delivered.insert(5, 9);
        delivered.insert(9, 12);
        delivered.insert(20, 30);
        let steps = [0, 2, 4, 5, 8, 11, 12, 19, 20, 30].map(|from| delivered.first_missing(from));
        assert_eq!(steps, [2, 2, 4, 12, 12, 12, 12, 19, 30, 30]);
    }

    #[test]
    fn a_start_within_a_range_leaves_its_tail_missing() {
        let mut delivered = Delivered::up_to(5);
        assert_eq!(delivered.missing(3, 5), None);
        assert_eq!(delivered.missing(3, 8), Some((5, 8)));
        delivered.insert(5, 8);
        assert_eq!(delivered.watermark(), 8);
    }
}
