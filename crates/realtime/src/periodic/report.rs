//! The result document of a matrix and its table, with the published figures of the same experiment beside it.
//!
//! Renders what it is given; figures that were not measured stay empty.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cell::{CellResult, Plan};
use super::load::LoadProfile;
use super::published::{Published, beside, published, rows as published_rows};
use super::surroundings::Host;
use super::verdict::Verdict;
use crate::thread::process::Memory;
use crate::thread::refusal::Refusal;

/// Version of the document's layout.
pub const SCHEMA: u32 = 1;

/// How the figures were obtained; two tools' figures can only be compared with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Clock of all stamps.
    pub clock: String,
    /// How the loop sleeps.
    pub sleep: String,
    /// Period, microseconds.
    pub period_us: f64,
    /// Warm-up left out, seconds.
    pub warmup_s: f64,
    /// Measured duration of a cell, seconds.
    pub duration_s: f64,
    /// Working set of the computation, bytes.
    pub state_bytes: usize,
    /// Timer slack of the time-sharing rows, nanoseconds; none = the kernel's default of 50 000.
    pub timer_slack_ns: Option<u64>,
    /// Seed of the load.
    pub seed: u64,
    /// Locked memory.
    pub memory: Option<Memory>,
    /// Wake-up latency held during the run, microseconds; none = not held.
    pub wake_latency_us: Option<i32>,
    /// Why it is not held although asked for.
    pub wake_latency_refusal: Option<Refusal>,
}

impl Method {
    /// The method of a plan, with what became of the process-wide settings.
    #[must_use]
    pub fn of(plan: &Plan, memory: Option<Memory>, held: Option<Result<i32, Refusal>>) -> Self {
        let us = |duration: Duration| duration.as_secs_f64() * 1e6;
        let (wake_latency_us, wake_latency_refusal) = match held {
            None => (None, None),
            Some(Ok(us)) => (Some(us), None),
            Some(Err(refusal)) => (None, Some(refusal)),
        };
        Self {
            clock: "CLOCK_MONOTONIC".to_owned(),
            sleep: "clock_nanosleep, absolute; next = previous + period; late ticks skipped and counted".to_owned(),
            period_us: us(plan.timing.period),
            warmup_s: plan.timing.warmup.as_secs_f64(),
            duration_s: plan.timing.duration.as_secs_f64(),
            state_bytes: plan.state_bytes,
            timer_slack_ns: plan.timer_slack_ns,
            seed: plan.seed,
            memory,
            wake_latency_us,
            wake_latency_refusal,
        }
    }
}

/// A whole matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Always `loop`.
    pub kind: String,
    /// The machine.
    pub host: Host,
    /// How the figures were obtained.
    pub method: Method,
    /// The rows.
    pub cells: Vec<CellResult>,
    /// The same experiment elsewhere.
    pub published: Vec<Published>,
    /// Whether the matrix was ended early.
    pub partial: bool,
}

/// A document of another layout.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not the JSON of a loop document.
    #[error("loop results: {0}")]
    Json(#[from] serde_json::Error),
    /// A newer or older layout.
    #[error("loop results: schema is {found}, this program reads {SCHEMA}")]
    Schema {
        /// What the file says.
        found: u32,
    },
}

impl Document {
    /// Puts the rows together.
    #[must_use]
    pub fn new(host: Host, method: Method, cells: Vec<CellResult>, partial: bool) -> Self {
        Self {
            schema: SCHEMA,
            kind: "loop".to_owned(),
            host,
            method,
            cells,
            published: published(),
            partial,
        }
    }

    /// Reads a document back.
    ///
    /// # Errors
    /// When the text is not JSON of this layout.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let document: Self = serde_json::from_str(text)?;
        match document.schema {
            SCHEMA => Ok(document),
            found => Err(DocumentError::Schema { found }),
        }
    }

    /// The table for a terminal, then one line per policy on idle against load, the published figures, a verdict.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = aligned(&self.rows());
        for line in self
            .notes()
            .into_iter()
            .chain(self.growth())
            .chain(self.causes())
        {
            let _infallible = write!(text, "\n{line}");
        }
        let _infallible = write!(
            text,
            "\n\nworst wake-up beside the published one:\n{}",
            aligned(&beside(&self.cells))
        );
        let _infallible = write!(
            text,
            "\n\npublished for a Raspberry Pi 5 (2.4 GHz fixed, core 2, 250 Hz, stress-ng):\n"
        );
        text.push_str(&aligned(&published_rows(&self.published)));
        let _infallible = write!(text, "\n\n{}", self.verdict());
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let head = [
            "policy", "load", "pin", "wake min", "p50", "p99.9", "max us", "% period", "exec p50",
            "exec max", "cpu p50", "miss", "skip", "cycles", "verdict",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(self.cells.iter().map(row));
        rows
    }

    /// Why cells were refused, contaminated or throttled, each reason once.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for cell in &self.cells {
            let label = label(cell);
            let reasons = match &cell.verdict {
                Verdict::Ok => Vec::new(),
                Verdict::Refused { refusals } => refusals.iter().map(ToString::to_string).collect(),
                Verdict::Contaminated { reasons } => reasons.clone(),
                Verdict::Throttled { reason } => vec![reason.clone()],
            };
            notes.extend(
                reasons
                    .into_iter()
                    .map(|reason| format!("  {label}: {reason}")),
            );
        }
        notes
    }

    /// Execution time idle against load, per policy and pin.
    fn growth(&self) -> Vec<String> {
        let idle = self
            .cells
            .iter()
            .filter(|cell| cell.load == LoadProfile::None);
        idle.flat_map(|idle| {
            self.cells
                .iter()
                .filter_map(|loaded| growth_line(idle, loaded))
        })
        .collect()
    }

    /// What happened around the single worst cycle of each row that missed or took more than half the period.
    fn causes(&self) -> Vec<String> {
        self.cells
            .iter()
            .filter_map(|cell| cause_line(cell, self.method.period_us))
            .collect()
    }

    /// One sentence: the best row under load and how sure it is.
    #[must_use]
    pub fn verdict(&self) -> String {
        let measured = self
            .cells
            .iter()
            .filter_map(|cell| Some((cell, cell.figures.as_ref()?)));
        let heaviest = measured
            .filter(|(_, figures)| figures.cycles > 0)
            .max_by_key(|(cell, figures)| {
                let worst = figures.wake_us.max.unwrap_or(f64::MAX) as u64;
                (cell.load as u8, std::cmp::Reverse((figures.misses, worst)))
            });
        let Some((cell, figures)) = heaviest else {
            return "verdict: nothing was measured".to_owned();
        };
        let bound = figures.miss_bound_95.unwrap_or(1.0);
        format!(
            "verdict: {}: {} misses in {} cycles of {} us, worst wake-up {} us; at 95 % confidence at most one miss in {:.0} cycles",
            label(cell),
            figures.misses,
            figures.cycles,
            self.method.period_us,
            number(figures.wake_us.max),
            1.0 / bound,
        )
    }
}

fn label(cell: &CellResult) -> String {
    let pin = cell
        .pin
        .as_ref()
        .map_or_else(String::new, |cpus| format!(" on cpu {cpus}"));
    format!("{} under {}{pin}", cell.policy, cell.load.name())
}

fn row(cell: &CellResult) -> Vec<String> {
    let pin = cell
        .pin
        .as_ref()
        .map_or_else(|| "-".to_owned(), ToString::to_string);
    let mut row = vec![cell.policy.to_string(), cell.load.name().to_owned(), pin];
    match &cell.figures {
        None => row.extend(std::iter::repeat_n("-".to_owned(), 11)),
        Some(figures) => {
            let times = [
                figures.wake_us.min,
                figures.wake_us.p50,
                figures.wake_us.p999,
                figures.wake_us.max,
                figures.worst_share_percent,
                figures.exec_us.p50,
                figures.exec_us.max,
                figures.cpu_us.p50,
            ];
            row.extend(times.map(number));
            row.extend(
                [figures.misses, figures.skipped, figures.cycles].map(|count| count.to_string()),
            );
        }
    }
    row.push(verdict_word(&cell.verdict).to_owned());
    row
}

/// The verdict in one word.
#[must_use]
pub fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Refused { .. } => "refused",
        Verdict::Contaminated { .. } => "contaminated",
        Verdict::Throttled { .. } => "throttled",
    }
}

fn growth_line(idle: &CellResult, loaded: &CellResult) -> Option<String> {
    if loaded.load == LoadProfile::None || idle.policy != loaded.policy || idle.pin != loaded.pin {
        return None;
    }
    let (before, after) = (idle.figures.as_ref()?, loaded.figures.as_ref()?);
    let (wall, cpu) = (
        ratio(after.exec_us.max, before.exec_us.p50)?,
        ratio(after.cpu_us.max, before.cpu_us.p50)?,
    );
    Some(format!(
        "  {}: execution {} us idle (p50) to {} us (max), x{wall:.1} by the wall clock, x{cpu:.1} by CPU time",
        label(loaded),
        number(before.exec_us.p50),
        number(after.exec_us.max),
    ))
}

fn ratio(after: Option<f64>, before: Option<f64>) -> Option<f64> {
    before
        .filter(|before| *before > 0.0)
        .and_then(|before| Some(after? / before))
}

fn cause_line(cell: &CellResult, period_us: f64) -> Option<String> {
    let cause = cell.figures.as_ref()?.causes.first()?;
    let response = cause.wake_us + cause.exec_us;
    if response < period_us / 2.0 || cause.suspects.is_empty() {
        return None;
    }
    let suspects: Vec<_> = cause
        .suspects
        .iter()
        .take(3)
        .map(|s| format!("{} x{} (usual {:.1})", s.name, s.count, s.expected))
        .collect();
    Some(format!(
        "  {}: worst cycle {}: wake {:.0} us, exec {:.0} us (cpu {:.0} us); in {:.0} us: {}",
        label(cell),
        cause.cycle,
        cause.wake_us,
        cause.exec_us,
        cause.cpu_us,
        cause.window_us,
        suspects.join(", ")
    ))
}

/// A time for a table cell: no decimals from 100 on, `-` when absent.
#[must_use]
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
    }
}

/// Columns padded to their widest cell; the first row is the head.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| Some(row.get(column)?.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}", width = *width))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
