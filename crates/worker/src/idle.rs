//! When a lane that has nothing to do looks again.
//!
//! A fleet that has more lanes than work keeps few of them *warm*: those look soon after they have run out of jobs and answer each call at once, and their
//! processes and connections have at hand what a job takes. The others come late, and become warm where they find much to do.

use std::time::Duration;

use store::Wakes;

use crate::lane::Worked;

/// An idle lane looks again after this, whatever notifications say.
const POLL: Duration = Duration::from_secs(1);
/// A warm one that has just run out of jobs looks again after this, for more of them are likely on their way and nobody tells of each; twice as long after each look
/// that found nothing.
const POLL_FLOWING_MIN: Duration = Duration::from_millis(4);
/// Beyond this it is idle like any other.
const POLL_FLOWING_MAX: Duration = Duration::from_millis(32);
/// Lanes that came too late for what they were called for wait up to this before they look the next time, twice as long each time: of a thousand idle ones not all
/// run for each job.
const LATE_PAUSE_MIN: Duration = Duration::from_millis(2);
/// But not longer than this.
const LATE_PAUSE_MAX: Duration = Duration::from_millis(128);
/// A lane that finds work, or is not called for a while, waits less from then on, by so many times;
const LATE_EASED: u32 = 4;
/// and not at all after so many jobs without a pause.
const WARM_JOBS: u32 = 4;

/// The pauses of one lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Idle {
    poll: Duration,
    late: Duration,
}

impl Idle {
    /// It has not been called so far.
    pub(crate) const RESTED: Self = Self { poll: POLL, late: Duration::ZERO };

    /// The pauses after work.
    pub(crate) fn after(self, worked: Worked) -> Self {
        let late = if worked.jobs >= WARM_JOBS { Duration::ZERO } else { self.eased() };
        if late.is_zero() {
            Self { poll: POLL_FLOWING_MIN, late: Duration::ZERO }
        } else {
            Self { poll: POLL, late }
        }
    }

    fn eased(self) -> Duration {
        let late = self.late / LATE_EASED;
        if late < LATE_PAUSE_MIN { Duration::ZERO } else { late }
    }

    /// Waits until it is time to look, after a look that has found nothing.
    pub(crate) async fn wait(&mut self, wakes: &mut Wakes) {
        let is_called = wakes.wait(self.poll).await;
        if is_called {
            wakes.pause(self.late).await;
        }
        *self = self.next(is_called);
    }

    /// The pauses if this look finds nothing either.
    fn next(self, is_called: bool) -> Self {
        let Self { poll, late } = self;
        if is_called {
            let late = (late * 2).clamp(LATE_PAUSE_MIN, LATE_PAUSE_MAX);
            return Self { poll, late };
        }
        match poll * 2 {
            twice if twice <= POLL_FLOWING_MAX => Self { poll: twice, late },
            _ if poll < POLL => Self { poll: POLL, late },
            _ => Self { poll: POLL, late: self.eased() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Worked = Worked { jobs: 1, is_dry: true, at_once: 1 };

    fn late() -> Idle {
        (0..20).fold(Idle::RESTED, |idle, _| idle.next(true))
    }

    #[test]
    fn a_warm_lane_that_ran_out_of_jobs_looks_soon_then_ever_less_often() {
        let mut idle = Idle::RESTED.after(ONE);
        let mut polls = Vec::new();
        for _ in 0..8 {
            polls.push(idle.poll.as_millis());
            idle = idle.next(false);
        }
        assert_eq!(polls, [4, 8, 16, 32, 1_000, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn a_lane_that_comes_too_late_takes_ever_more_time_and_less_when_nobody_calls() {
        let mut idle = Idle::RESTED;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pauses.push(idle.late.as_millis());
            idle = idle.next(true);
        }
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 64, 128, 128, 128, 128, 128]);
        assert_eq!(idle.next(false).late, LATE_PAUSE_MAX / LATE_EASED);
    }

    #[test]
    fn a_late_lane_becomes_warm_by_many_jobs_at_a_time_or_often_one() {
        let many = late().after(Worked { jobs: WARM_JOBS, ..ONE });
        assert_eq!(many, Idle::RESTED.after(ONE));
        let mut idle = late();
        let mut pauses = Vec::new();
        while idle.poll == POLL {
            idle = idle.after(ONE);
            pauses.push(idle.late.as_millis());
        }
        assert_eq!(pauses, [32, 8, 2, 0]);
    }
}
