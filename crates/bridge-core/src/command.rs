//! What users ask a drone to do, in SI units and REP-103 axes.
//!
//! x is forward (or east), y left, z up; rotations are counter-clockwise seen from the tip of their axis, in
//! radians. Plain data: conversion and checks are in [`crate::units`].

use crtp::Packet;
use crtp::trajectory::Piece;

/// A setpoint or measurement that is worth sending only while it is fresh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setpoint {
    /// Forward, left and up velocity, m/s, in the heading frame; yaw rate, rad/s (`cmd_vel`).
    Velocity {
        /// Forward, left, up, m/s.
        linear: [f64; 3],
        /// rad/s.
        yaw_rate: f64,
    },
    /// Forward and left velocity at a height (`cmd_hover`).
    Hover {
        /// Forward, left, m/s.
        velocity: [f64; 2],
        /// rad/s.
        yaw_rate: f64,
        /// Height, m.
        height: f64,
    },
    /// A place and heading in the world (`cmd_position`).
    Position {
        /// m.
        position: [f64; 3],
        /// rad.
        yaw: f64,
    },
    /// All of the trajectory's state (`cmd_full_state`).
    FullState {
        /// World, m; saturates at ±32.767.
        position: [f64; 3],
        /// World, m/s; saturates at ±32.767.
        velocity: [f64; 3],
        /// World, m/s²; saturates at ±32.767.
        acceleration: [f64; 3],
        /// x, y, z, w; normalized before it is sent.
        orientation: [f64; 4],
        /// About the body's x, y and z, rad/s; saturates at ±32.767.
        rates: [f64; 3],
    },
    /// Angles and thrust (`cmd_attitude`).
    Attitude {
        /// About x, rad.
        roll: f64,
        /// About y (nose down positive), rad.
        pitch: f64,
        /// rad/s.
        yaw_rate: f64,
        /// Share of the most that the firmware allows; clamped to 0 to 1.
        thrust: f64,
    },
    /// Velocity in the world (`cmd_velocity_world`).
    VelocityWorld {
        /// m/s.
        velocity: [f64; 3],
        /// rad/s.
        yaw_rate: f64,
    },
    /// crazyswarm2's `cmd_vel_legacy`, in that topic's own units.
    Legacy {
        /// Minus pitch and roll in degrees, thrust 0 to 60000 (clamped).
        linear: [f64; 3],
        /// deg/s, clockwise positive as the firmware has it.
        yaw_rate: f64,
    },
    /// Motors off at once.
    Stop,
    /// Where the drone is, measured from outside.
    ExternalPosition {
        /// World, m.
        position: [f64; 3],
    },
    /// Where the drone is and how it is turned, measured from outside.
    ExternalPose {
        /// World, m.
        position: [f64; 3],
        /// x, y, z, w.
        orientation: [f64; 4],
    },
}

/// A command that is carried out once and may be answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// Rise to a height.
    Takeoff(Vertical),
    /// Come down to a height.
    Land(Vertical),
    /// Fly to a place.
    GoTo(GoTo),
    /// Fly an uploaded trajectory.
    StartTrajectory(StartTrajectory),
    /// Allow the motors to spin, or not.
    Arm(bool),
    /// Motors off and locked until the drone is restarted. Not answered.
    Emergency,
    /// Let the high-level commander take over from setpoints. Not answered.
    NotifySetpointsStop {
        /// ms; current firmware ignores it.
        remain_valid: u32,
    },
    /// Any packet, as it is. Not answered; what comes back is in the raw telemetry.
    Raw(Packet),
}

/// A trajectory on its way into the drone's memory; [`Request::StartTrajectory`] flies it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Its name from now on.
    pub id: u8,
    /// Where it starts in the trajectory memory, in pieces of 132 bytes.
    pub piece_offset: u32,
    /// At least one; 31 fit the memory of a Crazyflie 2.x.
    pub pieces: Vec<Piece>,
}

/// See [`Request::Takeoff`] and [`Request::Land`]. The yaw stays as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertical {
    /// 0: all groups.
    pub group_mask: u8,
    /// Height at the end above the ground, m.
    pub height: f64,
    /// s, above 0.
    pub duration: f64,
}

/// See [`Request::GoTo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoTo {
    /// 0: all groups.
    pub group_mask: u8,
    /// Goal and yaw are relative to the setpoint now.
    pub relative: bool,
    /// m.
    pub goal: [f64; 3],
    /// rad.
    pub yaw: f64,
    /// s, above 0.
    pub duration: f64,
}

/// See [`Request::StartTrajectory`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartTrajectory {
    /// 0: all groups.
    pub group_mask: u8,
    /// Which.
    pub trajectory_id: u8,
    /// 1: as uploaded; 2: half as fast. Above 0.
    pub timescale: f64,
    /// Backwards.
    pub reversed: bool,
    /// From the setpoint now on.
    pub relative: bool,
}
