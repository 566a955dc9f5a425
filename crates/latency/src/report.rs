//! Results as one HTML page that needs no network: table, charts, machine and settings.
//!
//! It only draws what the rows hold; it never computes a figure that a row leaves out.

mod axis;
pub(crate) mod chart;
mod page;
mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use chart::ChartError;
use chart::{BoxFigures, Chart, PALETTE, Series, Width};

use crate::results::{Results, ResultsError, Row};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The page cannot be written.
    #[error(transparent)]
    Write(#[from] ResultsError),
}

/// The page.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn render(results: &Results) -> Result<String, ReportError> {
    let charts = figures(&results.rows)?;
    Ok(page::page(results, &charts).into_string())
}

/// Writes the page whole: a reader sees the old one or the new one.
///
/// # Errors
/// A chart that cannot be drawn, or what the file system says.
pub fn write(results: &Results, path: &Path) -> Result<(), ReportError> {
    let page = render(results)?;
    crate::results::write_whole(path, page.as_bytes()).map_err(|source| {
        ReportError::Write(ResultsError::Io {
            path: path.to_owned(),
            source,
        })
    })
}

/// A chart in both widths, with its heading.
pub(crate) struct Figure {
    title: String,
    note: &'static str,
    /// Name and colour of each line; empty where the chart names its parts itself.
    legend: Vec<(String, &'static str)>,
    wide: Chart,
    narrow: Chart,
}

const ECDF_NOTE: &str =
    "How many of the answers took at most that long. Further left is quicker, steeper is steadier.";
const BOX_NOTE: &str =
    "Box: middle half; line in it: median; whiskers: fastest answer to 99 %; dot: slowest answer.";

/// Distributions of rows of the same size and rate share a chart; the boxes of all rows stand in one.
fn figures(rows: &[Row]) -> Result<Vec<Figure>, ChartError> {
    let measured: Vec<&Row> = rows.iter().filter(|row| !row.rtt_ecdf.is_empty()).collect();
    let mut figures = vec![boxes(&measured)?];
    for group in groups(&measured) {
        for part in group.chunks(PALETTE.len()) {
            figures.push(distributions(part)?);
        }
    }
    Ok(figures.into_iter().flatten().collect())
}

/// Rows that differ in link and path alone, in order of first appearance.
fn groups<'a>(rows: &[&'a Row]) -> Vec<Vec<&'a Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let same = groups.iter_mut().find(|group| {
            let first = group[0];
            (first.bytes, first.rate_hz, first.identity.payload)
                == (row.bytes, row.rate_hz, row.identity.payload)
        });
        match same {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn distributions(rows: &[&Row]) -> Result<Option<Figure>, ChartError> {
    let series: Vec<Series> = rows
        .iter()
        .map(|row| Series {
            name: rows::where_of(row),
            points: row.rtt_ecdf.clone(),
        })
        .collect();
    let title = format!("Round trip, {}", rows::what_of(rows[0]));
    Figure::of_series(&title, ECDF_NOTE, &series)
}

fn boxes(rows: &[&Row]) -> Result<Option<Figure>, ChartError> {
    let boxes: Vec<BoxFigures> = rows.iter().map(|row| box_of(row)).collect();
    Figure::of_boxes("Round trip, all rows", &boxes)
}

/// A page of figures alone.
pub(crate) fn figure_page(
    title: &str,
    sub: &str,
    warnings: &[String],
    figures: &[Figure],
) -> String {
    page::figure_page(title, sub, warnings, figures).into_string()
}

impl Figure {
    /// Distributions in both widths; `None` when there are none.
    pub(crate) fn of_series(
        title: &str,
        note: &'static str,
        series: &[Series],
    ) -> Result<Option<Self>, ChartError> {
        if series.is_empty() {
            return Ok(None);
        }
        let names = series.iter().map(|line| line.name.clone());
        Ok(Some(Self {
            title: title.to_owned(),
            note,
            legend: names.zip(PALETTE.into_iter().cycle()).collect(),
            wide: chart::distributions(series, Width::Wide)?,
            narrow: chart::distributions(series, Width::Narrow)?,
        }))
    }

    /// Boxes in both widths; `None` when there are none.
    pub(crate) fn of_boxes(title: &str, boxes: &[BoxFigures]) -> Result<Option<Self>, ChartError> {
        if boxes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            title: title.to_owned(),
            note: BOX_NOTE,
            legend: Vec::new(),
            wide: chart::boxes(boxes, Width::Wide)?,
            narrow: chart::boxes(boxes, Width::Narrow)?,
        }))
    }
}

fn box_of(row: &Row) -> BoxFigures {
    let at = |fraction: f64| {
        let point = row.rtt_ecdf.iter().find(|point| point[1] >= fraction);
        point
            .or_else(|| row.rtt_ecdf.last())
            .map_or(0.0, |point| point[0])
    };
    let slowest = row.rtt_us.max.unwrap_or_else(|| at(1.0));
    BoxFigures {
        name: row.label(),
        low: row.rtt_us.min.unwrap_or_else(|| at(0.0)),
        quartiles: [
            at(0.25),
            row.rtt_us.p50.unwrap_or_else(|| at(0.5)),
            at(0.75),
        ],
        high: row.rtt_us.p99.unwrap_or(slowest),
        slowest,
        samples: row.received,
    }
}
