//! The page around table and charts: head, machine, settings, and how to read it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::Chart;
use super::{Figure, experiment, rows};
use crate::results::{Host, Results, Row};
use crate::table::us;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn page(results: &Results, figures: &[Figure]) -> Markup {
    frame(
        "Latency report",
        &html! {
            (head(results))
            section { h2 { "Rows" } (filter(&results.rows)) (rows::table(&results.rows)) (how_to_read()) }
            (experiment::sections(&results.rows))
            (all(figures))
            (machines(results))
            (settings(&results.rows))
        },
    )
}

/// A page of figures alone, with what a reader must know first.
pub(super) fn figure_page(
    title: &str,
    sub: &str,
    warnings: &[String],
    figures: &[Figure],
) -> Markup {
    frame(
        title,
        &html! {
            header {
                h1 { (title) }
                p.sub { (sub) }
                @for warning in warnings { p { span.note { (warning) } } }
            }
            (all(figures))
        },
    )
}

fn all(figures: &[Figure]) -> Markup {
    html! {
        @for figure in figures { (figure_of(figure)) }
        @if figures.is_empty() { p.empty { "No answers, so there is nothing to draw." } }
    }
}

/// What is around every page.
fn frame(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
                div #tip role="status" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn head(results: &Results) -> Markup {
    let sum = |of: fn(&Row) -> u64| results.rows.iter().map(of).sum::<u64>();
    let fastest = results
        .rows
        .iter()
        .filter_map(|row| row.rtt_us.p50)
        .reduce(f64::min);
    let (sent, missed) = (sum(|row| row.sent), sum(|row| row.lost + row.late));
    let share = if sent == 0 {
        0.0
    } else {
        missed as f64 / sent as f64 * 100.0
    };
    html! {
        header {
            h1 { "Latency report" }
            p.sub { (host_line(&results.host)) }
            div.tiles {
                (tile("rows", &results.rows.len().to_string()))
                (tile("probes sent", &sent.to_string()))
                (tile("lost or late", &format!("{missed} ({share:.2} %)")))
                (tile("quickest median round trip", &fastest.map_or_else(|| "–".to_owned(), |_| format!("{} µs", us(fastest)))))
            }
        }
    }
}

fn tile(name: &str, value: &str) -> Markup {
    html! { div.tile { b { (value) } span { (name) } } }
}

fn host_line(host: &Host) -> String {
    let cores = format!("{} CPUs", host.cores);
    let parts = [
        host.name.as_str(),
        host.cpu.as_str(),
        cores.as_str(),
        host.kernel.as_str(),
    ];
    let known: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    known.join(" · ")
}

fn filter(rows: &[Row]) -> Markup {
    html! {
        @if rows.len() > 1 {
            label.filter {
                span { "Filter" }
                input #filter type="search" placeholder="cross-domain, 33 KB, prrt …" autocomplete="off";
            }
        }
    }
}

fn how_to_read() -> Markup {
    html! {
        details {
            summary { "How to read the table" }
            p {
                "Times are microseconds, of answers that came in time; warm-up probes are excluded. At a rate, a round "
                "trip starts when the schedule wanted the probe to leave, so a stall is seen by every probe it delays. "
                "One way is (round trip − time in the relay) / 2 and takes both ways as equally long. A dash means "
                "that there are too few answers: 10 for p90, 100 for p99, 1000 for p99.9. Rows of different pace "
                "are not comparable: idle processors sleep."
            }
        }
    }
}

fn figure_of(figure: &Figure) -> Markup {
    html! {
        section.figure {
            h2 { (figure.title) }
            p.sub { (figure.note) }
            @if !figure.legend.is_empty() {
                div.legend {
                    @for (name, color) in &figure.legend {
                        button type="button" aria-pressed="true" data-color=(color) {
                            i style={ "background:" (color) } {} (name)
                        }
                    }
                }
            }
            (drawing("wide", &figure.wide))
            (drawing("narrow", &figure.narrow))
        }
    }
}

/// A drawing with its values beside it, in a script element of no type that runs.
fn drawing(class: &str, chart: &Chart) -> Markup {
    let json = serde_json::to_string(&chart.overlay)
        .unwrap_or_default()
        .replace('<', "\\u003c");
    html! {
        div.chart.(class) {
            (PreEscaped(&chart.svg))
            script type="application/json" { (PreEscaped(json)) }
        }
    }
}

fn machines(results: &Results) -> Markup {
    let others = results.rows.iter().filter_map(|row| row.host.as_deref());
    let mut hosts = vec![&results.host];
    for host in others {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    html! {
        section {
            h2 { @if hosts.len() == 1 { "Machine" } @else { "Machines" } }
            div.machines { @for host in hosts { (machine(host)) } }
        }
    }
}

fn machine(host: &Host) -> Markup {
    let unknown = || "not known".to_owned();
    let facts = [
        ("name", host.name.clone()),
        ("processor", format!("{}, {} CPUs", host.cpu, host.cores)),
        ("kernel", host.kernel.clone()),
        (
            "real-time kernel",
            if host.realtime { "yes" } else { "no" }.to_owned(),
        ),
        ("governor", host.governor.clone().unwrap_or_else(unknown)),
        (
            "idle states",
            if host.idle_states.is_empty() {
                unknown()
            } else {
                host.idle_states.join(", ")
            },
        ),
        (
            "memory",
            host.memory_mib
                .map_or_else(unknown, |mib| format!("{mib} MiB")),
        ),
        (
            "steal since boot",
            host.steal_percent
                .map_or_else(unknown, |steal| format!("{steal} %")),
        ),
        (
            "load",
            host.load.map_or_else(unknown, |load| load.to_string()),
        ),
    ];
    html! {
        dl {
            @for (name, value) in &facts { dt { (name) } dd { (value) } }
            @for (name, bytes) in &host.sockets { dt { (name) } dd { (bytes) " B" } }
            @for (name, version) in &host.versions { dt { (name) } dd { (version) } }
        }
    }
}

fn settings(rows: &[Row]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Settings" }
                @for row in rows {
                    details {
                        summary { (row.label()) }
                        dl {
                            dt { "QoS" } dd { (row.identity.qos.as_deref().unwrap_or("none")) }
                            dt { "warm-up" } dd { (row.warmup) " probes" }
                            dt { "time-out" } dd { (row.timeout_ms) " ms" }
                            dt { "duration" } dd { (format!("{:.1}", row.duration_s)) " s" }
                            @if let Some([low, high]) = row.rtt_interval_us.p50 {
                                dt { "median, 95 %" } dd { (us(Some(low))) " to " (us(Some(high))) " µs" }
                            }
                            (experiment::counters(row))
                            @for (name, value) in &row.identity.settings { dt { (name) } dd { (plain(value)) } }
                        }
                    }
                }
            }
        }
    }
}

fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
