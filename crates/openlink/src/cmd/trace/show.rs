//! The answers of `openlink trace` as tables or JSON.

use latency::trace::{Ipt, Offset, Rtt, Stages};
use latency::{Histogram, Summary};
use serde_json::{Value, json};

use crate::out;

/// Inter-packet times, all and by the reason of the packet that ends them.
pub(super) fn ipt(ipt: &Ipt, as_json: bool) {
    let reasons = ipt
        .by_reason
        .iter()
        .map(|(reason, gaps)| ((*reason).to_owned(), gaps));
    let lines: Vec<(String, &Histogram)> = std::iter::once(("all".to_owned(), &ipt.gaps))
        .chain(reasons)
        .collect();
    if as_json {
        out::json(
            &json!({"stage": ipt.stage.name(), "packets": ipt.packets, "ipt_us": object(&lines)}),
        );
        return;
    }
    out::line(format!(
        "{} packets left at {}; time between them, µs",
        ipt.packets,
        ipt.stage.name()
    ));
    out::line(table(&lines));
}

/// Round trips, and what became of the rest.
pub(super) fn rtt(rtt: &Rtt, as_json: bool) {
    let ports = rtt
        .by_port
        .iter()
        .map(|((port, channel), times)| (format!("port {port} channel {channel}"), times));
    let both = [
        ("first sending".to_owned(), &rtt.first),
        ("last sending".to_owned(), &rtt.last),
    ];
    let lines: Vec<(String, &Histogram)> = both.into_iter().chain(ports).collect();
    let stages = [rtt.stages.0.name(), rtt.stages.1.name()];
    if as_json {
        out::json(&json!({
            "stages": stages, "requests": rtt.requests, "answered": rtt.answered, "one_way": rtt.one_way,
            "resends": rtt.resends, "duplicates": rtt.duplicates, "reordered": rtt.reordered,
            "rtt_us": object(&lines),
        }));
        return;
    }
    out::line(format!(
        "{} requests, {} answered, {} resends, {} duplicates, {} reordered; {} packets want no answer",
        rtt.requests, rtt.answered, rtt.resends, rtt.duplicates, rtt.reordered, rtt.one_way
    ));
    out::line(format!(
        "round trip from {} to {}, µs",
        stages[0], stages[1]
    ));
    out::line(table(&lines));
}

/// Durations, their share in what makes round trips long, and the longest ones.
pub(super) fn stages(stages: &Stages, offset: Option<Offset>, as_json: bool) {
    let summaries = stages.summaries();
    if as_json {
        let durations: Vec<Value> = summaries
            .iter()
            .map(|stage| json!({"name": stage.name, "samples": stage.histogram.len(), "missing": stage.missing,
                                "us": stage.summary, "correlation": stage.correlation}))
            .collect();
        let offset = offset.map(|offset| json!({"low_ns": offset.low, "high_ns": offset.high, "packets": offset.packets}));
        out::json(
            &json!({"rows": stages.rows.len(), "durations": durations, "clock_offset": offset}),
        );
        return;
    }
    let lines: Vec<(String, &Histogram)> = summaries
        .iter()
        .map(|stage| (stage.name.clone(), &stage.histogram))
        .collect();
    out::line(format!("{} packets; durations, µs", stages.rows.len()));
    out::line(table(&lines));
    for stage in &summaries {
        let correlation = stage
            .correlation
            .map_or_else(|| "–".to_owned(), |value| format!("{value:+.2}"));
        out::line(format!(
            "{:<14} missing in {:>5}, rank correlation with the total {correlation}",
            stage.name, stage.missing
        ));
    }
    if let Some(offset) = offset {
        let (middle, uncertainty) = (
            offset.middle() as f64 / 1e3,
            offset.uncertainty() as f64 / 1e3,
        );
        out::line(format!(
            "clocks of the hosts differ by {middle:.1} ± {uncertainty:.1} µs ({} packets)",
            offset.packets
        ));
    }
    worst(stages);
}

/// The longest round trips as bars, one letter for each duration.
fn worst(stages: &Stages) {
    const WIDTH: f64 = 60.0;
    let worst = stages.worst();
    let Some(longest) = worst
        .first()
        .and_then(|row| row.total)
        .filter(|total| *total > 0)
    else {
        return;
    };
    let letters = ('A'..='Z').cycle();
    let key: Vec<String> = stages
        .names
        .iter()
        .zip(letters.clone())
        .map(|(name, letter)| format!("{letter} {name}"))
        .collect();
    out::line(format!("longest round trips: {}", key.join(", ")));
    for row in worst {
        let parts = row
            .durations
            .iter()
            .zip(letters.clone())
            .map(|(ns, letter)| {
                let width = ns
                    .map_or(0.0, |ns| ns as f64 / longest as f64 * WIDTH)
                    .round();
                letter.to_string().repeat(width as usize)
            });
        let total = row.total.map_or(0.0, |ns| ns as f64 / 1e3);
        out::line(format!(
            "{:>12} {total:>12.1} µs  {}",
            row.id,
            parts.collect::<String>()
        ));
    }
}

fn table(lines: &[(String, &Histogram)]) -> String {
    let rows = lines
        .iter()
        .map(|(name, histogram)| (name.as_str(), histogram.len(), histogram.summary()));
    latency::table::summaries(&rows.collect::<Vec<(&str, u64, Summary)>>())
}

fn object(lines: &[(String, &Histogram)]) -> Value {
    lines
        .iter()
        .map(|(name, histogram)| {
            let value = json!({"samples": histogram.len(), "us": histogram.summary()});
            (name.clone(), value)
        })
        .collect()
}
