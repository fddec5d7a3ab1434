//! One slice of a job: unpack, solve, pack, until the range, the time or the lease is over.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use packing::{Damaged, Pieces, PuzzleReader, VERDICT_FORMAT, pack_verdict};
use solver::{
    Givens, Outcome, PlacementLimit, Placements, Puzzle, RunningPlacements, Solver, StopFlag, Verdict,
};
use store::{Completion, Job, OutcomeCounts, Piece};

use crate::leases::Lease;

/// A slice as its lane and its solver thread share it.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Stops the search that is running.
    stop: Arc<StopFlag>,
    /// How far that is.
    running: Arc<RunningPlacements>,
    has_done: AtomicBool,
    is_over: AtomicBool,
    is_cut: AtomicBool,
}

impl Slice {
    /// Begins, under a lease.
    pub(crate) fn new(lease: &Lease) -> Self {
        Self {
            stop: Arc::clone(&lease.stop),
            running: Arc::clone(&lease.running),
            has_done: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        }
    }

    /// The time is over: the search that is running is the last one.
    pub(crate) fn end(&self) {
        self.is_over.store(true, SeqCst);
    }

    /// The last search takes long: what was done before it is to be stored now, and it begins again in the next slice. If nothing was done before
    /// it, it goes on to its end. Call it after [`Slice::end`]. Returns whether anything was done.
    pub(crate) fn cut(&self) -> bool {
        let has_done = self.has_done.load(SeqCst);
        if has_done {
            self.is_cut.store(true, SeqCst);
            self.stop.raise();
        }
        has_done
    }

    /// Whether its last search was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(SeqCst)
    }

    fn goes_on(&self) -> bool {
        self.has_done.store(true, SeqCst);
        !self.is_over.load(SeqCst) && !self.stop.is_raised()
    }
}

/// Solves from the front of a job's range, until its end, until the slice is over, or until its flag is raised. `None`: it was raised before
/// anything was done.
///
/// # Errors
/// [`Damaged`]: the stored puzzles cannot be read, or do not cover the range; nothing is said of any of them.
pub(crate) fn solve(job: &Job, slice: &Slice, solver: &mut Solver) -> Result<Option<Completion>, Damaged> {
    let batch = puzzles(job)?;
    #[cfg(debug_assertions)]
    crate::hooks::before(&batch);
    let mut done = Done::default();
    let push = |verdict| {
        if verdict == Verdict::Failed {
            let index = job.key.lo + done.puzzles;
            tracing::error!(
                batch.id = job.key.batch_id,
                index,
                "the solver panicked on this puzzle: it is FAILED"
            );
        }
        done.push(&verdict);
        if slice.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    solver.show_in(Arc::clone(&slice.running));
    // Stopped or broken off: what is done is done, and the rest goes back.
    solver.answer(&batch, PlacementLimit(job.placement_limit), &slice.stop, push).ok();
    Ok(done.finish(job.key.lo))
}

/// The puzzles of a job's range, each of them and nothing else: a gap would put every later verdict under a wrong index.
fn puzzles(job: &Job) -> Result<Vec<Puzzle>, Damaged> {
    let count = usize::try_from(job.key.hi - job.key.lo).map_err(|_| Damaged::Short)?;
    let mut puzzles = vec![Ok(Givens::NONE); count];
    // Each is read into its place, those of other ranges into this one.
    let mut places = puzzles.iter_mut();
    let mut other = Ok(Givens::NONE);
    let mut next = job.key.lo;
    for piece in &job.pieces {
        let mut entries = PuzzleReader::new(piece.format, &piece.data)?;
        for index in piece.lo..piece.hi {
            let place = if index == next { places.next() } else { None };
            next += u64::from(place.is_some());
            entries.next_into(place.unwrap_or(&mut other)).ok_or(Damaged::Short)??;
        }
    }
    if next == job.key.hi { Ok(puzzles) } else { Err(Damaged::Short) }
}

/// What a slice has done so far.
#[derive(Default)]
struct Done {
    pieces: Pieces,
    counts: OutcomeCounts,
    puzzles: u64,
}

impl Done {
    fn push(&mut self, verdict: &Verdict) {
        self.pieces.push(|data| pack_verdict(verdict, data));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use packing::{PUZZLE_FORMAT, pack_text};
    use solver::Width;
    use store::{JobKey, StoredPiece};

    use super::*;

    const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

    fn piece(lo: u64, hi: u64, puzzles: u64) -> StoredPiece {
        let mut data = Vec::new();
        for _ in 0..puzzles {
            pack_text(SEED, &mut data);
        }
        StoredPiece { lo, hi, format: PUZZLE_FORMAT, data }
    }

    fn job(lo: u64, hi: u64, pieces: Vec<StoredPiece>) -> Job {
        Job {
            key: JobKey { batch_id: 1, lo, hi, attempt: 1 },
            placement_limit: 10_000,
            puzzle_cost: Duration::from_micros(1),
            is_cancelled: false,
            pieces,
        }
    }

    fn solve_all(job: &Job) -> Result<Option<Completion>, Damaged> {
        solve(job, &Slice::new(&Lease::default()), &mut Solver::new(Width::widest()))
    }

    #[test]
    fn a_range_within_its_pieces_is_solved_and_nothing_else() {
        let done =
            solve_all(&job(3, 9, vec![piece(0, 5, 5), piece(5, 10, 5)])).expect("whole").expect("done");
        assert_eq!((done.mid, done.counts.unique, done.counts.placements), (9, 6, 6 * 4_208));
        assert_eq!((done.pieces[0].lo, done.pieces.last().expect("one").hi), (3, 9));
    }

    #[test]
    fn each_puzzle_of_a_range_is_read_into_its_place() {
        let texts: Vec<String> = (0..10_usize)
            .map(|number| match number {
                4 => "hello".to_owned(),
                _ => format!("{}{}{}", ".".repeat(number), number % 9 + 1, ".".repeat(80 - number)),
            })
            .collect();
        let piece = |lo: usize, hi: usize| {
            let mut data = Vec::new();
            texts[lo..hi].iter().for_each(|text| pack_text(text, &mut data));
            StoredPiece { lo: lo as u64, hi: hi as u64, format: PUZZLE_FORMAT, data }
        };
        for pieces in [vec![piece(0, 10)], vec![piece(0, 5), piece(5, 10)], vec![piece(2, 6), piece(4, 9)]] {
            let expected: Vec<Puzzle> = texts[3..9].iter().map(|text| Givens::parse(text)).collect();
            assert_eq!(puzzles(&job(3, 9, pieces)), Ok(expected));
        }
    }

    #[test]
    fn pieces_that_do_not_cover_the_range_are_damage_and_never_shift_a_verdict() {
        for pieces in [
            vec![],
            vec![piece(0, 5, 5)],
            vec![piece(0, 5, 5), piece(6, 10, 4)],
            vec![piece(0, 5, 4), piece(5, 10, 5)],
            vec![piece(5, 10, 5)],
        ] {
            assert_eq!(solve_all(&job(3, 9, pieces)), Err(Damaged::Short));
        }
    }

    #[test]
    fn a_slice_that_is_over_ends_after_its_first_puzzle_and_a_raised_flag_before_it() {
        let whole = job(0, 5, vec![piece(0, 5, 5)]);
        let over = Slice::new(&Lease::default());
        over.end();
        assert_eq!(
            solve(&whole, &over, &mut Solver::new(Width::widest())).expect("whole").expect("done").mid,
            1
        );
        let lease = Lease::default();
        lease.stop.raise();
        assert_eq!(solve(&whole, &Slice::new(&lease), &mut Solver::new(Width::widest())), Ok(None));
    }
}
