//! The rows of a results file as a table for the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::histogram::Summary;
use crate::results::{Row, size};

/// What stands where there is no figure.
const ABSENT: &str = "–";
/// One line below the head, no more.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new(' ', '─', '─', ' '));
/// Columns before the figures hold words and are flushed left.
const WORDS: usize = 3;

/// Renders `rows`, times in microseconds. `width` in characters; `None`: as wide as it takes (for files and
/// pipes).
#[must_use]
pub fn render(rows: &[Row], width: Option<u16>) -> String {
    if rows.is_empty() {
        return "no rows".to_owned();
    }
    let mut table = Table::new();
    table.load_style(STYLE);
    match width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header([
        "link",
        "path",
        "payload",
        "rate",
        "sent",
        "lost",
        "late",
        "RTT p50 µs",
        "p90",
        "p99",
        "max",
        "half RTT p50",
        "relay p50",
    ]);
    for row in rows {
        table.add_row(cells(row));
    }
    table.trim_fmt()
}

/// Renders named figures, microseconds, with their sample counts.
#[must_use]
pub fn summaries(lines: &[(&str, u64, Summary)]) -> String {
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "", "samples", "min", "p50", "p90", "p99", "p99.9", "max", "mean",
    ]);
    for (name, samples, of) in lines {
        let figures = [of.min, of.p50, of.p90, of.p99, of.p999, of.max, of.mean].map(us);
        let right = std::iter::once(samples.to_string()).chain(figures);
        let cells = right.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row(std::iter::once(Cell::new(name)).chain(cells));
    }
    table.trim_fmt()
}

/// Columns of the terminal on standard output; `None` when it is none.
#[must_use]
pub fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

fn cells(row: &Row) -> Vec<Cell> {
    let identity = &row.identity;
    let partial = if row.partial { " (partial)" } else { "" };
    let Summary {
        p50, p90, p99, max, ..
    } = row.rtt_us;
    let kind = format!("{:?}", identity.payload).to_lowercase();
    let payload = format!("{kind} {}", size(row.bytes));
    let words = [
        identity.link.clone(),
        format!("{}{partial}", identity.path),
        payload,
    ];
    let figures = [
        row.rate_hz
            .map_or_else(|| "p-p".to_owned(), |hz| format!("{hz} Hz")),
        row.sent.to_string(),
        row.lost.to_string(),
        row.late.to_string(),
        us(p50),
        us(p90),
        us(p99),
        us(max),
        us(row.latency_us.p50),
        us(row.processing_us.p50),
    ];
    words
        .into_iter()
        .chain(figures)
        .enumerate()
        .map(|(column, text)| cell(column, text))
        .collect()
}

fn cell(column: usize, text: String) -> Cell {
    let side = if column < WORDS {
        CellAlignment::Left
    } else {
        CellAlignment::Right
    };
    Cell::new(text).set_alignment(side)
}

/// Microseconds with three significant digits where that matters: `0.43`, `17.5`, `4210`.
#[must_use]
pub fn us(value: Option<f64>) -> String {
    match value {
        None => ABSENT.to_owned(),
        Some(us) if us >= 100.0 => format!("{us:.0}"),
        Some(us) if us >= 10.0 => format!("{us:.1}"),
        Some(us) => format!("{us:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Identity, Payload};
    use crate::{MonoNs, Plan, Prober};

    fn empty_row() -> Row {
        let prober = Prober::new(Plan::default(), MonoNs(0)).unwrap();
        let identity = Identity {
            link: "prrt".into(),
            path: "loopback".into(),
            domains: None,
            rmw: None,
            qos: None,
            payload: Payload::Crtp,
            settings: std::collections::BTreeMap::new(),
        };
        Row::new(identity, &prober.finish(MonoNs(1)))
    }

    #[test]
    fn rows_without_samples_show_dashes_and_no_nan() {
        let text = render(&[empty_row()], None);
        assert!(
            text.contains("prrt") && text.contains("loopback (partial)"),
            "{text}"
        );
        assert!(text.contains('–') && !text.contains("NaN"), "{text}");
        assert_eq!(render(&[], None), "no rows");
    }

    #[test]
    fn a_narrow_terminal_is_kept_to() {
        let text = render(&[empty_row()], Some(80));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn figures_have_the_digits_that_matter() {
        let shown = [None, Some(0.4321), Some(17.46), Some(4210.4)].map(us);
        assert_eq!(shown, ["–", "0.43", "17.5", "4210"]);
    }
}
