//! Box plots, one below the other, on a logarithmic time axis.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    Area, BOX, Band, Chart, ChartError, Frame, INK, LogAxis, Overlay, Width, line, text, time,
};

/// Height of one box with its name above it.
const BAND: i32 = 50;
/// From the top of a band to the middle of its box.
const MIDDLE: i32 = 30;
/// Half the height of a box.
const HALF: i32 = 8;
const BELOW: i32 = 30;
const TOP: i32 = 4;

/// What a box shows, us.
pub(crate) struct BoxFigures {
    pub(crate) name: String,
    /// End of the lower whisker.
    pub(crate) low: f64,
    /// 25 %, 50 % and 75 %.
    pub(crate) quartiles: [f64; 3],
    /// End of the upper whisker.
    pub(crate) high: f64,
    /// The dot.
    pub(crate) slowest: f64,
    pub(crate) samples: u64,
}

/// Draws all of them, from top to bottom.
pub(crate) fn boxes(boxes: &[BoxFigures], width: Width) -> Result<Chart, ChartError> {
    let bands = i32::try_from(boxes.len()).unwrap_or(i32::MAX / BAND);
    let bottom = TOP + bands * BAND;
    let frame = Frame {
        plot: [14, TOP, width.px() as i32 - 16, bottom],
        axis: LogAxis::covering(
            boxes
                .iter()
                .flat_map(|figures| [figures.low, figures.slowest]),
        ),
    };
    let mut svg = String::new();
    {
        let size = (width.px(), (bottom + BELOW).unsigned_abs());
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        frame.draw_times(&area, width)?;
        for (figures, top) in boxes.iter().zip((TOP..).step_by(BAND as usize)) {
            draw(&area, &frame, figures, top)?;
        }
        area.present()?;
    }
    let bands = boxes.iter().zip((TOP..).step_by(BAND as usize));
    Ok(Chart {
        svg,
        overlay: Overlay {
            plot: frame.plot,
            axis: [frame.axis.low, frame.axis.high],
            lines: Vec::new(),
            bands: bands.map(|(figures, top)| band(figures, top)).collect(),
        },
    })
}

fn draw(area: &Area<'_>, frame: &Frame, figures: &BoxFigures, top: i32) -> Result<(), ChartError> {
    let y = top + MIDDLE;
    let [first, median, third] = figures.quartiles.map(|us| frame.x(us));
    let (low, high) = (frame.x(figures.low), frame.x(figures.high));
    text(
        area,
        &figures.name,
        (frame.plot[0], top + 3),
        HPos::Left,
        VPos::Top,
    )?;
    line(area, [(low, y), (high, y)], INK)?;
    for end in [low, high] {
        line(area, [(end, y - HALF / 2), (end, y + HALF / 2)], INK)?;
    }
    // A box of no width would not be seen.
    let right = third.max(first + 2);
    area.draw(&Rectangle::new(
        [(first, y - HALF), (right, y + HALF)],
        BOX.filled(),
    ))?;
    area.draw(&PathElement::new(
        [(median, y - HALF), (median, y + HALF)],
        INK.stroke_width(2),
    ))?;
    area.draw(&Circle::new((frame.x(figures.slowest), y), 3, INK.filled()))?;
    Ok(())
}

fn band(figures: &BoxFigures, top: i32) -> Band {
    let [first, median, third] = figures.quartiles.map(time);
    let text = format!(
        "{}\nslowest {}\nupper whisker {}\n75 % {third}\nmedian {median}\n25 % {first}\nfastest {}\n{} answers",
        figures.name,
        time(figures.slowest),
        time(figures.high),
        time(figures.low),
        figures.samples,
    );
    Band {
        top,
        bottom: top + BAND,
        text,
    }
}
