//! The rate of a link over time, integrated exactly: what was queued before a step leaves at the rate after it.

use std::time::Duration;

/// Piecewise constant rate, or none. Times count from the start of the emulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rate {
    /// From when on, and bits a second; ascending, the first at zero. Empty: without limit.
    pub(super) steps: Vec<(Duration, f64)>,
}

impl Rate {
    /// Without limit.
    pub const UNLIMITED: Self = Self { steps: Vec::new() };

    /// The same rate all the time, bits a second.
    pub fn constant(bits_per_s: f64) -> Self {
        Self {
            steps: vec![(Duration::ZERO, bits_per_s)],
        }
    }

    /// Bits a second at `at`; `None` without limit.
    pub fn at(&self, at: Duration) -> Option<f64> {
        self.pieces(at).next().map(|(rate, _)| rate)
    }

    /// Rates from `from` on, each with the time at which it ends.
    fn pieces(&self, from: Duration) -> impl Iterator<Item = (f64, Option<Duration>)> {
        let ends = self.steps.iter().skip(1).map(|(at, _)| Some(*at));
        let all = self.steps.iter().zip(ends.chain([None]));
        all.map(|((_, rate), end)| (*rate, end))
            .skip_while(move |(_, end)| end.is_some_and(|end| end <= from))
    }

    /// When `bits` that start at `start` have left.
    pub(super) fn finish(&self, start: Duration, bits: f64) -> Duration {
        let (mut at, mut left) = (start, bits);
        for (rate, end) in self.pieces(start) {
            let span = Duration::from_secs_f64(left / rate);
            match end {
                Some(end) if at + span > end => {
                    left -= (end - at).as_secs_f64() * rate;
                    at = end;
                }
                Some(_) | None => return at + span,
            }
        }
        at
    }

    /// Bits that leave from `from` to `to`.
    pub(super) fn bits_between(&self, from: Duration, to: Duration) -> f64 {
        let (mut at, mut bits) = (from, 0.0);
        for (rate, end) in self.pieces(from) {
            let stop = end.map_or(to, |end| end.min(to));
            bits += stop.saturating_sub(at).as_secs_f64() * rate;
            at = at.max(stop);
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_step_holds_for_what_was_queued_before_it() {
        let rate = Rate {
            steps: vec![(Duration::ZERO, 1e6), (10 * MS, 5e5)],
        };
        assert_eq!(rate.finish(8 * MS, 2000.0), 10 * MS);
        assert_eq!(rate.finish(8 * MS, 3000.0), 12 * MS);
        assert_eq!(rate.finish(20 * MS, 1000.0), 22 * MS);
        assert!((rate.bits_between(8 * MS, 12 * MS) - 3000.0).abs() < 1e-6);
        assert_eq!(rate.at(9 * MS), Some(1e6));
        assert_eq!(rate.at(10 * MS), Some(5e5));
    }

    #[test]
    fn without_limit_everything_leaves_at_once() {
        assert_eq!(Rate::UNLIMITED.finish(3 * MS, 1e9), 3 * MS);
        assert_eq!(Rate::UNLIMITED.at(MS), None);
    }
}
