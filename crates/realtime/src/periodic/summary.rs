//! Figures of a histogram for tables and files. A quantile that the sample count cannot resolve is absent: the 99th
//! percentile needs 100 samples, the 99.9th needs 1000.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Figures in microseconds; all absent when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
}

impl Summary {
    /// The figures of a histogram of nanoseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let count = histogram.len();
        let us = |ns: u64| ns as f64 / 1e3;
        let quantile =
            |q: f64, needed: u64| (count >= needed).then(|| us(histogram.value_at_quantile(q)));
        let any = |value: f64| (count > 0).then_some(value);
        Self {
            count,
            min: any(us(histogram.min())),
            p50: quantile(0.5, 1),
            p90: quantile(0.9, 10),
            p99: quantile(0.99, 100),
            p999: quantile(0.999, 1000),
            max: any(us(histogram.max())),
            mean: any(histogram.mean() / 1e3),
        }
    }
}

/// Upper end of the 95 % confidence interval of a probability of which `events` were seen in `trials` independent
/// trials: exactly `1 − 0.05^(1/n)` for none (close to the rule of three, 3/n), and for more the Wilson score bound.
/// `None` without trials.
#[must_use]
pub fn upper_bound_95(events: u64, trials: u64) -> Option<f64> {
    if trials == 0 {
        return None;
    }
    let n = trials as f64;
    if events == 0 {
        return Some(-(0.05_f64.ln() / n).exp_m1());
    }
    const Z: f64 = 1.644_853_626_951_472_7;
    let p = events as f64 / n;
    let centre = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(((centre + spread) / (1.0 + Z * Z / n)).min(1.0))
}

/// Up to `points` points of the cumulative distribution: microseconds and the share of samples at or below.
#[must_use]
pub fn ecdf(histogram: &Histogram<u64>, points: usize) -> Vec<(f64, f64)> {
    let total = histogram.len() as f64;
    let mut seen = 0;
    let all: Vec<(f64, f64)> = histogram
        .iter_recorded()
        .map(|step| {
            seen += step.count_since_last_iteration();
            (step.value_iterated_to() as f64 / 1e3, seen as f64 / total)
        })
        .collect();
    let stride = all.len().div_ceil(points.max(1)).max(1);
    let last = all.len().saturating_sub(1);
    all.into_iter()
        .enumerate()
        .filter(|(index, _)| index % stride == 0 || *index == last)
        .map(|(_, point)| point)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::record::histogram;

    #[test]
    fn quantiles_need_samples() {
        let mut times = histogram().unwrap();
        assert_eq!(Summary::of(&times), Summary::default());
        times.record(5_000).unwrap();
        let one = Summary::of(&times);
        assert_eq!(
            (one.count, one.p90, one.p99, one.p999),
            (1, None, None, None)
        );
        times.record_n(5_000, 999).unwrap();
        assert!((Summary::of(&times).p999.unwrap() - 5.0).abs() < 0.01);
    }

    #[test]
    fn zero_misses_are_bounded_by_the_rule_of_three() {
        let bound = upper_bound_95(0, 180_000).unwrap();
        assert!((bound - 3.0 / 180_000.0).abs() < 0.01 * bound, "{bound}");
        assert_eq!(upper_bound_95(0, 1), Some(0.95));
        assert_eq!(upper_bound_95(3, 0), None);
        assert!(upper_bound_95(10, 1000).unwrap() > 0.01);
        assert_eq!(upper_bound_95(7, 7), Some(1.0));
    }

    #[test]
    fn the_ecdf_ends_at_one_and_keeps_its_bound() {
        let mut times = histogram().unwrap();
        (1..=5_000u64).for_each(|us| times.record(us * 1_000).unwrap());
        let points = ecdf(&times, 200);
        assert!(points.len() <= 201, "{}", points.len());
        assert_eq!(points.last().unwrap().1, 1.0);
        assert!(points.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ecdf(&histogram().unwrap(), 200).is_empty());
    }
}
