//! Results as one HTML page that needs no network: table, charts, machine and settings.
//!
//! It only draws what the rows hold; it never computes a figure that a row leaves out.

mod axis;
pub(crate) mod chart;
mod experiment;
mod page;
mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use chart::ChartError;
use chart::{BoxFigures, Chart, PALETTE, Series, Width};

use crate::analysis::Group;
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

/// The runs of one configuration, size and machine, drawn as one line.
struct Pooled<'a> {
    first: &'a Row,
    runs: Group<'a>,
    ecdf: Vec<[f64; 2]>,
}

/// Distributions of the same size and rate share a chart; the boxes of all stand in one.
fn figures(rows: &[Row]) -> Result<Vec<Figure>, ChartError> {
    let pooled = pool(rows);
    let mut figures = vec![boxes(&pooled)?];
    for group in alike(&pooled) {
        for part in group.chunks(PALETTE.len()) {
            figures.push(distributions(part)?);
        }
    }
    Ok(figures.into_iter().flatten().collect())
}

/// Pools the runs of an experiment's cell, in order of first appearance. Rows that no experiment numbered stay
/// alone: they may differ in what nothing records.
fn pool(rows: &[Row]) -> Vec<Pooled<'_>> {
    let mut pooled: Vec<Pooled<'_>> = Vec::new();
    for row in rows.iter().filter(|row| !row.rtt_ecdf.is_empty()) {
        let cell = row.setting("cell");
        let same = pooled.iter_mut().find(|one| {
            cell.is_some() && one.first.setting("cell") == cell && one.first.host == row.host
        });
        match same {
            Some(one) => one.runs.rows.push(row),
            None => pooled.push(Pooled {
                first: row,
                runs: Group {
                    bytes: row.bytes,
                    rows: vec![row],
                },
                ecdf: Vec::new(),
            }),
        }
    }
    for one in &mut pooled {
        one.ecdf = match one.runs.rows.as_slice() {
            [row] => row.rtt_ecdf.clone(),
            _ => one.runs.ecdf(),
        };
    }
    pooled
}

/// Those of one size, rate and payload, in order of first appearance.
fn alike<'a, 'b>(pooled: &'b [Pooled<'a>]) -> Vec<Vec<&'b Pooled<'a>>> {
    let what = |one: &Pooled<'_>| {
        let row = one.first;
        (row.bytes, row.rate_hz, row.identity.payload)
    };
    let mut groups: Vec<Vec<&Pooled<'_>>> = Vec::new();
    for one in pooled {
        match groups.iter_mut().find(|group| what(group[0]) == what(one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

fn distributions(lines: &[&Pooled<'_>]) -> Result<Option<Figure>, ChartError> {
    let series: Vec<Series> = lines
        .iter()
        .map(|one| Series {
            name: rows::where_of(one.first),
            points: one.ecdf.clone(),
        })
        .collect();
    let title = format!("Round trip, {}", rows::what_of(lines[0].first));
    Figure::of_series(&title, ECDF_NOTE, &series)
}

fn boxes(pooled: &[Pooled<'_>]) -> Result<Option<Figure>, ChartError> {
    let boxes: Vec<BoxFigures> = pooled.iter().map(box_of).collect();
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

fn box_of(one: &Pooled<'_>) -> BoxFigures {
    let rows = &one.runs.rows;
    let at = |fraction: f64| {
        let point = one.ecdf.iter().find(|point| point[1] >= fraction);
        point
            .or_else(|| one.ecdf.last())
            .map_or(0.0, |point| point[0])
    };
    let all = |of: fn(&Row) -> Option<f64>| rows.iter().filter_map(move |row| of(row));
    let slowest = all(|row| row.rtt_us.max).reduce(f64::max);
    let slowest = slowest.unwrap_or_else(|| at(1.0));
    // What one row says is exact; over several, the pooled distribution says it.
    let exact = |of: fn(&Row) -> Option<f64>| match rows.as_slice() {
        [row] => of(row),
        _ => None,
    };
    let samples: u64 = rows.iter().map(|row| row.received).sum();
    let tail = if samples >= 100 { at(0.99) } else { slowest };
    let high = match rows.as_slice() {
        [row] => row.rtt_us.p99.unwrap_or(slowest),
        _ => tail,
    };
    BoxFigures {
        name: [Some(one.first.label()), one.first.setting("transport")]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", "),
        low: all(|row| row.rtt_us.min)
            .reduce(f64::min)
            .unwrap_or_else(|| at(0.0)),
        quartiles: [
            at(0.25),
            exact(|row| row.rtt_us.p50).unwrap_or_else(|| at(0.5)),
            at(0.75),
        ],
        high,
        slowest,
        samples,
    }
}
