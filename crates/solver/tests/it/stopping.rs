//! Long counts: bounded by the limit, ended by the stop flag.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use solver::{Givens, Outcome, PlacementLimit, Placements, StopFlag, Stopped, answer};

use crate::support::{ENDLESS, HOPELESS, HOSTILE, SEED_EXAMPLE, solve};

/// Far above what a machine needs, far below what a count without a check would take.
const STOP_LATENCY_MAX: Duration = Duration::from_secs(20);

#[test]
fn a_raised_flag_ends_a_count_under_way() {
    let givens = Givens::parse(ENDLESS).unwrap();
    let stop = StopFlag::new();
    let started = Barrier::new(2);
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            started.wait();
            answer(&givens, PlacementLimit::GREATEST, &stop)
        });
        started.wait();
        // Work that is longer than the search of the other thread, so that it counts by now.
        solve(&Givens::parse(HOPELESS).unwrap(), 20_000_000);
        assert!(!counting.is_finished(), "10^12 placements take minutes");
        let raised_at = Instant::now();
        stop.raise();
        assert_eq!(counting.join().unwrap(), Err(Stopped));
        assert!(raised_at.elapsed() < STOP_LATENCY_MAX);
    });
}

#[test]
fn a_flag_raised_before_ends_everything() {
    let stop = StopFlag::new();
    stop.raise();
    assert!(stop.is_raised());
    for puzzle in [ENDLESS, HOSTILE, HOPELESS, SEED_EXAMPLE] {
        for limit in [PlacementLimit::OFF, PlacementLimit::GREATEST] {
            assert_eq!(answer(&Givens::parse(puzzle).unwrap(), limit, &stop), Err(Stopped));
        }
    }
}

/// A small legal grid froze solvers that went row by row; its verdict does not wait for the count.
#[test]
fn the_verdict_on_a_hostile_grid_does_not_depend_on_its_count() {
    let givens = Givens::parse(HOSTILE).unwrap();
    let begun_at = Instant::now();
    let uncounted = solve(&givens, 0);
    assert!(begun_at.elapsed() < STOP_LATENCY_MAX);
    let cut = solve(&givens, 1_000_000);
    assert_eq!(cut.placements(), Some(Placements::OverLimit));
    assert_eq!((cut.outcome(), cut.solution()), (Outcome::Multiple, uncounted.solution()));
}
