//! The log variables: name, type, and how each is read off the flight. Units are the firmware's: angles in degrees
//! with pitch nose up, accelerations in g, `stateEstimateZ` in mm and milliradians.

use std::f64::consts::{FRAC_PI_2, PI};

use crtp::Kind;
use crtp::log::Type;

use super::table::Name;
use crate::flight::Flight;
use crate::flight::body::{GRAVITY, MAX_THRUST};
use crate::flight::sensors::{ceiling_range, ground_range, wall_range};
use crate::flight::setpoint::{FULL_THRUST, Horizontal};
use crate::flight::yaw_rate_wanted;

/// Reads one variable. Every value of 32 bits or fewer is exact in a double.
pub(crate) type Read = fn(&Flight) -> f64;

/// One log variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Name,
    pub(crate) read: Read,
}

/// The table, padded to `wanted` variables.
pub(crate) fn variables(wanted: usize) -> Vec<Variable> {
    let mut table: Vec<Variable> = GROUPS
        .iter()
        .flat_map(|(group, entries)| entries.iter().map(|entry| variable(group, entry)))
        .collect();
    for i in table.len()..wanted {
        table.push(variable(
            &format!("fill{:02}", i / 20),
            &(&format!("v{i:03}"), Kind::U32, |_| 0.0),
        ));
    }
    table
}

fn variable(group: &str, (name, kind, read): &Entry<'_>) -> Variable {
    let kind = Type::from_kind(*kind).map_or(7, Type::number);
    Variable {
        name: Name {
            group: group.into(),
            name: (*name).into(),
            kind,
        },
        read: *read,
    }
}

type Entry<'a> = (&'a str, Kind, Read);

const F: Kind = Kind::F32;

#[rustfmt::skip]
const GROUPS: &[(&str, &[Entry<'static>])] = &[
    ("stateEstimate", &[
        ("x", F, |f| f.body.position.x), ("y", F, |f| f.body.position.y), ("z", F, |f| f.body.position.z),
        ("vx", F, |f| f.body.velocity.x), ("vy", F, |f| f.body.velocity.y), ("vz", F, |f| f.body.velocity.z),
        ("ax", F, |f| f.body.acceleration.x / GRAVITY), ("ay", F, |f| f.body.acceleration.y / GRAVITY),
        ("az", F, |f| f.body.acceleration.z / GRAVITY),
        ("roll", F, |f| f.body.roll.to_degrees()), ("pitch", F, |f| -f.body.pitch.to_degrees()),
        ("yaw", F, |f| f.body.yaw.to_degrees()),
        ("qx", F, |f| f.body.attitude().x), ("qy", F, |f| f.body.attitude().y),
        ("qz", F, |f| f.body.attitude().z), ("qw", F, |f| f.body.attitude().w),
    ]),
    ("stateEstimateZ", &[
        ("x", Kind::I16, |f| f.body.position.x * 1000.0), ("y", Kind::I16, |f| f.body.position.y * 1000.0),
        ("z", Kind::I16, |f| f.body.position.z * 1000.0),
        ("vx", Kind::I16, |f| f.body.velocity.x * 1000.0), ("vy", Kind::I16, |f| f.body.velocity.y * 1000.0),
        ("vz", Kind::I16, |f| f.body.velocity.z * 1000.0),
        ("ax", Kind::I16, |f| f.body.acceleration.x * 1000.0), ("ay", Kind::I16, |f| f.body.acceleration.y * 1000.0),
        ("az", Kind::I16, |f| f.body.acceleration.z * 1000.0),
        ("quat", Kind::U32, |f| crtp::compress_quaternion(f.body.attitude().to_array()).map_or(0.0, f64::from)),
        ("rateRoll", Kind::I16, |f| f.sensors.gyro.x.to_radians() * 1000.0),
        ("ratePitch", Kind::I16, |f| -f.sensors.gyro.y.to_radians() * 1000.0),
        ("rateYaw", Kind::I16, |f| f.sensors.gyro.z.to_radians() * 1000.0),
    ]),
    ("stabilizer", &[
        ("roll", F, |f| f.body.roll.to_degrees()), ("pitch", F, |f| -f.body.pitch.to_degrees()),
        ("yaw", F, |f| f.body.yaw.to_degrees()), ("thrust", F, |f| counts(f.command.thrust)),
        ("rtStab", Kind::U32, |_| 0.0), ("intToOut", Kind::U32, |_| 0.0),
    ]),
    ("gyro", &[
        ("x", F, |f| f.sensors.gyro.x), ("y", F, |f| f.sensors.gyro.y), ("z", F, |f| f.sensors.gyro.z),
        ("xRaw", Kind::I16, |f| f.sensors.gyro.x * 16.4), ("yRaw", Kind::I16, |f| f.sensors.gyro.y * 16.4),
        ("zRaw", Kind::I16, |f| f.sensors.gyro.z * 16.4),
    ]),
    ("acc", &[
        ("x", F, |f| f.sensors.acc.x), ("y", F, |f| f.sensors.acc.y), ("z", F, |f| f.sensors.acc.z),
    ]),
    ("baro", &[
        ("asl", F, |f| (1013.25 - f.sensors.pressure) / 0.12), ("temp", F, |_| 25.0),
        ("pressure", F, |f| f.sensors.pressure),
    ]),
    ("mag", &[
        ("x", F, |f| f.body.yaw.cos() * 0.2), ("y", F, |f| -f.body.yaw.sin() * 0.2), ("z", F, |_| -0.4),
    ]),
    ("pm", &[
        ("vbat", F, |f| f.battery.volts()), ("vbatMV", Kind::U16, |f| f.battery.volts() * 1000.0),
        ("extVbat", F, |_| 0.0), ("extVbatMV", Kind::U16, |_| 0.0), ("extCurr", F, |_| 0.0),
        ("chargeCurrent", F, |_| 0.0), ("state", Kind::I8, |f| f.battery.state()),
        ("batteryLevel", Kind::U8, |f| f.battery.level()),
    ]),
    ("radio", &[
        ("rssi", Kind::U8, |_| 40.0), ("isConnected", Kind::U8, |_| 1.0),
        ("numRxBc", Kind::U16, |_| 0.0), ("numRxUc", Kind::U16, |f| wrapped(f.packets)),
    ]),
    ("supervisor", &[("info", Kind::U16, |f| f.info().0.into())]),
    ("sys", &[
        ("canfly", Kind::U8, |f| f.supervisor.can_fly().into()),
        ("isFlying", Kind::U8, |f| f.info().has(crtp::supervisor::Info::FLYING).into()),
        ("isTumbled", Kind::U8, |f| f.info().has(crtp::supervisor::Info::TUMBLED).into()),
        ("armed", Kind::U8, |f| f.supervisor.is_armed().into()),
        ("testLogParam", Kind::I8, |_| 0.0),
    ]),
    ("range", &[
        ("front", Kind::U16, |f| wall_range(&f.body, 0.0)), ("back", Kind::U16, |f| wall_range(&f.body, PI)),
        ("up", Kind::U16, |f| ceiling_range(&f.body)), ("left", Kind::U16, |f| wall_range(&f.body, FRAC_PI_2)),
        ("right", Kind::U16, |f| wall_range(&f.body, -FRAC_PI_2)), ("zrange", Kind::U16, |f| ground_range(&f.body)),
    ]),
    ("ctrltarget", &[
        ("x", F, |f| f.setpoint().position().x), ("y", F, |f| f.setpoint().position().y),
        ("z", F, |f| f.setpoint().position().z),
        ("vx", F, |f| f.setpoint().velocity().x), ("vy", F, |f| f.setpoint().velocity().y),
        ("vz", F, |f| f.setpoint().velocity().z),
        ("ax", F, |f| feed(f)[0]), ("ay", F, |f| feed(f)[1]), ("az", F, |f| feed(f)[2]),
        ("roll", F, |f| f.setpoint().tilt().0.to_degrees()), ("pitch", F, |f| -f.setpoint().tilt().1.to_degrees()),
        ("yaw", F, |f| f.setpoint().heading().to_degrees()),
    ]),
    ("posCtl", &[
        ("targetX", F, |f| f.setpoint().position().x), ("targetY", F, |f| f.setpoint().position().y),
        ("targetZ", F, |f| f.setpoint().position().z),
        ("targetVX", F, |f| f.setpoint().velocity().x), ("targetVY", F, |f| f.setpoint().velocity().y),
        ("targetVZ", F, |f| f.setpoint().velocity().z),
    ]),
    ("controller", &[
        ("cmd_thrust", F, |f| counts(f.command.thrust)),
        ("roll", F, |f| angle(f.command.roll)), ("pitch", F, |f| -angle(f.command.pitch)),
        ("yaw", F, |f| f.setpoint().heading().to_degrees()),
        ("rollRate", F, |f| f.body.rates.x.to_degrees()), ("pitchRate", F, |f| -f.body.rates.y.to_degrees()),
        ("yawRate", F, |f| yaw_rate_wanted(f).to_degrees()),
        ("actuatorThrust", F, |f| counts(f.command.thrust)),
    ]),
    ("motor", &[
        ("m1", Kind::U32, |f| counts(f.command.thrust)), ("m2", Kind::U32, |f| counts(f.command.thrust)),
        ("m3", Kind::U32, |f| counts(f.command.thrust)), ("m4", Kind::U32, |f| counts(f.command.thrust)),
    ]),
    ("kalman", &[
        ("stateX", F, |f| f.body.position.x), ("stateY", F, |f| f.body.position.y),
        ("stateZ", F, |f| f.body.position.z), ("varPX", F, |_| 1e-5), ("varPY", F, |_| 1e-5), ("varPZ", F, |_| 1e-5),
    ]),
    ("memTst", &[("errCntW", Kind::U32, |_| 0.0)]),
];

/// Thrust in counts, 0 to 65535.
fn counts(thrust: f64) -> f64 {
    thrust / MAX_THRUST * FULL_THRUST
}

fn angle(tilt: crate::flight::body::Tilt) -> f64 {
    match tilt {
        crate::flight::body::Tilt::Angle(angle) => angle.to_degrees(),
        crate::flight::body::Tilt::Rate(_) => 0.0,
    }
}

/// Acceleration fed forward, m/s².
fn feed(flight: &Flight) -> [f64; 3] {
    match flight.setpoint().horizontal {
        Horizontal::Position { acceleration, .. } => acceleration.to_array(),
        Horizontal::Tilt(..) | Horizontal::World(_) | Horizontal::Heading(_) => [0.0; 3],
    }
}

/// A 16-bit counter.
fn wrapped(count: u64) -> f64 {
    (count & 0xffff) as f64
}
