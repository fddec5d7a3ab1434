//! `bench`: how fast this machine is at it.

mod check;
mod exchange;
pub(crate) mod latency;
mod private;
mod puzzles;
mod run;
pub(crate) mod service;
pub(crate) mod solver;
mod usage;

use ::solver::{Outcome, PlacementLimit, Placements};

use crate::lines::grouped;

/// What was answered.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    outcomes: [u64; Outcome::ALL.len()],
    placements: u64,
}

impl Tally {
    fn add(&mut self, outcome: Outcome, placements: Option<Placements>, limit: PlacementLimit) {
        self.outcomes[outcome as usize] += 1;
        self.placements += match placements {
            Some(Placements::Exact(placements)) => placements,
            Some(Placements::OverLimit) => limit.0,
            Some(Placements::NotCounted) | None => 0,
        };
    }

    fn add_all(&mut self, other: &Tally) {
        self.placements += other.placements;
        for (sum, more) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += more;
        }
    }

    fn puzzles(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// The outcomes that there were, and how often.
    fn outcomes(&self) -> impl Iterator<Item = (Outcome, u64)> {
        Outcome::ALL.into_iter().zip(self.outcomes).filter(|(_, count)| *count > 0)
    }
}

/// Ways to name nine digits: 9!.
const NAMINGS: u64 = 362_880;
/// A step through them that has no divisor in common with their number and comes to all of them, each unlike the one before.
const NAMINGS_STEP: u64 = 224_279;

/// New names for the digits; those of number 0 are the old ones. Numbers less than [`NAMINGS`] apart have different ones, so that no answer to a puzzle with one
/// solution can be had by remembering one of another pass.
fn digit_names(number: u64) -> [u8; 10] {
    let mut rank = number % NAMINGS * NAMINGS_STEP % NAMINGS;
    let mut left = vec![1, 2, 3, 4, 5, 6, 7, 8, 9];
    let mut names = [0; 10];
    for name in &mut names[1..] {
        let choices = left.len();
        *name = left.remove(usize::try_from(rank).unwrap_or(usize::MAX) % choices);
        rank /= choices as u64;
    }
    names
}

/// The ending of a word for so many.
fn plural(number: u32) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// A rate.
#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(number: u64, seconds: f64) -> f64 {
    number as f64 / seconds
}

/// A rate for people.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
fn whole(rate: f64) -> String {
    grouped(rate as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn digits_are_named_in_every_way_before_one_comes_again() {
        assert_eq!(digit_names(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let all: BTreeSet<_> = (0..NAMINGS).map(digit_names).collect();
        assert_eq!(all.len() as u64, NAMINGS);
        for names in &all {
            let mut sorted = *names;
            sorted.sort_unstable();
            assert_eq!(sorted, digit_names(0));
        }
        assert_eq!(digit_names(NAMINGS + 7), digit_names(7));
    }
}
