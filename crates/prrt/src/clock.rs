//! Maps sender time to local time through the fastest datagram seen: the smallest difference between arrival and stamp
//! over the last 10 s, with the drift between the two clocks followed from one window to the next. A round-trip time
//! never enters, so its noise cannot move an expiry.

use std::time::{Duration, Instant};

use crate::time::Stamp;

/// Length of one window of minima.
const WINDOW_US: i64 = 5_000_000;
/// Fastest drift believed, parts per million.
const MAX_DRIFT_PPM: f64 = 500.0;
const DRIFT_GAIN: f64 = 0.125;

#[derive(Clone, Copy, Debug)]
struct Minimum {
    /// Unwrapped sender time of the fastest datagram, microseconds.
    at: i64,
    /// Arrival minus stamp, microseconds.
    offset: f64,
}

/// Clock of one peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerClock {
    base: Instant,
    last: Option<(Stamp, i64)>,
    window_start: i64,
    current: Option<Minimum>,
    previous: Option<Minimum>,
    drift: f64,
}

impl PeerClock {
    /// `base` is any instant not later than the first arrival.
    pub(crate) const fn new(base: Instant) -> Self {
        Self {
            base,
            last: None,
            window_start: 0,
            current: None,
            previous: None,
            drift: 0.0,
        }
    }

    /// Takes the stamp of a datagram that arrived at `at`.
    pub(crate) fn observe(&mut self, stamp: Stamp, at: Instant) {
        let sent = self.unwrap(stamp);
        if self.last.is_none_or(|(_, newest)| sent > newest) {
            self.last = Some((stamp, sent));
        }
        let offset = at.saturating_duration_since(self.base).as_micros() as f64 - sent as f64;
        if self.current.is_some() && sent - self.window_start >= WINDOW_US {
            self.turn(sent);
        }
        let candidate = Minimum { at: sent, offset };
        if self
            .current
            .is_none_or(|best| offset < self.predict(best, sent))
        {
            self.current = Some(candidate);
        }
    }

    /// Local instant at which a datagram stamped `stamp` would have arrived had it been as fast as the fastest.
    pub(crate) fn local(&self, stamp: Stamp) -> Option<Instant> {
        let sent = self.unwrap(stamp);
        let offset = self.offset(sent)?;
        let micros = (sent as f64 + offset).max(0.0);
        Some(self.base + Duration::from_micros(micros as u64))
    }

    /// Drift of the peer's clock against ours, parts per million.
    #[cfg(test)]
    pub(crate) fn drift_ppm(&self) -> f64 {
        self.drift * 1e6
    }

    fn offset(&self, sent: i64) -> Option<f64> {
        let current = self.current.map(|m| self.predict(m, sent));
        let previous = self.previous.map(|m| self.predict(m, sent));
        match (current, previous) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn predict(&self, minimum: Minimum, sent: i64) -> f64 {
        minimum.offset + self.drift * (sent - minimum.at) as f64
    }

    fn turn(&mut self, sent: i64) {
        if let (Some(new), Some(old)) = (self.current, self.previous)
            && new.at - old.at > WINDOW_US / 4
        {
            let slope = (new.offset - old.offset) / (new.at - old.at) as f64;
            let limit = MAX_DRIFT_PPM * 1e-6;
            self.drift += (slope.clamp(-limit, limit) - self.drift) * DRIFT_GAIN;
        }
        let stale = sent - self.window_start >= 2 * WINDOW_US;
        self.previous = if stale { None } else { self.current };
        self.current = None;
        self.window_start = sent;
    }

    fn unwrap(&self, stamp: Stamp) -> i64 {
        self.last
            .map_or(0, |(last, unwrapped)| unwrapped + stamp.since(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds one datagram each 10 ms; `drift` is how much faster than ours the peer's clock runs.
    fn run(seconds: u32, first: u32, drift: f64) -> (PeerClock, f64) {
        let base = Instant::now();
        let mut clock = PeerClock::new(base);
        let mut worst: f64 = 0.0;
        for i in 0..seconds * 100 {
            let local = f64::from(i) * 10_000.0;
            let stamp =
                Stamp(first.wrapping_add(((local * (1.0 + drift)) as u64 & 0xffff_ffff) as u32));
            let delay = 3000.0 + f64::from(i * 7919 % 40) * 25.0;
            clock.observe(stamp, base + Duration::from_micros((local + delay) as u64));
            let mapped = clock.local(stamp).unwrap().duration_since(base).as_micros() as f64;
            if i > 3000 {
                worst = worst.max((mapped - local - 3000.0).abs());
            }
        }
        (clock, worst)
    }

    #[test]
    fn fastest_datagram_sets_the_offset_across_the_stamp_wrap() {
        let (_, worst) = run(60, u32::MAX - 5_000_000, 0.0);
        assert!(worst < 50.0, "{worst} us off");
    }

    #[test]
    fn drift_of_100_ppm_is_followed() {
        let (clock, worst) = run(600, 0, 1e-4);
        assert!(
            (clock.drift_ppm() + 100.0).abs() < 20.0,
            "{} ppm",
            clock.drift_ppm()
        );
        assert!(worst < 1500.0, "{worst} us off");
    }

    #[test]
    fn a_day_of_stamps_wraps_twenty_times_without_a_jump() {
        let base = Instant::now();
        let mut clock = PeerClock::new(base);
        for second in 0..86_400u64 {
            let stamp = Stamp(((second * 1_000_000) & 0xffff_ffff) as u32);
            let arrival = base + Duration::from_secs(second) + Duration::from_millis(3);
            clock.observe(stamp, arrival);
            assert_eq!(clock.local(stamp), Some(arrival));
        }
    }

    #[test]
    fn a_late_datagram_does_not_move_the_offset() {
        let base = Instant::now();
        let mut clock = PeerClock::new(base);
        clock.observe(Stamp(0), base + Duration::from_millis(3));
        clock.observe(Stamp(10_000), base + Duration::from_millis(313));
        assert_eq!(
            clock.local(Stamp(10_000)),
            Some(base + Duration::from_millis(13))
        );
    }
}
