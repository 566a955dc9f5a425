//! Rows as an HTML table, and the words that name a row.

use maud::{Markup, html};

use crate::histogram::Summary;
use crate::results::{Row, size};
use crate::table::us;

/// Where: link, path, domains and middlewares.
pub(super) fn where_of(row: &Row) -> String {
    let identity = &row.identity;
    let mut words = vec![identity.link.clone(), identity.path.clone()];
    if let Some([from, to]) = identity.domains {
        words.push(if from == to {
            format!("({from})")
        } else {
            format!("({from} → {to})")
        });
    }
    if let Some([probe, relay]) = &identity.rmw {
        let short = |name: &str| {
            name.trim_start_matches("rmw_")
                .trim_end_matches("_cpp")
                .to_owned()
        };
        let (probe, relay) = (short(probe), short(relay));
        words.push(if probe == relay {
            probe
        } else {
            format!("{probe} / {relay}")
        });
    }
    words.extend(experiment(row));
    words.join(" ")
}

/// What an experiment varies beside path and size.
fn experiment(row: &Row) -> Vec<String> {
    let Some(transport) = row.setting("transport") else {
        return Vec::new();
    };
    let qos = row.identity.qos.clone().unwrap_or_default();
    let short = qos.replace(", volatile", "").replace("keep_last ", "last ");
    vec![transport, short]
}

/// What: payload, size and pace.
pub(super) fn what_of(row: &Row) -> String {
    format!("{} {}, {}", payload(row), size(row.bytes), pace(row))
}

fn payload(row: &Row) -> String {
    format!("{:?}", row.identity.payload).to_lowercase()
}

fn pace(row: &Row) -> String {
    row.rate_hz
        .map_or_else(|| "ping-pong".to_owned(), |hz| format!("{hz} Hz"))
}

/// One table cell: what it shows and what it sorts by.
struct Field {
    head: &'static str,
    hint: &'static str,
    text: String,
    sort: Option<f64>,
}

fn word(head: &'static str, hint: &'static str, text: String) -> Field {
    Field {
        head,
        hint,
        text,
        sort: None,
    }
}

fn figure(head: &'static str, hint: &'static str, value: Option<f64>) -> Field {
    Field {
        head,
        hint,
        text: us(value),
        sort: Some(value.unwrap_or(f64::MAX)),
    }
}

fn count(head: &'static str, hint: &'static str, value: u64) -> Field {
    Field {
        head,
        hint,
        text: value.to_string(),
        sort: Some(value as f64),
    }
}

fn fields(row: &Row) -> Vec<Field> {
    let Summary {
        p50,
        p90,
        p99,
        p999,
        max,
        ..
    } = row.rtt_us;
    vec![
        word("where", "link, path, domains and middleware", where_of(row)),
        Field {
            sort: Some(row.bytes as f64),
            ..word(
                "payload",
                "kind and size of the payload",
                format!("{} {}", payload(row), size(row.bytes)),
            )
        },
        Field {
            sort: Some(row.rate_hz.unwrap_or(0.0)),
            ..word(
                "pace",
                "probes a second, or the next after the answer",
                pace(row),
            )
        },
        figure("p50", "round trip, median, µs", p50),
        figure("p90", "round trip, 90 %, µs", p90),
        figure("p99", "round trip, 99 %, µs", p99),
        figure("p99.9", "round trip, 99.9 %, µs", p999),
        figure("max", "round trip, slowest, µs", max),
        figure(
            "half RTT",
            "median of (round trip − time in the relay) / 2, µs",
            row.latency_us.p50,
        ),
        figure(
            "relay",
            "median time in the relay, µs",
            row.processing_us.p50,
        ),
        count("sent", "probes that count", row.sent),
        count("received", "answered in time", row.received),
        count("lost", "never answered", row.lost),
        count("late", "answered after the time-out", row.late),
    ]
}

/// The table of all rows.
pub(super) fn table(rows: &[Row]) -> Markup {
    let Some(first) = rows.first() else {
        return html! { p.empty { "No rows: nothing was measured." } };
    };
    let noted = rows.iter().any(|row| !notes(row).is_empty());
    html! {
        div.scroll {
            table #rows {
                thead { tr {
                    @for field in fields(first) {
                        th scope="col" title=(field.hint) { button type="button" { (field.head) } }
                    }
                    @if noted { th scope="col" { "notes" } }
                } }
                tbody { @for row in rows { (table_row(row, noted)) } }
            }
        }
    }
}

fn table_row(row: &Row, noted: bool) -> Markup {
    html! {
        tr {
            @for field in fields(row) {
                td data-head=(field.head) data-sort=[field.sort] class=[field.sort.map(|_| "number")] {
                    @if matches!(field.head, "lost" | "late") && field.text != "0" {
                        strong.bad { (field.text) }
                    } @else {
                        (field.text)
                    }
                }
            }
            @if noted { td data-head="notes" { @for note in notes(row) { span.note { (note) } " " } } }
        }
    }
}

/// What a reader must know before believing a row.
fn notes(row: &Row) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add = |when: bool, text: String| {
        if when {
            notes.push(text);
        }
    };
    add(row.partial, "ended early".to_owned());
    add(row.received == 0, "no answer in time".to_owned());
    for (count, what) in [
        (row.duplicate, "duplicate"),
        (row.reordered, "reordered"),
        (row.damaged, "damaged"),
        (row.foreign, "foreign"),
        (row.unsent, "not sent"),
        (row.bad_stamps, "with bad relay times"),
    ] {
        add(count > 0, format!("{count} {what}"));
    }
    notes.extend(super::experiment::notes(row));
    if let Some([low, high]) = row.rtt_modes {
        let share = |share: f64| format!("{:.0} %", share * 100.0);
        notes.push(format!(
            "two peaks: {} near {} µs, {} near {} µs",
            share(low.share),
            us(Some(low.us)),
            share(high.share),
            us(Some(high.us))
        ));
    }
    notes
}
