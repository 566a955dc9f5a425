//! From a setpoint and the state to motor commands: position, velocity and attitude in cascade. It keeps no state.

use glam::DVec3;

use super::body::{Body, Command, GRAVITY, MAX_THRUST, Tilt, wrap};
use super::setpoint::{FULL_THRUST, Horizontal, Setpoint, Vertical, Yaw};

/// Velocity wanted per distance, 1/s.
const POSITION_GAIN: f64 = 2.0;
/// Acceleration wanted per missing velocity, 1/s.
const VELOCITY_GAIN: f64 = 4.0;
/// Yaw rate wanted per missing angle, 1/s.
const YAW_GAIN: f64 = 4.0;
/// Fastest the position controller flies sideways, m/s.
const MAX_SPEED: f64 = 2.0;
/// Fastest it climbs and sinks, m/s.
const MAX_CLIMB: f64 = 1.5;
/// Hardest sideways acceleration, m/s²: about 27° of tilt.
const MAX_PUSH: f64 = 5.0;
/// Hardest vertical acceleration, m/s².
const MAX_LIFT: f64 = 6.0;
/// Fastest turn, rad/s.
const MAX_YAW_RATE: f64 = 3.5;

/// What the motors do about `setpoint`.
pub(crate) fn control(setpoint: &Setpoint, body: &Body) -> Command {
    if matches!(setpoint.vertical, Vertical::Off) {
        return Command::OFF;
    }
    let lift = lift(setpoint.vertical, body);
    let (roll, pitch) = tilt(setpoint.horizontal, body, GRAVITY + lift.unwrap_or(0.0));
    let upright = (body.roll.cos() * body.pitch.cos()).max(0.5);
    let thrust = match setpoint.vertical {
        Vertical::Thrust(thrust) => thrust / FULL_THRUST * MAX_THRUST,
        Vertical::Off | Vertical::Height { .. } | Vertical::Velocity(_) => {
            (GRAVITY + lift.unwrap_or(0.0)) / upright
        }
    };
    Command {
        roll,
        pitch,
        yaw_rate: yaw_rate(setpoint.yaw, body),
        thrust: thrust.clamp(0.0, MAX_THRUST),
    }
}

/// Vertical acceleration wanted, m/s²; `None` where the thrust is told directly.
fn lift(vertical: Vertical, body: &Body) -> Option<f64> {
    let (velocity, feed) = match vertical {
        Vertical::Off | Vertical::Thrust(_) => return None,
        Vertical::Velocity(velocity) => (velocity, 0.0),
        Vertical::Height {
            z,
            velocity,
            acceleration,
        } => {
            let wanted = POSITION_GAIN * (z - body.position.z) + velocity;
            (wanted.clamp(-MAX_CLIMB, MAX_CLIMB), acceleration)
        }
    };
    let wanted = VELOCITY_GAIN * (velocity - body.velocity.z) + feed;
    Some(wanted.clamp(-MAX_LIFT, MAX_LIFT))
}

/// Roll and pitch for the sideways acceleration wanted under `support` m/s² of vertical thrust.
fn tilt(horizontal: Horizontal, body: &Body, support: f64) -> (Tilt, Tilt) {
    let heading = |v: DVec3| v.rotate_z(body.yaw);
    let (velocity, feed) = match horizontal {
        Horizontal::Tilt(roll, pitch) => return (roll, pitch),
        Horizontal::World(velocity) => (velocity, DVec3::ZERO),
        Horizontal::Heading(velocity) => (heading(velocity), DVec3::ZERO),
        Horizontal::Position {
            position,
            velocity,
            acceleration,
        } => {
            let wanted = POSITION_GAIN * (position - body.position) + velocity;
            (wanted.with_z(0.0).clamp_length_max(MAX_SPEED), acceleration)
        }
    };
    let push = (VELOCITY_GAIN * (velocity - body.velocity) + feed).with_z(0.0);
    let local = push.clamp_length_max(MAX_PUSH).rotate_z(-body.yaw);
    (
        Tilt::Angle(-local.y.atan2(support)),
        Tilt::Angle(local.x.atan2(support)),
    )
}

/// Yaw rate wanted, rad/s.
pub(crate) fn yaw_rate(yaw: Yaw, body: &Body) -> f64 {
    match yaw {
        Yaw::Rate(rate) => rate,
        Yaw::Angle { yaw, rate } => {
            (YAW_GAIN * wrap(yaw - body.yaw) + rate).clamp(-MAX_YAW_RATE, MAX_YAW_RATE)
        }
    }
}
