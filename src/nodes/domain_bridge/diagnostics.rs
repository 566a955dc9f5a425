//! What the bridge tells about itself: `diagnostic_msgs/DiagnosticArray` on `/diagnostics`, one status for each route.

use std::time::{SystemTime, UNIX_EPOCH};

use super::cdr::Writer;
use super::stats::Counters;

/// Where diagnostics go.
pub(super) const TOPIC: &str = "/diagnostics";
/// Their type.
pub(super) const TYPE: &str = "diagnostic_msgs/msg/DiagnosticArray";

/// One route or service.
#[derive(Debug)]
pub(super) struct Status {
    /// What it joins.
    pub(super) name: String,
    /// Whether all is well.
    pub(super) ok: bool,
    /// What it is doing.
    pub(super) message: String,
    /// Figures by name.
    pub(super) values: Vec<(String, String)>,
}

/// The figures of a route.
pub(super) fn figures(counters: &Counters, qos: &str) -> Vec<(String, String)> {
    let mut values: Vec<_> = counters
        .by_name()
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count.to_string()))
        .collect();
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
        let text = counters
            .residence(share)
            .map_or_else(|| "none".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
        values.push((format!("residence_{name}_us"), text));
    }
    values.push(("qos".into(), qos.to_owned()));
    values
}

/// The serialized message.
pub(super) fn message(bridge: &str, statuses: &[Status]) -> Vec<u8> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut out = Writer::new();
    out.u32(now.as_secs() as u32);
    out.u32(now.subsec_nanos());
    out.text("");
    out.u32(statuses.len() as u32);
    for status in statuses {
        out.u8(u8::from(!status.ok));
        out.text(&format!("{bridge}: {}", status.name));
        out.text(&status.message);
        out.text("");
        out.u32(status.values.len() as u32);
        for (key, value) in &status.values {
            out.text(key);
            out.text(value);
        }
    }
    out.finish()
}
