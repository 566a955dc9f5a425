//! Files for other programs and for people: cyclictest's histogram form, and a page with charts.
//!
//! Text only; the caller writes the files.

use std::fmt::Write as _;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::cell::{CellResult, Figures};
use super::record::BUCKET_NS;
use super::report::{Document, number, verdict_word};

const SIZE: (u32, u32) = (900, 420);
const COLOURS: [RGBColor; 12] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0xff, 0x7f, 0x0e),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0x8c, 0x56, 0x4b),
    RGBColor(0xe3, 0x77, 0xc2),
    RGBColor(0x17, 0xbe, 0xcf),
    RGBColor(0x10, 0x20, 0x60),
    RGBColor(0x80, 0x80, 0x00),
    RGBColor(0x00, 0x60, 0x50),
    RGBColor(0x70, 0x70, 0x70),
];
/// Bins of the drawn histogram in each factor of ten.
const BINS_PER_DECADE: f64 = 16.0;
/// Where an empty bin is drawn on a logarithmic axis of counts.
const EMPTY_BIN: f64 = 0.5;

/// A chart that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("chart: {0}")]
pub struct ChartError(String);

/// One curve: its name and points of microseconds against share or count.
pub type Series = (String, Vec<(f64, f64)>);

/// The measured rows as a histogram file of cyclictest (`--histfile`): one column a row of the matrix, one line a
/// microsecond, the summary in comments.
#[must_use]
pub fn cyclictest_histogram(document: &Document) -> String {
    let measured: Vec<(&CellResult, &Figures)> = measured(document);
    let last = measured
        .iter()
        .filter_map(|(_, figures)| Some(figures.histogram.last()?.0))
        .max();
    let mut text = String::from("# Histogram\n");
    for us in 0..=last.unwrap_or(0) {
        let counts: Vec<String> = measured
            .iter()
            .map(|(_, figures)| format!("{:06}", count_at(figures, us)))
            .collect();
        let _infallible = writeln!(text, "{us:06} {}", counts.join("\t"));
    }
    let times = |name: &str, pick: fn(&Figures) -> u64| {
        let values: Vec<String> = measured
            .iter()
            .map(|(_, figures)| format!("{:05}", pick(figures)))
            .collect();
        format!("# {name}: {}\n", values.join(" "))
    };
    text += &times("Total", |figures| figures.cycles - figures.overflow);
    text += &times("Min Latencies", |figures| {
        figures.wake_us.min.unwrap_or(0.0) as u64
    });
    text += &times("Avg Latencies", |figures| {
        figures.wake_us.mean.unwrap_or(0.0) as u64
    });
    text += &times("Max Latencies", |figures| {
        figures.wake_us.max.unwrap_or(0.0) as u64
    });
    text += &times("Histogram Overflows", |figures| figures.overflow);
    for (column, (cell, _)) in measured.iter().enumerate() {
        let _infallible = writeln!(text, "# Column {column}: {}", name(cell));
    }
    text
}

fn measured(document: &Document) -> Vec<(&CellResult, &Figures)> {
    document
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.figures.as_ref()?)))
        .collect()
}

fn count_at(figures: &Figures, us: u64) -> u64 {
    let found = figures
        .histogram
        .binary_search_by_key(&us, |(bucket, _)| *bucket);
    found.map_or(0, |index| figures.histogram[index].1)
}

fn name(cell: &CellResult) -> String {
    let pin = cell
        .pin
        .as_ref()
        .map_or_else(String::new, |cpus| format!(", cpu {cpus}"));
    format!("{}, load {}{pin}", cell.policy, cell.load.name())
}

/// Cumulative distributions on a logarithmic time axis, as an SVG text.
///
/// # Errors
/// When the charting library refuses the data.
pub fn ecdf_svg(title: &str, series: &[Series]) -> Result<String, ChartError> {
    let place = SeriesLabelPosition::LowerRight;
    chart(
        title,
        "share of cycles at or below",
        series,
        0.0..1.0,
        place,
    )
}

/// Histograms with both axes logarithmic, as an SVG text.
///
/// # Errors
/// When the charting library refuses the data.
pub fn histogram_svg(title: &str, series: &[Series]) -> Result<String, ChartError> {
    let counts = series
        .iter()
        .flat_map(|(_, points)| points)
        .map(|(_, count)| *count);
    let top = counts.fold(10.0, f64::max) * 1.5;
    let place = SeriesLabelPosition::UpperRight;
    chart(
        title,
        "cycles in each bin",
        series,
        (EMPTY_BIN..top).log_scale(),
        place,
    )
}

fn chart<Y>(
    title: &str,
    y_label: &str,
    series: &[Series],
    y: Y,
    legend: SeriesLabelPosition,
) -> Result<String, ChartError>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut text = String::new();
    draw(&mut text, (title, y_label), series, y, legend)
        .map_err(|error| ChartError(error.to_string()))?;
    Ok(text)
}

fn draw<Y>(
    text: &mut String,
    (title, y_label): (&str, &str),
    series: &[Series],
    y: Y,
    legend: SeriesLabelPosition,
) -> Result<(), Box<dyn std::error::Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(time_axis(series).log_scale(), y)?;
    chart
        .configure_mesh()
        .x_desc("microseconds")
        .y_desc(y_label)
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for (index, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(
                points.iter().map(|(us, y)| (us.max(0.1), *y)),
                &colour,
            ))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
    }
    if !series.is_empty() {
        chart
            .configure_series_labels()
            .position(legend)
            .background_style(WHITE.mix(0.8))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

fn time_axis(series: &[Series]) -> std::ops::Range<f64> {
    let times = series
        .iter()
        .flat_map(|(_, points)| points)
        .map(|(us, _)| us.max(0.1));
    let (low, high) = times.fold((f64::MAX, 1.0_f64), |(low, high), us| {
        (low.min(us), high.max(us))
    });
    let low = low.min(high / 2.0);
    low * 0.9..high * 1.1
}

/// The wake-up distributions of all measured rows.
#[must_use]
pub fn ecdf_series(document: &Document) -> Vec<Series> {
    measured(document)
        .into_iter()
        .map(|(cell, figures)| (name(cell), figures.ecdf.clone()))
        .collect()
}

/// The wake-up histograms of all measured rows as steps over bins of equal width on a logarithmic axis.
#[must_use]
pub fn histogram_series(document: &Document) -> Vec<Series> {
    measured(document)
        .into_iter()
        .map(|(cell, figures)| (name(cell), steps(&figures.histogram)))
        .collect()
}

fn steps(histogram: &[(u64, u64)]) -> Vec<(f64, f64)> {
    let bin =
        |us: u64| ((us as f64 + BUCKET_NS as f64 / 2e3).log10() * BINS_PER_DECADE).floor() as i32;
    let edge = |bin: i32| 10f64.powf(f64::from(bin) / BINS_PER_DECADE);
    let (Some(first), Some(last)) = (histogram.first(), histogram.last()) else {
        return Vec::new();
    };
    let count = |wanted: i32| {
        histogram
            .iter()
            .filter(|(us, _)| bin(*us) == wanted)
            .map(|(_, count)| *count)
            .sum::<u64>()
    };
    let drawn = |bin: i32| (count(bin) as f64).max(EMPTY_BIN);
    (bin(first.0)..=bin(last.0))
        .flat_map(|bin| [(edge(bin), drawn(bin)), (edge(bin + 1), drawn(bin))])
        .collect()
}

/// A self-contained page: table, charts, method, machine.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn page(document: &Document) -> Result<String, ChartError> {
    let ecdf = ecdf_svg("wake-up latency", &ecdf_series(document))?;
    let histogram = histogram_svg("wake-up latency", &histogram_series(document))?;
    let settings = serde_json::to_string_pretty(&(&document.method, &document.host))
        .map_err(|e| ChartError(e.to_string()))?;
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Control loop</title>\n<style>{STYLE}</style>\n<h1>Control loop</h1>\n<p>{}</p>\n{}\n\
         <figure>{ecdf}</figure>\n<figure>{histogram}</figure>\n<h2>Table and reasons</h2>\n<pre>{}</pre>\n\
         <h2>Method and machine</h2>\n<pre>{}</pre>\n</html>\n",
        escaped(&document.verdict()),
        html_table(document),
        escaped(&document.table()),
        escaped(&settings),
    ))
}

const STYLE: &str = "body{font:16px system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .5rem;border-bottom:1px solid #8884;text-align:right}\
td:first-child,th:first-child{text-align:left}figure{margin:1rem 0;overflow-x:auto}svg{max-width:100%;height:auto}pre{overflow-x:auto;font-size:.8rem}";

fn html_table(document: &Document) -> String {
    let head = [
        "row",
        "wake p50",
        "p99.9",
        "max us",
        "% of period",
        "exec p50",
        "misses",
        "cycles",
        "verdict",
    ];
    let head: String = head.iter().map(|word| format!("<th>{word}</th>")).collect();
    let rows: String = document.cells.iter().map(html_row).collect();
    format!("<table><tr>{head}</tr>{rows}</table>")
}

fn html_row(cell: &CellResult) -> String {
    let figures = cell.figures.as_ref();
    let time = |pick: fn(&Figures) -> Option<f64>| number(figures.and_then(pick));
    let count = |pick: fn(&Figures) -> u64| {
        figures.map_or_else(|| "-".to_owned(), |figures| pick(figures).to_string())
    };
    let cells = [
        escaped(&name(cell)),
        time(|f| f.wake_us.p50),
        time(|f| f.wake_us.p999),
        time(|f| f.wake_us.max),
        time(|f| f.worst_share_percent),
        time(|f| f.exec_us.p50),
        count(|f| f.misses),
        count(|f| f.cycles),
        verdict_word(&cell.verdict).to_owned(),
    ];
    format!(
        "<tr>{}</tr>",
        cells.map(|text| format!("<td>{text}</td>")).concat()
    )
}

/// Text made safe for HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_steps_keep_every_count_and_show_gaps() {
        let steps = steps(&[(9, 3), (10, 4), (1000, 2)]);
        let distinct: Vec<f64> = steps.chunks(2).map(|pair| pair[0].1).collect();
        assert_eq!(
            distinct
                .iter()
                .filter(|count| **count > EMPTY_BIN)
                .sum::<f64>(),
            9.0
        );
        assert!(distinct.iter().filter(|count| **count == EMPTY_BIN).count() > 20);
        assert!(super::steps(&[]).is_empty());
    }

    /// The chart of a fixed series, byte for byte.
    #[test]
    fn the_chart_of_a_fixed_series_is_the_recorded_one() {
        let series = vec![(
            "fifo:80, load none".to_owned(),
            vec![(5.0, 0.1), (10.0, 0.9), (200.0, 1.0)],
        )];
        let golden = include_str!("../../tests/golden/ecdf.svg");
        assert_eq!(ecdf_svg("wake-up latency", &series).unwrap(), golden);
        assert!(ecdf_svg("nothing", &[]).unwrap().contains("</svg>"));
    }
}
