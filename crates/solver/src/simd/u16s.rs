//! What the lane solver asks of a vector: candidate sets side by side, one 16-bit word for each lane.

/// Words side by side, one a lane; each is a set of digits, digit `d` as bit `d - 1`.
///
/// The operations of three operands are single instructions with AVX-512.
pub(crate) trait U16s: Copy {
    /// Lanes: at most 32, a power of two.
    const COUNT: usize;

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// `self & !other`
    fn and_not(self, other: Self) -> Self;
    /// Wrapping.
    fn add(self, other: Self) -> Self;
    /// The smaller words; all words are below 2^15.
    fn min(self, other: Self) -> Self;
    /// The words of `self` where those of `other` are 0; 0 for the others.
    fn where_none(self, other: Self) -> Self;
    /// The words of `self` that are not 0; those of `other` for the others.
    fn or_else(self, other: Self) -> Self;
    /// The lanes whose words differ, a bit each.
    fn differing(self, other: Self) -> u32;

    #[inline(always)]
    fn or3(self, b: Self, c: Self) -> Self {
        self.or(b).or(c)
    }

    #[inline(always)]
    fn and3(self, b: Self, c: Self) -> Self {
        self.and(b).and(c)
    }

    /// The bits that at least two of the three have.
    #[inline(always)]
    fn majority(self, b: Self, c: Self) -> Self {
        self.and(b).or(self.or(b).and(c))
    }

    /// `self | (b & c)`
    #[inline(always)]
    fn or_both(self, b: Self, c: Self) -> Self {
        self.or(b.and(c))
    }

    /// `self & !(b & c)`
    #[inline(always)]
    fn and_not_both(self, b: Self, c: Self) -> Self {
        self.and_not(b.and(c))
    }

    /// `self & (!taken | kept)`
    #[inline(always)]
    fn without_unless(self, taken: Self, kept: Self) -> Self {
        self.and_not(taken.and_not(kept))
    }

    /// `self | (b & !c)`
    #[inline(always)]
    fn or_and_not(self, b: Self, c: Self) -> Self {
        self.or(b.and_not(c))
    }

    /// The words of vectors one after the other, lane by lane.
    fn words(vectors: &[Self]) -> &[u16];

    /// As [`U16s::words`], to be written to.
    fn words_mut(vectors: &mut [Self]) -> &mut [u16];
}

/// Implements the two views of vectors as words, for a struct that is `$count` words and nothing else.
macro_rules! words_of_vectors {
    ($count:expr) => {
        #[inline(always)]
        fn words(vectors: &[Self]) -> &[u16] {
            const { assert!(size_of::<Self>() == 2 * $count) };
            let len = vectors.len() * $count;
            // SAFETY: the vectors are `len` words without padding, every bit pattern is a valid word, words are less
            // aligned than vectors, and the slice borrows what it shows.
            unsafe { core::slice::from_raw_parts(vectors.as_ptr().cast(), len) }
        }

        #[inline(always)]
        fn words_mut(vectors: &mut [Self]) -> &mut [u16] {
            const { assert!(size_of::<Self>() == 2 * $count) };
            let len = vectors.len() * $count;
            // SAFETY: as for `words`; every bit pattern is a valid vector too, and the slice borrows mutably.
            unsafe { core::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), len) }
        }
    };
}
pub(super) use words_of_vectors;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;
    use crate::simd::{Isa, Op, Width, with};

    /// Compares every operation with its meaning word by word.
    struct Check {
        seed: u64,
    }

    impl Op for Check {
        type Output = usize;

        #[inline(always)]
        fn call<I: Isa>(self, isa: I) -> usize {
            let mut random = SplitMix64::new(self.seed);
            let mut word = || u16::try_from(random.next() & random.next() & 511).unwrap();
            let words: [[u16; 32]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| word()));
            let [a, b, c] = words.each_ref().map(|words| isa.load(words));
            let expect = |name: &str, got: I::U16s, expected: &dyn Fn(u16, u16, u16) -> u16| {
                for (lane, &got) in I::U16s::words(&[got]).iter().enumerate() {
                    let [a, b, c] = [0, 1, 2].map(|i| words[i][lane]);
                    assert_eq!(got, expected(a, b, c), "{name}({a:#x}, {b:#x}, {c:#x})");
                }
            };
            expect("and", a.and(b), &|a, b, _| a & b);
            expect("or", a.or(b), &|a, b, _| a | b);
            expect("and_not", a.and_not(b), &|a, b, _| a & !b);
            expect("add", a.add(b), &|a, b, _| a.wrapping_add(b));
            expect("add", a.add(isa.splat(u16::MAX)), &|a, _, _| a.wrapping_sub(1));
            expect("min", a.min(b), &|a, b, _| a.min(b));
            expect("where_none", a.where_none(b), &|a, b, _| if b == 0 { a } else { 0 });
            expect("or_else", a.or_else(b), &|a, b, _| if a == 0 { b } else { a });
            expect("or3", a.or3(b, c), &|a, b, c| a | b | c);
            expect("and3", a.and3(b, c), &|a, b, c| a & b & c);
            expect("majority", a.majority(b, c), &|a, b, c| a & b | a & c | b & c);
            expect("or_both", a.or_both(b, c), &|a, b, c| a | b & c);
            expect("and_not_both", a.and_not_both(b, c), &|a, b, c| a & !(b & c));
            expect("without_unless", a.without_unless(b, c), &|a, b, c| a & (!b | c));
            expect("or_and_not", a.or_and_not(b, c), &|a, b, c| a | b & !c);
            let differing = a.differing(b);
            let lanes = u32::MAX >> (32 - I::U16s::COUNT);
            assert_eq!(differing & !lanes, 0);
            for (lane, (a, b)) in words[0].iter().zip(&words[1]).take(I::U16s::COUNT).enumerate() {
                assert_eq!(differing >> lane & 1 == 1, a != b);
            }
            expect("bits_of_lanes", isa.bits_of_lanes(differing), &|a, b, _| {
                if a == b { 0 } else { u16::MAX }
            });
            let mut vectors = [a, b];
            I::U16s::words_mut(&mut vectors)[I::U16s::COUNT + 3] = 77;
            assert_eq!(I::U16s::words(&vectors)[I::U16s::COUNT + 3], 77);
            assert_eq!(I::U16s::words(&vectors)[..I::U16s::COUNT], words[0][..I::U16s::COUNT]);
            I::U16s::COUNT
        }
    }

    #[test]
    fn every_width_gives_what_the_operations_mean() {
        for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
            for seed in 0..200 {
                assert!(with(width, Check { seed }) >= 8, "{width}");
            }
        }
    }
}
