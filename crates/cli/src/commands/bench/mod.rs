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

/// New names for the digits; those of number 0 are the old ones. No answer can be had by remembering one of another pass.
fn digit_names(number: u64) -> [u8; 10] {
    let mut names = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    if number > 0 {
        fastrand::Rng::with_seed(number).shuffle(&mut names[1..]);
    }
    names
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
