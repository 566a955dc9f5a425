//! Where the time of a round trip goes: durations declared by name, packet by packet.

mod plan;

use super::clocks::Offset;
use super::{Packet, Trace};
use crate::histogram::{Histogram, Summary};

pub use plan::{DEFAULT_STAGES, StageError, StagePlan};
use plan::{Resolved, Span};

/// Packets shown one by one.
const WORST: usize = 20;

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
    /// Durations from one host to another, where they can be told.
    pub one_way: Vec<OneWay>,
}

/// A duration from one host to another.
#[derive(Clone, Debug)]
pub struct OneWay {
    /// Its name.
    pub name: String,
    /// All values.
    pub histogram: Histogram,
    /// How far every value may be off, because it compares two clocks, ns; 0 on one clock.
    pub uncertainty: i64,
}

impl Stages {
    /// Computes them.
    ///
    /// # Errors
    /// No packet has any of them.
    pub fn of(trace: &Trace, plan: &StagePlan) -> Result<Self, StageError> {
        let packets = trace.packets();
        let plan = plan.resolve(trace);
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
        Ok(Self {
            names: plan.durations.iter().map(|one| one.name.clone()).collect(),
            rows,
            one_way: one_way(trace, &packets, &plan),
        })
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

/// Durations across hosts; on two clocks only with a known offset.
fn one_way(trace: &Trace, packets: &[Packet], plan: &Resolved) -> Vec<OneWay> {
    let offset = Offset::of(trace);
    let mut found = Vec::new();
    for one in &plan.one_way {
        let (mut histogram, mut uncertainty) = (Histogram::new(), 0);
        for packet in packets {
            if let Some((ns, doubt)) = across(packet, one.span, offset) {
                histogram.record(ns);
                uncertainty = uncertainty.max(doubt);
            }
        }
        if !histogram.is_empty() {
            found.push(OneWay {
                name: one.name.clone(),
                histogram,
                uncertainty,
            });
        }
    }
    found
}

/// From one stage to another on whatever host, and how far that may be off; ns.
fn across(packet: &Packet, (from, to): Span, offset: Option<Offset>) -> Option<(u64, i64)> {
    let ((start_host, start), (end_host, end)) = (packet.at(from)?, packet.at(to)?);
    let difference = end.at.0.cast_signed() - start.at.0.cast_signed();
    if packet.clock(start_host) == packet.clock(end_host) {
        return Some((u64::try_from(difference).ok()?, 0));
    }
    let offset = offset?;
    let ahead = if from.is_ground() {
        offset.middle()
    } else {
        -offset.middle()
    };
    let ns = u64::try_from(difference - ahead).ok()?;
    Some((ns, offset.uncertainty()))
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
