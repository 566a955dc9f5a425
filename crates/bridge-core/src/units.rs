//! The one place where SI and REP-103 meet CRTP's units.
//!
//! | quantity | here | CRTP |
//! |---|---|---|
//! | roll, roll rate | rad about x | degrees, same sign |
//! | pitch | rad about y: nose down positive | degrees, nose up positive |
//! | pitch rate of a full state, gyro | rad/s about y | same sign |
//! | yaw, yaw rate | rad, counter-clockwise | degrees, same sign; clockwise in RPYT |
//! | yaw of the high-level commander | rad | rad |
//! | acceleration measured | m/s² | g |
//!
//! Values that are no finite numbers are refused by name; those out of range are clamped where
//! [`crate::command`] says so, else refused.

use crtp::commander::{MAX_THRUST, Rpyt};
use crtp::setpoint as sp;
use crtp::supervisor;
use crtp::{FullState, Packet, ProtocolVersion, ValueError};
use crtp::{high_level as hl, localization as loc};

use crate::command::{GoTo, Request, Setpoint, StartTrajectory, Vertical};

/// Standard gravity, m/s² for 1 g.
pub const GRAVITY: f64 = 9.806_65;

/// Why a command cannot be sent. Nothing has been sent then.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CommandError {
    /// A value that no packet can carry.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A time or scale that is not above 0.
    #[error("{field} is {value}, allowed: above 0")]
    NotPositive {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// `cmd_vel` is in the heading frame, and the heading is not known.
    #[error(
        "velocity in the heading frame needs the heading, and no pose has come in the last 500 ms"
    )]
    NoHeading,
    /// There is no connection to send it over.
    #[error("not connected")]
    NotConnected,
    /// The bridge flies by itself because the link does badly (`link_health.on_failing`).
    #[error("refused: {0} because the link is failing")]
    LinkFailing(crate::health::Manoeuvre),
    /// The client does not take it.
    #[error(transparent)]
    Client(#[from] crtp_client::RequestError),
    /// A firmware parameter that does not exist or does not take the value.
    #[error(transparent)]
    Param(#[from] crtp_client::ParamError),
    /// A topic's variables cannot be logged.
    #[error(transparent)]
    Log(#[from] crtp_client::LogError),
    /// A topic is there already.
    #[error("topic {0} is there already")]
    TopicExists(String),
    /// There is no topic of that name.
    #[error("there is no topic {0}")]
    NoTopic(String),
    /// The drone has no room for trajectories at all.
    #[error("the drone has no trajectory memory")]
    NoTrajectoryMemory,
    /// A trajectory that does not fit.
    #[error(
        "trajectory {id} has {pieces} pieces from piece {offset} on, allowed: 1 to {room} pieces in all"
    )]
    TrajectorySize {
        /// Its name.
        id: u8,
        /// Its pieces.
        pieces: usize,
        /// Where it starts.
        offset: u32,
        /// Pieces that the memory holds.
        room: u32,
    },
    /// The stop is on its way, but nothing tells whether it arrives.
    #[error("not connected: the emergency stop was sent without knowing whether it arrives")]
    Unconfirmed,
}

/// Whose units a topic has where crazyswarm2 hands angles to the firmware as they are, in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// Radians everywhere.
    #[default]
    None,
    /// Degrees for the yaw of `cmd_position` and the yaw rate of `cmd_velocity_world`.
    Crazyswarm2,
}

impl Compat {
    /// A yaw or yaw rate of one of those two topics, in rad or rad/s.
    #[must_use]
    pub fn yaw(self, value: f64) -> f64 {
        match self {
            Self::None => value,
            Self::Crazyswarm2 => value.to_radians(),
        }
    }
}

/// The packet of a setpoint, for a drone of this protocol version that has this heading (rad).
///
/// # Errors
/// [`CommandError`].
pub fn setpoint(
    setpoint: &Setpoint,
    version: ProtocolVersion,
    heading: Option<f64>,
) -> Result<Packet, CommandError> {
    let packet = match *setpoint {
        Setpoint::Velocity { linear, yaw_rate } => {
            let heading = heading.ok_or(CommandError::NoHeading)?;
            velocity_world(turned(linear, heading), yaw_rate).encode(version)
        }
        Setpoint::Hover {
            velocity,
            yaw_rate,
            height,
        } => hover(velocity, yaw_rate, height).encode(version),
        Setpoint::Position { position, yaw } => place(position, yaw).encode(version),
        Setpoint::VelocityWorld { velocity, yaw_rate } => {
            velocity_world(velocity, yaw_rate).encode(version)
        }
        Setpoint::Stop => sp::Setpoint::Stop.encode(version),
        Setpoint::FullState {
            position,
            velocity,
            acceleration,
            orientation,
            rates,
        } => {
            let attitude = orientation;
            let state = FullState {
                position,
                velocity,
                acceleration,
                attitude,
                rates,
            };
            sp::Setpoint::FullState(state).encode(version)
        }
        Setpoint::Attitude {
            roll,
            pitch,
            yaw_rate,
            thrust,
        } => attitude([roll, pitch], yaw_rate, thrust),
        Setpoint::Legacy {
            linear: [x, y, z],
            yaw_rate,
        } => rpyt([y, turned_round(x)], yaw_rate, z),
        Setpoint::ExternalPosition { position } => external_position(position),
        Setpoint::ExternalPose {
            position,
            orientation,
        } => external_pose(position, orientation),
    };
    Ok(packet?)
}

/// The opposite sign, with one zero only.
fn turned_round(value: f64) -> f64 {
    0.0 - value
}

/// From the heading frame to the world.
fn turned([forward, left, up]: [f64; 3], heading: f64) -> [f64; 3] {
    let (sin, cos) = heading.sin_cos();
    [forward * cos - left * sin, forward * sin + left * cos, up]
}

fn hover([vx, vy]: [f64; 2], yaw_rate: f64, height: f64) -> sp::Setpoint {
    sp::Setpoint::Hover(sp::Hover {
        vx: vx as f32,
        vy: vy as f32,
        yaw_rate: yaw_rate.to_degrees() as f32,
        z: height as f32,
    })
}

fn place([x, y, z]: [f64; 3], yaw: f64) -> sp::Setpoint {
    sp::Setpoint::Position(sp::Position {
        x: x as f32,
        y: y as f32,
        z: z as f32,
        yaw: yaw.to_degrees() as f32,
    })
}

fn velocity_world([vx, vy, vz]: [f64; 3], yaw_rate: f64) -> sp::Setpoint {
    sp::Setpoint::VelocityWorld(sp::VelocityWorld {
        vx: vx as f32,
        vy: vy as f32,
        vz: vz as f32,
        yaw_rate: yaw_rate.to_degrees() as f32,
    })
}

/// RPYT has pitch nose up and yaw clockwise.
fn attitude([roll, pitch]: [f64; 2], yaw_rate: f64, thrust: f64) -> Result<Packet, ValueError> {
    let angles = [roll.to_degrees(), turned_round(pitch.to_degrees())];
    rpyt(
        angles,
        turned_round(yaw_rate.to_degrees()),
        thrust * f64::from(MAX_THRUST),
    )
}

/// Degrees, signs and thrust as the firmware has them; thrust is clamped.
fn rpyt([roll, pitch]: [f64; 2], yaw_rate: f64, thrust: f64) -> Result<Packet, ValueError> {
    let thrust = finite("thrust", thrust)?.clamp(0.0, f64::from(MAX_THRUST));
    let rpyt = Rpyt {
        roll: roll as f32,
        pitch: pitch as f32,
        yaw_rate: yaw_rate as f32,
        thrust: thrust.round() as u16,
    };
    rpyt.encode()
}

fn external_position([x, y, z]: [f64; 3]) -> Result<Packet, ValueError> {
    let position = loc::Position {
        x: x as f32,
        y: y as f32,
        z: z as f32,
    };
    loc::Request::Position(position).encode()
}

fn external_pose([x, y, z]: [f64; 3], [qx, qy, qz, qw]: [f64; 4]) -> Result<Packet, ValueError> {
    let pose = loc::Pose {
        x: x as f32,
        y: y as f32,
        z: z as f32,
        qx: qx as f32,
        qy: qy as f32,
        qz: qz as f32,
        qw: qw as f32,
    };
    loc::Request::Pose(pose).encode()
}

/// How a request gets to the drone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wire {
    /// As a request of the client, which waits for the answer.
    Asked(crtp_client::Request),
    /// As a packet; the drone does not answer it.
    Sent(Packet),
}

/// The form of a request in which the client, which knows the drone's protocol version, takes it.
///
/// # Errors
/// [`CommandError`].
pub fn request(request: &Request) -> Result<Wire, CommandError> {
    let asked = match *request {
        Request::Takeoff(vertical) => high_level(hl::Command::Takeoff(timed(vertical)?)),
        Request::Land(vertical) => high_level(hl::Command::Land(timed(vertical)?)),
        Request::GoTo(go_to) => high_level(hl::Command::GoTo(to_place(go_to)?)),
        Request::StartTrajectory(start) => high_level(hl::Command::StartTrajectory(along(start)?)),
        Request::Arm(on) => Ok(crtp_client::Request::Supervisor(supervisor::Command::Arm(
            on,
        ))),
        Request::Emergency => Ok(crtp_client::Request::Supervisor(
            supervisor::Command::EmergencyStop,
        )),
        Request::NotifySetpointsStop { remain_valid } => {
            return Ok(Wire::Sent(notify_stop(remain_valid)));
        }
        Request::Raw(packet) => return Ok(Wire::Sent(packet)),
    };
    asked.map(Wire::Asked)
}

/// Checks the values of a command before the client takes it.
fn high_level(command: hl::Command) -> Result<crtp_client::Request, CommandError> {
    command.encode()?;
    Ok(crtp_client::Request::HighLevel(command))
}

fn timed(vertical: Vertical) -> Result<hl::VerticalTimed, CommandError> {
    Ok(hl::VerticalTimed {
        group_mask: vertical.group_mask,
        height: vertical.height as f32,
        yaw: 0.0,
        use_current_yaw: true,
        duration: positive("duration", vertical.duration)?,
    })
}

fn to_place(go_to: GoTo) -> Result<hl::GoTo2, CommandError> {
    let [x, y, z] = go_to.goal;
    Ok(hl::GoTo2 {
        group_mask: go_to.group_mask,
        relative: go_to.relative,
        linear: false,
        x: x as f32,
        y: y as f32,
        z: z as f32,
        yaw: go_to.yaw as f32,
        duration: positive("duration", go_to.duration)?,
    })
}

fn along(start: StartTrajectory) -> Result<hl::StartTrajectory2, CommandError> {
    Ok(hl::StartTrajectory2 {
        group_mask: start.group_mask,
        relative_position: start.relative,
        relative_yaw: false,
        reversed: start.reversed,
        trajectory_id: start.trajectory_id,
        timescale: positive("timescale", start.timescale)?,
    })
}

fn notify_stop(remain_valid_ms: u32) -> Packet {
    sp::NotifySetpointsStop { remain_valid_ms }.encode()
}

fn finite(field: &'static str, value: f64) -> Result<f64, ValueError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ValueError::NotFinite { field, value })
    }
}

fn positive(field: &'static str, value: f64) -> Result<f32, CommandError> {
    if finite(field, value)? > 0.0 {
        Ok(value as f32)
    } else {
        Err(CommandError::NotPositive { field, value })
    }
}

#[cfg(test)]
mod tests;
