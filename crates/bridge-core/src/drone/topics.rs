//! Which logs a robot's topics need, and what their samples mean.

use std::time::Instant;

use arrayvec::ArrayVec;
use crtp_client::{Client, LogConfig, LogHandle, LogSample, Number};

use super::event::DroneEvent;
use crate::fleet::{ParamSetting, Topics};
use crate::telemetry::{BatteryState, Imu, Odometry, Pose, Scan, Status};

/// More variables than any fixed topic has.
const MOST: usize = 16;

/// Meaning of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pose,
    Odometry,
    Imu,
    Battery,
    Status,
    Scan,
    Custom,
}

impl Kind {
    fn event(self, values: &[f64]) -> Option<DroneEvent> {
        match self {
            Self::Pose => Pose::from_values(values).map(DroneEvent::Pose),
            Self::Odometry => Odometry::from_values(values).map(DroneEvent::Odometry),
            Self::Imu => Imu::from_values(values).map(DroneEvent::Imu),
            Self::Battery => BatteryState::from_values(values).map(DroneEvent::Battery),
            Self::Status => Status::from_values(values).map(DroneEvent::Status),
            Self::Scan => Scan::from_values(values).map(DroneEvent::Scan),
            Self::Custom => None,
        }
    }
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    config: LogConfig,
    handle: Option<LogHandle>,
}

/// The logs of one robot.
#[derive(Debug)]
pub(super) struct Logs(Vec<Entry>);

impl Logs {
    pub(super) fn new(topics: &Topics) -> Self {
        let fixed = [
            (Kind::Pose, "pose", topics.pose, &Pose::VARIABLES[..]),
            (Kind::Odometry, "odom", topics.odom, &Odometry::VARIABLES),
            (Kind::Imu, "imu", topics.imu, &Imu::VARIABLES),
            (
                Kind::Battery,
                "battery",
                topics.battery,
                &BatteryState::VARIABLES,
            ),
            (Kind::Status, "status", topics.status, &Status::VARIABLES),
            (Kind::Scan, "scan", topics.scan, &Scan::VARIABLES),
        ];
        let fixed = fixed
            .into_iter()
            .filter_map(|(kind, name, period, variables)| {
                Some((
                    kind,
                    LogConfig::new(name, period?, variables.iter().copied()),
                ))
            });
        let custom = topics.custom.iter().map(|(name, custom)| {
            (
                Kind::Custom,
                LogConfig::new(name, custom.period, custom.variables.iter().cloned()),
            )
        });
        let entries = fixed.chain(custom);
        Self(
            entries
                .map(|(kind, config)| Entry {
                    kind,
                    config,
                    handle: None,
                })
                .collect(),
        )
    }

    /// Asks for every log that is not wanted yet; topic and reason of those that cannot be.
    pub(super) fn start(&mut self, now: Instant, client: &mut Client) -> Vec<(String, String)> {
        let mut failed = Vec::new();
        for entry in self.0.iter_mut().filter(|entry| entry.handle.is_none()) {
            match client.add_log(now, entry.config.clone()) {
                Ok(handle) => entry.handle = Some(handle),
                Err(error) => failed.push((entry.config.name.clone(), error.to_string())),
            }
        }
        failed
    }

    /// The topic of a log.
    pub(super) fn name(&self, handle: LogHandle) -> String {
        self.entry(handle)
            .map_or_else(String::new, |entry| entry.config.name.clone())
    }

    /// The message in a sample; `None` if a value is missing.
    pub(super) fn telemetry(&self, sample: &LogSample<'_>) -> Option<DroneEvent> {
        let entry = self.entry(sample.handle)?;
        let values = sample
            .values
            .iter()
            .map(|value| value.map(|value| value.to_f64()));
        if entry.kind == Kind::Custom {
            return Some(DroneEvent::Custom {
                topic: entry.config.name.clone(),
                drone_ms: sample.drone_ms,
                values: values.collect::<Option<_>>()?,
            });
        }
        let values: Option<ArrayVec<f64, MOST>> = values.take(MOST).collect();
        entry.kind.event(&values?)
    }

    fn entry(&self, handle: LogHandle) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.handle == Some(handle))
    }
}

/// A setting as the client takes it.
pub(super) fn number(setting: ParamSetting) -> Number {
    match setting {
        ParamSetting::Flag(flag) => Number::Integer(flag.into()),
        ParamSetting::Whole(whole) => Number::Integer(whole),
        ParamSetting::Float(float) => Number::Float(float),
    }
}
