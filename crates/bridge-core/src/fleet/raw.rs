//! The fleet file as written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{FleetError, ParamSetting};
use crate::health::{OnDegraded, OnFailing};
use crate::policy::LinkLoss;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) fileversion: Option<u32>,
    pub(super) robots: BTreeMap<String, Robot>,
    #[serde(default)]
    pub(super) robot_types: BTreeMap<String, RobotType>,
    #[serde(default)]
    pub(super) all: All,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Robot {
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    pub(super) uri: String,
    pub(super) initial_position: Option<[f64; 3]>,
    pub(super) r#type: Option<String>,
    /// Motion-capture id.
    #[serde(rename = "id")]
    pub(super) _id: Option<u8>,
    pub(super) firmware_params: Option<Params>,
    pub(super) firmware_logging: Option<Logging>,
    pub(super) reference_frame: Option<String>,
    pub(super) link_loss: Option<Loss>,
    pub(super) link_health: Option<Health>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RobotType {
    pub(super) connection: Option<Connection>,
    #[serde(rename = "motion_capture")]
    pub(super) _motion_capture: Option<IgnoredAny>,
    #[serde(rename = "big_quad")]
    pub(super) _big_quad: Option<bool>,
    pub(super) battery: Option<Battery>,
    pub(super) firmware_params: Option<Params>,
    pub(super) firmware_logging: Option<Logging>,
    pub(super) reference_frame: Option<String>,
    pub(super) link_loss: Option<Loss>,
    pub(super) link_health: Option<Health>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct All {
    pub(super) firmware_params: Option<Params>,
    pub(super) firmware_logging: Option<Logging>,
    pub(super) reference_frame: Option<String>,
    pub(super) link_loss: Option<Loss>,
    pub(super) link_health: Option<Health>,
    /// Radio broadcasts.
    #[serde(rename = "broadcasts")]
    pub(super) _broadcasts: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Connection {
    Crazyflie,
    None,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Battery {
    pub(super) voltage_warning: f64,
    pub(super) voltage_critical: f64,
}

/// `group: {name: value}`.
pub(super) type Params = BTreeMap<String, BTreeMap<String, ParamSetting>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Logging {
    pub(super) enabled: Option<bool>,
    pub(super) default_topics: Option<BTreeMap<String, Rate>>,
    pub(super) custom_topics: Option<BTreeMap<String, Custom>>,
    pub(super) split_blocks: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rate {
    pub(super) frequency: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Custom {
    pub(super) frequency: f64,
    pub(super) vars: Vec<String>,
}

/// Times in ms.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Loss {
    pub(super) policy: Option<LinkLoss>,
    pub(super) silence_ms: Option<u64>,
    pub(super) hold_ms: Option<u64>,
    pub(super) high_level_ms: Option<u64>,
    pub(super) watchdog: Option<bool>,
}

/// See [`crate::health`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Health {
    pub(super) answer_within_ms: Option<u64>,
    pub(super) degraded: Option<Rung>,
    pub(super) failing: Option<Rung>,
    pub(super) lost_misses: Option<u64>,
    pub(super) enter_after: Option<u64>,
    pub(super) leave_after: Option<u64>,
    pub(super) on_degraded: Option<OnDegraded>,
    pub(super) on_failing: Option<OnFailing>,
    pub(super) slow_down_to: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rung {
    pub(super) success_below: Option<f64>,
    pub(super) misses: Option<u64>,
}

fn yes() -> bool {
    true
}

impl File {
    pub(super) fn read(text: &str) -> Result<Self, FleetError> {
        serde_saphyr::from_str(text).map_err(|error| FleetError::Syntax(error.to_string()))
    }

    /// Adds a robot whose entry is `settings`, as it would stand below its name.
    pub(super) fn add(&mut self, name: &str, settings: &str) -> Result<(), FleetError> {
        let syntax = |error: serde_saphyr::Error| FleetError::Syntax(format!("{name}: {error}"));
        let robot: Robot = serde_saphyr::from_str(settings).map_err(syntax)?;
        match self.robots.insert(name.to_owned(), robot) {
            None => Ok(()),
            Some(_) => Err(FleetError::Value {
                key: "robots".to_owned(),
                value: name.to_owned(),
                allowed: "a name that no robot has".to_owned(),
            }),
        }
    }
}
