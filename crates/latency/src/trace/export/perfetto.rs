//! A trace for Perfetto (and any reader of the Trace Event format): a process for each host, a track for each
//! stage, and one flow for each packet through all of them.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::record::{Hop, Stage};
use crate::trace::{Packet, Trace};

/// How long a record is drawn, us, where the next one of its packet on the same host does not say.
const SHORT_US: f64 = 1.0;

/// Writes all records.
///
/// # Errors
/// What `to` says.
pub fn perfetto(trace: &Trace, mut to: impl Write) -> io::Result<()> {
    let mut events = names(trace);
    for packet in trace.packets() {
        events.extend(flow(trace, &packet));
    }
    let whole = json!({"displayTimeUnit": "ns", "traceEvents": events});
    serde_json::to_writer(&mut to, &whole)?;
    to.flush()
}

fn names(trace: &Trace) -> Vec<Value> {
    let named = |host: usize, name: &str, text: &str, thread: Option<u8>| json!({"ph": "M", "pid": host, "tid": thread, "name": name, "args": {"name": text}});
    let mut names = Vec::new();
    for (host, info) in trace.hosts.iter().enumerate() {
        names.push(named(host, "process_name", &info.name, None));
        for &stage in Stage::ALL {
            if trace
                .hops
                .iter()
                .any(|(of, hop)| *of == host && hop.stage == stage)
            {
                names.push(named(host, "thread_name", stage.name(), Some(stage as u8)));
            }
        }
    }
    names
}

/// A slice from each record to the next one on its host, and arrows that join them.
fn flow(trace: &Trace, packet: &Packet) -> Vec<Value> {
    let mut hops: Vec<(f64, usize, &Hop)> = packet
        .hops
        .iter()
        .map(|(host, hop)| {
            (
                trace.hosts[*host].unix_ns_at(hop.at) as f64 / 1e3,
                *host,
                hop,
            )
        })
        .collect();
    hops.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = hops.len().saturating_sub(1);
    let mut events = Vec::new();
    for (number, (time, host, hop)) in hops.iter().enumerate() {
        let next = hops.get(number + 1).filter(|(_, of, _)| of == host);
        let length = next.map_or(SHORT_US, |(after, ..)| (after - time).max(0.001));
        events.push(json!({
            "ph": "X", "pid": host, "tid": hop.stage as u8, "ts": time, "dur": length, "cat": hop.direction.name(),
            "name": format!("{} port {} channel {}", packet.id, hop.port(), hop.channel()),
            "args": {"packet": packet.id, "stage": hop.stage.name(), "size": hop.size, "attempt": hop.attempt,
                     "reason": hop.reason.name(), "verdict": hop.verdict.name()},
        }));
        let phase = match number {
            0 => "s",
            number if number == last => "f",
            _ => "t",
        };
        if last > 0 {
            events.push(json!({
                "ph": phase, "bp": "e", "id": packet.id, "pid": host, "tid": hop.stage as u8, "ts": time,
                "cat": "packet", "name": "packet",
            }));
        }
    }
    events
}
