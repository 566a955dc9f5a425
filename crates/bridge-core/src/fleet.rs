//! The fleet file: which robots there are, how to reach them and what to publish.
//!
//! The format is crazyswarm2's `crazyflies.yaml`, file version 3, with a few keys of our own. Reading has two
//! stages: the file as written (unknown keys refused), then robots with every value checked and every default
//! filled in. This module reads text, never a file.

mod link_health;
mod raw;
mod resolve;

use std::collections::BTreeMap;
use std::time::Duration;

use link::{Uri, UriError};
use serde::Deserialize;

use crate::health::{Reaction, Thresholds};
use crate::name::{NameError, RobotName};
use crate::policy::Safety;

/// Highest rate of a topic, Hz; the firmware takes log periods in whole milliseconds.
pub const MAX_HZ: f64 = 500.0;
/// Lowest rate of a topic, Hz: 16 bits hold the period in milliseconds.
pub const MIN_HZ: f64 = 0.02;

/// Every robot of a fleet file, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The robots, disabled ones included.
    pub robots: Vec<Robot>,
}

/// One robot, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Robot {
    /// Topic prefix and frame.
    pub name: RobotName,
    /// Whether to connect.
    pub enabled: bool,
    /// How to reach it.
    pub uri: Uri,
    /// Where it starts in the reference frame, m.
    pub initial_position: Option<[f64; 3]>,
    /// Frame of its poses.
    pub reference_frame: String,
    /// What to publish, and how often.
    pub topics: Topics,
    /// Spread a topic whose variables have more than 26 bytes over several log blocks; otherwise it is refused.
    pub split_blocks: bool,
    /// Read every firmware parameter after connecting. No setting of the file: who runs the robot decides.
    pub query_params: bool,
    /// Firmware parameters to write after connecting, by `group.name`.
    pub params: BTreeMap<String, ParamSetting>,
    /// The link-loss policy, where this host is the one nearest the drone.
    pub safety: Safety,
    /// When its link counts as degraded, failing or lost.
    pub thresholds: Thresholds,
    /// What is done then.
    pub reaction: Reaction,
    /// Battery voltages that matter.
    pub battery: Battery,
}

/// Periods of the topics that come from the drone's log; `None`: not published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topics {
    /// Position and attitude.
    pub pose: Option<Duration>,
    /// Position, attitude and velocities.
    pub odom: Option<Duration>,
    /// Rates and accelerations.
    pub imu: Option<Duration>,
    /// Voltage and charge.
    pub battery: Option<Duration>,
    /// Supervisor, voltage and link.
    pub status: Option<Duration>,
    /// Distances of the multi-ranger deck.
    pub scan: Option<Duration>,
    /// The user's own, by topic name.
    pub custom: BTreeMap<String, CustomTopic>,
}

/// A topic with variables of the user's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTopic {
    /// Time between two samples.
    pub period: Duration,
    /// `group.name` of each variable.
    pub variables: Vec<String>,
}

/// A value for a firmware parameter.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ParamSetting {
    /// `true` and `false` are 1 and 0.
    Flag(bool),
    /// A whole number, good for integer and float parameters.
    Whole(i64),
    /// Any other number.
    Float(f64),
}

impl std::fmt::Display for ParamSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(whole) => whole.fmt(f),
            Self::Float(float) => float.fmt(f),
        }
    }
}

/// Battery voltages that matter, V.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Battery {
    /// Below it: worth a warning.
    pub warning: f64,
    /// Below it: land.
    pub critical: f64,
}

/// Why a fleet file is not accepted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FleetError {
    /// It is no YAML, a key is unknown or a value has the wrong type. The text points at the place.
    #[error("{0}")]
    Syntax(String),
    /// A robot's name cannot be a topic prefix.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A robot's URI is no link.
    #[error("{key}: {source}")]
    Uri {
        /// The setting.
        key: String,
        /// What is wrong.
        source: UriError,
    },
    /// A value is not allowed.
    #[error("{key} is {value}, allowed: {allowed}")]
    Value {
        /// The setting.
        key: String,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: String,
    },
}

impl Fleet {
    /// Reads the text of a fleet file.
    ///
    /// # Errors
    /// [`FleetError`] for the first mistake, naming key, value and what is allowed.
    pub fn read(text: &str) -> Result<Self, FleetError> {
        resolve::fleet(&raw::File::read(text)?)
    }

    /// Reads the text of a fleet file with more robots: name and settings, as they would stand below the name.
    ///
    /// # Errors
    /// As [`Fleet::read`]; also for a name that is there already and a link that another robot has.
    pub fn read_with(text: &str, more: &[(String, String)]) -> Result<Self, FleetError> {
        let mut file = raw::File::read(text)?;
        for (name, settings) in more {
            file.add(name, settings)?;
        }
        resolve::fleet(&file)
    }

    /// The robots to connect to.
    pub fn enabled(&self) -> impl Iterator<Item = &Robot> {
        self.robots.iter().filter(|robot| robot.enabled)
    }
}

/// Checks a topic that is to be added at run time: its period, and its variables, none for a topic with a fixed set.
///
/// # Errors
/// [`FleetError`] naming topic, value and what is allowed.
pub fn late_topic(
    name: &str,
    hz: f64,
    variables: &[String],
) -> Result<(Duration, Vec<String>), FleetError> {
    resolve::late_topic(name, hz, variables)
}

#[cfg(test)]
mod tests;
