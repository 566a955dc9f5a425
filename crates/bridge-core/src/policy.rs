//! What to do when setpoints stop coming, and the packets that do it.
//!
//! The firmware levels the drone out 500 ms after the last setpoint and locks it for good after 2000 ms; every
//! policy here acts before the first limit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crtp::{Channel, Packet, PacketError, Port};
use serde::{Deserialize, Serialize};

/// Default silence after which a policy acts; its packets still have to reach the drone before 500 ms.
pub const DEFAULT_SILENCE: Duration = Duration::from_millis(300);
/// Longest allowed silence.
pub const MAX_SILENCE: Duration = Duration::from_millis(450);
/// Speed of an automatic landing, m/s.
const LANDING_SPEED: f32 = 0.4;
/// Time to come to rest when holding, s.
const HOLD_SETTLE: f32 = 0.5;

/// What the bridge nearest the drone does when a low-level stream breaks off in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLoss {
    /// Land where it is.
    #[default]
    Land,
    /// Motors off at once: it falls.
    Stop,
    /// Stay where it is, then land when the limit is over and nothing has come.
    Hold,
    /// Leave it to the on-board high-level commander, which keeps the last position.
    Handover,
}

impl fmt::Display for LinkLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Land => "land",
            Self::Stop => "stop",
            Self::Hold => "hold",
            Self::Handover => "handover",
        })
    }
}

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link loss policy is {0:?}, allowed: land, stop, hold, handover")]
pub struct UnknownLinkLoss(String);

impl FromStr for LinkLoss {
    type Err = UnknownLinkLoss;

    fn from_str(text: &str) -> Result<Self, UnknownLinkLoss> {
        match text {
            "land" => Ok(Self::Land),
            "stop" => Ok(Self::Stop),
            "hold" => Ok(Self::Hold),
            "handover" => Ok(Self::Handover),
            other => Err(UnknownLinkLoss(other.to_owned())),
        }
    }
}

/// Settings of the safety rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safety {
    /// What to do.
    pub link_loss: LinkLoss,
    /// Silence after the last low-level setpoint before it is done, at most [`MAX_SILENCE`].
    pub silence: Duration,
    /// For how long [`LinkLoss::Hold`] holds.
    pub hold_limit: Duration,
    /// For how long a drone in high-level flight may go on after its last client has vanished, before it
    /// lands; `None`: for ever.
    pub high_level_limit: Option<Duration>,
    /// Feed the firmware's emergency watchdog from here: when this bridge or its link to the drone dies, the
    /// motors stop within 1 s. Once fed, the drone needs it until it is restarted.
    pub watchdog: bool,
}

impl Default for Safety {
    fn default() -> Self {
        Self {
            link_loss: LinkLoss::Land,
            silence: DEFAULT_SILENCE,
            hold_limit: Duration::from_secs(5),
            high_level_limit: Some(Duration::from_secs(10)),
            watchdog: false,
        }
    }
}

/// A packet that the bridge makes itself.
pub(crate) type Made = Result<Packet, PacketError>;

/// Roll, pitch, yaw rate and thrust all zero: unlocks the thrust.
pub(crate) fn zero_thrust() -> Made {
    Packet::new(Port::COMMANDER, Channel::C0, &[0; 14])
}

/// Lowers the priority of earlier setpoints, so that the high-level commander may take over.
pub(crate) fn notify_stop() -> Made {
    Packet::new(Port::GENERIC_SETPOINT, Channel::C1, &[0; 5])
}

/// Motors off.
pub(crate) fn stop_setpoint() -> Made {
    Packet::new(Port::GENERIC_SETPOINT, Channel::C0, &[0])
}

/// Land with velocity: down to height 0 at the yaw it has, all groups.
pub(crate) fn land() -> Made {
    let mut data = [0; 16];
    data[0] = 10;
    data[11] = 1;
    data[12..].copy_from_slice(&LANDING_SPEED.to_le_bytes());
    Packet::new(Port::HIGH_LEVEL, Channel::C0, &data)
}

/// Keeps the emergency watchdog from stopping the motors, in the form that every firmware takes.
pub(crate) fn feed() -> Made {
    Packet::new(Port::LOCALIZATION, Channel::C1, &[4])
}

/// Motors off and locked, in the form that every firmware takes.
pub(crate) fn emergency() -> Made {
    Packet::new(Port::LOCALIZATION, Channel::C1, &[3])
}

/// Go to a place 0 m from here, all groups: holds position and yaw.
pub(crate) fn hold() -> Made {
    let mut data = [0; 23];
    (data[0], data[2]) = (4, 1);
    data[19..].copy_from_slice(&HOLD_SETTLE.to_le_bytes());
    Packet::new(Port::HIGH_LEVEL, Channel::C0, &data)
}
