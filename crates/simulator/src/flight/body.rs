//! The flying body: a point mass under thrust, weight and drag, whose attitude follows the commanded one with
//! two first-order lags. It knows no setpoints and no sensors.

use std::f64::consts::PI;

use glam::{DQuat, DVec3, EulerRot};

/// Weight per mass, m/s².
pub(crate) const GRAVITY: f64 = 9.81;
/// Most thrust per mass, m/s²: hover takes about 55 % as on a Crazyflie 2.1.
pub(crate) const MAX_THRUST: f64 = GRAVITY / 0.55;
/// Time for the attitude to follow the commanded one, s.
const ATTITUDE_LAG: f64 = 0.08;
/// Time for the body rates to follow the commanded ones, s.
const RATE_LAG: f64 = 0.02;
/// Time for the thrust to follow the commanded one, s.
const MOTOR_LAG: f64 = 0.03;
/// Fastest turn the attitude controller asks for, rad/s.
const MAX_RATE: f64 = 8.0;
/// Linear drag, 1/s.
const DRAG: f64 = 0.15;
/// A touchdown tilted by more than this tips over, rad.
const TIP_OVER: f64 = 1.0;

/// What one axis of the attitude is told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tilt {
    /// Go to this angle, rad.
    Angle(f64),
    /// Turn at this rate, rad/s.
    Rate(f64),
}

/// What the motors are told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Command {
    pub(crate) roll: Tilt,
    pub(crate) pitch: Tilt,
    /// rad/s, counter-clockwise.
    pub(crate) yaw_rate: f64,
    /// Along the body's z axis per mass, m/s², 0 to [`MAX_THRUST`].
    pub(crate) thrust: f64,
}

impl Command {
    pub(crate) const OFF: Self = Self {
        roll: Tilt::Angle(0.0),
        pitch: Tilt::Angle(0.0),
        yaw_rate: 0.0,
        thrust: 0.0,
    };
}

/// Position, velocity and attitude. World frame x forward, y left, z up; angles right-handed about these axes, so
/// that a positive pitch is nose down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Body {
    /// m.
    pub(crate) position: DVec3,
    /// m/s.
    pub(crate) velocity: DVec3,
    /// m/s², without gravity's share: at rest 0.
    pub(crate) acceleration: DVec3,
    /// rad.
    pub(crate) roll: f64,
    /// rad.
    pub(crate) pitch: f64,
    /// rad, ±π.
    pub(crate) yaw: f64,
    /// rad/s about the body's axes.
    pub(crate) rates: DVec3,
    /// m/s².
    pub(crate) thrust: f64,
    tipped: bool,
}

impl Body {
    pub(crate) fn at(position: DVec3, yaw: f64) -> Self {
        Self {
            position,
            velocity: DVec3::ZERO,
            acceleration: DVec3::ZERO,
            roll: 0.0,
            pitch: 0.0,
            yaw: wrap(yaw),
            rates: DVec3::ZERO,
            thrust: 0.0,
            tipped: false,
        }
    }

    pub(crate) fn attitude(&self) -> DQuat {
        DQuat::from_euler(EulerRot::ZYX, self.yaw, self.pitch, self.roll)
    }

    pub(crate) fn on_ground(&self) -> bool {
        self.position.z <= 0.0
    }

    /// What an accelerometer feels, m/s², body frame: on the ground gravity upwards, in free fall nothing.
    pub(crate) fn specific_force(&self) -> DVec3 {
        self.attitude().inverse() * (self.acceleration + DVec3::Z * GRAVITY)
    }

    /// Turns the drone upside down, where it is.
    pub(crate) fn tip_over(&mut self) {
        self.tipped = true;
        self.roll = PI;
    }

    /// Puts the drone on its feet.
    pub(crate) fn set_upright(&mut self) {
        self.tipped = false;
        self.roll = 0.0;
        self.pitch = 0.0;
    }

    /// Lets `dt` seconds pass. `Some(m/s)` on touchdown.
    pub(crate) fn step(&mut self, command: &Command, dt: f64) -> Option<f64> {
        self.thrust += (command.thrust - self.thrust) * dt / MOTOR_LAG;
        if !self.tipped {
            self.turn(command, dt);
        }
        let force = self.attitude() * DVec3::Z * self.thrust - self.velocity * DRAG;
        let acceleration = force - DVec3::Z * GRAVITY;
        let was_flying = !self.on_ground();
        self.velocity += acceleration * dt;
        self.position += self.velocity * dt;
        self.acceleration = acceleration;
        let impact = -self.velocity.z;
        if self.position.z > 0.0 {
            return None;
        }
        self.rest();
        was_flying.then_some(impact)
    }

    fn turn(&mut self, command: &Command, dt: f64) {
        let wanted = DVec3::new(
            rate(command.roll, self.roll),
            rate(command.pitch, self.pitch),
            command.yaw_rate,
        );
        self.rates += (wanted - self.rates) * dt / RATE_LAG;
        self.roll = wrap(self.roll + self.rates.x * dt);
        self.pitch = wrap(self.pitch + self.rates.y * dt);
        self.yaw = wrap(self.yaw + self.rates.z * dt);
    }

    /// The ground holds the drone: no sinking, no sliding, no turning.
    fn rest(&mut self) {
        self.position.z = 0.0;
        self.velocity = DVec3::ZERO;
        self.acceleration = DVec3::ZERO;
        self.rates = DVec3::ZERO;
        self.tipped |= self.roll.abs() > TIP_OVER || self.pitch.abs() > TIP_OVER;
        if !self.tipped {
            self.set_upright();
        }
    }
}

fn rate(tilt: Tilt, angle: f64) -> f64 {
    match tilt {
        Tilt::Angle(wanted) => (wrap(wanted - angle) / ATTITUDE_LAG).clamp(-MAX_RATE, MAX_RATE),
        Tilt::Rate(wanted) => wanted,
    }
}

/// The angle in -π to π.
pub(crate) fn wrap(angle: f64) -> f64 {
    let turned = (angle + PI).rem_euclid(2.0 * PI) - PI;
    if turned.is_finite() { turned } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DT: f64 = 0.002;

    fn flown(mut body: Body, command: &Command, seconds: f64) -> Body {
        for _ in 0..(seconds / DT) as u32 {
            body.step(command, DT);
        }
        body
    }

    fn hovering() -> Body {
        let mut body = Body::at(DVec3::new(0.0, 0.0, 1.0), 0.0);
        body.thrust = GRAVITY;
        body
    }

    #[test]
    fn at_rest_the_accelerometer_feels_gravity_upwards() {
        let body = flown(Body::at(DVec3::ZERO, 0.7), &Command::OFF, 0.1);
        assert!((body.specific_force() - DVec3::Z * GRAVITY).length() < 1e-9);
    }

    #[test]
    fn in_free_fall_the_accelerometer_feels_only_drag() {
        let mut body = Body::at(DVec3::new(0.0, 0.0, 100.0), 0.0);
        body = flown(body, &Command::OFF, 0.1);
        assert!(body.specific_force().length() < 0.2);
    }

    #[test]
    fn positive_pitch_flies_forward_and_positive_roll_to_the_right() {
        let hover = Command {
            thrust: GRAVITY,
            ..Command::OFF
        };
        let forward = Command {
            pitch: Tilt::Angle(0.1),
            ..hover
        };
        let right = Command {
            roll: Tilt::Angle(0.1),
            ..hover
        };
        assert!(flown(hovering(), &forward, 0.5).velocity.x > 0.2);
        assert!(flown(hovering(), &right, 0.5).velocity.y < -0.2);
    }

    #[test]
    fn touchdown_tells_the_speed_once() {
        let mut body = Body::at(DVec3::new(0.0, 0.0, 0.5), 0.0);
        let impacts: Vec<f64> = (0..1000)
            .filter_map(|_| body.step(&Command::OFF, DT))
            .collect();
        assert_eq!(impacts.len(), 1);
        assert!((2.8..3.2).contains(&impacts[0]), "{impacts:?}");
    }

    #[test]
    fn landing_on_the_back_stays_there() {
        let mut body = hovering();
        body.tip_over();
        let body = flown(body, &Command::OFF, 2.0);
        assert!(body.on_ground() && body.specific_force().z < -9.0);
    }
}
