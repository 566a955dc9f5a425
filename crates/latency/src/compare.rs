//! What crossing a domain costs: the ratio of two paths' round trips, size by size, with an interval.
//!
//! Runs are the unit of replication: with three or more on both sides the interval comes from resampling them;
//! with fewer it is the widest that the medians' own intervals allow, and says so.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::{Config, Group, groups, median};
use crate::histogram::Interval;
use crate::results::size;
use crate::table::us;

/// The path that others are divided by.
const BASE: &str = "same-domain";
/// Fewest runs on each side for resampling.
const RUNS: usize = 3;
/// Resamples.
const RESAMPLES: usize = 2000;

/// A path over the same-domain path, of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The path that is compared.
    pub path: String,
    /// Configuration in words, without the path.
    pub config: String,
    /// Size of the payload, bytes.
    pub bytes: usize,
    /// Median round trip in one domain, microseconds: the median of the runs' medians.
    pub same_us: f64,
    /// The same of the path.
    pub path_us: f64,
    /// `path_us / same_us`.
    pub ratio: f64,
    /// 95 % bounds of the ratio; `None` when there are too few samples for any.
    pub interval: Option<Interval>,
    /// Whether the bounds come from resampled runs.
    pub resampled: bool,
    /// Runs in one domain and of the path.
    pub runs: [usize; 2],
    /// Answers in one domain and of the path.
    pub answers: [u64; 2],
}

impl Ratio {
    /// One line for a terminal.
    #[must_use]
    pub fn sentence(&self) -> String {
        let interval = self.interval.map_or_else(
            || "no interval".to_owned(),
            |[low, high]| format!("{low:.2} to {high:.2}"),
        );
        let Self {
            path,
            config,
            ratio,
            runs: [same, other],
            ..
        } = self;
        format!(
            "{path} over {BASE}, {}, {config}: {ratio:.2} ({interval}; {} over {} us; {other} and {same} runs)",
            size(self.bytes),
            us(Some(self.path_us)),
            us(Some(self.same_us)),
        )
    }
}

/// Every path against the same-domain path, where both were measured under the same conditions.
#[must_use]
pub fn ratios(rows: &[crate::Row]) -> Vec<Ratio> {
    let all = groups(rows);
    let mut ratios = Vec::new();
    for (config, sizes) in &all {
        if config.path == BASE {
            continue;
        }
        let base = Config {
            path: BASE.to_owned(),
            ..config.clone()
        };
        let Some(same) = all.get(&base) else {
            continue;
        };
        let same: BTreeMap<usize, &Group<'_>> =
            same.iter().map(|group| (group.bytes, group)).collect();
        let pairs = sizes
            .iter()
            .filter_map(|group| Some((*same.get(&group.bytes)?, group)));
        ratios.extend(pairs.filter_map(|(same, path)| ratio(config, same, path)));
    }
    ratios
}

fn ratio(config: &Config, same: &Group<'_>, path: &Group<'_>) -> Option<Ratio> {
    let (same_us, path_us) = (same.p50()?, path.p50()?);
    let runs = [same.medians(), path.medians()];
    let resampled = runs.iter().all(|runs| runs.len() >= RUNS);
    let interval = if resampled {
        resample(&runs[0], &runs[1])
    } else {
        widest(same, path)
    };
    let answers = |group: &Group<'_>| group.rows.iter().map(|row| row.received).sum();
    let base = Config {
        path: String::new(),
        ..config.clone()
    };
    Some(Ratio {
        path: config.path.clone(),
        config: base.label().trim().replace(" ,", ","),
        bytes: same.bytes,
        same_us,
        path_us,
        ratio: path_us / same_us,
        interval,
        resampled,
        runs: runs.map(|runs| runs.len()),
        answers: [answers(same), answers(path)],
    })
}

/// Percentile bootstrap of the ratio of medians over runs, with a fixed seed so that a report is reproducible.
fn resample(same: &[f64], path: &[f64]) -> Option<Interval> {
    let mut random = Random(0x5eed);
    let mut draw = |runs: &[f64]| {
        let drawn: Vec<f64> = (0..runs.len())
            .map(|_| runs[random.below(runs.len())])
            .collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| Some(draw(path)? / draw(same)?))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| {
        ratios
            .get((share * (RESAMPLES - 1) as f64).round() as usize)
            .copied()
    };
    Some([at(0.025)?, at(0.975)?])
}

/// From the medians' own intervals: the lowest over the highest, and the other way round.
fn widest(same: &Group<'_>, path: &Group<'_>) -> Option<Interval> {
    let bounds = |group: &Group<'_>| {
        let intervals = group.rows.iter().filter_map(|row| row.rtt_interval_us.p50);
        intervals.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
    };
    let (same, path) = (bounds(same)?, bounds(path)?);
    Some([path[0] / same[1], path[1] / same[0]])
}

/// xorshift64* (Vigna 2016); enough to draw runs.
struct Random(u64);

impl Random {
    const fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::samples::run;

    fn both(same: u64, cross: u64) -> Vec<crate::Row> {
        vec![
            run("same-domain", "udp", 64, |i| Some(same + i % 7)),
            run("cross-domain", "udp", 64, |i| Some(cross + i % 7)),
        ]
    }

    #[test]
    fn one_run_each_gives_a_ratio_with_the_medians_own_bounds() {
        let found = ratios(&both(100, 200));
        let [ratio] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert!((ratio.ratio - 2.0).abs() < 0.05, "{ratio:?}");
        let [low, high] = ratio.interval.unwrap();
        assert!(low <= ratio.ratio && ratio.ratio <= high && !ratio.resampled);
        assert!(
            ratio
                .sentence()
                .contains("cross-domain over same-domain, 64 B")
        );
    }

    #[test]
    fn many_runs_are_resampled_and_reproducible() {
        let rows: Vec<crate::Row> = (0..5)
            .flat_map(|i| both(100 + i * 10, 200 + i * 10))
            .collect();
        let found = ratios(&rows);
        assert_eq!((found.len(), found[0].runs), (1, [5, 5]));
        let [low, high] = found[0].interval.unwrap();
        assert!(found[0].resampled && low < found[0].ratio && found[0].ratio < high);
        assert_eq!(found, ratios(&rows));
    }

    #[test]
    fn what_was_not_measured_under_the_same_conditions_is_not_compared() {
        let mut rows = both(100, 200);
        rows[1].identity.qos = Some("best_effort, volatile, keep_last 5".into());
        assert_eq!(ratios(&rows), []);
        let other = [run("cross-domain", "shm", 64, |_| Some(1)), rows[0].clone()];
        assert_eq!(ratios(&other), []);
        let lost = [rows[0].clone(), run("cross-domain", "udp", 64, |_| None)];
        assert_eq!(ratios(&lost), [], "a size that never arrives has no ratio");
    }
}
