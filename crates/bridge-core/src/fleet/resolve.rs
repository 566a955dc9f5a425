//! From the file as written to checked robots: `all` under `robot_types` under `robots`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::raw::{Connection, Custom, File, Logging, Loss, Params, Rate, RobotType};
use super::{
    Battery, CustomTopic, Fleet, FleetError, MAX_HZ, MIN_HZ, ParamSetting, Robot, Topics,
    link_health, raw,
};
use crate::name::RobotName;
use crate::policy::Safety;

/// The only version of the file format there is.
const FILE_VERSION: u32 = 3;
/// Topics that are published when the file says nothing about topics, Hz.
const DEFAULT_TOPICS: [(&str, f64); 5] = [
    ("pose", 10.0),
    ("odom", 10.0),
    ("imu", 50.0),
    ("battery", 1.0),
    ("status", 1.0),
];
/// Names of topics with a fixed set of variables.
const TOPIC_NAMES: &str = "pose, odom, imu, battery, status, scan";
/// Names below a robot's that are taken, whether they are published or not.
const OWN_TOPICS: [&str; 19] = [
    "pose",
    "odom",
    "imu",
    "battery",
    "status",
    "scan",
    "console",
    "robot_description",
    "connection_statistics",
    "crtp",
    "cmd_vel",
    "cmd_vel_legacy",
    "cmd_hover",
    "cmd_position",
    "cmd_velocity_world",
    "cmd_full_state",
    "cmd_attitude",
    "params",
    "link_health",
];
/// Voltages of a single lithium cell, V; also crazyswarm2's defaults.
const DEFAULT_BATTERY: Battery = Battery {
    warning: 3.8,
    critical: 3.7,
};

pub(super) fn fleet(file: &File) -> Result<Fleet, FleetError> {
    if let Some(version) = file.fileversion.filter(|version| *version != FILE_VERSION) {
        return Err(refuse("fileversion", version, FILE_VERSION));
    }
    let robots = file
        .robots
        .iter()
        .map(|(name, robot)| Layers::new(file, name, robot)?.resolve());
    let robots: Vec<Robot> = robots.collect::<Result<_, _>>()?;
    refuse_shared_links(&robots)?;
    Ok(Fleet { robots })
}

/// Two robots on one link would both command the one drone behind it. A `sim://` is a drone of its own each time.
fn refuse_shared_links(robots: &[Robot]) -> Result<(), FleetError> {
    let mut seen: BTreeMap<String, &RobotName> = BTreeMap::new();
    let connected = robots.iter().filter(|robot| robot.enabled);
    for robot in connected.filter(|robot| !matches!(robot.uri, link::Uri::Sim(_))) {
        if let Some(other) = seen.insert(robot.uri.place(), &robot.name) {
            let key = format!("robots.{}.uri", robot.name);
            let allowed = format!("another link than that of robots.{other}");
            return Err(refuse(key, &robot.uri, allowed));
        }
    }
    Ok(())
}

/// A robot and what lies under it.
struct Layers<'a> {
    name: RobotName,
    robot: &'a raw::Robot,
    kind: Option<&'a RobotType>,
    all: &'a raw::All,
}

impl<'a> Layers<'a> {
    fn new(file: &'a File, name: &str, robot: &'a raw::Robot) -> Result<Self, FleetError> {
        let name = RobotName::new(name)?;
        let kind = robot.r#type.as_ref().map(|kind| {
            let known = || {
                file.robot_types
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let found = file.robot_types.get(kind);
            found.ok_or_else(|| refuse(format!("robots.{name}.type"), format!("{kind:?}"), known()))
        });
        Ok(Self {
            kind: kind.transpose()?,
            name,
            robot,
            all: &file.all,
        })
    }

    fn resolve(self) -> Result<Robot, FleetError> {
        let uri = self.robot.uri.parse().map_err(|source| FleetError::Uri {
            key: format!("robots.{}.uri", self.name),
            source,
        })?;
        let connects = self.kind.and_then(|kind| kind.connection) != Some(Connection::None);
        let (thresholds, reaction) = self.link_health()?;
        Ok(Robot {
            enabled: self.robot.enabled && connects,
            uri,
            initial_position: self.robot.initial_position,
            reference_frame: self.reference_frame(),
            topics: self.topics()?,
            split_blocks: self.split_blocks(),
            query_params: false,
            params: self.params(),
            safety: self.safety()?,
            thresholds,
            reaction,
            battery: self.battery(),
            name: self.name,
        })
    }

    fn reference_frame(&self) -> String {
        let kind = self.kind.and_then(|kind| kind.reference_frame.as_ref());
        let chosen = self
            .robot
            .reference_frame
            .as_ref()
            .or(kind)
            .or(self.all.reference_frame.as_ref());
        chosen.cloned().unwrap_or_else(|| "world".to_owned())
    }

    fn battery(&self) -> Battery {
        let chosen = self.kind.and_then(|kind| kind.battery);
        chosen.map_or(DEFAULT_BATTERY, |battery| Battery {
            warning: battery.voltage_warning,
            critical: battery.voltage_critical,
        })
    }

    fn params(&self) -> BTreeMap<String, ParamSetting> {
        let kind = self.kind.and_then(|kind| kind.firmware_params.as_ref());
        let layers = [
            self.all.firmware_params.as_ref(),
            kind,
            self.robot.firmware_params.as_ref(),
        ];
        layers.into_iter().flatten().flat_map(flat_params).collect()
    }

    /// Lowest layer first.
    fn logging(&self) -> impl Iterator<Item = (String, &'a Logging)> {
        let kind = self.kind.and_then(|kind| kind.firmware_logging.as_ref());
        let kind_key = format!(
            "robot_types.{}",
            self.robot.r#type.as_deref().unwrap_or_default()
        );
        let layers = [
            ("all".to_owned(), self.all.firmware_logging.as_ref()),
            (kind_key, kind),
            (
                format!("robots.{}", self.name),
                self.robot.firmware_logging.as_ref(),
            ),
        ];
        layers
            .into_iter()
            .filter_map(|(key, logging)| Some((format!("{key}.firmware_logging"), logging?)))
    }

    fn split_blocks(&self) -> bool {
        let chosen = self
            .logging()
            .filter_map(|(_, logging)| logging.split_blocks);
        chosen.last().unwrap_or(true)
    }

    fn topics(&self) -> Result<Topics, FleetError> {
        let enabled = self
            .logging()
            .filter_map(|(_, logging)| logging.enabled)
            .last();
        if enabled == Some(false) {
            return Ok(Topics::default());
        }
        let mut topics = Topics::default();
        if !self
            .logging()
            .any(|(_, logging)| logging.default_topics.is_some())
        {
            set_default_topics(&mut topics)?;
        }
        for (key, logging) in self.logging() {
            add_topics(&mut topics, &key, logging)?;
        }
        Ok(topics)
    }

    fn safety(&self) -> Result<Safety, FleetError> {
        let kind = self.kind.and_then(|kind| kind.link_loss.as_ref());
        let layers = [
            self.all.link_loss.as_ref(),
            kind,
            self.robot.link_loss.as_ref(),
        ];
        let key = format!("robots.{}.link_loss", self.name);
        let start = Ok(Safety::default());
        layers
            .into_iter()
            .flatten()
            .fold(start, |safety, loss| apply_loss(safety?, &key, loss))
    }

    fn link_health(&self) -> Result<link_health::Settled, FleetError> {
        let kind = self.kind.and_then(|kind| kind.link_health.as_ref());
        let layers = [
            self.all.link_health.as_ref(),
            kind,
            self.robot.link_health.as_ref(),
        ];
        let key = format!("robots.{}.link_health", self.name);
        let start = Ok(link_health::Settled::default());
        let settled = layers.into_iter().flatten().fold(start, |below, layer| {
            link_health::apply(below?, &key, layer)
        })?;
        link_health::check(&key, &settled.0)?;
        Ok(settled)
    }
}

fn flat_params(params: &Params) -> impl Iterator<Item = (String, ParamSetting)> {
    let of_group = |(group, values): (&String, &BTreeMap<String, ParamSetting>)| {
        let flat = values
            .iter()
            .map(|(name, value)| (format!("{group}.{name}"), *value));
        flat.collect::<Vec<_>>()
    };
    params.iter().flat_map(of_group)
}

fn set_default_topics(topics: &mut Topics) -> Result<(), FleetError> {
    DEFAULT_TOPICS
        .into_iter()
        .try_for_each(|(name, frequency)| {
            set_topic(topics, "default_topics", name, Rate { frequency })
        })
}

fn add_topics(topics: &mut Topics, key: &str, logging: &Logging) -> Result<(), FleetError> {
    for (name, rate) in logging.default_topics.iter().flatten() {
        set_topic(topics, &format!("{key}.default_topics"), name, *rate)?;
    }
    for (name, custom) in logging.custom_topics.iter().flatten() {
        let custom = custom_topic(&format!("{key}.custom_topics.{name}"), name, custom)?;
        topics.custom.insert(name.clone(), custom);
    }
    Ok(())
}

fn set_topic(topics: &mut Topics, key: &str, name: &str, rate: Rate) -> Result<(), FleetError> {
    let slot = match name {
        "pose" => &mut topics.pose,
        "odom" => &mut topics.odom,
        "imu" => &mut topics.imu,
        "battery" => &mut topics.battery,
        "status" => &mut topics.status,
        "scan" => &mut topics.scan,
        other => return Err(refuse(key, format!("{other:?}"), TOPIC_NAMES)),
    };
    *slot = period(&format!("{key}.{name}.frequency"), rate.frequency)?;
    Ok(())
}

fn custom_topic(key: &str, name: &str, custom: &Custom) -> Result<CustomTopic, FleetError> {
    if OWN_TOPICS.contains(&name) {
        return Err(refuse(
            key,
            format!("{name:?}"),
            "a name that no topic of ours has",
        ));
    }
    if RobotName::new(name).is_err() {
        let allowed = "a topic name: letters, digits and single underscores, no digit first";
        return Err(refuse(key, format!("{name:?}"), allowed));
    }
    for variable in &custom.vars {
        check_variable(key, variable)?;
    }
    let period = period(&format!("{key}.frequency"), custom.frequency)?;
    let period = period.ok_or_else(|| refuse(format!("{key}.frequency"), 0, rates()))?;
    Ok(CustomTopic {
        period,
        variables: custom.vars.clone(),
    })
}

fn check_variable(key: &str, variable: &str) -> Result<(), FleetError> {
    let parts: Vec<_> = variable.split('.').collect();
    let legal = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    if parts.len() == 2 && parts.iter().all(legal) {
        return Ok(());
    }
    Err(refuse(
        format!("{key}.vars"),
        format!("{variable:?}"),
        "group.name without spaces",
    ))
}

/// A topic that is added at run time, checked as in a fleet file.
pub(super) fn late_topic(
    name: &str,
    hz: f64,
    variables: &[String],
) -> Result<(Duration, Vec<String>), FleetError> {
    let key = format!("topic {name}");
    if TOPIC_NAMES.split(", ").any(|fixed| fixed == name) {
        let Some(period) = period(&format!("{key}: frequency"), hz)? else {
            return Err(refuse(format!("{key}: frequency"), hz, rates()));
        };
        return Ok((period, Vec::new()));
    }
    let custom = Custom {
        frequency: hz,
        vars: variables.to_vec(),
    };
    let custom = custom_topic(&key, name, &custom)?;
    Ok((custom.period, custom.variables))
}

/// 0 turns a topic off.
fn period(key: &str, hz: f64) -> Result<Option<Duration>, FleetError> {
    if hz == 0.0 {
        return Ok(None);
    }
    if !(MIN_HZ..=MAX_HZ).contains(&hz) {
        return Err(refuse(key, hz, rates()));
    }
    Ok(Some(Duration::from_millis((1000.0 / hz).round() as u64)))
}

fn rates() -> String {
    format!("0 (off) or {MIN_HZ} to {MAX_HZ} Hz")
}

fn apply_loss(safety: Safety, key: &str, loss: &Loss) -> Result<Safety, FleetError> {
    let ms =
        |name: &str, value: Option<u64>, range: RangeInclusive<u64>, default: Duration| match value
        {
            None => Ok(default),
            Some(value) if range.contains(&value) => Ok(Duration::from_millis(value)),
            Some(value) => {
                let allowed = format!("{} to {} ms", range.start(), range.end());
                Err(refuse(format!("{key}.{name}"), value, allowed))
            }
        };
    let limit = safety.high_level_limit.unwrap_or_default();
    let limit = ms("high_level_ms", loss.high_level_ms, 0..=3_600_000, limit)?;
    Ok(Safety {
        link_loss: loss.policy.unwrap_or(safety.link_loss),
        silence: ms("silence_ms", loss.silence_ms, 50..=450, safety.silence)?,
        hold_limit: ms("hold_ms", loss.hold_ms, 0..=600_000, safety.hold_limit)?,
        high_level_limit: (!limit.is_zero()).then_some(limit),
        watchdog: loss.watchdog.unwrap_or(safety.watchdog),
    })
}

pub(super) fn refuse(
    key: impl Into<String>,
    value: impl ToString,
    allowed: impl ToString,
) -> FleetError {
    FleetError::Value {
        key: key.into(),
        value: value.to_string(),
        allowed: allowed.to_string(),
    }
}
