//! Progress: a bar on a terminal, one plain final line elsewhere.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{lines::grouped, output::complain};

/// The bar of one command.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    is_terminal: bool,
}

impl Progress {
    /// Begins; the total may still grow.
    pub(crate) fn start() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:40} {human_pos}/{human_len} puzzles  {per_sec}  {elapsed}  {msg}",
        ) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, started: Instant::now(), is_terminal }
    }

    /// So many puzzles in all, as far as is known.
    pub(crate) fn set_total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// So many are done.
    pub(crate) fn set_done(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Ends the bar and says how it went: `50/50 puzzles in 0.12 s: …`.
    pub(crate) fn finish(self, done: u64, total: u64, rest: &str) {
        self.bar.finish_and_clear();
        let seconds = self.started.elapsed().as_secs_f64();
        complain(&format!("{}/{} puzzles in {seconds:.2} s: {rest}", grouped(done), grouped(total)));
    }

    /// Ends the bar without a word: an error follows.
    pub(crate) fn abandon(self) {
        if self.is_terminal {
            self.bar.finish_and_clear();
        }
    }
}
