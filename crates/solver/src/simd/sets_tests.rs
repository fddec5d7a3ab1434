//! Every width's work on sets and states against plain loops.

use super::sets::{
    Additions, BUNDLE, Boxes, CHILDREN, Children, Completed, SET, SLOTS, Sets, StateWords, States, WORDS,
    Word,
};
use super::{Isa, Op, Width, with};
use crate::random::SplitMix64;

const ROUNDS: usize = 200;

/// Checks the sets and the states of one instruction set.
struct Check;

impl Op for Check {
    type Output = ();

    #[inline(always)]
    fn call<I: Isa>(self, isa: I) {
        let mut random = SplitMix64::new(7);
        for _ in 0..ROUNDS {
            check_lanes::<I::Wide>(isa, &mut random);
            check_lanes::<I::Narrow>(isa, &mut random);
            check_allow::<I, u64>(isa, &mut random);
            check_allow::<I, u32>(isa, &mut random);
            check_children::<I::Wide>(isa, &mut random);
            check_children::<I::Narrow>(isa, &mut random);
        }
    }
}

#[test]
fn every_width_does_as_plain_loops_do() {
    for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
        with(width, Check);
    }
}

/// Words of which about half are 0.
fn sparse<W: Word>(random: &mut SplitMix64, number: usize) -> Vec<W> {
    (0..number).map(|_| W::of(if random.below(2) == 0 { 0 } else { random.next() })).collect()
}

/// The lanes of a vector, by way of sets that are nowhere empty.
fn lanes<S: Sets>(isa: S::Isa, vector: S) -> Vec<u64> {
    let (mut sets, mut words) = (vec![S::Word::of(0); S::LANES], vec![S::Word::of(0); S::LANES]);
    let full = S::splat(isa, S::Word::of(u64::MAX));
    assert_eq!(full.store_nonempty(vector, &mut sets, &mut words), S::LANES);
    words.into_iter().map(Word::bits).collect()
}

fn check_lanes<S: Sets>(isa: S::Isa, random: &mut SplitMix64) {
    let (a, b) = (sparse::<S::Word>(random, S::LANES), sparse::<S::Word>(random, S::LANES));
    let word = S::Word::of(1 << random.below(32));
    let table = std::array::from_fn(|_| S::Word::of(random.next()));
    let (va, vb, same) = (S::load(isa, &a), S::load(isa, &b), S::splat(isa, word));
    let each = |expected: &dyn Fn(u64, u64) -> u64| -> Vec<u64> {
        a.iter().zip(&b).map(|(a, b)| S::Word::of(expected(a.bits(), b.bits())).bits()).collect()
    };
    assert_eq!(lanes(isa, va.and(vb)), each(&|a, b| a & b));
    assert_eq!(lanes(isa, va.or(vb)), each(&|a, b| a | b));
    assert_eq!(lanes(isa, va.minus(vb)), each(&|a, b| a & !b));
    assert_eq!(lanes(isa, va.plus(vb)), each(&u64::wrapping_add));
    assert_eq!(lanes(isa, va.shifted_left(5)), each(&|a, _| a << 5));
    assert_eq!(lanes(isa, va.shifted_right(5)), each(&|a, _| a >> 5));
    assert_eq!(lanes(isa, va.sizes()), each(&|a, _| a.count_ones().into()));
    assert_eq!(va.sizes().total(), a.iter().map(|a| u64::from(a.bits().count_ones())).sum::<u64>());
    assert_eq!(lanes(isa, va.or(same).lowest()), each(&|a, _| (a | word.bits()).trailing_zeros().into()));
    assert_eq!(lanes(isa, va.or(same).highest()), each(&|a, _| (a | word.bits()).ilog2().into()));
    assert_eq!(
        lanes(isa, va.where_disjoint(vb, same)),
        each(&|a, b| if b & word.bits() == 0 { a } else { 0 })
    );
    assert_eq!(lanes(isa, S::pick(&table, va)), each(&|a, _| table[(a & 15) as usize].bits()));

    let (mut sets, mut words) = (vec![word; S::LANES], vec![word; S::LANES]);
    let number = va.store_nonempty(vb, &mut sets, &mut words);
    let stored: Vec<_> = sets.into_iter().zip(words).take(number).collect();
    let expected: Vec<_> = a.into_iter().zip(b).filter(|(set, _)| set.bits() != 0).collect();
    assert!(stored == expected);
}

fn random_states(random: &mut SplitMix64) -> States {
    let mut states = States { by_word: [[0; SLOTS]; WORDS], by_state: [[0; 16]; SLOTS] };
    for slot in 0..SLOTS {
        for word in 0..WORDS {
            let digits = (random.next() & random.next() & 0x1ff).to_le_bytes();
            states.by_word[word][slot] = u16::from_le_bytes([digits[0], digits[1]]);
            states.by_state[slot][word] = states.by_word[word][slot];
        }
    }
    states
}

fn random_digits(random: &mut SplitMix64, number: usize) -> [u16; 16] {
    let mut digits: Vec<u16> = (0..9).map(|digit| 1 << digit).collect();
    random.shuffle(&mut digits);
    std::array::from_fn(|i| if i < number { digits[i] } else { 0 })
}

fn check_allow<I: Isa, W: Word>(isa: I, random: &mut SplitMix64) {
    let states = random_states(random);
    let number = 1 + random.below(9);
    let digits = random_digits(random, number);
    let (columns, boxes) = (&states.by_word[random.below(9)], &states.by_word[9 + random.below(3)]);
    let with_boxes = random.below(2) == 0;
    let taken = 1 << random.below(9);
    let set = W::of(random.next() >> random.below(64));
    let mut table = [W::of(0); 16];
    isa.allow(columns, with_boxes.then_some(&boxes[..]), taken, &digits[..number], set, &mut table);
    for (index, digit) in digits[..number].iter().enumerate() {
        let allows = |slot: &usize| {
            let found = columns[*slot] | taken | if with_boxes { boxes[*slot] } else { 0 };
            set.bits() >> slot & 1 == 1 && found & digit == 0
        };
        let expected = (0..SET).filter(allows).fold(0, |set, slot| set | 1 << slot);
        assert_eq!(table[index].bits(), expected);
    }
    let mut slots = [0; SET];
    let number = isa.slots_of(set.bits(), 64, &mut slots);
    let expected: Vec<u8> =
        (0..64).filter(|slot| set.bits() >> slot & 1 == 1).map(|slot| slot + 64).collect();
    assert_eq!(slots[..number], expected);
}

fn check_children<S: Sets>(isa: S::Isa, random: &mut SplitMix64) {
    let (states, mut to) = (random_states(random), random_states(random));
    let cells = 1 + random.below(if S::Word::STATES == SET { 9 } else { 8 });
    let digits = random_digits(random, cells);
    let mut columns: Vec<usize> = (0..9).collect();
    random.shuffle(&mut columns);
    columns.truncate(cells);
    columns.sort_unstable();
    let digit_at = |completion: usize, cell: usize| (completion * 7 + cell * 5) % cells;
    let fields = std::array::from_fn(|completion| {
        let fields = (0..cells).map(|cell| (digit_at(completion, cell) as u64) << (4 * cell));
        S::Word::of(fields.fold(0, |all, field| all | field))
    });
    let mut added = Additions { by_column: [[0; BUNDLE]; 9], by_completion: [[0; 16]; BUNDLE] };
    let completed = Completed { fields: &fields, number: BUNDLE, columns: &columns, digits: &digits };
    S::add(isa, &completed, &mut added);

    let from_both_halves = S::Isa::BLOCK > SET && random.below(2) == 0;
    let slots = if from_both_halves { 2 * SET } else { SET };
    let parents: [u8; CHILDREN] = std::array::from_fn(|_| u8::try_from(random.below(slots)).unwrap());
    let completions: [u8; CHILDREN] = std::array::from_fn(|_| u8::try_from(random.below(BUNDLE)).unwrap());
    let boxes = [Boxes::Inherited, Boxes::Fresh, Boxes::Unused][random.below(3)];
    let number = 1 + random.below(CHILDREN);
    let at = random.below(S::Isa::BLOCK - number + 1);
    let children = Children {
        states: &states,
        added: &added,
        parents: &parents,
        completions: &completions,
        number,
        columns: columns.iter().fold(0, |columns, column| columns | 1 << column),
        from_both_halves,
        boxes,
    };
    isa.append(&mut to, at, &children);
    isa.line_up(&mut to, S::Isa::BLOCK);
    for child in 0..number {
        let (parent, completion) = (usize::from(parents[child]), usize::from(completions[child]));
        for word in 0..if boxes == Boxes::Unused { 9 } else { WORDS } {
            let inherits = word < 9 || boxes == Boxes::Inherited;
            let mut expected = if inherits { states.by_word[word][parent] } else { 0 };
            for (cell, column) in columns.iter().enumerate() {
                if *column == word || 9 + column / 3 == word {
                    expected |= digits[digit_at(completion, cell)];
                }
            }
            assert_eq!(to.by_word[word][at + child], expected, "word {word} of child {child}");
        }
    }
}
