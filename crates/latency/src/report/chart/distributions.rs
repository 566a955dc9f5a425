//! Cumulative distributions on a logarithmic time axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    Area, Chart, ChartError, Frame, GRID, Line, LogAxis, Overlay, PALETTE, Width, line, rgb, text,
};

const FRACTIONS: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];

/// One line: points `[us, fraction at most that long]`, rising to 1.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<[f64; 2]>,
}

/// Draws up to as many lines as [`PALETTE`] has colours; more start the colours over.
pub(crate) fn distributions(series: &[Series], width: Width) -> Result<Chart, ChartError> {
    let (right, height) = match width {
        Width::Wide => (width.px() as i32 - 14, 340),
        Width::Narrow => (width.px() as i32 - 16, 280),
    };
    let times = series
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point[0]));
    let frame = Frame {
        plot: [46, 10, right, height - 30],
        axis: LogAxis::covering(times),
    };
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width.px(), height.unsigned_abs()))
            .into_drawing_area();
        draw(&area, &frame, series, width)?;
        area.present()?;
    }
    Ok(Chart {
        svg,
        overlay: Overlay {
            plot: frame.plot,
            axis: [frame.axis.low, frame.axis.high],
            lines: lines(series),
            bands: Vec::new(),
        },
    })
}

fn draw(area: &Area<'_>, frame: &Frame, series: &[Series], width: Width) -> Result<(), ChartError> {
    frame.draw_times(area, width)?;
    let [left, _, right, _] = frame.plot;
    for fraction in FRACTIONS {
        let y = y(frame, fraction);
        line(area, [(left, y), (right, y)], GRID)?;
        let percent = format!("{:.0}%", fraction * 100.0);
        text(area, &percent, (left - 6, y), HPos::Right, VPos::Center)?;
    }
    for (line, color) in series.iter().zip(PALETTE.iter().cycle()) {
        let style = rgb(color).stroke_width(2);
        area.draw(&PathElement::new(steps(frame, &line.points), style))?;
    }
    Ok(())
}

/// The line goes up only where a sample is, and runs level to the right edge.
fn steps(frame: &Frame, points: &[[f64; 2]]) -> Vec<(i32, i32)> {
    let mut level = y(frame, 0.0);
    let mut steps = vec![(frame.plot[0], level)];
    for [us, fraction] in points {
        let x = frame.x(*us);
        steps.push((x, level));
        level = y(frame, *fraction);
        steps.push((x, level));
    }
    steps.push((frame.plot[2], level));
    steps
}

fn y(frame: &Frame, fraction: f64) -> i32 {
    let [_, top, _, bottom] = frame.plot;
    bottom - (fraction * f64::from(bottom - top)).round() as i32
}

fn lines(series: &[Series]) -> Vec<Line> {
    let named = series.iter().zip(PALETTE.into_iter().cycle());
    named
        .map(|(line, color)| Line {
            name: line.name.clone(),
            color,
            points: line.points.clone(),
        })
        .collect()
}
