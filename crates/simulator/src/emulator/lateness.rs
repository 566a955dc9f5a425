//! How late the emulator itself was: the time from when a packet was due to when it was handed over. Figures of anything
//! that ran over the emulator are worth no more than this.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// An emulator later than this at p99.9 spoils what is measured over it.
const CLEAN: Duration = Duration::from_millis(1);
/// Longest lateness told apart.
const MAX_NS: u64 = 60_000_000_000;
/// Fewest samples that a p99.9 stands on.
const MIN_SAMPLES_P999: u64 = 1000;

/// Lateness of one direction, microseconds. Figures that no packets stand behind are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Packets handed over.
    pub samples: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 99 %.
    pub p99_us: Option<f64>,
    /// 99.9 %, from a thousand packets on.
    pub p999_us: Option<f64>,
    /// Latest.
    pub max_us: Option<f64>,
}

impl Lateness {
    /// Whether the emulator kept time: p99.9 (the maximum below a thousand packets) of at most 1 ms.
    pub fn is_clean(&self) -> bool {
        self.p999_us
            .or(self.max_us)
            .is_none_or(|us| us <= CLEAN.as_secs_f64() * 1e6)
    }
}

/// Collects it without allocation.
#[derive(Debug)]
pub(super) struct Recorder(Histogram<u64>);

impl Recorder {
    pub(super) fn new() -> Option<Self> {
        Histogram::new_with_bounds(1, MAX_NS, 3).ok().map(Self)
    }

    pub(super) fn record(&mut self, late: Duration) {
        self.0.saturating_record(late.as_nanos() as u64);
    }

    pub(super) fn summary(&self) -> Lateness {
        let samples = self.0.len();
        let us = |ns: u64| ns as f64 / 1e3;
        let quantile = |q| (samples > 0).then(|| us(self.0.value_at_quantile(q)));
        Lateness {
            samples,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999).filter(|_| samples >= MIN_SAMPLES_P999),
            max_us: (samples > 0).then(|| us(self.0.max())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_is_no_number_and_a_late_packet_is_noticed() {
        let mut recorder = Recorder::new().unwrap();
        assert_eq!(recorder.summary(), Lateness::default());
        assert!(recorder.summary().is_clean());
        recorder.record(Duration::from_micros(20));
        assert!(recorder.summary().is_clean());
        recorder.record(Duration::from_millis(2));
        assert!(!recorder.summary().is_clean());
        for _ in 0..4000 {
            recorder.record(Duration::from_micros(20));
        }
        assert!(recorder.summary().is_clean(), "one in 4002 is beyond p99.9");
    }
}
