//! The declaration of durations: stamps by name, durations between them, checked once.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::record::Stage;
use crate::trace::{Packet, Trace};

/// The declaration that is used unless another is given.
pub const DEFAULT_STAGES: &str = include_str!("stages.yaml");

/// Why a declaration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// No YAML of the expected form.
    #[error("stages: {0}")]
    Syntax(String),
    /// A stamp that does not exist.
    #[error(
        "stages: {key} {value:?}: G0 to G7, B0 to B4, UQ, U0, UC, U1 to U5, D0, D1 or a declared stamp"
    )]
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
    #[serde(default)]
    stamps: BTreeMap<String, Vec<String>>,
    total: RawSpan,
    durations: Vec<RawDuration>,
    #[serde(default)]
    one_way: Vec<RawDuration>,
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

/// Stages of which the first that a run has recorded counts.
type Stamp = Vec<Stage>;
/// From one stage to another.
pub(super) type Span = (Stage, Stage);

#[derive(Clone, Debug)]
struct Declared {
    name: String,
    span: (Stamp, Stamp),
    minus: Option<(Stamp, Stamp)>,
}

/// A duration whose stages are settled.
#[derive(Clone, Debug)]
pub(super) struct Duration {
    pub(super) name: String,
    pub(super) span: Span,
    minus: Option<Span>,
}

impl Duration {
    /// ns; `None` without both stamps on one clock, or where the part taken away is larger.
    pub(super) fn of(&self, packet: &Packet) -> Option<u64> {
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
    total: Declared,
    durations: Vec<Declared>,
    one_way: Vec<Declared>,
}

/// A plan for one run.
pub(super) struct Resolved {
    pub(super) total: Duration,
    pub(super) durations: Vec<Duration>,
    pub(super) one_way: Vec<Duration>,
}

impl StagePlan {
    /// Reads a declaration; see [`DEFAULT_STAGES`] for the form.
    ///
    /// # Errors
    /// No such declaration, or a stamp that does not exist.
    pub fn parse(text: &str) -> Result<Self, StageError> {
        let raw: RawPlan =
            serde_saphyr::from_str(text).map_err(|error| StageError::Syntax(error.to_string()))?;
        let mut stamps = BTreeMap::new();
        for (name, stages) in &raw.stamps {
            let stages: Result<Stamp, StageError> =
                stages.iter().map(|one| stage(name, one)).collect();
            stamps.insert(name.as_str(), stages?);
        }
        let total = RawDuration {
            name: "total".to_owned(),
            from: raw.total.from,
            to: raw.total.to,
            minus: None,
        };
        Ok(Self {
            total: declared(&stamps, &total)?,
            durations: all(&stamps, &raw.durations)?,
            one_way: all(&stamps, &raw.one_way)?,
        })
    }

    /// Settles the stages by what the run has recorded. Durations between one and the same stage are left out.
    pub(super) fn resolve(&self, trace: &Trace) -> Resolved {
        let settle = |list: &[Declared]| {
            let settled = list.iter().map(|one| one.settle(trace));
            settled.filter(|one| one.span.0 != one.span.1).collect()
        };
        Resolved {
            total: self.total.settle(trace),
            durations: settle(&self.durations),
            one_way: settle(&self.one_way),
        }
    }
}

impl Declared {
    fn settle(&self, trace: &Trace) -> Duration {
        let one = |stamp: &Stamp| {
            let recorded = stamp.iter().copied().find(|stage| trace.has(*stage));
            recorded
                .or_else(|| stamp.first().copied())
                .unwrap_or_default()
        };
        let both = |(from, to): &(Stamp, Stamp)| (one(from), one(to));
        Duration {
            name: self.name.clone(),
            span: both(&self.span),
            minus: self.minus.as_ref().map(both),
        }
    }
}

fn all(stamps: &BTreeMap<&str, Stamp>, raw: &[RawDuration]) -> Result<Vec<Declared>, StageError> {
    raw.iter().map(|one| declared(stamps, one)).collect()
}

fn declared(stamps: &BTreeMap<&str, Stamp>, raw: &RawDuration) -> Result<Declared, StageError> {
    let stamp = |value: &String| match stamps.get(value.as_str()) {
        Some(stamp) => Ok(stamp.clone()),
        None => stage(&raw.name, value).map(|stage| vec![stage]),
    };
    let minus = raw.minus.as_ref();
    Ok(Declared {
        name: raw.name.clone(),
        span: (stamp(&raw.from)?, stamp(&raw.to)?),
        minus: minus
            .map(|[from, to]| Ok((stamp(from)?, stamp(to)?)))
            .transpose()?,
    })
}

fn stage(key: &str, value: &str) -> Result<Stage, StageError> {
    Stage::from_name(value).ok_or_else(|| StageError::Unknown {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}
