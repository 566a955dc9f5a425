//! What a drone tells, in SI units and REP-103 axes, and which log variables it is made of.
//!
//! Each topic is one list of variables and one function from their values, in the same order, to a message.
//! Values arrive as doubles in the firmware's units; conversion happens here and in [`crate::units`] only.

use crtp::{decompress_quaternion, supervisor};

use crate::units::GRAVITY;

/// Position and attitude in the world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// m.
    pub position: [f64; 3],
    /// x, y, z, w.
    pub orientation: [f64; 4],
}

impl Pose {
    /// `stateEstimate` in metres, attitude compressed: 16 bytes.
    pub const VARIABLES: [&'static str; 4] = [
        "stateEstimate.x",
        "stateEstimate.y",
        "stateEstimate.z",
        "stateEstimateZ.quat",
    ];

    /// From the values of [`Pose::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let &[x, y, z, quat] = values else {
            return None;
        };
        Some(Self {
            position: [x, y, z],
            orientation: decompress_quaternion(quat as u32),
        })
    }

    /// Yaw of the attitude, rad, counter-clockwise.
    #[must_use]
    pub fn heading(&self) -> f64 {
        let [x, y, z, w] = self.orientation;
        (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z))
    }
}

/// Pose, and velocities in the body frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Odometry {
    /// In the world.
    pub pose: Pose,
    /// Along the body's axes, m/s.
    pub linear: [f64; 3],
    /// About the body's axes, rad/s.
    pub angular: [f64; 3],
}

impl Odometry {
    /// `stateEstimateZ` in thousandths and the gyroscope in deg/s: 28 bytes, hence two log blocks.
    pub const VARIABLES: [&'static str; 10] = [
        "stateEstimateZ.x",
        "stateEstimateZ.y",
        "stateEstimateZ.z",
        "stateEstimateZ.quat",
        "stateEstimateZ.vx",
        "stateEstimateZ.vy",
        "stateEstimateZ.vz",
        "gyro.x",
        "gyro.y",
        "gyro.z",
    ];

    /// From the values of [`Odometry::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let &[x, y, z, quat, vx, vy, vz, p, q, r] = values else {
            return None;
        };
        let orientation = decompress_quaternion(quat as u32);
        let velocity = [vx, vy, vz].map(from_thousandths);
        let position = [x, y, z].map(from_thousandths);
        Some(Self {
            pose: Pose {
                position,
                orientation,
            },
            linear: into_body(orientation, velocity),
            angular: [p, q, r].map(f64::to_radians),
        })
    }
}

fn from_thousandths(value: f64) -> f64 {
    value / 1000.0
}

/// A vector of the world, seen from a body with this attitude: rotated by the inverse quaternion.
fn into_body([x, y, z, w]: [f64; 4], vector: [f64; 3]) -> [f64; 3] {
    let axis = [-x, -y, -z];
    let twice = cross(axis, vector).map(|component| 2.0 * component);
    let second = cross(axis, twice);
    std::array::from_fn(|at| vector[at] + w * twice[at] + second[at])
}

fn cross([a, b, c]: [f64; 3], [x, y, z]: [f64; 3]) -> [f64; 3] {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

/// Inertial measurement in the body frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imu {
    /// rad/s.
    pub angular_velocity: [f64; 3],
    /// m/s², with the reaction to gravity: +9.8 on z at rest.
    pub linear_acceleration: [f64; 3],
}

impl Imu {
    /// Gyroscope in deg/s and accelerometer in g: 24 bytes.
    pub const VARIABLES: [&'static str; 6] =
        ["gyro.x", "gyro.y", "gyro.z", "acc.x", "acc.y", "acc.z"];

    /// From the values of [`Imu::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let &[p, q, r, ax, ay, az] = values else {
            return None;
        };
        Some(Self {
            angular_velocity: [p, q, r].map(f64::to_radians),
            linear_acceleration: [ax, ay, az].map(|g| g * GRAVITY),
        })
    }
}

/// What the battery does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It feeds the drone.
    Discharging,
    /// It is being charged.
    Charging,
    /// It is full.
    Charged,
    /// It is nearly empty.
    Low,
    /// The drone is switching off.
    ShuttingDown,
    /// A state of newer firmware.
    Unknown,
}

impl Power {
    /// From `pm.state`.
    #[must_use]
    pub fn from_state(state: f64) -> Self {
        match state as i64 {
            0 => Self::Discharging,
            1 => Self::Charging,
            2 => Self::Charged,
            3 => Self::Low,
            4 => Self::ShuttingDown,
            _ => Self::Unknown,
        }
    }
}

/// State of the battery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatteryState {
    /// V.
    pub voltage: f64,
    /// 0 to 1, as the firmware estimates it from the voltage.
    pub charge: f64,
    /// What it does.
    pub power: Power,
}

impl BatteryState {
    /// Volts, percent and state.
    pub const VARIABLES: [&'static str; 3] = ["pm.vbat", "pm.batteryLevel", "pm.state"];

    /// From the values of [`BatteryState::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let &[voltage, percent, state] = values else {
            return None;
        };
        Some(Self {
            voltage,
            charge: (percent / 100.0).clamp(0.0, 1.0),
            power: Power::from_state(state),
        })
    }
}

/// State of the drone as crazyswarm2's `status` has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status {
    /// Supervisor's bits.
    pub supervisor: supervisor::Info,
    /// V.
    pub battery_voltage: f64,
    /// `pm.state` as it is.
    pub pm_state: u8,
    /// Signal strength of the radio, -dBm; 0 without one.
    pub rssi: u8,
}

impl Status {
    /// Bits, millivolts, state and signal strength.
    pub const VARIABLES: [&'static str; 4] =
        ["supervisor.info", "pm.vbatMV", "pm.state", "radio.rssi"];

    /// From the values of [`Status::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let &[info, millivolts, state, rssi] = values else {
            return None;
        };
        Some(Self {
            supervisor: supervisor::Info(info as u16),
            battery_voltage: from_thousandths(millivolts),
            pm_state: state as u8,
            rssi: rssi as u8,
        })
    }
}

/// Distances around the drone, m; infinite where nothing is in reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    /// Back, right, front, left: by angle from -π on.
    pub ranges: [f64; 4],
}

/// The multi-ranger deck sees nothing beyond, m.
const RANGE_LIMIT: f64 = 3.49;

impl Scan {
    /// Millimetres.
    pub const VARIABLES: [&'static str; 4] =
        ["range.back", "range.right", "range.front", "range.left"];

    /// From the values of [`Scan::VARIABLES`]; `None` if their number is another.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let ranges: [f64; 4] = values.try_into().ok()?;
        let in_reach = |range: f64| {
            if range > RANGE_LIMIT {
                f64::INFINITY
            } else {
                range
            }
        };
        Some(Self {
            ranges: ranges.map(|millimetres| in_reach(from_thousandths(millimetres))),
        })
    }
}

#[cfg(test)]
mod tests;
