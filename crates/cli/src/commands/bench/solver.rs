//! `bench solver`: how fast the solver alone is.

use std::{
    hint::black_box,
    io::Write as _,
    ops::ControlFlow,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use anyhow::anyhow;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use solver::{Givens, Grid, PlacementLimit, Puzzle, Solver, StopFlag, Width};

use super::{Tally, digit_names, per_second, plural, whole};
use crate::{
    args::{BenchFormat, BenchSolver},
    exit::Exit,
    input::Input,
    lines::grouped,
    machine::cores,
    output,
};

/// Without counting, files are repeated up to so many puzzles a pass: a short pass would measure its beginning and its end.
const PASS_PUZZLES_MIN: usize = 20_000;
/// Puzzles that one of several threads takes at a time, at least and at most.
const SHARE_PUZZLES: [usize; 2] = [16, 4_096];

/// The figures, as they are published in JSON.
#[derive(Serialize, Clone, Copy, Debug)]
struct Figures {
    puzzles: u64,
    /// CPU time of the busiest solver thread, or of all of them by core where there are more threads than cores: what passes on
    /// an idle machine, and on a busy one what would.
    seconds: f64,
    puzzles_per_second: f64,
    /// Placements counted, of each puzzle up to the limit; null where counting is off.
    placements: Option<u64>,
}

pub(crate) fn run(args: &BenchSolver) -> anyhow::Result<Exit> {
    let mut input = Input::open(&args.files)?;
    let mut puzzles = Vec::new();
    while let Some(record) = input.next()? {
        puzzles.push(Givens::parse(&record.text));
    }
    if puzzles.is_empty() {
        return Err(input.nothing());
    }
    let (limit, width) = (args.placement_limit.0, args.width.get());
    let copies =
        if limit == PlacementLimit::OFF { PASS_PUZZLES_MIN.div_ceil(puzzles.len()) as u64 } else { 1 };
    let mut solvers: Vec<Solver> = (0..args.threads).map(|_| Solver::new(width)).collect();
    let (mut tally, mut solving, mut passes) = (Tally::default(), Duration::ZERO, 0);
    while passes == 0 || solving < args.seconds {
        let batch: Vec<Puzzle> = (0..copies)
            .flat_map(|copy| {
                let names = digit_names(passes * copies + copy);
                puzzles.iter().map(move |puzzle| relabelled(puzzle, &names))
            })
            .collect();
        let (answered, seconds) = answer(&batch, limit, &mut solvers)?;
        tally.add_all(&answered);
        solving += seconds;
        passes += 1;
    }
    let seconds = solving.as_secs_f64();
    let figures = Figures {
        puzzles: tally.puzzles(),
        seconds,
        puzzles_per_second: per_second(tally.puzzles(), seconds),
        placements: (limit != PlacementLimit::OFF).then_some(tally.placements),
    };
    print(args, &figures, &tally, width)?;
    Ok(Exit::Done)
}

fn relabelled(puzzle: &Puzzle, names: &[u8; 10]) -> Puzzle {
    let grid = *puzzle.as_ref().map_err(Clone::clone)?.grid();
    Givens::new(Grid(grid.0.map(|digit| names[usize::from(digit)])))
}

/// Answers a batch by all solvers, a thread each; gives the time too, see [`Figures`].
fn answer(
    batch: &[Puzzle],
    limit: PlacementLimit,
    solvers: &mut [Solver],
) -> anyhow::Result<(Tally, Duration)> {
    let [least, most] = SHARE_PUZZLES;
    let share =
        if solvers.len() == 1 { batch.len() } else { (batch.len() / solvers.len() / 16).clamp(least, most) };
    let next = AtomicUsize::new(0);
    let work = |solver: &mut Solver| {
        let began = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        let mut tally = Tally::default();
        while let Some(part) = batch.chunks(share).nth(next.fetch_add(1, Relaxed)) {
            solver.answer(part, limit, &StopFlag::new(), |verdict| {
                let verdict = black_box(&verdict);
                tally.add(verdict.outcome(), verdict.placements(), limit);
                ControlFlow::Continue(())
            })?;
        }
        let ended = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
        anyhow::Ok((tally, Duration::from(ended - began)))
    };
    let (mut total, mut busiest, mut all) = (Tally::default(), Duration::ZERO, Duration::ZERO);
    thread::scope(|scope| {
        let threads: Vec<_> = solvers.iter_mut().map(|solver| scope.spawn(|| work(solver))).collect();
        for thread in threads {
            let (tally, busy) = thread.join().map_err(|_| anyhow!("a solver thread has panicked"))??;
            total.add_all(&tally);
            busiest = busiest.max(busy);
            all += busy;
        }
        anyhow::Ok(())
    })?;
    Ok((total, busiest.max(all / cores())))
}

fn print(args: &BenchSolver, figures: &Figures, tally: &Tally, width: Width) -> anyhow::Result<()> {
    let mut out = output::results();
    match args.output {
        BenchFormat::Json => writeln!(out, "{}", serde_json::to_string(figures)?)?,
        BenchFormat::Text => {
            let threads = args.threads;
            writeln!(
                out,
                "{} puzzles in {:.3} s: {width}, {threads} solver thread{}",
                grouped(figures.puzzles),
                figures.seconds,
                plural(threads)
            )?;
            writeln!(out, "{:>15} puzzles/s", whole(figures.puzzles_per_second))?;
            if let Some(placements) = figures.placements {
                writeln!(out, "{:>15} placements/s", whole(per_second(placements, figures.seconds)))?;
            }
            for (outcome, count) in tally.outcomes() {
                writeln!(out, "{:>15} {outcome}", grouped(count))?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79";

    #[test]
    fn the_first_copy_is_the_file_itself_and_no_other_is() {
        let puzzle = Givens::parse(SEED);
        assert_eq!(relabelled(&puzzle, &digit_names(0)), puzzle);
        for number in 1..100 {
            let other = relabelled(&puzzle, &digit_names(number));
            assert!(other.is_ok() && other != puzzle);
        }
        let invalid = Givens::parse("too short");
        assert_eq!(relabelled(&invalid, &digit_names(1)), invalid);
    }

    #[test]
    fn threads_share_a_batch_without_loss() {
        let batch = vec![Givens::parse(SEED); 1_000];
        for threads in [1, 2, 3] {
            let mut solvers: Vec<Solver> = (0..threads).map(|_| Solver::new(Width::widest())).collect();
            let (tally, _) = answer(&batch, PlacementLimit(10_000), &mut solvers).expect("answered");
            assert_eq!((tally.puzzles(), tally.placements), (1_000, 4_208_000));
        }
    }
}
