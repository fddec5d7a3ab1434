//! Progress: a bar on a terminal, one plain final line elsewhere.

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::complain;

/// The bar of one command.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    draws: bool,
}

impl Progress {
    /// Begins; the total may still grow. `prints`: the command prints lines meanwhile; on a terminal they show the progress themselves, and a
    /// bar would stand between them.
    pub(crate) fn start(prints: bool) -> Self {
        let draws = std::io::stderr().is_terminal() && !(prints && std::io::stdout().is_terminal());
        let target = if draws { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} puzzles  {elapsed}  {msg}")
        {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, started: Instant::now(), draws }
    }

    /// So many puzzles in all, as far as is known.
    pub(crate) fn set_total(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// So many are done.
    pub(crate) fn set_done(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// What else there is to say now.
    pub(crate) fn set_rest(&self, rest: String) {
        self.bar.set_message(rest);
    }

    /// Ends the bar and says how it went: `50/50 puzzles` in 0.12 s`: …`.
    pub(crate) fn finish(&self, done: &str, rest: &str) {
        self.clear();
        let seconds = self.started.elapsed().as_secs_f64();
        complain(&format!("{done} in {seconds:.2} s{rest}"));
    }

    fn clear(&self) {
        if self.draws && !self.bar.is_finished() {
            self.bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    /// An error follows, or nothing: the bar must not stay half.
    fn drop(&mut self) {
        self.clear();
    }
}
