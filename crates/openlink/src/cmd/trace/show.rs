//! The answers of `openlink trace` as tables or JSON.

use latency::trace::{Age, Difference, Ipt, Offset, Rtt, Stages, Trace};
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
        let one_way: Vec<Value> = stages
            .one_way
            .iter()
            .map(|one| json!({"name": one.name, "samples": one.histogram.len(), "us": one.histogram.summary(),
                              "uncertainty_ns": one.uncertainty}))
            .collect();
        let offset = offset.map(|offset| json!({"low_ns": offset.low, "high_ns": offset.high, "packets": offset.packets}));
        out::json(
            &json!({"rows": stages.rows.len(), "durations": durations, "one_way": one_way, "clock_offset": offset}),
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
    for one in &stages.one_way {
        let doubt = if one.uncertainty == 0 {
            "one clock".to_owned()
        } else {
            format!("± {:.1} µs", one.uncertainty as f64 / 1e3)
        };
        let median = one.histogram.quantile(0.5).unwrap_or_default() / 1e3;
        out::line(format!(
            "{:<20} median {median:.1} µs, {doubt}, {} packets",
            one.name,
            one.histogram.len()
        ));
    }
    worst(stages);
}

/// Ages, one line for each stream.
pub(super) fn ages(ages: &[Age], as_json: bool) {
    if as_json {
        let ages: Vec<Value> = ages
            .iter()
            .map(|age| {
                json!({"direction": age.direction.name(), "port": age.port.0, "channel": age.port.1,
                       "stages": [age.stages.0.name(), age.stages.1.name()], "updates": age.updates,
                       "stale": age.stale, "average_us": age.average / 1e3, "peak_us": age.peaks.summary(),
                       "uncertainty_ns": age.uncertainty})
            })
            .collect();
        return out::json(&json!({ "ages": ages }));
    }
    for age in ages {
        let peaks = age.peaks.summary();
        let peak =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
        out::line(format!(
            "{} port {} channel {}, {} to {}: average age {:.1} µs, peaks p50 {} max {} µs; {} updates, {} stale{}",
            age.direction.name(),
            age.port.0,
            age.port.1,
            age.stages.0.name(),
            age.stages.1.name(),
            age.average / 1e3,
            peak(peaks.p50),
            peak(peaks.max),
            age.updates,
            age.stale,
            if age.uncertainty == 0 {
                String::new()
            } else {
                format!(" (± {:.1} µs)", age.uncertainty as f64 / 1e3)
            }
        ));
    }
}

/// What became of packets, one line for each fate.
pub(super) fn fates(trace: &Trace, as_json: bool) {
    let host = |number: usize| {
        let info = trace.hosts.get(number);
        info.map_or("?", |info| info.name.as_str())
    };
    let fates = latency::trace::fates(trace);
    if as_json {
        let fates: Vec<Value> = fates
            .iter()
            .map(|(fate, count)| {
                json!({"host": host(fate.host), "direction": fate.direction.name(), "stage": fate.stage.name(),
                       "reason": fate.reason.name(), "verdict": fate.verdict.name(), "count": count})
            })
            .collect();
        return out::json(&json!({ "fates": fates }));
    }
    for (fate, count) in fates {
        out::line(format!(
            "{:<24} {:<4} {:<2} {:<10} {:<18} {count:>8}",
            host(fate.host),
            fate.direction.name(),
            fate.stage.name(),
            fate.reason.name(),
            fate.verdict.name()
        ));
    }
}

/// Two runs beside each other.
pub(super) fn comparison(parts: &[(&str, Vec<Difference>)], as_json: bool) {
    if as_json {
        let part = |(name, differences): &(&str, Vec<Difference>)| {
            let lines: Vec<Value> = differences
                .iter()
                .map(|one| {
                    json!({"quantile": one.quantile, "base_ns": one.base, "other_ns": one.other,
                           "difference_ns": one.difference, "ratio": one.ratio, "clear": one.is_clear()})
                })
                .collect();
            ((*name).to_owned(), Value::from(lines))
        };
        return out::json(&parts.iter().map(part).collect::<Value>());
    }
    for (name, differences) in parts {
        for one in differences {
            let range = |ends: Option<[f64; 2]>, unit: f64| {
                ends.map_or_else(
                    || "too few samples".to_owned(),
                    |[low, high]| format!("{:.2} to {:.2}", low / unit, high / unit),
                )
            };
            out::line(format!(
                "{name:<22} {:>4} %  base {:>10.1} µs  other {:>10.1} µs  difference {} µs  ratio {}{}",
                one.quantile * 100.0,
                one.base / 1e3,
                one.other / 1e3,
                range(one.difference, 1e3),
                range(one.ratio, 1.0),
                if one.is_clear() {
                    ""
                } else {
                    "  (not told apart)"
                }
            ));
        }
    }
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
