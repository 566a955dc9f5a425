//! What an experiment says beyond its rows: paths against each other, jumps over size and their causes, and a
//! recommender that ranks in the page what `openlink recommend` ranks on a terminal.
//!
//! It draws what `compare`, `knee` and `recommend` found; it computes nothing itself.

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::analysis::{Config, groups};
use crate::compare::{Ratio, ratios};
use crate::knee::{self, Knee};
use crate::results::{Row, size};
use crate::table::us;

const SCRIPT: &str = include_str!("recommend.js");

/// Every section that the rows give rise to.
pub(super) fn sections(rows: &[Row]) -> Markup {
    let (ratios, knees) = (ratios(rows), knee::find(rows));
    html! {
        @if !ratios.is_empty() { (comparison(&ratios)) }
        @if !knees.is_empty() { (jumps(&knees)) }
        @if !rows.is_empty() { (recommender(rows)) }
    }
}

fn comparison(ratios: &[Ratio]) -> Markup {
    html! {
        section #paths {
            h2 { "Paths against one domain" }
            p.sub {
                "Median round trip of a path over that in one domain, same conditions. A bridge doubles the number of hops, so 2.0 is an "
                "equal hop. Bounds hold with 95 %: from resampled runs where there are three or more, else from the medians' own bounds."
            }
            div.scroll { table.plain {
                thead { tr {
                    @for head in ["path", "conditions", "payload", "one domain µs", "path µs", "ratio", "95 %", "runs", "answers"] { th scope="col" { (head) } }
                } }
                tbody { @for ratio in ratios { (ratio_row(ratio)) } }
            } }
        }
    }
}

fn ratio_row(ratio: &Ratio) -> Markup {
    let bounds = ratio.interval.map_or_else(
        || "–".to_owned(),
        |[low, high]| format!("{low:.2} to {high:.2}"),
    );
    let pair = |values: [String; 2]| values.join(" / ");
    html! {
        tr {
            td data-head="path" { (ratio.path) }
            td data-head="conditions" { (ratio.config) }
            td.number data-head="payload" { (size(ratio.bytes)) }
            td.number data-head="one domain" { (us(Some(ratio.same_us))) }
            td.number data-head="path µs" { (us(Some(ratio.path_us))) }
            td.number data-head="ratio" { b { (format!("{:.2}", ratio.ratio)) } }
            td.number data-head="95 %" { (bounds) }
            td.number data-head="runs" { (pair(ratio.runs.map(|runs| runs.to_string()))) }
            td.number data-head="answers" { (pair(ratio.answers.map(|answers| answers.to_string()))) }
        }
    }
}

fn jumps(knees: &[Knee]) -> Markup {
    html! {
        section #knees {
            h2 { "Jumps over payload size" }
            p.sub {
                "The first size of each configuration whose tail is far above what the sizes before let expect. A cause is called shown when a "
                "measured change removed drops and jump; otherwise it is plausible."
            }
            ul { @for knee in knees { li { (knee.sentence()) } } }
        }
    }
}

/// What the page's script ranks: one configuration at one size.
#[derive(Serialize)]
struct Candidate {
    label: String,
    link: String,
    path: String,
    hz: f64,
    bytes: usize,
    sent: u64,
    gone: u64,
    /// Of each run: answers, time in the relay, distribution.
    runs: Vec<(u64, f64, Vec<[f64; 2]>)>,
    p50: Option<f64>,
    p99: Option<f64>,
    /// Row numbers, from 1.
    rows: Vec<usize>,
}

fn candidates(rows: &[Row]) -> Vec<Candidate> {
    let number = |row: &Row| rows.iter().position(|one| std::ptr::eq(one, row));
    let all = groups(rows);
    let each = all
        .iter()
        .flat_map(|(config, sizes)| sizes.iter().map(move |group| (config, group)));
    each.map(|(config, group): (&Config, _)| {
        let (sent, gone) = group.sent_and_missed();
        let one_way = |of: fn(&Row) -> Option<f64>| {
            crate::analysis::median(
                &group
                    .rows
                    .iter()
                    .filter_map(|row| of(row))
                    .collect::<Vec<_>>(),
            )
        };
        Candidate {
            label: config.label(),
            link: config.link.clone(),
            path: config.path.clone(),
            hz: config.millihertz as f64 / 1e3,
            bytes: group.bytes,
            sent,
            gone,
            runs: group
                .rows
                .iter()
                .map(|row| {
                    (
                        row.received,
                        row.processing_us.p50.unwrap_or(0.0),
                        row.rtt_ecdf.clone(),
                    )
                })
                .collect(),
            p50: one_way(|row| row.latency_us.p50),
            p99: one_way(|row| row.latency_us.p99),
            rows: group
                .rows
                .iter()
                .filter_map(|row| number(row))
                .map(|index| index + 1)
                .collect(),
        }
    })
    .collect()
}

fn recommender(rows: &[Row]) -> Markup {
    let data = serde_json::to_string(&candidates(rows))
        .unwrap_or_default()
        .replace('<', "\\u003c");
    let fields = [
        ("need-bytes", "message, bytes", "1000"),
        ("need-rate", "messages a second", "100"),
        ("need-deadline", "within, ms", "10"),
        ("need-loss", "share that may miss", "0.01"),
    ];
    html! {
        section #recommend {
            h2 { "What fits" }
            p.sub {
                "Ranks the rows of this page for a need; nothing is extrapolated to sizes that were not measured. The deadline is compared with "
                "half a round trip less the relay's time, which takes both ways as equally long."
            }
            div.needs {
                @for (id, name, value) in fields {
                    label { span { (name) } input id=(id) inputmode="decimal" value=(value); }
                }
                label { span { "link" } input id="need-link" placeholder="any" autocomplete="off"; }
            }
            ol #ranking {}
            script #candidates type="application/json" { (PreEscaped(data)) }
            script { (PreEscaped(SCRIPT)) }
        }
    }
}

/// What stands in a row's notes about its causes.
pub(super) fn notes(row: &Row) -> Vec<String> {
    let Some(causes) = &row.causes else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let overflows = causes.overflows();
    if overflows > 0 {
        notes.push(format!(
            "{overflows} datagrams dropped at full receive buffers"
        ));
    }
    for (count, what) in [
        (causes.udp_send_overflows, "send buffers full"),
        (causes.ip_reassembly_failures, "IP reassembly failures"),
        (
            causes.lost_on_the_way_out.unwrap_or(0),
            "lost on the way out",
        ),
        (
            causes.lost_on_the_way_back.unwrap_or(0),
            "lost on the way back",
        ),
    ] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    if let Some(steal) = causes.steal_percent.filter(|steal| *steal >= 1.0) {
        notes.push(format!("{steal:.1} % stolen by the hypervisor"));
    }
    if let Some(busy) = causes.busy_percent.filter(|busy| *busy >= 90.0) {
        notes.push(format!("processors {busy:.0} % busy"));
    }
    notes
}

/// The counters of a row, for its settings.
pub(super) fn counters(row: &Row) -> Markup {
    let Some(causes) = &row.causes else {
        return html! {};
    };
    html! {
        dt { "datagrams, TCP segments" } dd { (causes.udp_datagrams) ", " (causes.tcp_segments) }
        dt { "dropped at receive buffers" } dd { (causes.overflows()) " (" (causes.udp_receive_overflows) " in the namespace)" }
        @if let (Some(busy), Some(steal)) = (causes.busy_percent, causes.steal_percent) {
            dt { "processors" } dd { (busy) " % busy, " (steal) " % stolen, " (causes.context_switches) " context switches" }
        }
        @for (name, bytes) in &causes.mtu { dt { "MTU of " (name) } dd { (bytes) " B" } }
        @for (name, usage) in &causes.processes {
            dt { (name) }
            dd {
                (format!("{:.2}", usage.cpu_s)) " s CPU, " (usage.rss_mib) " MiB, " (usage.threads) " threads, "
                (usage.voluntary_switches) " + " (usage.involuntary_switches) " context switches"
                @if !usage.receive_buffers.is_empty() { ", receive buffers " (format!("{:?}", usage.receive_buffers)) " B" }
            }
        }
    }
}
