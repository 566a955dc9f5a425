//! The analysis as charts in the report's page.

use super::{Ipt, Rtt, Stages, Trace};
use crate::histogram::Histogram;
use crate::record::Reason;
use crate::report::chart::{BoxFigures, Series};
use crate::report::{Figure, ReportError, figure_page};

/// One page of whatever was computed.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn page(
    trace: &Trace,
    ipt: Option<&Ipt>,
    rtt: Option<&Rtt>,
    stages: Option<&Stages>,
) -> Result<String, ReportError> {
    let mut figures = Vec::new();
    if let Some(ipt) = ipt {
        figures.push(Figure::of_series(
            &format!("Time between packets to the drone, at {}", ipt.stage.name()),
            "All packets that left, whatever they carried. A step at a period is a sender with that period.",
            &ipt_series(ipt),
        )?);
    }
    if let Some(rtt) = rtt {
        let title = format!(
            "Round trip, {} to {}",
            rtt.stages.0.name(),
            rtt.stages.1.name()
        );
        let lines = [
            series("from the first sending", &rtt.first),
            series("from the last sending", &rtt.last),
        ];
        figures.push(Figure::of_series(
            &title,
            "Requests with an answer. From the last sending: what the link took, without the wait before a resend.",
            &lines.into_iter().flatten().collect::<Vec<_>>(),
        )?);
    }
    if let Some(stages) = stages {
        figures.push(Figure::of_boxes(
            "Where the time goes",
            &stage_boxes(stages),
        )?);
    }
    let hosts: Vec<String> = trace.hosts.iter().map(|host| host.name.clone()).collect();
    let figures: Vec<Figure> = figures.into_iter().flatten().collect();
    Ok(figure_page(
        "Packet log",
        &hosts.join(" and "),
        &trace.warnings(),
        &figures,
    ))
}

fn ipt_series(ipt: &Ipt) -> Vec<Series> {
    let reasons = Reason::ALL.iter().filter_map(|reason| {
        let gaps = ipt.by_reason.get(reason.name())?;
        series(&format!("before {}", reason.name()), gaps)
    });
    series("all", &ipt.gaps)
        .into_iter()
        .chain(reasons)
        .collect()
}

fn series(name: &str, histogram: &Histogram) -> Option<Series> {
    (!histogram.is_empty()).then(|| Series {
        name: format!("{name} ({})", histogram.len()),
        points: histogram.ecdf(),
    })
}

fn stage_boxes(stages: &Stages) -> Vec<BoxFigures> {
    let summaries = stages
        .summaries()
        .into_iter()
        .filter(|stage| !stage.histogram.is_empty());
    summaries
        .map(|stage| {
            let us = |q: f64| {
                stage
                    .histogram
                    .quantile(q)
                    .or_else(|| stage.histogram.quantile(0.5))
                    .unwrap_or(0.0)
                    / 1e3
            };
            let slowest = stage.summary.max.unwrap_or_default();
            BoxFigures {
                low: stage.summary.min.unwrap_or_default(),
                quartiles: [us(0.25), us(0.5), us(0.75)],
                high: stage.summary.p99.unwrap_or(slowest),
                slowest,
                samples: stage.histogram.len(),
                name: stage.name,
            }
        })
        .collect()
}
