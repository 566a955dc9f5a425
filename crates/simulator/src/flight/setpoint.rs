//! What the drone is told to do next, in SI units and right-handed angles, decoded from the setpoint packets. The
//! sign rules of the firmware live here and nowhere else in the simulator.

use crtp::commander::{MAX_THRUST, MIN_THRUST, Rpyt};
use crtp::setpoint::{Cppm, Manual, Setpoint as Packet};
use glam::{DQuat, DVec3, EulerRot};

use super::body::Tilt;

/// Full thrust of the wire.
pub(crate) const FULL_THRUST: f64 = 65_535.0;
/// Largest angles, rates and the yaw rate of a remote control, rad and rad/s (firmware defaults 50°, 720°/s, 400°/s).
const STICK_ANGLE: f64 = 0.872_664_6;
const STICK_RATE: f64 = 12.566_371;
const STICK_YAW_RATE: f64 = 6.981_317;

/// How to move sideways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Horizontal {
    /// Tilt as told; roll and pitch, right-handed.
    Tilt(Tilt, Tilt),
    /// Be there, m, with velocity and acceleration to feed forward.
    Position {
        position: DVec3,
        velocity: DVec3,
        acceleration: DVec3,
    },
    /// m/s, world frame.
    World(DVec3),
    /// m/s, turned with the heading.
    Heading(DVec3),
}

/// How to move up and down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Vertical {
    /// Motors off.
    Off,
    /// Raw thrust, 0 to [`FULL_THRUST`].
    Thrust(f64),
    /// Be at this height, m, with velocity and acceleration to feed forward.
    Height {
        z: f64,
        velocity: f64,
        acceleration: f64,
    },
    /// m/s.
    Velocity(f64),
}

/// How to turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Yaw {
    /// rad/s, counter-clockwise.
    Rate(f64),
    /// Head there, rad, with a rate to feed forward.
    Angle { yaw: f64, rate: f64 },
}

/// One setpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setpoint {
    pub(crate) horizontal: Horizontal,
    pub(crate) vertical: Vertical,
    pub(crate) yaw: Yaw,
}

const LEVEL: Horizontal = Horizontal::Tilt(Tilt::Angle(0.0), Tilt::Angle(0.0));

impl Setpoint {
    /// Motors off.
    pub(crate) const NULL: Self = Self {
        horizontal: LEVEL,
        vertical: Vertical::Off,
        yaw: Yaw::Rate(0.0),
    };

    /// Place, heading and what they become, all world frame, SI.
    pub(crate) fn goal(
        position: DVec3,
        velocity: DVec3,
        acceleration: DVec3,
        yaw: f64,
        rate: f64,
    ) -> Self {
        Self {
            horizontal: Horizontal::Position {
                position,
                velocity,
                acceleration,
            },
            vertical: Vertical::Height {
                z: position.z,
                velocity: velocity.z,
                acceleration: acceleration.z,
            },
            yaw: Yaw::Angle { yaw, rate },
        }
    }

    /// The setpoint with roll, pitch and yaw rate taken back to 0, height kept (firmware: level out).
    pub(crate) const fn leveled(self) -> Self {
        Self {
            horizontal: LEVEL,
            yaw: Yaw::Rate(0.0),
            ..self
        }
    }

    /// Angles, yaw rate and thrust. On the wire pitch is nose up and yaw clockwise positive.
    pub(crate) fn from_rpyt(rpyt: &Rpyt, thrust_locked: bool) -> Self {
        let thrust = if thrust_locked || rpyt.thrust < MIN_THRUST {
            0
        } else {
            rpyt.thrust.min(MAX_THRUST)
        };
        Self {
            horizontal: tilt_degrees(rpyt.roll, rpyt.pitch),
            vertical: Vertical::Thrust(f64::from(thrust)),
            yaw: Yaw::Rate(-radians(rpyt.yaw_rate)),
        }
    }

    pub(crate) fn from_generic(packet: &Packet) -> Self {
        match packet {
            Packet::Stop => Self::NULL,
            Packet::VelocityWorld(s) => Self {
                horizontal: Horizontal::World(vector(s.vx, s.vy)),
                vertical: Vertical::Velocity(s.vz.into()),
                yaw: Yaw::Rate(radians(s.yaw_rate)),
            },
            Packet::ZDistance(s) => Self {
                horizontal: tilt_degrees(s.roll, s.pitch),
                vertical: height(s.z),
                yaw: Yaw::Rate(radians(s.yaw_rate)),
            },
            Packet::Cppm(s) => Self::from_cppm(s),
            Packet::AltitudeHold(s) => Self {
                horizontal: tilt_degrees(s.roll, s.pitch),
                vertical: Vertical::Velocity(s.vz.into()),
                yaw: Yaw::Rate(radians(s.yaw_rate)),
            },
            Packet::Hover(s) => Self {
                horizontal: Horizontal::Heading(vector(s.vx, s.vy)),
                vertical: height(s.z),
                yaw: Yaw::Rate(radians(s.yaw_rate)),
            },
            Packet::FullState(s) => Self::from_full_state(s),
            Packet::Position(s) => {
                let position = DVec3::new(s.x.into(), s.y.into(), s.z.into());
                Self::goal(position, DVec3::ZERO, DVec3::ZERO, radians(s.yaw), 0.0)
            }
            Packet::Manual(s) => Self::from_manual(s),
        }
    }

    fn from_full_state(s: &crtp::FullState) -> Self {
        let (yaw, _, _) = DQuat::from_array(s.attitude).to_euler(EulerRot::ZYX);
        let [position, velocity, acceleration] =
            [s.position, s.velocity, s.acceleration].map(DVec3::from);
        Self::goal(position, velocity, acceleration, yaw, s.rates[2])
    }

    /// Angles in degrees or rates in deg/s; the firmware takes any rate flag but 1 for angles.
    fn from_manual(s: &Manual) -> Self {
        let horizontal = if s.rate {
            Horizontal::Tilt(Tilt::Rate(radians(s.roll)), Tilt::Rate(-radians(s.pitch)))
        } else {
            tilt_degrees(s.roll, s.pitch)
        };
        Self {
            horizontal,
            vertical: Vertical::Thrust(s.thrust.into()),
            yaw: Yaw::Rate(radians(s.yaw_rate)),
        }
    }

    /// Sticks; all three are inverted on board, pitch then again because nose up is positive there.
    fn from_cppm(s: &Cppm) -> Self {
        let [roll, pitch, yaw] = [s.roll, s.pitch, s.yaw].map(|v| (f64::from(v) - 1500.0) / 500.0);
        let self_level = s.aux.first().is_none_or(|&aux| aux >= 1500);
        let horizontal = if self_level {
            Horizontal::Tilt(
                Tilt::Angle(-roll * STICK_ANGLE),
                Tilt::Angle(pitch * STICK_ANGLE),
            )
        } else {
            Horizontal::Tilt(
                Tilt::Rate(-roll * STICK_RATE),
                Tilt::Rate(pitch * STICK_RATE),
            )
        };
        let thrust = (f64::from(s.thrust) - 1000.0) / 1000.0;
        Self {
            horizontal,
            vertical: Vertical::Thrust(thrust.clamp(0.0, 1.0) * FULL_THRUST),
            yaw: Yaw::Rate(-yaw * STICK_YAW_RATE),
        }
    }

    /// The position told, m; 0 where none is (log group `ctrltarget`).
    pub(crate) fn position(&self) -> DVec3 {
        let flat = match self.horizontal {
            Horizontal::Position { position, .. } => position,
            Horizontal::Tilt(..) | Horizontal::World(_) | Horizontal::Heading(_) => DVec3::ZERO,
        };
        let z = match self.vertical {
            Vertical::Height { z, .. } => z,
            Vertical::Off | Vertical::Thrust(_) | Vertical::Velocity(_) => 0.0,
        };
        flat.with_z(z)
    }

    /// The velocity told, m/s, in the frame it was told in; 0 where none is.
    pub(crate) fn velocity(&self) -> DVec3 {
        let flat = match self.horizontal {
            Horizontal::Position { velocity, .. }
            | Horizontal::World(velocity)
            | Horizontal::Heading(velocity) => velocity,
            Horizontal::Tilt(..) => DVec3::ZERO,
        };
        let z = match self.vertical {
            Vertical::Height { velocity, .. } | Vertical::Velocity(velocity) => velocity,
            Vertical::Off | Vertical::Thrust(_) => 0.0,
        };
        flat.with_z(z)
    }

    /// Roll and pitch told, rad, right-handed; 0 where none is.
    pub(crate) fn tilt(&self) -> (f64, f64) {
        match self.horizontal {
            Horizontal::Tilt(Tilt::Angle(roll), Tilt::Angle(pitch)) => (roll, pitch),
            _ => (0.0, 0.0),
        }
    }

    /// Heading told, rad; 0 where none is.
    pub(crate) const fn heading(&self) -> f64 {
        match self.yaw {
            Yaw::Angle { yaw, .. } => yaw,
            Yaw::Rate(_) => 0.0,
        }
    }
}

fn radians(degrees: f32) -> f64 {
    f64::from(degrees).to_radians()
}

fn vector(x: f32, y: f32) -> DVec3 {
    DVec3::new(x.into(), y.into(), 0.0)
}

fn height(z: f32) -> Vertical {
    Vertical::Height {
        z: z.into(),
        velocity: 0.0,
        acceleration: 0.0,
    }
}

/// Roll and pitch in degrees as the firmware has them, with pitch nose up.
fn tilt_degrees(roll: f32, pitch: f32) -> Horizontal {
    Horizontal::Tilt(Tilt::Angle(radians(roll)), Tilt::Angle(-radians(pitch)))
}
