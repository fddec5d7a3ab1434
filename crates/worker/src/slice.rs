//! One slice of a job: unpack, solve, pack, until the range, the time or the lease is over.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use packing::{Damaged, Pieces, PuzzleReader, VERDICT_FORMAT, pack_verdict};
use solver::{Givens, Outcome, PlacementLimit, Placements, StopFlag, Stopped, Verdict, answer};
use store::{Completion, Job, OutcomeCounts, Piece};

/// A slice as its lane and its solver thread share it.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Stops the search that is running.
    stop: Arc<StopFlag>,
    has_done: AtomicBool,
    is_over: AtomicBool,
}

impl Slice {
    /// Begins; `stop` is the lease's flag.
    pub(crate) fn new(stop: Arc<StopFlag>) -> Self {
        Self { stop, has_done: AtomicBool::new(false), is_over: AtomicBool::new(false) }
    }

    /// The time is over: what is done is to be stored now, and the search that is running begins again in the next slice. A search that is
    /// all that this slice has goes on to its end instead.
    pub(crate) fn end(&self) {
        // Both sides first say their own and then look at the other's, in one order: one of them sees that the slice can end.
        self.is_over.store(true, SeqCst);
        if self.has_done.load(SeqCst) {
            self.stop.raise();
        }
    }

    fn goes_on(&self) -> bool {
        self.has_done.store(true, SeqCst);
        !self.is_over.load(SeqCst) && !self.stop.is_raised()
    }
}

/// Solves from the front of a job's range, until its end, until the slice is over, or until its flag is raised. `None`: nothing was done.
pub(crate) fn solve(job: &Job, slice: &Slice) -> Result<Option<Completion>, Damaged> {
    let limit = PlacementLimit(job.placement_limit);
    let mut done = Done::default();
    'job: for piece in &job.pieces {
        for (index, entry) in (piece.lo..piece.hi).zip(PuzzleReader::new(piece.format, &piece.data)?) {
            let (_, puzzle) = entry?;
            if index < job.key.lo || index >= job.key.hi {
                continue;
            }
            let verdict = match puzzle {
                Err(invalid) => Verdict::Invalid(invalid),
                Ok(givens) => match guarded(&givens, limit, &slice.stop) {
                    Ok(verdict) => verdict,
                    Err(Stopped) => break 'job,
                },
            };
            done.push(&verdict);
            if !slice.goes_on() {
                break 'job;
            }
        }
    }
    Ok(done.finish(job.key.lo))
}

/// Answers one puzzle; a panic of the solver fails this puzzle and no other.
fn guarded(givens: &Givens, limit: PlacementLimit, stop: &StopFlag) -> Result<Verdict, Stopped> {
    catch_unwind(AssertUnwindSafe(|| answer(givens, limit, stop))).unwrap_or(Ok(Verdict::Failed))
}

/// What a slice has done so far.
#[derive(Default)]
struct Done {
    pieces: Pieces,
    entry: Vec<u8>,
    counts: OutcomeCounts,
    puzzles: u64,
}

impl Done {
    fn push(&mut self, verdict: &Verdict) {
        self.entry.clear();
        pack_verdict(verdict, &mut self.entry);
        self.pieces.push(&self.entry);
        self.puzzles += 1;
        let counts = &mut self.counts;
        *match verdict.outcome() {
            Outcome::Unique => &mut counts.unique,
            Outcome::Multiple => &mut counts.multiple,
            Outcome::NoSolution => &mut counts.no_solution,
            Outcome::Invalid => &mut counts.invalid,
            Outcome::Undecided => &mut counts.undecided,
            Outcome::Failed => &mut counts.failed,
            Outcome::Cancelled => &mut counts.cancelled,
        } += 1;
        match verdict.placements() {
            Some(Placements::Exact(count)) => counts.placements += count,
            Some(Placements::OverLimit) => counts.over_limit += 1,
            Some(Placements::NotCounted) | None => {}
        }
    }

    fn finish(self, lo: u64) -> Option<Completion> {
        let mut next = lo;
        let pieces = self
            .pieces
            .finish()
            .into_iter()
            .map(|run| {
                let lo = next;
                next += run.count as u64;
                Piece { lo, hi: next, data: run.data }
            })
            .collect();
        (self.puzzles > 0).then(|| Completion {
            mid: lo + self.puzzles,
            counts: self.counts,
            format: VERDICT_FORMAT,
            pieces,
        })
    }
}
