//! Durations of the last second in fixed memory.

use std::time::{Duration, Instant};

/// What counts as recent.
const SPAN: Duration = Duration::from_secs(1);
/// Samples kept; at more in a second the oldest go first.
const KEPT: usize = 256;

/// Percentiles of the samples of the last second, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Samples.
    pub samples: u32,
    /// Least.
    pub min: Duration,
    /// Median.
    pub p50: Duration,
    /// 90 % are at most this; needs 10 samples.
    pub p90: Option<Duration>,
    /// 99 % are at most this; needs 100 samples.
    pub p99: Option<Duration>,
    /// Greatest.
    pub max: Duration,
}

/// Samples with the time they were taken.
#[derive(Debug)]
pub(super) struct Recent {
    samples: Box<[Option<(Instant, Duration)>; KEPT]>,
    next: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            samples: Box::new([None; KEPT]),
            next: 0,
        }
    }
}

impl Recent {
    /// Adds a sample. Allocates nothing.
    pub(super) fn record(&mut self, now: Instant, duration: Duration) {
        if let Some(slot) = self.samples.get_mut(self.next) {
            *slot = Some((now, duration));
        }
        self.next = (self.next + 1) % KEPT;
    }

    /// Figures of the second before `now`; `None` without a sample.
    pub(super) fn percentiles(&self, now: Instant) -> Option<Percentiles> {
        let recent = |(at, _): &&(Instant, Duration)| now.saturating_duration_since(*at) < SPAN;
        let kept = self.samples.iter().flatten().filter(recent);
        let mut sorted: Vec<Duration> = kept.map(|(_, duration)| *duration).collect();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied()
        };
        Some(Percentiles {
            samples: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            min,
            p50: at(50)?,
            p90: at(90).filter(|_| sorted.len() >= 10),
            p99: at(99).filter(|_| sorted.len() >= 100),
            max,
        })
    }
}
