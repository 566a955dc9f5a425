//! Durations in a histogram with three significant digits, and what may be said about them.
//!
//! A quantile that the number of samples cannot resolve is absent, never guessed.

mod modes;
#[cfg(test)]
mod tests;

use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Serialize};

pub use modes::Peak;

/// Largest duration told apart, ns; longer ones count as this long, but [`Summary::max`] stays exact.
pub const MAX_NS: u64 = 60_000_000_000;
/// Significant decimal digits.
const DIGITS: u8 = 3;
/// Most points of an ECDF.
const ECDF_POINTS: u64 = 200;
const NS_PER_US: f64 = 1e3;

/// Durations in nanoseconds. Recording allocates nothing.
#[derive(Clone, Debug)]
pub struct Histogram {
    hdr: Hdr<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

/// Figures of a distribution, microseconds. `p99` needs 100 samples, `p999` 1000, `p90` 10, the others one:
/// below that the sample maximum is the only honest figure. A file has `null` for what is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Least.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90 % are at most this.
    pub p90: Option<f64>,
    /// 99 % are at most this.
    pub p99: Option<f64>,
    /// 99.9 % are at most this.
    pub p999: Option<f64>,
    /// Greatest.
    pub max: Option<f64>,
    /// Mean.
    pub mean: Option<f64>,
}

/// Bounds of a quantile with 95 % confidence, whatever the distribution, microseconds.
pub type Interval = [f64; 2];

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one, all memory taken.
    #[must_use]
    pub fn new() -> Self {
        let Ok(hdr) = Hdr::new_with_bounds(1, MAX_NS, DIGITS) else {
            unreachable!("the bounds are constants that the histogram takes")
        };
        Self {
            hdr,
            min: u64::MAX,
            max: 0,
            sum: 0,
        }
    }

    /// Adds one duration.
    pub fn record(&mut self, ns: u64) {
        self.hdr.saturating_record(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
    }

    /// Samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.hdr.len()
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hdr.is_empty()
    }

    /// The quantile `q` (0 to 1), ns; `None` when `n (1 - q) < 1`, save for the median of at least one sample.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let resolved = self.len() as f64 * (1.0 - q) >= 1.0 - 1e-9;
        (!self.is_empty() && (resolved || q <= 0.5)).then(|| self.value_at(q))
    }

    /// All figures.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let us = |ns: f64| round(ns / NS_PER_US);
        let some = !self.is_empty();
        Summary {
            min: some.then(|| us(self.min as f64)),
            p50: self.quantile(0.5).map(us),
            p90: self.quantile(0.9).map(us),
            p99: self.quantile(0.99).map(us),
            p999: self.quantile(0.999).map(us),
            max: some.then(|| us(self.max as f64)),
            mean: some.then(|| us(self.sum as f64 / self.len() as f64)),
        }
    }

    /// 95 % confidence bounds of the quantile `q` from the ranks `n q ± 1.96 sqrt(n q (1 - q))`; `None` where a
    /// rank falls outside the samples. Samples are taken as independent; those of one run seldom are, so replicate.
    #[must_use]
    pub fn interval(&self, q: f64) -> Option<Interval> {
        let n = self.len() as f64;
        let half = 1.96 * (n * q * (1.0 - q)).sqrt();
        let (low, high) = ((n * q - half).floor(), (n * q + half).ceil());
        (low >= 1.0 && high <= n)
            .then(|| [low, high].map(|rank| round(self.value_at(rank / n) / NS_PER_US)))
    }

    /// Points `[microseconds, fraction at most that long]`, rising, at most 200; the last fraction is 1. Half of
    /// them are spread over the fractions, the rest over the upper tail, where a log axis shows most.
    #[must_use]
    pub fn ecdf(&self) -> Vec<[f64; 2]> {
        let n = self.len();
        if n == 0 {
            return Vec::new();
        }
        let mut points: Vec<[f64; 2]> = Vec::new();
        for rank in ranks(n) {
            let point = [
                round(self.value_at(rank as f64 / n as f64) / NS_PER_US),
                rank as f64 / n as f64,
            ];
            match points.last_mut() {
                Some(last) if last[0] >= point[0] => last[1] = point[1],
                _ => points.push(point),
            }
        }
        points
    }

    /// The two peaks when the distribution clearly has two, with the share of samples around each.
    #[must_use]
    pub fn modes(&self) -> Option<[Peak; 2]> {
        modes::find(&self.hdr)
    }

    fn value_at(&self, q: f64) -> f64 {
        let value = self.hdr.value_at_quantile(q);
        value.clamp(self.min, self.max) as f64
    }
}

/// Ranks from 1 to `n`, at most [`ECDF_POINTS`] of them, rising.
fn ranks(n: u64) -> Vec<u64> {
    if n <= ECDF_POINTS {
        return (1..=n).collect();
    }
    let half = ECDF_POINTS / 2;
    let spread = (0..half).map(|i| 1 + i * (n - 1) / half);
    let tail = (0..half).map(|i| {
        let above = (n as f64).powf(1.0 - i as f64 / (half - 1) as f64);
        n + 1 - (above.round() as u64).clamp(1, n)
    });
    let mut ranks: Vec<u64> = spread.chain(tail).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// To a nanosecond, so that a file has no digits that mean nothing.
fn round(us: f64) -> f64 {
    (us * NS_PER_US).round() / NS_PER_US
}
