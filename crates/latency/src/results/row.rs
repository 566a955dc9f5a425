//! One run as it stands in a results file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Host;
use crate::causes::Causes;
use crate::histogram::{Interval, Peak, Summary};
use crate::probe::{Measurement, Mode};

/// What the payload was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Bytes.
    Binary,
    /// A camera image and the time it was published.
    Image,
    /// Text.
    String,
    /// An IMU message.
    Imu,
    /// A CRTP packet.
    Crtp,
}

/// What was measured: everything that tells a row from another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// `dds`, `prrt`, `crtp-uart`, `crtp-prrt`, …
    pub link: String,
    /// `same-domain`, `cross-domain`, `loopback`, …
    pub path: String,
    /// Domains of the prober and of the relay, where there are any.
    #[serde(default)]
    pub domains: Option<[u16; 2]>,
    /// ROS middleware of the prober and of the relay.
    #[serde(default)]
    pub rmw: Option<[String; 2]>,
    /// QoS that took effect, in words.
    #[serde(default)]
    pub qos: Option<String>,
    /// What the payload was.
    pub payload: Payload,
    /// Everything else that took effect: socket buffers, gaps, URIs, thread policies.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
}

/// 95 % confidence bounds of the round trip's quantiles, microseconds; `null` where the samples do not give any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Intervals {
    /// Of the median.
    pub p50: Option<Interval>,
    /// Of the 90 % quantile.
    pub p90: Option<Interval>,
    /// Of the 99 % quantile.
    pub p99: Option<Interval>,
    /// Of the 99.9 % quantile.
    pub p999: Option<Interval>,
}

/// What the middleware's own stamps and shared clocks add, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stamps {
    /// From the middleware's reception of an echo to the prober's callback: what waking up costs.
    pub wake_us: Summary,
    /// From the relay's middleware to ours, on the way back. Empty unless the user says that both ends share a
    /// clock, as all of the following.
    pub transit_us: Summary,
    /// From the prober's sending to the relay's callback.
    pub out_us: Summary,
    /// From the relay's sending to the prober's callback.
    pub back_us: Summary,
}

/// One run. Counts are probes; warm-up probes are in `warmup` alone; `sent = received + lost + late + damaged`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    #[serde(flatten)]
    pub identity: Identity,
    /// Size of the payload, bytes.
    pub bytes: usize,
    /// Probes a second; `null` for ping-pong.
    pub rate_hz: Option<f64>,
    /// `rate` or `ping-pong`.
    #[serde(default)]
    pub mode: String,
    /// Probes that left.
    pub sent: u64,
    /// Answered in time.
    pub received: u64,
    /// Never answered.
    pub lost: u64,
    /// Answered after the time-out.
    pub late: u64,
    /// Warm-up probes, excluded from everything else.
    pub warmup: u64,
    /// Further copies of answers.
    #[serde(default)]
    pub duplicate: u64,
    /// Answers overtaken by later ones.
    #[serde(default)]
    pub reordered: u64,
    /// Answers of another size.
    #[serde(default)]
    pub damaged: u64,
    /// Planned probes that the medium refused or an early end cut off.
    #[serde(default)]
    pub unsent: u64,
    /// Echoes of other runs.
    pub foreign: u64,
    /// Answers whose relay times contradict the round trip.
    #[serde(default)]
    pub bad_stamps: u64,
    /// The run ended before its plan was done.
    pub partial: bool,
    /// From the first probe to the end, seconds.
    #[serde(default)]
    pub duration_s: f64,
    /// An answer after this many ms is late.
    #[serde(default)]
    pub timeout_ms: f64,
    /// Round trip; at a rate from the intended send time.
    pub rtt_us: Summary,
    /// Round trip from the actual send time.
    #[serde(default)]
    pub rtt_from_send_us: Summary,
    /// `(RTT - processing) / 2`: one way, if both ways take equally long.
    pub latency_us: Summary,
    /// Time in the relay.
    pub processing_us: Summary,
    /// How late probes left.
    #[serde(default)]
    pub send_lag_us: Summary,
    /// How sure the round trip's quantiles are.
    #[serde(default)]
    pub rtt_interval_us: Intervals,
    /// Both peaks, when the round trip clearly has two.
    #[serde(default)]
    pub rtt_modes: Option<[Peak; 2]>,
    /// The round trip's distribution: `[microseconds, fraction at most that long]`.
    #[serde(default)]
    pub rtt_ecdf: Vec<[f64; 2]>,
    /// The middleware's stamps, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Stamps>,
    /// What the machine did meanwhile, where that was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Causes>,
    /// The machine, where it is not the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<Host>>,
}

impl Row {
    /// A run's row.
    #[must_use]
    pub fn new(identity: Identity, run: &Measurement) -> Self {
        let counts = run.counts;
        let (rate_hz, mode) = match run.plan.mode {
            Mode::Rate { hz } => (Some(hz), "rate"),
            Mode::PingPong { .. } => (None, "ping-pong"),
        };
        Self {
            identity,
            bytes: run.plan.bytes,
            rate_hz,
            mode: mode.to_owned(),
            sent: counts.sent,
            received: counts.received,
            lost: counts.lost,
            late: counts.late,
            warmup: counts.warmup,
            duplicate: counts.duplicate,
            reordered: counts.reordered,
            damaged: counts.damaged,
            unsent: counts.unsent,
            foreign: counts.foreign,
            bad_stamps: counts.bad_stamps,
            partial: run.partial,
            duration_s: run.duration_ns as f64 / 1e9,
            timeout_ms: run.plan.timeout.as_secs_f64() * 1e3,
            rtt_us: run.rtt.summary(),
            rtt_from_send_us: run.rtt_from_send.summary(),
            latency_us: run.latency.summary(),
            processing_us: run.processing.summary(),
            send_lag_us: run.send_lag.summary(),
            rtt_interval_us: Intervals {
                p50: run.rtt.interval(0.5),
                p90: run.rtt.interval(0.9),
                p99: run.rtt.interval(0.99),
                p999: run.rtt.interval(0.999),
            },
            rtt_modes: run.rtt.modes(),
            rtt_ecdf: run.rtt.ecdf(),
            stamps: None,
            causes: None,
            host: None,
        }
    }

    /// A setting as text; `None` when the row does not have it.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<String> {
        let value = self.identity.settings.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }

    /// A short name for charts: link, path, size and rate.
    #[must_use]
    pub fn label(&self) -> String {
        let pace = self
            .rate_hz
            .map_or_else(|| "ping-pong".to_owned(), |hz| format!("{hz} Hz"));
        let Identity { link, path, .. } = &self.identity;
        format!("{link} {path}, {}, {pace}", size(self.bytes))
    }
}

/// A size for people: `64 B`, `33 KB`, `4 MiB`; exact, so that two sizes never look the same.
#[must_use]
pub fn size(bytes: usize) -> String {
    const UNITS: [(usize, &str); 4] = [
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1_000, "KB"),
    ];
    UNITS
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(
            || format!("{bytes} B"),
            |(unit, name)| format!("{} {name}", bytes / unit),
        )
}
