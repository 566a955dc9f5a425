//! Charts as SVG, and what the page's script needs to name the values under the pointer.
//!
//! Colours of text, axes and grid are placeholders that the page's style sheet replaces, so that one drawing
//! serves light and dark.

mod boxes;
mod distributions;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Serialize;

use super::axis::{LogAxis, time};

pub(crate) use boxes::{BoxFigures, boxes};
pub(crate) use distributions::{Series, distributions};

/// Colours of lines and boxes, told apart by people who cannot see all of them, on light and dark.
pub(crate) const PALETTE: [&str; 8] = [
    "#2F6FDE", "#E07B00", "#1A9E6C", "#C8368A", "#7A5AF0", "#B8860B", "#0AA2C0", "#D43D3D",
];
/// Placeholders, see `style.css`.
const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(2, 2, 2);
const BOX: RGBColor = RGBColor(3, 3, 3);

const FONT_PX: u32 = 13;

/// Why a chart cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a chart: {0}")]
pub struct ChartError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for ChartError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// For a desktop or for a phone; the page shows the one that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Wide,
    Narrow,
}

impl Width {
    const fn px(self) -> u32 {
        match self {
            Self::Wide => 920,
            Self::Narrow => 380,
        }
    }

    const fn ticks(self) -> usize {
        match self {
            Self::Wide => 10,
            Self::Narrow => 4,
        }
    }
}

/// A drawing and its values.
pub(crate) struct Chart {
    pub(crate) svg: String,
    /// For the script; pixels are those of the drawing.
    pub(crate) overlay: Overlay,
}

/// What lies where.
#[derive(Debug, Serialize)]
pub(crate) struct Overlay {
    /// Left, top, right and bottom of the plot.
    plot: [i32; 4],
    /// Times at left and right, us, on a logarithmic scale.
    axis: [f64; 2],
    /// Lines with their points `[us, fraction]`.
    lines: Vec<Line>,
    /// Bands from top to bottom, each with a text.
    bands: Vec<Band>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    color: &'static str,
    points: Vec<[f64; 2]>,
}

#[derive(Debug, Serialize)]
struct Band {
    top: i32,
    bottom: i32,
    text: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The rectangle of a plot and the conversion of times into pixels.
#[derive(Clone, Copy)]
struct Frame {
    plot: [i32; 4],
    axis: LogAxis,
}

impl Frame {
    fn x(&self, us: f64) -> i32 {
        let [left, _, right, _] = self.plot;
        let LogAxis { low, high } = self.axis;
        let share = (self.axis.clamp(us) / low).ln() / (high / low).ln();
        left + (share * f64::from(right - left)).round() as i32
    }

    /// Vertical grid lines with their times below.
    fn draw_times(&self, area: &Area<'_>, width: Width) -> Result<(), ChartError> {
        let [_, top, _, bottom] = self.plot;
        for tick in self.axis.ticks(width.ticks()) {
            let x = self.x(tick);
            line(area, [(x, top), (x, bottom)], GRID)?;
            text(area, &time(tick), (x, bottom + 6), HPos::Center, VPos::Top)?;
        }
        Ok(())
    }
}

fn line(area: &Area<'_>, points: [(i32, i32); 2], color: RGBColor) -> Result<(), ChartError> {
    Ok(area.draw(&PathElement::new(points, color))?)
}

fn text(area: &Area<'_>, text: &str, at: (i32, i32), h: HPos, v: VPos) -> Result<(), ChartError> {
    let style = ("sans-serif", FONT_PX)
        .into_text_style(area)
        .color(&INK)
        .pos(Pos::new(h, v));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

/// The colour behind a string of [`PALETTE`].
fn rgb(color: &str) -> RGBColor {
    let part = |from: usize| {
        let digits = color.get(from..from + 2);
        digits
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .unwrap_or(0)
    };
    RGBColor(part(1), part(3), part(5))
}
