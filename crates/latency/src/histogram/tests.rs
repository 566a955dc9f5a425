//! Exact figures of known samples, and what must stay absent.

use proptest::prelude::*;

use super::*;

fn of(samples: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    samples.into_iter().for_each(|ns| histogram.record(ns));
    histogram
}

#[test]
fn figures_of_a_known_ramp() {
    let summary = of((1..=1000).map(|i| i * 1000)).summary();
    let near = |value: Option<f64>, expected: f64| {
        let value = value.unwrap();
        assert!((value / expected - 1.0).abs() < 2e-3, "{value} {expected}");
    };
    assert_eq!(
        (summary.min, summary.max, summary.mean),
        (Some(1.0), Some(1000.0), Some(500.5))
    );
    near(summary.p50, 500.0);
    near(summary.p90, 900.0);
    near(summary.p99, 990.0);
    near(summary.p999, 999.0);
}

#[test]
fn quantiles_that_the_samples_cannot_resolve_are_absent() {
    let at = |n: u64| of((1..=n).map(|i| i * 1000)).summary();
    assert_eq!(Summary::default(), at(0));
    assert_eq!((at(1).p50, at(1).p90), (Some(1.0), None));
    assert!(at(9).p90.is_none() && at(10).p90.is_some());
    assert!(at(99).p99.is_none() && at(100).p99.is_some());
    assert!(at(999).p999.is_none() && at(1000).p999.is_some());
}

#[test]
fn minute_long_and_instant_samples_keep_exact_extremes() {
    let summary = of([0, 90_000_000_000]).summary();
    assert_eq!((summary.min, summary.max), (Some(0.0), Some(90_000_000.0)));
}

#[test]
fn intervals_come_from_ranks_and_are_absent_where_a_rank_is() {
    let ramp = of((1..=10_000).map(|i| i * 1000));
    let [low, high] = ramp.interval(0.5).unwrap();
    assert!(
        (low - 4902.0).abs() < 6.0 && (high - 5098.0).abs() < 6.0,
        "{low} {high}"
    );
    assert!(of((1..=50).map(|i| i * 1000)).interval(0.99).is_none());
    assert!(Histogram::new().interval(0.5).is_none());
}

#[test]
fn two_peaks_are_told_from_a_tail() {
    let jitter = |i: u64| (i * 7919) % 200_000;
    let two = of((0..300).map(|i| if i % 3 == 0 { 20_000_000 } else { 700_000 } + jitter(i)));
    let [low, high] = two.modes().unwrap();
    assert!(
        (600.0..1000.0).contains(&low.us) && (0.6..0.7).contains(&low.share),
        "{low:?}"
    );
    assert!(
        (17_000.0..24_000.0).contains(&high.us) && (0.3..0.4).contains(&high.share),
        "{high:?}"
    );
    let tail = (1..=2000_u64).map(|i| (-(1.0 - i as f64 / 2001.0).ln() * 1e6) as u64 + 100_000);
    assert!(of(tail).modes().is_none());
    assert!(of([5; 1000]).modes().is_none());
    assert!(Histogram::new().modes().is_none());
}

proptest! {
    #[test]
    fn an_ecdf_rises_to_one(samples in prop::collection::vec(1_u64..50_000_000_000, 1..3000)) {
        let histogram = of(samples);
        let ecdf = histogram.ecdf();
        prop_assert!(ecdf.len() <= 200 && !ecdf.is_empty());
        prop_assert!(ecdf.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] < pair[1][1]));
        prop_assert_eq!(ecdf[ecdf.len() - 1][1], 1.0);
        let summary = histogram.summary();
        prop_assert!(summary.min <= summary.p50 && summary.p50 <= summary.max);
    }
}
