//! What the bridge does about a link that does badly: nothing unless it is asked to.

use std::fmt;

use serde::Deserialize;

use super::Level;
use crate::command::{Request, Setpoint};

/// What may be done on the rung `degraded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDegraded {
    /// Nothing.
    #[default]
    None,
    /// Velocities of setpoints are scaled down.
    SlowDown,
}

/// What may be done on the rungs `failing` and `lost`. What is sent on a lost link arrives only if it comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailing {
    /// Nothing.
    #[default]
    None,
    /// Velocities of setpoints are scaled down.
    SlowDown,
    /// The drone stays where it is; setpoints and flights are refused until the link is better.
    Hover,
    /// The drone lands; setpoints and flights are refused until it stands and the link is better.
    Land,
}

/// Settings of what is done on which rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reaction {
    /// On `degraded`.
    pub on_degraded: OnDegraded,
    /// On `failing` and `lost`.
    pub on_failing: OnFailing,
    /// What velocities and yaw rates of setpoints are multiplied with when slowed down, 0 to 1.
    pub slow_down_to: f64,
}

impl Default for Reaction {
    fn default() -> Self {
        Self {
            on_degraded: OnDegraded::None,
            on_failing: OnFailing::None,
            slow_down_to: 0.5,
        }
    }
}

/// A manoeuvre that the bridge flies by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manoeuvre {
    /// Stay.
    Hover,
    /// Land.
    Land,
}

impl fmt::Display for Manoeuvre {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hover => "hovering",
            Self::Land => "landing",
        })
    }
}

impl Reaction {
    /// The manoeuvre that begins on this rung.
    pub(crate) fn manoeuvre(&self, level: Level) -> Option<Manoeuvre> {
        match self.on_failing {
            OnFailing::Hover if level >= Level::Failing => Some(Manoeuvre::Hover),
            OnFailing::Land if level >= Level::Failing => Some(Manoeuvre::Land),
            _ => None,
        }
    }

    /// The setpoint as it may be flown on this rung.
    pub(crate) fn temper(&self, level: Level, setpoint: Setpoint) -> Setpoint {
        let slow = match level {
            Level::Ok => false,
            Level::Degraded => self.on_degraded == OnDegraded::SlowDown,
            Level::Failing | Level::Lost => self.on_failing == OnFailing::SlowDown,
        };
        if slow {
            slowed(setpoint, self.slow_down_to)
        } else {
            setpoint
        }
    }
}

/// Setpoints that carry no velocity of their own stay as they are: a slower place would be another place.
fn slowed(setpoint: Setpoint, by: f64) -> Setpoint {
    match setpoint {
        Setpoint::Velocity { linear, yaw_rate } => Setpoint::Velocity {
            linear: linear.map(|v| v * by),
            yaw_rate: yaw_rate * by,
        },
        Setpoint::Hover {
            velocity,
            yaw_rate,
            height,
        } => Setpoint::Hover {
            velocity: velocity.map(|v| v * by),
            yaw_rate: yaw_rate * by,
            height,
        },
        Setpoint::VelocityWorld { velocity, yaw_rate } => Setpoint::VelocityWorld {
            velocity: velocity.map(|v| v * by),
            yaw_rate: yaw_rate * by,
        },
        Setpoint::Position { .. }
        | Setpoint::FullState { .. }
        | Setpoint::Attitude { .. }
        | Setpoint::Legacy { .. }
        | Setpoint::Stop
        | Setpoint::ExternalPosition { .. }
        | Setpoint::ExternalPose { .. } => setpoint,
    }
}

/// Whether a setpoint would undo a manoeuvre; stopping and measurements never do.
pub(crate) fn setpoint_undoes(setpoint: &Setpoint) -> bool {
    !matches!(
        setpoint,
        Setpoint::Stop | Setpoint::ExternalPosition { .. } | Setpoint::ExternalPose { .. }
    )
}

/// Whether a request would undo a manoeuvre. Raw packets are the user's own affair.
pub(crate) fn request_undoes(request: &Request) -> bool {
    matches!(
        request,
        Request::Takeoff(_) | Request::GoTo(_) | Request::StartTrajectory(_)
    )
}
