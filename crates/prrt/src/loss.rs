//! Loss of datagrams as the path shows it, before any repair: share and burst length. A datagram is judged only when it
//! is too late to be merely reordered, so reordering is never loss.

use std::time::{Duration, Instant};

/// Weight of one datagram in the estimate.
const GAIN: f64 = 1.0 / 128.0;
/// What the planner assumes before it has seen anything.
const PRIOR: f64 = 0.01;
const BURST_GAIN: f64 = 1.0 / 8.0;
const BURST_MAX: Duration = Duration::from_millis(50);

/// Estimator of one direction of a path.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    judged: u64,
    lost: u64,
    recent: f64,
    run: Option<(Instant, Instant)>,
    burst: Option<Duration>,
}

impl Loss {
    pub(crate) const fn new() -> Self {
        Self {
            judged: 0,
            lost: 0,
            recent: PRIOR,
            run: None,
            burst: None,
        }
    }

    /// Takes the final verdict over a datagram; verdicts come in order of sending.
    pub(crate) fn judge(&mut self, sent_at: Instant, lost: bool) {
        self.judged += 1;
        self.lost += u64::from(lost);
        self.recent += (f64::from(u8::from(lost)) - self.recent) * GAIN;
        match (&mut self.run, lost) {
            (Some((_, last)), true) => *last = sent_at,
            (None, true) => self.run = Some((sent_at, sent_at)),
            (Some((first, last)), false) => {
                let length = last.saturating_duration_since(*first).min(BURST_MAX);
                self.run = None;
                self.learn_burst(length);
            }
            (None, false) => {}
        }
    }

    fn learn_burst(&mut self, length: Duration) {
        let before = self.burst.unwrap_or(length).as_secs_f64();
        let after = before + (length.as_secs_f64() - before) * BURST_GAIN;
        self.burst = Some(Duration::from_secs_f64(after.max(0.0)));
    }

    /// Whether enough was judged to tell more than the guess.
    pub(crate) const fn is_known(&self) -> bool {
        self.judged >= 64
    }

    /// Share lost since the start, if any datagram was judged.
    pub(crate) fn total(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.lost as f64 / self.judged as f64)
    }

    /// Share lost lately, for planning; starts from a guess of 1 %.
    pub(crate) const fn recent(&self) -> f64 {
        self.recent
    }

    /// Mean time from the first to the last lost datagram of a run, if there was a loss.
    pub(crate) const fn burst(&self) -> Option<Duration> {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_and_burst_length_are_learned() {
        let start = Instant::now();
        let mut loss = Loss::new();
        assert_eq!((loss.total(), loss.burst()), (None, None));
        for i in 0..2000u32 {
            let at = start + Duration::from_millis(1) * i;
            loss.judge(at, i % 100 < 5);
        }
        assert_eq!(loss.total(), Some(0.05));
        assert_eq!(loss.burst(), Some(Duration::from_millis(4)));
        assert!((0.01..0.1).contains(&loss.recent()));
    }
}
