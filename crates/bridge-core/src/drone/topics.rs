//! Which logs a robot's topics need, and what their samples mean.

use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use crtp_client::{Client, LogConfig, LogError, LogHandle, LogSample, Number};

use super::event::{DroneEvent, Ticket};
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
    fn of(topic: &str) -> Self {
        match topic {
            "pose" => Self::Pose,
            "odom" => Self::Odometry,
            "imu" => Self::Imu,
            "battery" => Self::Battery,
            "status" => Self::Status,
            "scan" => Self::Scan,
            _ => Self::Custom,
        }
    }

    fn variables(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Pose => &Pose::VARIABLES,
            Self::Odometry => &Odometry::VARIABLES,
            Self::Imu => &Imu::VARIABLES,
            Self::Battery => &BatteryState::VARIABLES,
            Self::Status => &Status::VARIABLES,
            Self::Scan => &Scan::VARIABLES,
            Self::Custom => return None,
        })
    }

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
    /// Who asked for it at run time and waits for it to start.
    asked: Option<Ticket>,
}

/// What became of a log.
#[derive(Debug)]
pub(super) struct Settled {
    /// Its topic.
    pub(super) topic: String,
    /// The user chose its variables.
    pub(super) custom: bool,
    /// Who waits for it.
    pub(super) asked: Option<Ticket>,
}

/// The logs of one robot.
#[derive(Debug)]
pub(super) struct Logs(Vec<Entry>);

impl Logs {
    pub(super) fn new(topics: &Topics) -> Self {
        let fixed = [
            ("pose", topics.pose),
            ("odom", topics.odom),
            ("imu", topics.imu),
            ("battery", topics.battery),
            ("status", topics.status),
            ("scan", topics.scan),
        ];
        let fixed = fixed.into_iter().filter_map(|(name, period)| {
            let (kind, period) = (Kind::of(name), period?);
            let variables = kind.variables()?.iter().copied();
            Some((kind, LogConfig::new(name, period, variables)))
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
                    asked: None,
                })
                .collect(),
        )
    }

    /// Whether there is a topic of that name.
    pub(super) fn has(&self, topic: &str) -> bool {
        self.0.iter().any(|entry| entry.config.name == topic)
    }

    /// Adds a topic whose log the client has taken already. `variables` count for a custom one only.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        client: &mut Client,
        topic: &str,
        (period, variables): (Duration, Vec<String>),
        asked: Ticket,
    ) -> Result<(), LogError> {
        let kind = Kind::of(topic);
        let config = match kind.variables() {
            Some(fixed) => LogConfig::new(topic, period, fixed.iter().copied()),
            None => LogConfig::new(topic, period, variables),
        };
        let handle = Some(client.add_log(now, config.clone())?);
        let asked = Some(asked);
        self.0.push(Entry {
            kind,
            config,
            handle,
            asked,
        });
        Ok(())
    }

    /// Takes a topic away; its log and who still waits for it.
    pub(super) fn remove(&mut self, topic: &str) -> Option<(Option<LogHandle>, Option<Ticket>)> {
        let at = self.0.iter().position(|entry| entry.config.name == topic)?;
        let entry = self.0.remove(at);
        Some((entry.handle, entry.asked))
    }

    /// The log runs or never will; a topic that was asked for at run time goes with its log.
    pub(super) fn settle(&mut self, handle: LogHandle, runs: bool) -> Option<Settled> {
        let at = self
            .0
            .iter()
            .position(|entry| entry.handle == Some(handle))?;
        let entry = &mut self.0[at];
        let settled = Settled {
            topic: entry.config.name.clone(),
            custom: entry.kind == Kind::Custom,
            asked: entry.asked.take(),
        };
        if !runs && settled.asked.is_some() {
            self.0.remove(at);
        }
        Some(settled)
    }

    /// Those who wait for a log although the connection is gone.
    pub(super) fn take_asked(&mut self) -> Vec<(String, Ticket)> {
        let waiting = self.0.iter_mut().filter_map(|entry| {
            let asked = entry.asked.take()?;
            Some((entry.config.name.clone(), asked))
        });
        waiting.collect()
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
