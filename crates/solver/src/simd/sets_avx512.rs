//! Eight sets of 64 states, or sixteen of 32, in one vector.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm256_loadu_si256, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512,
    _mm512_andnot_si512, _mm512_castsi512_si256, _mm512_cvtepu8_epi16, _mm512_cvtepu32_epi64,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_lzcnt_epi32, _mm512_lzcnt_epi64,
    _mm512_mask_mov_epi16, _mm512_mask_testn_epi16_mask, _mm512_maskz_compress_epi8,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_maskz_mov_epi32, _mm512_maskz_mov_epi64,
    _mm512_or_si512, _mm512_permutex2var_epi16, _mm512_permutex2var_epi64, _mm512_permutexvar_epi16,
    _mm512_permutexvar_epi32, _mm512_popcnt_epi32, _mm512_popcnt_epi64, _mm512_reduce_add_epi64,
    _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_sll_epi32,
    _mm512_sll_epi64, _mm512_srl_epi16, _mm512_srl_epi32, _mm512_srl_epi64, _mm512_storeu_si512,
    _mm512_sub_epi32, _mm512_sub_epi64, _mm512_test_epi16_mask, _mm512_test_epi32_mask,
    _mm512_test_epi64_mask, _mm512_testn_epi32_mask, _mm512_testn_epi64_mask, _mm512_xor_si512,
};

use super::Avx512;
use super::sets::{
    Additions, BLOCK_MAX, Boxes, CHILDREN, Children, Completed, SET, Sets, StateWords, States, Table, Word,
};

/// The parts of a slice of words that one vector covers.
#[inline(always)]
fn vector<T: Plain, const N: usize>(_: Avx512, words: &[T; N]) -> __m512i {
    const { assert!(size_of::<T>() * N == 64) };
    // SAFETY: `words` are 64 bytes to read, which need not be aligned; an `Avx512` is the proof of the instruction.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline(always)]
fn store<T: Plain, const N: usize>(_: Avx512, vector: __m512i, words: &mut [T; N]) {
    const { assert!(size_of::<T>() * N == 64) };
    // SAFETY: `words` are 64 bytes to write, which need not be aligned and may hold anything, see `Plain`; an `Avx512`
    // is the proof of the instruction.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}

/// Numbers that any bytes are a value of.
trait Plain {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}

/// The first array of a slice that is long enough.
#[inline(always)]
fn front<T, const N: usize>(words: &[T]) -> &[T; N] {
    words.first_chunk().expect("a vector's length")
}

#[inline(always)]
fn front_mut<T, const N: usize>(words: &mut [T]) -> &mut [T; N] {
    words.first_chunk_mut().expect("a vector's length")
}

macro_rules! sets {
    (
        $(#[$doc:meta])* $name:ident, $word:ty, $lanes:literal, $splat:ident, $add:ident, $sub:ident, $sll:ident,
        $srl:ident, $popcnt:ident, $lzcnt:ident, $testn:ident, $test:ident, $mov:ident, $compress:ident,
        $total:ident, $pick:ident, $some:ident, $half:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(__m512i, Avx512);

        impl Sets for $name {
            type Isa = Avx512;
            type Word = $word;

            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(isa: Avx512, word: $word) -> Self {
                // SAFETY: an `Avx512` is the proof that the instruction is there.
                $name(unsafe { $splat(word.cast_signed()) }, isa)
            }

            #[inline(always)]
            fn load(isa: Avx512, words: &[$word]) -> Self {
                $name(vector::<_, $lanes>(isa, front(words)), isa)
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "a bit for each lane")]
            fn first(self, lanes: usize) -> Self {
                let some = ((1_u32 << lanes.min($lanes)) - 1) as _;
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { $mov(some, self.0) }, self.1)
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { _mm512_and_si512(self.0, other.0) }, self.1)
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { _mm512_or_si512(self.0, other.0) }, self.1)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { _mm512_andnot_si512(other.0, self.0) }, self.1)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { $add(self.0, other.0) }, self.1)
            }

            #[inline(always)]
            fn shifted_left(self, by: u32) -> Self {
                // SAFETY: `self` holds the proof that the instructions are there.
                $name(unsafe { $sll(self.0, _mm_cvtsi32_si128(by.cast_signed())) }, self.1)
            }

            #[inline(always)]
            fn shifted_right(self, by: u32) -> Self {
                // SAFETY: `self` holds the proof that the instructions are there.
                $name(unsafe { $srl(self.0, _mm_cvtsi32_si128(by.cast_signed())) }, self.1)
            }

            #[inline(always)]
            fn some(isa: Avx512, table: &Table<$word>) -> u16 {
                $some(isa, table)
            }

            #[inline(always)]
            fn is_empty(self) -> bool {
                // SAFETY: `self` holds the proof that the instruction is there.
                unsafe { $test(self.0, self.0) == 0 }
            }

            #[inline(always)]
            fn sizes(self) -> Self {
                // SAFETY: `self` holds the proof that the instruction is there.
                $name(unsafe { $popcnt(self.0) }, self.1)
            }

            #[inline(always)]
            fn total(self) -> u64 {
                $total(self)
            }

            #[inline(always)]
            fn lowest(self) -> Self {
                // The bits below the lowest one are those that turn to 1 when 1 is taken away.
                // SAFETY: `self` holds the proof that the instructions are there.
                $name(unsafe { $popcnt(_mm512_andnot_si512(self.0, $sub(self.0, $splat(1)))) }, self.1)
            }

            #[inline(always)]
            fn highest(self) -> Self {
                let top = <$word>::BITS - 1;
                // SAFETY: `self` holds the proof that the instructions are there.
                $name(unsafe { _mm512_xor_si512($splat(top.cast_signed().into()), $lzcnt(self.0)) }, self.1)
            }

            #[inline(always)]
            fn where_disjoint(self, words: Self, bits: Self) -> Self {
                // SAFETY: `self` holds the proof that the instructions are there.
                $name(unsafe { $mov($testn(words.0, bits.0), self.0) }, self.1)
            }

            #[inline(always)]
            fn pick(table: &Table<$word>, at: Self) -> Self {
                $name($pick(table, at), at.1)
            }

            #[inline(always)]
            fn store_nonempty(self, carried: Self, sets: &mut [$word], words: &mut [$word]) -> usize {
                // SAFETY: `self` holds the proof that the instructions are there.
                let (some, packed, carried) = unsafe {
                    let some = $test(self.0, self.0);
                    (some, $compress(some, self.0), $compress(some, carried.0))
                };
                store::<_, $lanes>(self.1, packed, front_mut(sets));
                store::<_, $lanes>(self.1, carried, front_mut(words));
                some.count_ones() as usize
            }

            #[inline(always)]
            fn add(isa: Avx512, completed: &Completed<'_, $word>, to: &mut Additions) {
                for (cell, &column) in completed.columns.iter().enumerate() {
                    let (to, _) = to.by_column[column].as_chunks_mut::<32>();
                    for (half, to) in to.iter_mut().enumerate().take(completed.number.div_ceil(32)) {
                        let fields = $half(isa, front(&completed.fields[32 * half..]), cell / 4);
                        store(isa, digits_of(isa, fields, cell % 4, completed.digits), to);
                    }
                }
            }
        }
    };
}

sets! {
    /// Eight sets of 64 states.
    Wide, u64, 8, _mm512_set1_epi64, _mm512_add_epi64, _mm512_sub_epi64, _mm512_sll_epi64, _mm512_srl_epi64,
    _mm512_popcnt_epi64, _mm512_lzcnt_epi64, _mm512_testn_epi64_mask, _mm512_test_epi64_mask,
    _mm512_maskz_mov_epi64, _mm512_maskz_compress_epi64, total_wide, pick_wide, some_wide, half_wide
}

sets! {
    /// Sixteen sets of 32 states.
    Narrow, u32, 16, _mm512_set1_epi32, _mm512_add_epi32, _mm512_sub_epi32, _mm512_sll_epi32, _mm512_srl_epi32,
    _mm512_popcnt_epi32, _mm512_lzcnt_epi32, _mm512_testn_epi32_mask, _mm512_test_epi32_mask,
    _mm512_maskz_mov_epi32, _mm512_maskz_compress_epi32, total_narrow, pick_narrow, some_narrow, half_narrow
}

#[inline(always)]
fn total_wide(numbers: Wide) -> u64 {
    // SAFETY: a vector holds the proof that the instructions are there.
    unsafe { _mm512_reduce_add_epi64(numbers.0) }.cast_unsigned()
}

#[inline(always)]
fn total_narrow(numbers: Narrow) -> u64 {
    // SAFETY: a vector holds the proof that the instructions are there.
    let sums = unsafe {
        let (low, high) = (_mm512_castsi512_si256(numbers.0), _mm512_extracti64x4_epi64::<1>(numbers.0));
        _mm512_add_epi64(_mm512_cvtepu32_epi64(low), _mm512_cvtepu32_epi64(high))
    };
    total_wide(Wide(sums, numbers.1))
}

#[inline(always)]
fn some_wide(isa: Avx512, table: &Table<u64>) -> u16 {
    let (low, high) = (vector::<_, 8>(isa, front(table)), vector::<_, 8>(isa, front(&table[8..])));
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    let (low, high) = unsafe { (_mm512_test_epi64_mask(low, low), _mm512_test_epi64_mask(high, high)) };
    u16::from_le_bytes([low, high])
}

#[inline(always)]
fn some_narrow(isa: Avx512, table: &Table<u32>) -> u16 {
    let sets = vector(isa, table);
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    unsafe { _mm512_test_epi32_mask(sets, sets) }
}

#[inline(always)]
fn pick_wide(table: &Table<u64>, at: Wide) -> __m512i {
    let (low, high) = (vector::<_, 8>(at.1, front(table)), vector::<_, 8>(at.1, front(&table[8..])));
    // SAFETY: a vector holds the proof that the instruction is there.
    unsafe { _mm512_permutex2var_epi64(low, at.0, high) }
}

#[inline(always)]
fn pick_narrow(table: &Table<u32>, at: Narrow) -> __m512i {
    // SAFETY: a vector holds the proof that the instruction is there.
    unsafe { _mm512_permutexvar_epi32(at.0, vector(at.1, table)) }
}

/// Sixteen bits of each of 32 words: which sixteen is said by `part`.
#[inline(always)]
fn half_wide(isa: Avx512, words: &[u64; 32], part: usize) -> __m512i {
    let first =
        pairs(isa, vector::<_, 8>(isa, front(words)), vector::<_, 8>(isa, front(&words[8..])), part / 2);
    let second = pairs(
        isa,
        vector::<_, 8>(isa, front(&words[16..])),
        vector::<_, 8>(isa, front(&words[24..])),
        part / 2,
    );
    singles(isa, first, second, part % 2)
}

#[inline(always)]
fn half_narrow(isa: Avx512, words: &[u32; 32], part: usize) -> __m512i {
    singles(isa, vector::<_, 16>(isa, front(words)), vector::<_, 16>(isa, front(&words[16..])), part)
}

/// One of the 32-bit halves of sixteen 64-bit words.
#[inline(always)]
fn pairs(isa: Avx512, low: __m512i, high: __m512i, half: usize) -> __m512i {
    const AT: [[u16; 32]; 2] = [every_other::<2>(0), every_other::<2>(1)];
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    unsafe { _mm512_permutex2var_epi16(low, vector(isa, &AT[half & 1]), high) }
}

/// One of the 16-bit halves of 32 words of 32 bits.
#[inline(always)]
fn singles(isa: Avx512, low: __m512i, high: __m512i, half: usize) -> __m512i {
    const AT: [[u16; 32]; 2] = [every_other::<1>(0), every_other::<1>(1)];
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    unsafe { _mm512_permutex2var_epi16(low, vector(isa, &AT[half & 1]), high) }
}

/// The places of groups of `N` words of 16 bits: every other group, from the first or the second on.
#[allow(clippy::cast_possible_truncation, reason = "below 64")]
const fn every_other<const N: usize>(from: usize) -> [u16; 32] {
    let mut at = [0; 32];
    let mut i = 0;
    while i < 32 {
        at[i] = ((i / N * 2 + from) * N + i % N) as u16;
        i += 1;
    }
    at
}

/// The digits that the fields of number `field` stand for.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 12")]
fn digits_of(isa: Avx512, fields: __m512i, field: usize, digits: &[u16; 16]) -> __m512i {
    // Five bits of an index count; the fifth is the next field's, so the table is there twice.
    let mut twice = [0; 32];
    twice[..16].copy_from_slice(digits);
    twice[16..].copy_from_slice(digits);
    let by = (4 * (field & 3)) as i32;
    // SAFETY: an `Avx512` is the proof that the instructions are there.
    unsafe { _mm512_permutexvar_epi16(_mm512_srl_epi16(fields, _mm_cvtsi32_si128(by)), vector(isa, &twice)) }
}

impl StateWords for Avx512 {
    const BLOCK: usize = BLOCK_MAX;

    #[inline(always)]
    fn allow<W: Word>(
        self,
        columns: &[u16],
        boxes: Option<&[u16]>,
        taken: u16,
        digits: &[u16],
        states: W,
        to: &mut [W],
    ) {
        let [of_low, of_high] = halves(states.bits());
        let low = words_found(self, columns, boxes, taken);
        if of_high == 0 {
            for (to, &digit) in to.iter_mut().zip(digits) {
                *to = W::of(without(self, of_low, low, digit));
            }
        } else {
            let high = words_found(self, &columns[32..], boxes.map(behind_32), taken);
            for (to, &digit) in to.iter_mut().zip(digits) {
                let (low, high) = (without(self, of_low, low, digit), without(self, of_high, high, digit));
                *to = W::of(low | high << 32);
            }
        }
    }

    #[inline(always)]
    fn slots_of(self, set: u64, from: u8, to: &mut [u8; SET]) -> usize {
        const SLOTS: [u8; BLOCK_MAX + SET] = {
            let mut slots = [0; BLOCK_MAX + SET];
            let mut slot = 0_u8;
            while (slot as usize) < BLOCK_MAX {
                slots[slot as usize] = slot;
                slot += 1;
            }
            slots
        };
        let all = vector::<_, SET>(self, front(&SLOTS[usize::from(from)..]));
        // SAFETY: an `Avx512` is the proof that the instruction is there.
        store(self, unsafe { _mm512_maskz_compress_epi8(set, all) }, to);
        set.count_ones() as usize
    }

    #[inline(always)]
    fn append(self, to: &mut States, at: usize, children: &Children<'_>) {
        let (parents, completions) = (indices(self, children.parents), indices(self, children.completions));
        // SAFETY: an `Avx512` is the proof that the instruction is there.
        let nothing = unsafe { _mm512_setzero_si512() };
        for third in 0..3 {
            let mut added_to_box = nothing;
            for column in third * 3..third * 3 + 3 {
                let mut child = inherited(self, children, column, parents);
                if children.columns >> column & 1 == 1 {
                    let added = pick_of_64(self, &children.added.by_column[column], completions);
                    child = or(self, child, added);
                    added_to_box = or(self, added_to_box, added);
                }
                store::<_, 32>(self, child, front_mut(&mut to.by_word[column][at..]));
            }
            let child = match children.boxes {
                Boxes::Inherited => or(self, inherited(self, children, 9 + third, parents), added_to_box),
                Boxes::Fresh => added_to_box,
                Boxes::Unused => continue,
            };
            store::<_, 32>(self, child, front_mut(&mut to.by_word[9 + third][at..]));
        }
    }

    #[inline(always)]
    fn line_up(self, _: &mut States, _: usize) {}

    #[inline(always)]
    fn carry_over(self, states: &mut States) {
        for slots in &mut states.by_word {
            slots.copy_within(Self::BLOCK..Self::BLOCK + CHILDREN, 1);
        }
    }
}

/// One word of 32 parents.
#[inline(always)]
fn inherited(isa: Avx512, children: &Children<'_>, word: usize, parents: __m512i) -> __m512i {
    let from = &children.states.by_word[word];
    let of_first_half = pick_of_64(isa, from, parents);
    if !children.from_both_halves {
        return of_first_half;
    }
    let of_second_half = pick_of_64(isa, &from[SET..], parents);
    // SAFETY: an `Avx512` is the proof that the instructions are there.
    unsafe {
        let in_second_half = _mm512_test_epi16_mask(parents, _mm512_set1_epi16(64));
        _mm512_mask_mov_epi16(of_first_half, in_second_half, of_second_half)
    }
}

#[inline(always)]
fn or(_: Avx512, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    unsafe { _mm512_or_si512(a, b) }
}

/// The digits found for each of 32 states.
#[inline(always)]
fn words_found(isa: Avx512, columns: &[u16], boxes: Option<&[u16]>, taken: u16) -> __m512i {
    let mut found = vector::<_, 32>(isa, front(columns));
    if let Some(boxes) = boxes {
        // SAFETY: an `Avx512` is the proof that the instruction is there.
        found = unsafe { _mm512_or_si512(found, vector::<_, 32>(isa, front(boxes))) };
    }
    // SAFETY: as above.
    unsafe { _mm512_or_si512(found, _mm512_set1_epi16(taken.cast_signed())) }
}

/// Those of 32 states for which the digit was not found.
#[inline(always)]
fn without(_: Avx512, states: u32, found: __m512i, digit: u16) -> u64 {
    // SAFETY: an `Avx512` is the proof that the instructions are there.
    let set = unsafe { _mm512_mask_testn_epi16_mask(states, found, _mm512_set1_epi16(digit.cast_signed())) };
    u64::from(set)
}

#[inline(always)]
fn behind_32(words: &[u16]) -> &[u16] {
    &words[32..]
}

/// The words at these indices, of which the low six bits count.
#[inline(always)]
fn pick_of_64(isa: Avx512, words: &[u16], at: __m512i) -> __m512i {
    let (low, high) = (vector::<_, 32>(isa, front(words)), vector::<_, 32>(isa, front(&words[32..])));
    // SAFETY: an `Avx512` is the proof that the instruction is there.
    unsafe { _mm512_permutex2var_epi16(low, at, high) }
}

/// The low and the high half of a word.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "halves are asked for")]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// 32 bytes as words of 16 bits.
#[inline(always)]
fn indices(_: Avx512, bytes: &[u8; CHILDREN]) -> __m512i {
    // SAFETY: `bytes` are 32 bytes to read, which need not be aligned; an `Avx512` is the proof of the instructions.
    unsafe { _mm512_cvtepu8_epi16(_mm256_loadu_si256(bytes.as_ptr().cast())) }
}
