//! Where the time of a round trip goes: durations declared by name, packet by packet.

use serde::Deserialize;

use super::{Packet, Trace};
use crate::histogram::{Histogram, Summary};
use crate::record::Stage;

/// The declaration that is used unless another is given.
pub const DEFAULT_STAGES: &str = include_str!("stages.yaml");
/// Packets shown one by one.
const WORST: usize = 20;

/// Why a declaration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// No YAML of the expected form.
    #[error("stages: {0}")]
    Syntax(String),
    /// A stamp that does not exist.
    #[error("stages: {key} {value:?}: G0 to G7, B0 to B4, U0 to U4, D0 or D1")]
    Unknown {
        /// Which duration.
        key: String,
        /// As given.
        value: String,
    },
    /// No packet has a single one of the durations.
    #[error("no packet has both stamps of any declared duration ({packets} packets)")]
    NoStamps {
        /// Packets looked at.
        packets: u64,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    total: RawSpan,
    durations: Vec<RawDuration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpan {
    from: String,
    to: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDuration {
    name: String,
    from: String,
    to: String,
    #[serde(default)]
    minus: Option<[String; 2]>,
}

#[derive(Clone, Debug)]
struct Duration {
    name: String,
    span: (Stage, Stage),
    minus: Option<(Stage, Stage)>,
}

impl Duration {
    /// ns; `None` without both stamps on one host, or where the part taken away is larger.
    fn of(&self, packet: &Packet) -> Option<u64> {
        let whole = packet.between(self.span.0, self.span.1)?;
        match self.minus {
            Some((from, to)) => whole.checked_sub(packet.between(from, to)?),
            None => Some(whole),
        }
    }
}

/// Which durations to compute.
#[derive(Clone, Debug)]
pub struct StagePlan {
    total: Duration,
    durations: Vec<Duration>,
}

impl StagePlan {
    /// Reads a declaration; see [`DEFAULT_STAGES`] for the form.
    ///
    /// # Errors
    /// No such declaration, or a stamp that does not exist.
    pub fn parse(text: &str) -> Result<Self, StageError> {
        let raw: RawPlan =
            serde_saphyr::from_str(text).map_err(|error| StageError::Syntax(error.to_string()))?;
        let duration = |raw: RawDuration| {
            let minus = raw
                .minus
                .map(|[from, to]| span(&raw.name, &from, &to))
                .transpose()?;
            Ok(Duration {
                span: span(&raw.name, &raw.from, &raw.to)?,
                minus,
                name: raw.name,
            })
        };
        let durations: Result<Vec<Duration>, StageError> =
            raw.durations.into_iter().map(duration).collect();
        Ok(Self {
            total: Duration {
                name: "total".to_owned(),
                span: span("total", &raw.total.from, &raw.total.to)?,
                minus: None,
            },
            durations: durations?,
        })
    }
}

fn span(key: &str, from: &str, to: &str) -> Result<(Stage, Stage), StageError> {
    let stage = |value: &str| {
        Stage::from_name(value).ok_or_else(|| StageError::Unknown {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    };
    Ok((stage(from)?, stage(to)?))
}

/// One packet: a value for each duration, in the order of the declaration, and the total; ns. What was not stamped
/// is absent, so rows stay aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageRow {
    /// The packet.
    pub id: u64,
    /// Each duration.
    pub durations: Vec<Option<u64>>,
    /// End to end.
    pub total: Option<u64>,
}

/// Durations of all packets.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Names, in the order of the declaration.
    pub names: Vec<String>,
    /// One row for each packet that has any of them.
    pub rows: Vec<StageRow>,
}

impl Stages {
    /// Computes them.
    ///
    /// # Errors
    /// No packet has any of them.
    pub fn of(trace: &Trace, plan: &StagePlan) -> Result<Self, StageError> {
        let packets = trace.packets();
        let rows: Vec<StageRow> = packets
            .iter()
            .map(|packet| StageRow {
                id: packet.id,
                durations: plan.durations.iter().map(|one| one.of(packet)).collect(),
                total: plan.total.of(packet),
            })
            .filter(|row| row.durations.iter().any(Option::is_some))
            .collect();
        if rows.is_empty() {
            let packets = packets.len() as u64;
            return Err(StageError::NoStamps { packets });
        }
        let names = plan.durations.iter().map(|one| one.name.clone()).collect();
        Ok(Self { names, rows })
    }

    /// The values of a duration, ns; the total after the last.
    pub(super) fn column(&self, number: usize) -> impl Iterator<Item = Option<u64>> + '_ {
        self.rows
            .iter()
            .map(move |row| row.durations.get(number).copied().unwrap_or(row.total))
    }

    /// Names of the columns: every duration, then the total.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names
            .iter()
            .map(String::as_str)
            .chain(["total"])
            .enumerate()
    }

    /// Name, figures, rows without it, and how it goes with the total, for each duration and for the total.
    #[must_use]
    pub fn summaries(&self) -> Vec<StageSummary> {
        self.columns()
            .map(|(number, name)| {
                let mut histogram = Histogram::new();
                self.column(number)
                    .flatten()
                    .for_each(|ns| histogram.record(ns));
                StageSummary {
                    name: name.to_owned(),
                    missing: self.rows.len() as u64 - histogram.len(),
                    summary: histogram.summary(),
                    correlation: self.correlation(number),
                    histogram,
                }
            })
            .collect()
    }

    /// Spearman's rank correlation of a duration with the total, over rows that have both; `None` below 3 rows or
    /// where one of them never changes.
    fn correlation(&self, number: usize) -> Option<f64> {
        let both = self
            .column(number)
            .zip(&self.rows)
            .filter_map(|(ns, row)| Some((ns?, row.total?)));
        let (own, total): (Vec<u64>, Vec<u64>) = both.unzip();
        (own.len() >= 3)
            .then(|| pearson(&ranks(&own), &ranks(&total)))
            .flatten()
    }

    /// The rows with the longest total, longest first.
    #[must_use]
    pub fn worst(&self) -> Vec<&StageRow> {
        let mut rows: Vec<&StageRow> = self.rows.iter().filter(|row| row.total.is_some()).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        rows.truncate(WORST);
        rows
    }
}

/// Figures of one duration.
#[derive(Clone, Debug)]
pub struct StageSummary {
    /// Its name.
    pub name: String,
    /// Rows without it.
    pub missing: u64,
    /// Figures.
    pub summary: Summary,
    /// Rank correlation with the total, -1 to 1.
    pub correlation: Option<f64>,
    /// All values.
    pub histogram: Histogram,
}

/// Ranks from 0; equal values share their mean rank.
fn ranks(values: &[u64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&at| values[at]);
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = start as f64 + (group.len() - 1) as f64 / 2.0;
        group.iter().for_each(|&at| ranks[at] = rank);
        start += group.len();
    }
    ranks
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut both, mut own_a, mut own_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        both += a * b;
        own_a += a * a;
        own_b += b * b;
    }
    (own_a > 0.0 && own_b > 0.0).then(|| both / (own_a * own_b).sqrt())
}
