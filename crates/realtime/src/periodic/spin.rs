//! Holes that a busy loop sees, and their name when the pattern is that of real-time throttling.
//!
//! Finding and naming are pure; only [`spin`] reads a clock, for a bounded time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mono::{Clock, Mono, ns};
use crate::thread::facts::Permissions;

const KEPT: usize = 4096;

/// A time in which the loop did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// When it began.
    pub began: Mono,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
}

/// Collects the holes above a threshold.
#[derive(Clone, Debug)]
pub struct HoleFinder {
    threshold_ns: u64,
    last: Option<Mono>,
    /// The first 4096 holes, in order.
    pub holes: Vec<Hole>,
    /// Holes beyond those.
    pub uncounted: u64,
}

impl HoleFinder {
    /// Gaps of `threshold` and longer count.
    #[must_use]
    pub fn new(threshold: Duration) -> Self {
        Self {
            threshold_ns: ns(threshold),
            last: None,
            holes: Vec::with_capacity(KEPT),
            uncounted: 0,
        }
    }

    /// The loop is running at `now`.
    pub fn observe(&mut self, now: Mono) {
        let Some(began) = self.last.replace(now) else {
            return;
        };
        let length_ns = now.ns_since(began);
        if length_ns < self.threshold_ns {
            return;
        }
        if self.holes.len() < KEPT {
            self.holes.push(Hole { began, length_ns });
        } else {
            self.uncounted += 1;
        }
    }

    /// Sum of the holes, nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.holes.iter().map(|hole| hole.length_ns).sum()
    }
}

/// The share of time that real-time threads may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RtLimit {
    /// `kernel.sched_rt_runtime_us`; −1 = no limit.
    pub runtime_us: i64,
    /// `kernel.sched_rt_period_us`.
    pub period_us: i64,
}

impl RtLimit {
    /// The limit in force; none when the kernel does not tell.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let may = Permissions::read();
        Self {
            runtime_us: may.rt_runtime_us.unwrap_or(-1),
            period_us: may.rt_period_us.unwrap_or(1_000_000),
        }
    }

    /// How long a real-time thread that never sleeps is kept away each period; `None` when it is not.
    #[must_use]
    pub fn hole(&self) -> Option<Duration> {
        let hole = self.period_us - self.runtime_us;
        (self.runtime_us >= 0 && hole > 0).then(|| Duration::from_micros(hole.unsigned_abs()))
    }

    /// The holes that carry the mark of throttling: as long as the limit says, within a fifth, and a period apart
    /// when there are several.
    #[must_use]
    pub fn throttled(&self, holes: &[Hole]) -> Vec<Hole> {
        let Some(length) = self.hole() else {
            return Vec::new();
        };
        let fits = |hole: &&Hole| near(hole.length_ns, ns(length));
        let fitting: Vec<Hole> = holes.iter().filter(fits).copied().collect();
        let period = self.period_us.unsigned_abs() * 1000;
        let regular = fitting
            .windows(2)
            .all(|pair| near(pair[1].began.ns_since(pair[0].began), period));
        if regular { fitting } else { Vec::new() }
    }

    /// The finding in words; `None` when the holes do not look like throttling.
    #[must_use]
    pub fn verdict(&self, holes: &[Hole]) -> Option<String> {
        let throttled = self.throttled(holes);
        let longest = throttled.iter().map(|hole| hole.length_ns).max()?;
        Some(format!(
            "real-time throttling: {} hole(s) of up to {:.1} ms, one each {} ms (kernel.sched_rt_runtime_us = {}, \
             kernel.sched_rt_period_us = {})",
            throttled.len(),
            longest as f64 / 1e6,
            self.period_us / 1000,
            self.runtime_us,
            self.period_us,
        ))
    }
}

fn near(value: u64, expected: u64) -> bool {
    value.abs_diff(expected) <= expected / 5
}

/// Spins for `duration` on the calling thread and returns what it saw.
pub fn spin(
    clock: &impl Clock,
    duration: Duration,
    threshold: Duration,
    stop: &AtomicBool,
) -> HoleFinder {
    let mut finder = HoleFinder::new(threshold);
    let end = clock.now() + duration;
    loop {
        let now = clock.now();
        finder.observe(now);
        if now >= end || stop.load(Ordering::Relaxed) {
            return finder;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOCK: RtLimit = RtLimit {
        runtime_us: 950_000,
        period_us: 1_000_000,
    };
    const MS: u64 = 1_000_000;

    fn spinning(holes: &[(u64, u64)], until: u64) -> HoleFinder {
        let mut finder = HoleFinder::new(Duration::from_millis(1));
        let mut now = 0;
        while now < until {
            finder.observe(Mono(now));
            let hole = holes
                .iter()
                .find(|(at, _)| (now..now + MS / 2).contains(at));
            now += hole.map_or(MS / 2, |(_, length)| *length);
        }
        finder
    }

    /// Busy FIFO thread: 50 ms holes each second from throttling; the probe names it.
    #[test]
    fn busy_fifo_thread_sees_fifty_millisecond_holes_and_they_are_named() {
        let holes = [
            (950 * MS, 50 * MS),
            (1_950 * MS, 51 * MS),
            (2_300 * MS, 3 * MS),
            (2_950 * MS, 49 * MS),
        ];
        let finder = spinning(&holes, 3_500 * MS);
        assert_eq!(finder.holes.len(), 4);
        let verdict = STOCK.verdict(&finder.holes).unwrap();
        assert!(
            verdict.contains("real-time throttling: 3 hole(s) of up to 51.0 ms"),
            "{verdict}"
        );
    }

    #[test]
    fn other_holes_are_not_called_throttling() {
        let finder = spinning(&[(100 * MS, 5 * MS), (300 * MS, 20 * MS)], 1_000 * MS);
        assert_eq!(finder.total_ns(), 25 * MS);
        assert_eq!(STOCK.verdict(&finder.holes), None);
        let irregular = spinning(&[(100 * MS, 50 * MS), (300 * MS, 50 * MS)], 1_000 * MS);
        assert_eq!(STOCK.verdict(&irregular.holes), None);
        let unlimited = RtLimit {
            runtime_us: -1,
            period_us: 1_000_000,
        };
        assert_eq!(
            unlimited.verdict(&spinning(&[(100 * MS, 50 * MS)], 500 * MS).holes),
            None
        );
    }
}
