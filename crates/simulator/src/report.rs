//! What a drone tells about its life, as a person reads it and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::drone::Snapshot;
use crate::record::{FlightRecord, LinkChange, ThrustLock, Traffic, WouldCrash};

/// Commands the drone obeyed or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Commands {
    /// Roll-pitch-yaw-thrust setpoints.
    pub rpyt: u64,
    /// Generic setpoints by type number.
    pub generic: BTreeMap<u8, u64>,
    /// Notify-setpoints-stop.
    pub notify_setpoints_stop: u64,
    /// High-level commands by number, refused ones included.
    pub high_level: BTreeMap<u8, u64>,
    /// Requests to arm or disarm.
    pub arm_requests: u64,
    /// Emergency stops.
    pub emergency_stops: u64,
    /// Feeds of the emergency watchdog.
    pub watchdog_feeds: u64,
}

impl Commands {
    pub(crate) fn count_generic(&mut self, kind: u8) {
        *self.generic.entry(kind).or_default() += 1;
    }

    pub(crate) fn count_high_level(&mut self, number: u8) {
        *self.high_level.entry(number).or_default() += 1;
    }

    /// Setpoints of any kind.
    #[must_use]
    pub fn setpoints(&self) -> u64 {
        self.rpyt + self.generic.values().sum::<u64>()
    }
}

/// Everything worth telling about a drone since it was switched on. The JSON field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of this layout: 1.
    pub schema: u32,
    /// Seed of the sensor noise.
    pub seed: u64,
    /// Whether the drone arms itself.
    pub auto_arm: bool,
    /// Time since it was switched on, s.
    pub uptime_s: f64,
    /// Where it is now.
    pub now: Snapshot,
    /// The flight in numbers.
    pub flight: FlightRecord,
    /// What it was told to do.
    pub commands: Commands,
    /// Everything that would have crashed a real drone.
    pub would_crash: WouldCrash,
    /// Setpoints against the thrust lock.
    pub thrust_lock: ThrustLock,
    /// Clients that came and went.
    pub link: Vec<LinkChange>,
    /// Packets.
    pub traffic: Traffic,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flight = &self.flight;
        let [x, y, z] = self.now.position_m;
        writeln!(f, "simulated drone, {:.1} s up", self.uptime_s)?;
        writeln!(
            f,
            "  flights {}, airborne {:.1} s, highest {:.2} m, way {:.2} m, hardest touchdown {:.2} m/s",
            flight.flights,
            flight.airborne_s,
            flight.highest_m,
            flight.distance_m,
            flight.hardest_touchdown_m_s
        )?;
        writeln!(
            f,
            "  now at ({x:.2}, {y:.2}, {z:.2}) m, {:?}, battery {:.2} V",
            self.now.state, self.now.battery_v
        )?;
        writeln!(
            f,
            "  setpoints {}, high-level commands {}, level-outs {}, locks {}, thrust ignored {}",
            self.commands.setpoints(),
            self.commands.high_level.values().sum::<u64>(),
            flight.level_outs,
            flight.locks,
            self.thrust_lock.ignored
        )?;
        writeln!(
            f,
            "  packets received {}, nulls {}, downlink dropped {}",
            self.traffic.received(),
            self.traffic.nulls,
            self.traffic.dropped_full + self.traffic.flushed
        )?;
        write!(
            f,
            "  would have crashed a real drone: {}",
            self.would_crash.count
        )?;
        for (hazard, count) in &self.would_crash.by_reason {
            write!(f, "\n    {hazard:?}: {count}")?;
        }
        Ok(())
    }
}
