//! Scenarios as they are written, and their way to checked ones. Knows keys and ranges, nothing of packets.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use serde::Deserialize;

use super::conditions::{
    Bursts, Conditions, Loss, Outage, Reorder, Scenario, ScenarioError, Spikes,
};
use super::rate::Rate;

const DEFAULT_QUEUE_MS: f64 = 100.0;
const HOUR_S: f64 = 3600.0;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawScenario {
    about: String,
    both: RawConditions,
    up: RawConditions,
    down: RawConditions,
    nat_s: Vec<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawConditions {
    delay_ms: Option<f64>,
    jitter_ms: Option<f64>,
    spikes: Option<RawSpikes>,
    loss: Option<RawLoss>,
    rate_mbps: Option<f64>,
    rate_schedule: Option<Vec<RawStep>>,
    queue_ms: Option<f64>,
    queue_bytes: Option<u64>,
    slot_ms: Option<f64>,
    reorder: Option<RawReorder>,
    duplicate: Option<f64>,
    corrupt: Option<f64>,
    outages: Option<Vec<RawOutage>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpikes {
    per_s: f64,
    min_ms: f64,
    max_ms: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLoss {
    #[serde(default)]
    iid: f64,
    #[serde(default)]
    bursts: Option<RawBursts>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBursts {
    share: f64,
    mean_ms: f64,
    #[serde(default = "one")]
    inside: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    at_s: f64,
    mbps: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReorder {
    share: f64,
    up_to_ms: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutage {
    at_s: f64,
    for_s: f64,
    #[serde(default)]
    every_s: Option<f64>,
}

const fn one() -> f64 {
    1.0
}

pub(super) fn parse(yaml: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let raw: BTreeMap<String, RawScenario> =
        serde_saphyr::from_str(yaml).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
    raw.into_iter()
        .map(|(name, raw)| raw.resolve(name))
        .collect()
}

/// Where in the text a value is, for messages.
#[derive(Clone)]
struct Key(String);

impl Key {
    fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    fn refuse(&self, value: impl Display, allowed: impl Into<String>) -> ScenarioError {
        ScenarioError::Value {
            key: self.0.clone(),
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }

    fn number(&self, value: f64, min: f64, max: f64) -> Result<f64, ScenarioError> {
        if value >= min && value <= max {
            return Ok(value);
        }
        Err(self.refuse(value, format!("{min} to {max}")))
    }

    fn share(&self, value: f64) -> Result<f64, ScenarioError> {
        self.number(value, 0.0, 1.0)
    }

    fn ms(&self, value: f64, min: f64) -> Result<Duration, ScenarioError> {
        Ok(Duration::from_secs_f64(
            self.number(value, min, 60_000.0)? / 1e3,
        ))
    }

    fn s(&self, value: f64, min: f64) -> Result<Duration, ScenarioError> {
        Ok(Duration::from_secs_f64(self.number(
            value,
            min,
            24.0 * HOUR_S,
        )?))
    }
}

impl RawScenario {
    fn resolve(self, name: String) -> Result<Scenario, ScenarioError> {
        let key = Key(name.clone());
        let direction = |own: &RawConditions, word: &str| {
            own.clone().over(&self.both).resolve(&key.child(word))
        };
        let nat = key.child("nat_s");
        let nat: Result<Vec<_>, _> = self.nat_s.iter().map(|at| nat.s(*at, 0.0)).collect();
        Ok(Scenario {
            about: self.about.clone(),
            up: direction(&self.up, "up")?,
            down: direction(&self.down, "down")?,
            nat: nat?,
            name,
        })
    }
}

impl RawConditions {
    /// What is not set here is taken from `base`; a rate or a queue set here in one form hides the other form.
    fn over(self, base: &Self) -> Self {
        let own_rate = self.rate_mbps.is_some() || self.rate_schedule.is_some();
        let own_queue = self.queue_ms.is_some() || self.queue_bytes.is_some();
        let base_rate = Some(base).filter(|_| !own_rate);
        let base_queue = Some(base).filter(|_| !own_queue);
        Self {
            delay_ms: self.delay_ms.or(base.delay_ms),
            jitter_ms: self.jitter_ms.or(base.jitter_ms),
            spikes: self.spikes.or(base.spikes),
            loss: self.loss.or(base.loss),
            rate_mbps: self
                .rate_mbps
                .or_else(|| base_rate.and_then(|b| b.rate_mbps)),
            rate_schedule: self
                .rate_schedule
                .or_else(|| base_rate.and_then(|b| b.rate_schedule.clone())),
            queue_ms: self
                .queue_ms
                .or_else(|| base_queue.and_then(|b| b.queue_ms)),
            queue_bytes: self
                .queue_bytes
                .or_else(|| base_queue.and_then(|b| b.queue_bytes)),
            slot_ms: self.slot_ms.or(base.slot_ms),
            reorder: self.reorder.or(base.reorder),
            duplicate: self.duplicate.or(base.duplicate),
            corrupt: self.corrupt.or(base.corrupt),
            outages: self.outages.or_else(|| base.outages.clone()),
        }
    }

    fn resolve(self, key: &Key) -> Result<Conditions, ScenarioError> {
        let rate = self.rate(key)?;
        let ms = |name, value: Option<f64>| key.child(name).ms(value.unwrap_or(0.0), 0.0);
        let share = |name, value: Option<f64>| key.child(name).share(value.unwrap_or(0.0));
        let outages: Result<Vec<_>, _> = self
            .outages
            .iter()
            .flatten()
            .map(|raw| raw.resolve(&key.child("outages")))
            .collect();
        Ok(Conditions {
            delay: ms("delay_ms", self.delay_ms)?,
            jitter: ms("jitter_ms", self.jitter_ms)?,
            spikes: optional(self.spikes, |s| s.resolve(&key.child("spikes")))?,
            loss: optional(self.loss, |l| l.resolve(&key.child("loss")))?.unwrap_or_default(),
            queue_bytes: self.queue(key, &rate)?,
            rate,
            slot: optional(self.slot_ms, |ms| key.child("slot_ms").ms(ms, 0.01))?,
            reorder: optional(self.reorder, |r| r.resolve(&key.child("reorder")))?,
            duplicate: share("duplicate", self.duplicate)?,
            corrupt: share("corrupt", self.corrupt)?,
            outages: outages?,
        })
    }

    fn rate(&self, key: &Key) -> Result<Rate, ScenarioError> {
        let mbps = |key: Key, value| Ok(key.number(value, 0.001, 10_000.0)? * 1e6);
        match (self.rate_mbps, &self.rate_schedule) {
            (None, None) => Ok(Rate::UNLIMITED),
            (Some(rate), None) => Ok(Rate::constant(mbps(key.child("rate_mbps"), rate)?)),
            (None, Some(steps)) => {
                let key = key.child("rate_schedule");
                let steps: Result<Vec<_>, ScenarioError> = steps
                    .iter()
                    .map(|s| {
                        Ok((
                            key.child("at_s").s(s.at_s, 0.0)?,
                            mbps(key.child("mbps"), s.mbps)?,
                        ))
                    })
                    .collect();
                let steps = steps?;
                let ascends = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
                if !ascends || steps.first().is_none_or(|first| first.0 > Duration::ZERO) {
                    return Err(key.refuse("out of order", "ascending times from 0 on"));
                }
                Ok(Rate { steps })
            }
            (Some(rate), Some(_)) => Err(key
                .child("rate_mbps")
                .refuse(rate, "one of rate_mbps and rate_schedule")),
        }
    }

    fn queue(&self, key: &Key, rate: &Rate) -> Result<u64, ScenarioError> {
        let at_rate = |ms: f64| rate.at(Duration::ZERO).map_or(0, |r| (r * ms / 8e3) as u64);
        match (self.queue_ms, self.queue_bytes) {
            (None, None) => Ok(at_rate(DEFAULT_QUEUE_MS)),
            (Some(ms), None) => {
                let key = key.child("queue_ms");
                Ok(at_rate(key.number(ms, 1.0, 60_000.0)?))
            }
            (None, Some(bytes)) => {
                let key = key.child("queue_bytes");
                key.number(bytes as f64, 1500.0, 1e9)?;
                Ok(bytes)
            }
            (Some(_), Some(bytes)) => Err(key
                .child("queue_bytes")
                .refuse(bytes, "one of queue_bytes and queue_ms")),
        }
    }
}

fn optional<T, U>(
    value: Option<T>,
    resolve: impl FnOnce(T) -> Result<U, ScenarioError>,
) -> Result<Option<U>, ScenarioError> {
    value.map(resolve).transpose()
}

impl RawSpikes {
    fn resolve(self, key: &Key) -> Result<Spikes, ScenarioError> {
        Ok(Spikes {
            per_s: key.child("per_s").number(self.per_s, 0.001, 1000.0)?,
            min: key.child("min_ms").ms(self.min_ms, 0.0)?,
            max: key.child("max_ms").ms(self.max_ms, self.min_ms)?,
        })
    }
}

impl RawLoss {
    fn resolve(self, key: &Key) -> Result<Loss, ScenarioError> {
        Ok(Loss {
            iid: key.child("iid").share(self.iid)?,
            bursts: optional(self.bursts, |b| b.resolve(&key.child("bursts")))?,
        })
    }
}

impl RawBursts {
    fn resolve(self, key: &Key) -> Result<Bursts, ScenarioError> {
        Ok(Bursts {
            share: key.child("share").number(self.share, 0.0001, 0.9)?,
            mean: key.child("mean_ms").ms(self.mean_ms, 0.1)?,
            inside: key.child("inside").share(self.inside)?,
        })
    }
}

impl RawReorder {
    fn resolve(self, key: &Key) -> Result<Reorder, ScenarioError> {
        Ok(Reorder {
            share: key.child("share").share(self.share)?,
            up_to: key.child("up_to_ms").ms(self.up_to_ms, 0.01)?,
        })
    }
}

impl RawOutage {
    fn resolve(self, key: &Key) -> Result<Outage, ScenarioError> {
        let length = key.child("for_s").s(self.for_s, 0.001)?;
        Ok(Outage {
            at: key.child("at_s").s(self.at_s, 0.0)?,
            length,
            every: optional(self.every_s, |s| key.child("every_s").s(s, self.for_s))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::built_in;

    #[test]
    fn the_scenarios_that_come_along_are_in_range() {
        let names: Vec<_> = built_in().unwrap().into_iter().map(|s| s.name).collect();
        for name in [
            "S0", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "H1", "H2", "H3", "H4",
        ] {
            assert!(names.iter().any(|n| n == name), "{name}");
        }
    }

    #[test]
    fn a_direction_overrides_field_by_field() {
        let all = built_in().unwrap();
        let s4 = all.iter().find(|s| s.name == "S4").unwrap();
        assert_eq!(s4.up.rate.at(Duration::ZERO), Some(1e7));
        assert_eq!(s4.down.rate.at(Duration::ZERO), Some(5e7));
        assert_eq!((s4.up.delay, s4.up.queue_bytes), (s4.down.delay, 625_000));
    }

    #[test]
    fn mistakes_name_key_value_and_range() {
        for (yaml, parts) in [
            (
                "a: {both: {loss: {iid: 2}}}",
                ["a.up.loss.iid is 2", "0 to 1"],
            ),
            (
                "a: {up: {delay_ms: -1}}",
                ["a.up.delay_ms is -1", "0 to 60000"],
            ),
            (
                "a: {both: {rate_mbps: 0}}",
                ["a.up.rate_mbps is 0", "0.001 to 10000"],
            ),
            ("a: {both: {rat_mbps: 0}}", ["rat_mbps", "unknown"]),
            (
                "a: {both: {loss: {bursts: {share: 1, mean_ms: 5}}}}",
                ["bursts.share is 1", "0.9"],
            ),
            (
                "a: {both: {rate_mbps: 1, queue_ms: 1, queue_bytes: 2000}}",
                ["queue_bytes is 2000", "one of"],
            ),
            (
                "a: {both: {rate_schedule: [{at_s: 1, mbps: 1}]}}",
                ["rate_schedule is out of order", "from 0 on"],
            ),
            (
                "a: {both: {spikes: {per_s: 1, min_ms: 9, max_ms: 3}}}",
                ["max_ms is 3", "9 to"],
            ),
            ("a: {both: {delay_ms: .nan}}", ["delay_ms is NaN", "0 to"]),
        ] {
            let error = parse(yaml).unwrap_err().to_string();
            assert!(
                parts.iter().all(|part| error.contains(part)),
                "{yaml}: {error}"
            );
        }
    }
}
