//! What kind of Crazyflie is simulated. Plain values that do not change during a flight.

use glam::DVec3;

/// A simulated Crazyflie before it is switched on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Seed of the sensor noise: the same seed and the same packets at the same times give the same flight.
    pub seed: u64,
    /// Arms itself once the preflight checks pass, as a Crazyflie 2.x does. Brushless ones wait to be armed.
    pub auto_arm: bool,
    /// Sensor noise. Off, sensors show the exact state.
    pub noise: bool,
    /// Pads the log table to this many variables; a real drone has about 380. Smaller than the built-in table: as
    /// it is.
    pub log_variables: usize,
    /// Pads the parameter table to this many parameters; a real drone has about 245.
    pub parameters: usize,
    /// State of charge at the start, 0 to 1.
    pub charge: f64,
    /// Place on the ground at the start, m, x and y of the world frame.
    pub start: [f64; 2],
    /// Heading at the start, rad, counter-clockwise from the world's x axis.
    pub heading: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            auto_arm: true,
            noise: true,
            log_variables: 0,
            parameters: 0,
            charge: 1.0,
            start: [0.0; 2],
            heading: 0.0,
        }
    }
}

impl Config {
    pub(crate) const fn position(&self) -> DVec3 {
        DVec3::new(self.start[0], self.start[1], 0.0)
    }
}
