//! A progress bar on a terminal, for runs that take longer than 2 s; nothing elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use latency::Prober;

/// Runs that end sooner have none.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two drawings.
const REFRESH: Duration = Duration::from_millis(200);

/// Draws now and then.
pub(super) struct Progress {
    start: Instant,
    drawn: Instant,
    terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            start: now,
            drawn: now,
            terminal,
            bar: None,
        }
    }

    /// Draws if it is time to.
    pub(super) fn update(&mut self, now: Instant, prober: &Prober) {
        if !self.terminal || now < self.start + PATIENCE || now < self.drawn + REFRESH {
            return;
        }
        let (done, total) = prober.progress();
        self.drawn = now;
        self.bar
            .get_or_insert_with(|| ProgressBar::new(total))
            .set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
