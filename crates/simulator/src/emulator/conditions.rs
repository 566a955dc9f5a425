//! Scenarios: what a path does to packets, checked. [`parse`] reads them from YAML, [`built_in`] has those of
//! `config/scenarios.yaml`.

use std::time::Duration;

use serde::Serialize;

use super::rate::Rate;

const BUILT_IN: &str = include_str!("../../../../config/scenarios.yaml");

/// A text that holds no scenario, or a value out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// No YAML, or an unknown key.
    #[error("scenarios: {0}")]
    Syntax(String),
    /// A value that cannot be.
    #[error("{key} is {value}, allowed is {allowed}")]
    Value {
        /// Path of the key, from the name of the scenario on.
        key: String,
        /// What it is.
        value: String,
        /// What it may be.
        allowed: String,
    },
}

/// How packets get lost. Both kinds may happen at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Loss {
    /// Probability for each packet, 0 to 1.
    pub iid: f64,
    /// Bad times.
    pub bursts: Option<Bursts>,
}

/// A two-state process in continuous time (Gilbert-Elliott).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// Share of the time that is bad, above 0 and below 1.
    pub share: f64,
    /// Mean length of a bad time.
    pub mean: Duration,
    /// Probability of loss in it, 0 to 1.
    pub inside: f64,
}

/// The link stands still now and then, and loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spikes {
    /// How often on average.
    pub per_s: f64,
    /// Shortest.
    pub min: Duration,
    /// Longest.
    pub max: Duration,
}

/// Packets that others overtake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reorder {
    /// Their share, 0 to 1.
    pub share: f64,
    /// How long at most they are held back.
    pub up_to: Duration,
}

/// Nothing passes for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// When it begins.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// After how long it comes again, if it does.
    pub every: Option<Duration>,
}

impl Outage {
    pub(super) fn covers(&self, at: Duration) -> bool {
        let Some(since) = at.checked_sub(self.at) else {
            return false;
        };
        let since = self.every.map_or(since, |every| {
            Duration::from_nanos((since.as_nanos() % every.as_nanos()) as u64)
        });
        since < self.length
    }

    /// Every time it happens before `end`.
    pub(super) fn until(&self, end: Duration) -> impl Iterator<Item = (Duration, Duration)> {
        let mut next = Some(self.at);
        std::iter::from_fn(move || {
            let begin = next.filter(|begin| *begin < end)?;
            next = self.every.map(|every| begin + every);
            Some((begin, begin + self.length))
        })
    }
}

/// What one direction does to packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// Fixed part of the delay.
    pub delay: Duration,
    /// Mean of the exponential part of the delay; it keeps the order of packets.
    pub jitter: Duration,
    /// Times of standstill.
    pub spikes: Option<Spikes>,
    /// Loss.
    pub loss: Loss,
    /// Rate over time. Lost packets take their time on the link, too.
    #[serde(skip)]
    pub rate: Rate,
    /// Bytes that may wait; what comes beyond is dropped. Without a rate nothing waits.
    pub queue_bytes: u64,
    /// Packets leave on this grid only.
    pub slot: Option<Duration>,
    /// Overtaken packets.
    pub reorder: Option<Reorder>,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Share of packets that arrive with one bit turned.
    pub corrupt: f64,
    /// Outages.
    pub outages: Vec<Outage>,
}

/// A path: two directions and a NAT.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What it stands for.
    pub about: String,
    /// From end a to end b.
    pub up: Conditions,
    /// From end b to end a.
    pub down: Conditions,
    /// When end a gets new source ports.
    pub nat: Vec<Duration>,
}

impl Scenario {
    /// How often the NAT has changed its ports by `at`.
    pub(super) fn nat_epoch(&self, at: Duration) -> usize {
        self.nat.iter().filter(|change| **change <= at).count()
    }
}

/// The scenarios of `config/scenarios.yaml`, in the order of their names.
///
/// # Errors
/// As for [`parse`]; a test makes sure that there is none.
pub fn built_in() -> Result<Vec<Scenario>, ScenarioError> {
    parse(BUILT_IN)
}

/// Reads scenarios, in the order of their names.
///
/// # Errors
/// No YAML, an unknown key, or a value out of range; the message names key, value and range.
pub fn parse(yaml: &str) -> Result<Vec<Scenario>, ScenarioError> {
    super::raw::parse(yaml)
}
