//! Round-trip time and its variation from acknowledgements, with the time the peer held them subtracted. Smoothing as
//! in RFC 6298; the minimum is over the last 10 s. Before the first sample there is nothing to read.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use crate::window::WindowedMax;

/// What is assumed before the first sample.
const INITIAL: Duration = Duration::from_millis(20);
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// Without a sample for this long, an acknowledgement asks for one.
const STALE: Duration = Duration::from_secs(1);
/// Least allowance for variation in the time-out (facts of the repair planner: `srtt + max(4 * rttvar, 1 ms)`).
const MIN_VARIATION: Duration = Duration::from_millis(1);

/// Estimator of one path.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    min: WindowedMax<Reverse<Duration>>,
    hold: Duration,
    sampled: Option<Instant>,
}

impl Rtt {
    pub(crate) const fn new() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            min: WindowedMax::new(MIN_WINDOW),
            hold: Duration::ZERO,
            sampled: None,
        }
    }

    /// Takes a sample: time from departure to acknowledgement, and how long the peer says it held the latter.
    pub(crate) fn sample(&mut self, now: Instant, elapsed: Duration, hold: Duration) {
        let rtt = elapsed.saturating_sub(hold);
        self.sampled = Some(now);
        self.min.observe(now, Reverse(rtt));
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.variation = rtt / 2;
            return;
        };
        let error = smoothed.abs_diff(rtt);
        self.variation = (self.variation * 3 + error) / 4;
        self.smoothed = Some((smoothed * 7 + rtt) / 8);
    }

    /// Takes how long the peer held back an acknowledgement that it should have sent at once.
    pub(crate) fn hold(&mut self, hold: Duration) {
        self.hold = hold.max(self.hold.mul_f64(63.0 / 64.0));
    }

    /// Smoothed round-trip time, if there was a sample.
    pub(crate) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Smoothed deviation, if there was a sample.
    pub(crate) fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
    }

    /// Smallest of the last 10 s, if there was a sample.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min.get().map(|Reverse(rtt)| rtt)
    }

    /// Whether the last sample is so old that an end which only acknowledges should ask for one.
    pub(crate) fn is_stale(&self, now: Instant) -> bool {
        self.sampled
            .is_none_or(|at| now.saturating_duration_since(at) >= STALE)
    }

    /// Smoothed round-trip time, or a guess.
    pub(crate) fn typical(&self) -> Duration {
        self.smoothed.unwrap_or(INITIAL)
    }

    /// When a missing acknowledgement means something: `srtt + max(4 * rttvar, 1 ms)` plus what the peer lately held
    /// acknowledgements back.
    pub(crate) fn timeout(&self) -> Duration {
        let Some(smoothed) = self.smoothed else {
            return INITIAL * 2;
        };
        smoothed + (self.variation * 4).max(MIN_VARIATION) + self.hold
    }

    /// One-way delay that most datagrams keep: half the smoothed round trip plus twice its deviation.
    pub(crate) fn one_way_late(&self) -> Duration {
        self.typical() / 2 + self.variation * 2
    }

    /// One-way delay that more than half of the datagrams keep.
    pub(crate) fn one_way_typical(&self) -> Duration {
        self.typical() / 2 + self.variation / 2
    }

    /// Best guess of the smallest one-way delay: half the smallest round trip.
    pub(crate) fn one_way_min(&self) -> Duration {
        self.min().unwrap_or_default() / 2
    }

    /// Best guess of the one-way delay now: queues are taken to stand in our direction.
    pub(crate) fn one_way_now(&self) -> Duration {
        self.one_way_min() + self.queueing()
    }

    /// How far the round trip is above its minimum: queues on the way.
    pub(crate) fn queueing(&self) -> Duration {
        self.typical()
            .saturating_sub(self.min().unwrap_or_else(|| self.typical()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rtt_is_smoothed_and_hold_time_is_not_part_of_it() {
        let now = Instant::now();
        let mut rtt = Rtt::new();
        assert_eq!(
            (rtt.smoothed(), rtt.min(), rtt.variation()),
            (None, None, None)
        );
        rtt.sample(now, 11 * MS, MS);
        assert_eq!(rtt.smoothed(), Some(10 * MS));
        rtt.sample(now, 18 * MS, Duration::ZERO);
        assert_eq!(rtt.smoothed(), Some(11 * MS));
        assert_eq!(rtt.min(), Some(10 * MS));
    }

    #[test]
    fn timeout_approaches_srtt_plus_one_millisecond_on_a_steady_path() {
        let now = Instant::now();
        let mut rtt = Rtt::new();
        for _ in 0..200 {
            rtt.sample(now, 6 * MS, Duration::ZERO);
        }
        assert_eq!(rtt.timeout(), 7 * MS);
    }
}
