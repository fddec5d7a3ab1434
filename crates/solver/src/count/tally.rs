//! What has been counted, as it is shown, and whether to go on.

use super::rows::Row;
use crate::houses::ALL_DIGITS;
use crate::running::RunningPlacements;
use crate::stop::{StopFlag, Stopped};
use crate::verdict::Placements;

/// The count of one puzzle.
pub(super) struct Tally<'t> {
    pub(super) placed: u64,
    limit: u64,
    stop: &'t StopFlag,
    running: &'t RunningPlacements,
    is_stopped: bool,
}

impl<'t> Tally<'t> {
    pub(super) fn new(limit: u64, stop: &'t StopFlag, running: &'t RunningPlacements) -> Tally<'t> {
        Tally { placed: 0, limit, stop, running, is_stopped: false }
    }

    /// Whether the count has to go on: every placement counted belongs to the total, so nothing is left to find out
    /// above the limit. If it has to, shows how far it is.
    #[inline(always)]
    pub(super) fn goes_on(&mut self) -> bool {
        self.is_stopped |= self.stop.is_raised();
        let goes_on = !self.is_stopped && self.placed <= self.limit;
        if goes_on {
            self.running.show(self.placed);
        }
        goes_on
    }

    /// Counts a row that the path alone walks, if nothing comes of the digits before its own: each of them leaves the
    /// next cell without a digit.
    #[inline(always)]
    pub(super) fn passes(&mut self, row: &Row) -> bool {
        let mut placed = row.cells as u64;
        let mut left = row.missing;
        for cell in 0..row.cells {
            let path = row.path[cell];
            let before = row.open_to_path(cell) & left & (path - 1);
            let next = if cell + 1 < row.cells { row.open_to_path(cell + 1) & left } else { ALL_DIGITS };
            // The only digit of the next cell can be placed before it: then nothing is left there.
            let dead_ends = if next.is_power_of_two() { next } else { 0 };
            if next != 0 && before & !dead_ends != 0 {
                return false;
            }
            placed += u64::from(before.count_ones());
            left &= !path;
        }
        self.placed += placed;
        true
    }

    pub(super) fn result(&self) -> Result<Placements, Stopped> {
        if self.is_stopped {
            Err(Stopped)
        } else if self.placed > self.limit {
            Ok(Placements::OverLimit)
        } else {
            Ok(Placements::Exact(self.placed))
        }
    }
}

impl Drop for Tally<'_> {
    /// However it ended, by a panic too: this count is not running any more.
    fn drop(&mut self) {
        self.running.show(0);
    }
}
