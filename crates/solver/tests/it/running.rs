//! How far a count is, as another thread sees it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

use solver::{
    Givens, PlacementLimit, Placements, RunningPlacements, Solver, StopFlag, Stopped, Verdict, Width,
};

use crate::support::{ENDLESS, HOPELESS, HOSTILE};

/// Answers a puzzle in another thread. `look` is given what is shown, again and again, until it is through or the count has ended.
fn watched(
    width: Width,
    text: &str,
    limit: u64,
    stop: &StopFlag,
    mut look: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Verdict, Stopped> {
    let running = Arc::new(RunningPlacements::new());
    let mut solver = Solver::new(width);
    solver.show_in(Arc::clone(&running));
    let batch = [Givens::parse(text)];
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let mut given = Err(Stopped);
            solver.answer(&batch, PlacementLimit(limit), stop, |verdict| {
                assert_eq!(running.get(), 0, "a count that has ended is not running");
                given = Ok(verdict);
                ControlFlow::Continue(())
            })?;
            given
        });
        while !counting.is_finished() && look(running.get()).is_continue() {
            thread::yield_now();
        }
        let given = counting.join().unwrap();
        assert_eq!(running.get(), 0, "{text}");
        given
    })
}

#[test]
fn what_a_count_shows_grows_on_every_width_until_it_is_stopped() {
    for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
        for puzzle in [HOSTILE, ENDLESS] {
            let stop = StopFlag::new();
            let (mut last, mut steps) = (0, 0);
            let given = watched(width, puzzle, PlacementLimit::GREATEST.0, &stop, |shown| {
                assert!(shown >= last, "{width}: {shown} after {last}");
                steps += u32::from(shown > last);
                last = shown;
                if steps < 100 {
                    return ControlFlow::Continue(());
                }
                stop.raise();
                ControlFlow::Break(())
            });
            assert_eq!((given, steps), (Err(Stopped), 100), "{width} {puzzle}");
        }
    }
}

#[test]
fn what_a_count_shows_is_never_above_what_it_comes_to_or_may_come_to() {
    const PLACEMENTS: u64 = 2_549_798_780;
    for (limit, placements) in [
        (PLACEMENTS, Placements::Exact(PLACEMENTS)),
        (PLACEMENTS - 1, Placements::OverLimit),
        (1_000_000, Placements::OverLimit),
    ] {
        let mut greatest = 0;
        let given = watched(Width::widest(), HOPELESS, limit, &StopFlag::new(), |shown| {
            greatest = greatest.max(shown);
            ControlFlow::Continue(())
        });
        assert_eq!(given, Ok(Verdict::NoSolution { placements }));
        assert!(greatest <= limit, "{greatest}");
    }
}
