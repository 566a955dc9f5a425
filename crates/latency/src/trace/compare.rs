//! One run against another: quantiles, their difference and their ratio with bootstrap intervals.
//!
//! The percentile bootstrap (Efron and Tibshirani 1993, chapter 13) on independent samples; seeded, so that the same logs
//! give the same interval.

/// Resamples, fewer for long runs.
const RESAMPLES: usize = 1000;
/// Values drawn in all for one figure.
const DRAWS: usize = 20_000_000;
/// Least samples on both sides for any interval.
const LEAST: usize = 10;

/// A quantile of two runs, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Which, 0 to 1.
    pub quantile: f64,
    /// Of the base run.
    pub base: f64,
    /// Of the other run.
    pub other: f64,
    /// 95 % interval of `other - base`.
    pub difference: Option<[f64; 2]>,
    /// 95 % interval of `other / base`.
    pub ratio: Option<[f64; 2]>,
}

impl Difference {
    /// Whether the interval of the difference leaves zero out.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.difference
            .is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    }
}

/// Compares medians and 90 % and 99 % quantiles, as far as both runs have the samples for them (10 for 90 %, 100 for
/// 99 %).
#[must_use]
pub fn compare(base: &[u64], other: &[u64]) -> Vec<Difference> {
    let fewest = base.len().min(other.len());
    [(0.5, 1), (0.9, 10), (0.99, 100)]
        .into_iter()
        .filter(|(_, least)| fewest >= *least)
        .map(|(quantile, _)| difference(base, other, quantile))
        .collect()
}

fn difference(base: &[u64], other: &[u64], quantile: f64) -> Difference {
    let (mut a, mut b) = (base.to_vec(), other.to_vec());
    let (base_value, other_value) = (at(&mut a, quantile), at(&mut b, quantile));
    let enough = base.len().min(other.len()) >= LEAST;
    let resamples = RESAMPLES
        .min(DRAWS / (base.len() + other.len()).max(1))
        .max(100);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut pairs = Vec::new();
    for _ in 0..if enough { resamples } else { 0 } {
        random.resample(base, &mut a);
        random.resample(other, &mut b);
        pairs.push((at(&mut a, quantile), at(&mut b, quantile)));
    }
    Difference {
        quantile,
        base: base_value,
        other: other_value,
        difference: interval(pairs.iter().map(|(a, b)| b - a).collect()),
        ratio: interval(pairs.iter().map(|(a, b)| b / a.max(1.0)).collect()),
    }
}

/// The value with a share of `quantile` at or below it.
fn at(values: &mut [u64], quantile: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (quantile * values.len() as f64).ceil() as usize;
    let rank = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable(rank).1 as f64
}

fn interval(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let last = values.len().checked_sub(1)?;
        values.get((share * last as f64).round() as usize).copied()
    };
    Some([at(0.025)?, at(0.975)?])
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn resample(&mut self, from: &[u64], to: &mut [u64]) {
        for value in to {
            let at = (u128::from(self.next()) * from.len() as u128) >> 64;
            *value = from[at as usize];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(center: u64, count: usize, seed: u64) -> Vec<u64> {
        let mut random = Random(seed);
        (0..count).map(|_| center + random.next() % 1000).collect()
    }

    #[test]
    fn a_shift_is_found_and_its_interval_holds_it() {
        let found = compare(&around(4000, 500, 1), &around(9000, 400, 2));
        assert_eq!(found.len(), 3);
        for one in &found {
            let [low, high] = one.difference.unwrap();
            assert!(one.is_clear() && low < 5000.0 && high > 5000.0, "{one:?}");
            assert!(one.ratio.unwrap()[0] > 1.5);
        }
        assert_eq!(found, compare(&around(4000, 500, 1), &around(9000, 400, 2)));
    }

    #[test]
    fn equal_runs_are_not_told_apart_and_small_ones_get_no_interval() {
        let same = compare(&around(4000, 300, 1), &around(4000, 300, 7));
        assert!(same.iter().all(|one| {
            let [low, high] = one.difference.unwrap();
            low < 100.0 && high > -100.0
        }));
        let small = compare(&[5], &[7, 8]);
        assert_eq!((small.len(), small[0].difference), (1, None));
        assert!(compare(&[], &[1]).is_empty());
        let equal = compare(&[5; 50], &[5; 50]);
        assert_eq!(equal[0].difference, Some([0.0, 0.0]));
    }
}
