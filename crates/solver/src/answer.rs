//! The answers to puzzles: the search for the solutions, then the count of placements.
//!
//! ```text
//! batch --> lanes: none, one or several, the first solution --> count: placements up to it --> verdicts, in order
//!             \-- gave up --> search: the same from scratch, alone, up to its budget --/
//! ```

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::count::Counter;
use crate::givens::{Givens, Puzzle};
use crate::grid::{CELLS, Solution};
use crate::lanes::{Decide, Decision, GUESSES_MAX, Memory};
use crate::running::RunningPlacements;
use crate::search::{Effort, Found, Interrupted, SEARCH_BUDGET_NODES, find};
use crate::simd::{self, Width};
use crate::stop::{StopFlag, Stopped};
use crate::verdict::{Placements, Verdict};

/// Up to how many placements are counted; 0 switches counting off.
///
/// A count of exactly so many is given; anything above reads [`Placements::OverLimit`]. The limit never changes
/// the outcome or the solution. Counting takes about a second for every thousand
/// million placements, or for every five thousand million with AVX-512.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementLimit(pub u64);

impl PlacementLimit {
    /// Placements are not counted.
    pub const OFF: PlacementLimit = PlacementLimit(0);
    /// The limit where none is asked for: 100,000,000.
    pub const DEFAULT: PlacementLimit = PlacementLimit(100_000_000);
    /// The greatest limit a server accepts unless it is set up otherwise: 10,000,000,000.
    pub const GREATEST_DEFAULT: PlacementLimit = PlacementLimit(10_000_000_000);
    /// The greatest limit a server can be set up for: 1,000,000,000,000.
    pub const GREATEST: PlacementLimit = PlacementLimit(1_000_000_000_000);
}

/// Puzzles that are decided ahead of the one whose verdict is given: what is lost when a batch is broken off. Enough that one
/// hard puzzle does not hold up the lanes of all others.
const AHEAD_MAX: usize = 1024;
/// The same with counting, which takes longer and leaves fewer puzzles to a slice.
const AHEAD_OF_COUNT_MAX: usize = 256;

/// Answers batches of puzzles on one thread.
///
/// It keeps memory from batch to batch, at most 4 MB, and nothing else: a verdict depends on the puzzle and the limit alone,
/// not on the width, the batch, or what was answered before.
///
/// ```
/// use solver::{Givens, PlacementLimit, Solver, StopFlag, Width};
/// use std::ops::ControlFlow;
///
/// let batch = [Givens::parse(&".".repeat(81)), Givens::parse("no puzzle")];
/// let mut verdicts = Vec::new();
/// Solver::new(Width::widest()).answer(&batch, PlacementLimit::DEFAULT, &StopFlag::new(), |verdict| {
///     verdicts.push(verdict);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(verdicts.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Solver {
    width: Width,
    memory: Memory,
    counter: Counter,
    running: Arc<RunningPlacements>,
}

impl Solver {
    /// A solver that works with vectors of this width, or of the widest narrower one that the machine has.
    #[must_use]
    pub fn new(width: Width) -> Solver {
        Solver { width, memory: Memory::new(), counter: Counter::new(width), running: Arc::default() }
    }

    /// From now on its counts show there how far they are.
    pub fn show_in(&mut self, running: Arc<RunningPlacements>) {
        self.running = running;
    }

    /// Answers the puzzles of a batch in their order, until all are answered or `sink` breaks off.
    ///
    /// A verdict is one of those of [`answer`], or [`Verdict::Failed`] for a puzzle over which this crate panics: a bug costs that
    /// puzzle its answer, and no other. The search for solutions is much faster in batches from about 64 puzzles up. Breaking
    /// off loses some work on the puzzles that come next, never a verdict.
    ///
    /// # Errors
    /// [`Stopped`] if the flag was raised before the batch was answered; `sink` has got the verdicts up to there.
    ///
    /// # Panics
    /// If `sink` does.
    pub fn answer(
        &mut self,
        batch: &[Puzzle],
        limit: PlacementLimit,
        stop: &StopFlag,
        mut sink: impl FnMut(Verdict) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let mut answered = 0;
        // Up to where puzzles are answered one by one, to find the one that is to blame for a panic.
        let mut alone_until = 0;
        while answered < batch.len() {
            let is_alone = answered < alone_until;
            let part = if is_alone { &batch[answered..=answered] } else { &batch[answered..] };
            let (mut is_in_sink, mut flow) = (false, ControlFlow::Continue(()));
            let answering = catch_unwind(AssertUnwindSafe(|| {
                self.answer_unguarded(part, limit, stop, &mut |verdict| {
                    is_in_sink = true;
                    flow = sink(verdict);
                    is_in_sink = false;
                    answered += 1;
                    flow
                })
            }));
            match answering {
                Ok(result) => result?,
                Err(panic) if is_in_sink => resume_unwind(panic),
                Err(_) if is_alone => {
                    flow = sink(Verdict::Failed);
                    answered += 1;
                }
                Err(_) => alone_until = batch.len().min(answered + AHEAD_MAX),
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Not generic: it is compiled once, with this crate, however a caller's crate is compiled.
    fn answer_unguarded(
        &mut self,
        batch: &[Puzzle],
        limit: PlacementLimit,
        stop: &StopFlag,
        sink: &mut dyn FnMut(Verdict) -> ControlFlow<()>,
    ) -> Result<(), Stopped> {
        let Solver { width, memory, counter, running } = self;
        let mut finish = Finish { counter, limit, stop, running, budget_nodes: SEARCH_BUDGET_NODES };
        let mut ended = Ok(());
        let mut sink = |puzzle: &Puzzle, decision, digits: &_| match finish.verdict(puzzle, decision, digits)
        {
            Ok(verdict) => sink(verdict),
            Err(stopped) => {
                ended = Err(stopped);
                ControlFlow::Break(())
            }
        };
        let ahead_max = if limit == PlacementLimit::OFF { AHEAD_MAX } else { AHEAD_OF_COUNT_MAX };
        let guesses_max = GUESSES_MAX;
        simd::with(*width, Decide { batch, ahead_max, guesses_max, memory, stop, sink: &mut sink })?;
        ended
    }
}

/// Answers one puzzle, with memory for it alone: who has more than one keeps a [`Solver`], which takes a tenth of the time.
///
/// Gives every verdict but [`Verdict::Invalid`] and [`Verdict::Cancelled`].
///
/// [`Verdict::Undecided`] comes after the lanes' guesses and [`SEARCH_BUDGET_NODES`] boards. The same arguments give the
/// same verdict on every machine.
///
/// # Errors
/// [`Stopped`] if the flag was raised before the answer was complete.
pub fn answer(givens: &Givens, limit: PlacementLimit, stop: &StopFlag) -> Result<Verdict, Stopped> {
    let mut answer = Err(Stopped);
    Solver::new(Width::widest()).answer(&[Ok(*givens)], limit, stop, |verdict| {
        answer = Ok(verdict);
        ControlFlow::Continue(())
    })?;
    answer
}

/// Makes verdicts of decisions.
struct Finish<'a> {
    counter: &'a mut Counter,
    limit: PlacementLimit,
    stop: &'a StopFlag,
    running: &'a RunningPlacements,
    /// Of the search for what the lanes gave up.
    budget_nodes: u32,
}

impl Finish<'_> {
    /// The digits are those of the only or the smallest solution, if there is one.
    fn verdict(
        &mut self,
        puzzle: &Puzzle,
        decision: Decision,
        digits: &[u8; CELLS],
    ) -> Result<Verdict, Stopped> {
        let givens = match puzzle {
            Ok(givens) => givens,
            Err(invalid) => return Ok(Verdict::Invalid(invalid.clone())),
        };
        #[cfg(any(test, debug_assertions))]
        test_panic::on(givens);
        if decision == Decision::GaveUp {
            return self.search(givens);
        }
        self.counted(givens, decision, digits)
    }

    /// Decides a puzzle alone, on plain words: one order of search, and one budget, on every machine.
    #[cold]
    fn search(&mut self, givens: &Givens) -> Result<Verdict, Stopped> {
        let (decision, digits) = match find(givens, &mut Effort::new(self.budget_nodes, self.stop)) {
            Ok(Found::None) => (Decision::None, [0; CELLS]),
            Ok(Found::One(digits)) => (Decision::One, digits),
            Ok(Found::Many(digits)) => (Decision::Many, digits),
            Err(Interrupted::BudgetSpent) => return Ok(Verdict::Undecided),
            Err(Interrupted::Stopped) => return Err(Stopped),
        };
        if decision != Decision::None {
            let solution = Solution::new(digits).expect("the search gives complete valid grids only");
            assert!(solution.extends(givens), "the search keeps the givens");
        }
        self.counted(givens, decision, &digits)
    }

    fn counted(
        &mut self,
        givens: &Givens,
        decision: Decision,
        digits: &[u8; CELLS],
    ) -> Result<Verdict, Stopped> {
        let first = (decision != Decision::None).then_some(digits);
        let placements = self.placements(givens, first)?;
        Ok(match decision {
            Decision::None => Verdict::NoSolution { placements },
            Decision::One => Verdict::Unique { solution: Solution::proven(*digits), placements },
            Decision::Many => Verdict::Multiple { solution: Solution::proven(*digits), placements },
            Decision::GaveUp | Decision::Invalid => unreachable!("these have verdicts of their own"),
        })
    }

    /// Counts up to the first solution, or the whole search if there is none.
    #[inline]
    fn placements(&mut self, givens: &Givens, first: Option<&[u8; CELLS]>) -> Result<Placements, Stopped> {
        if self.limit == PlacementLimit::OFF {
            return Ok(Placements::NotCounted);
        }
        self.counter.count(givens, first, self.limit.0, self.stop, self.running)
    }
}

/// A bug on demand, for tests of what is done about one: in debug builds only, so that no released program has it.
#[cfg(any(test, debug_assertions))]
pub mod test_panic {
    use std::sync::OnceLock;

    use crate::givens::Givens;

    static PUZZLE: OnceLock<Givens> = OnceLock::new();

    /// From now on the solver panics over this puzzle, in all of the process. Once said, it stays so.
    pub fn set(givens: Givens) {
        PUZZLE.get_or_init(|| givens);
    }

    pub(super) fn on(givens: &Givens) {
        assert!(PUZZLE.get() != Some(givens), "a test asked for this panic");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hardest for row by row search: see the case tests.
    const HARD: &str = "98.7..6..75..4......3..8.7.8....9.5..3.2..1.....4....6.7...4.3....8..4......1...2";

    #[test]
    fn what_the_lanes_give_up_is_searched_alone_and_a_spent_budget_is_undecided_never_no_solution() {
        let stop = StopFlag::new();
        let mut counter = Counter::new(Width::widest());
        let empty = ".".repeat(81);
        for text in [HARD, &empty] {
            let givens = Givens::parse(text).unwrap();
            for (budget_nodes, is_enough) in [(0, false), (1, false), (5, false), (SEARCH_BUDGET_NODES, true)]
            {
                let limit = PlacementLimit::DEFAULT;
                let (counter, stop, running) = (&mut counter, &stop, &RunningPlacements::new());
                let mut finish = Finish { counter, limit, stop, running, budget_nodes };
                let verdict = finish.verdict(&Ok(givens), Decision::GaveUp, &[0; CELLS]).unwrap();
                let expected =
                    if is_enough { answer(&givens, limit, stop).unwrap() } else { Verdict::Undecided };
                assert_eq!(verdict, expected, "{text} with {budget_nodes} nodes");
            }
        }
    }

    #[test]
    fn a_panic_over_a_puzzle_fails_that_puzzle_and_no_other() {
        // No other test uses this puzzle.
        let culprit = Givens::parse(&format!("987654321{}", ".".repeat(72))).unwrap();
        test_panic::set(culprit);
        let good = Givens::parse(HARD).unwrap();
        let limit = PlacementLimit(1000);
        let expected = answer(&good, limit, &StopFlag::new()).unwrap();
        for at in [0, 1, 40, 2099] {
            let mut batch = vec![Ok(good); 2100];
            batch[at] = Ok(culprit);
            let mut verdicts = Vec::new();
            let answered = Solver::new(Width::widest()).answer(&batch, limit, &StopFlag::new(), |verdict| {
                verdicts.push(verdict);
                ControlFlow::Continue(())
            });
            assert_eq!(answered, Ok(()));
            assert_eq!(verdicts.len(), batch.len());
            for (i, verdict) in verdicts.iter().enumerate() {
                assert_eq!(verdict, if i == at { &Verdict::Failed } else { &expected }, "puzzle {i}");
            }
        }
    }

    #[test]
    fn a_panic_of_the_sink_is_the_callers() {
        let batch = vec![Givens::parse(HARD); 3];
        let mut calls = 0;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            Solver::new(Width::widest()).answer(&batch, PlacementLimit::OFF, &StopFlag::new(), |_| {
                calls += 1;
                panic!("of the sink")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_sink_that_breaks_off_gets_no_more() {
        let batch = vec![Givens::parse(HARD); 300];
        for wanted in [1, 2, 299, 300] {
            let mut calls = 0;
            let answered =
                Solver::new(Width::widest()).answer(&batch, PlacementLimit::OFF, &StopFlag::new(), |_| {
                    calls += 1;
                    if calls == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            assert_eq!((answered, calls), (Ok(()), wanted));
        }
    }

    #[test]
    fn a_raised_flag_stops_before_the_first_node() {
        let stop = StopFlag::new();
        stop.raise();
        let givens = Givens::parse(HARD).unwrap();
        assert_eq!(answer(&givens, PlacementLimit::OFF, &stop), Err(Stopped));
    }
}
