//! What the drone measures: inertial sensors, barometer and ranges with a little seeded noise, and the battery.
//! It reads the body and never moves it.

use glam::DVec3;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::body::{Body, GRAVITY, MAX_THRUST};

/// Standard deviations of the noise: acceleration in g, turn rate in deg/s, pressure in mbar, range in mm.
const NOISE: (f64, f64, f64, f64) = (0.004, 0.05, 0.02, 2.0);
/// The range sensors' reach; nothing within it reads as this, mm.
const NO_RANGE: f64 = 32_766.0;
/// Half the width of the room the drone flies in, m.
const ROOM: f64 = 3.0;
/// Height of the room, m.
const CEILING: f64 = 3.0;
/// Longest distance the side rangers see, m.
const REACH: f64 = 3.5;

/// The latest measurements.
#[derive(Clone, Debug)]
pub(crate) struct Sensors {
    noise: Option<SmallRng>,
    /// g, body frame, gravity included.
    pub(crate) acc: DVec3,
    /// deg/s, body frame.
    pub(crate) gyro: DVec3,
    /// mbar.
    pub(crate) pressure: f64,
}

impl Sensors {
    pub(crate) fn new(seed: u64, noise: bool) -> Self {
        Self {
            noise: noise.then(|| SmallRng::seed_from_u64(seed)),
            acc: DVec3::Z,
            gyro: DVec3::ZERO,
            pressure: 1013.25,
        }
    }

    pub(crate) fn measure(&mut self, body: &Body) {
        let degrees = body.rates.map(f64::to_degrees);
        self.acc = body.specific_force() / GRAVITY + self.vector(NOISE.0);
        self.gyro = degrees + self.vector(NOISE.1);
        // 12 Pa a metre near the ground.
        self.pressure = 1013.25 - 0.12 * body.position.z + self.sample(NOISE.2);
    }

    fn vector(&mut self, deviation: f64) -> DVec3 {
        DVec3::new(
            self.sample(deviation),
            self.sample(deviation),
            self.sample(deviation),
        )
    }

    /// About normally distributed: the sum of three uniform numbers has deviation 1.
    fn sample(&mut self, deviation: f64) -> f64 {
        self.noise.as_mut().map_or(0.0, |rng| {
            deviation * (0..3).map(|_| rng.random_range(-1.0..1.0)).sum::<f64>()
        })
    }
}

/// Distance to the ground straight below, mm.
pub(crate) fn ground_range(body: &Body) -> f64 {
    (body.position.z * 1000.0).clamp(0.0, NO_RANGE)
}

/// Distance to the ceiling, mm.
pub(crate) fn ceiling_range(body: &Body) -> f64 {
    ((CEILING - body.position.z) * 1000.0).clamp(0.0, NO_RANGE)
}

/// Distance to the wall of the square room in the direction `turn` from the heading, mm.
pub(crate) fn wall_range(body: &Body, turn: f64) -> f64 {
    let direction = DVec3::X.rotate_z(body.yaw + turn);
    let along = |position: f64, part: f64| {
        let to_wall = (ROOM.copysign(part) - position) / part;
        if part.abs() < 1e-9 || to_wall < 0.0 {
            f64::INFINITY
        } else {
            to_wall
        }
    };
    let x = along(body.position.x, direction.x);
    let distance = x.min(along(body.position.y, direction.y));
    if distance > REACH {
        NO_RANGE
    } else {
        distance * 1000.0
    }
}

/// A single-cell battery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Battery {
    charge: f64,
    load: f64,
}

impl Battery {
    /// Flight time from full at hover, s.
    const FLIGHT_TIME: f64 = 420.0;
    /// Standby time from full, s.
    const STANDBY_TIME: f64 = 3600.0;

    pub(crate) const fn new(charge: f64) -> Self {
        Self {
            charge: charge.clamp(0.0, 1.0),
            load: 0.0,
        }
    }

    pub(crate) fn step(&mut self, thrust: f64, dt: f64) {
        self.load = thrust / MAX_THRUST;
        let drain = 1.0 / Self::STANDBY_TIME + thrust / GRAVITY / Self::FLIGHT_TIME;
        self.charge = (self.charge - drain * dt).max(0.0);
    }

    /// V: falls with the charge and sags under load.
    pub(crate) fn volts(&self) -> f64 {
        3.3 + 0.85 * self.charge - 0.35 * self.load
    }

    /// Percent.
    pub(crate) fn level(&self) -> f64 {
        (100.0 * self.charge).round()
    }

    /// 0 on battery, 3 low.
    pub(crate) fn state(&self) -> f64 {
        if self.volts() < 3.2 { 3.0 } else { 0.0 }
    }
}
