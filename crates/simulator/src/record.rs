//! What happened: the flight, the supervisor's transitions, packets by port and, above all, everything that would
//! have crashed a real drone. It only counts; it never changes what the drone does.

use std::collections::BTreeMap;

use crtp::{Packet, Port};
use serde::{Serialize, Serializer};

use crate::flight::State;
use crate::flight::body::Body;

/// Records kept in full; beyond this only counters go on.
const KEPT: usize = 200;
/// Higher than this counts as a flight, m.
const AIRBORNE: f64 = 0.05;

/// A change of the supervisor's state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Transition {
    /// Seconds after the drone was switched on.
    pub t_s: f64,
    /// State before.
    pub from: State,
    /// State after.
    pub to: State,
    /// Age of the last setpoint, ms.
    pub setpoint_age_ms: u64,
    /// Height, m.
    pub z_m: f64,
}

/// The flight in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlightRecord {
    /// Times the drone left the ground.
    pub flights: u32,
    /// Times it came back to it.
    pub touchdowns: u32,
    /// Hardest touchdown, m/s downwards.
    pub hardest_touchdown_m_s: f64,
    /// Highest point, m.
    pub highest_m: f64,
    /// Way flown, m.
    pub distance_m: f64,
    /// Time off the ground, s.
    pub airborne_s: f64,
    /// Times the drone levelled out because no setpoint had come for 500 ms.
    pub level_outs: u32,
    /// Times it locked itself.
    pub locks: u32,
    /// Changes of the supervisor's state, the first ones in full.
    pub transitions: Vec<Transition>,
    #[serde(skip)]
    airborne: bool,
}

impl FlightRecord {
    pub(crate) fn follow(&mut self, step_ms: u64, body: &Body) {
        let dt = step_ms as f64 / 1000.0;
        let airborne = if self.airborne {
            !body.on_ground()
        } else {
            body.position.z > AIRBORNE
        };
        self.flights += u32::from(airborne && !self.airborne);
        self.airborne = airborne;
        if airborne {
            self.airborne_s += dt;
            self.distance_m += body.velocity.length() * dt;
            self.highest_m = self.highest_m.max(body.position.z);
        }
    }

    pub(crate) fn touchdown(&mut self, speed: f64) {
        if self.airborne {
            self.touchdowns += 1;
            self.hardest_touchdown_m_s = self.hardest_touchdown_m_s.max(speed);
        }
    }

    pub(crate) fn transition(
        &mut self,
        now_ms: u64,
        (from, to): (State, State),
        setpoint_age_ms: u64,
        z_m: f64,
    ) {
        self.level_outs += u32::from(to == State::WarningLevelOut);
        self.locks += u32::from(to == State::Locked);
        if self.transitions.len() < KEPT {
            let t_s = seconds(now_ms);
            self.transitions.push(Transition {
                t_s,
                from,
                to,
                setpoint_age_ms,
                z_m,
            });
        }
    }
}

/// Why bytes would have crashed a real drone, or made it fly on stale values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hazard {
    /// Generic setpoint without a type: the firmware asserts.
    SetpointEmpty,
    /// Generic setpoint of another length than its type has: the firmware asserts.
    SetpointLength,
    /// Generic setpoint of unknown type: the motors stop.
    SetpointType,
    /// Setpoint with a value that is no number.
    NotFinite,
    /// Meta command that is not 5 bytes: the firmware asserts.
    MetaLength,
    /// Memory the drone does not have: the firmware asserts.
    MemoryUnknown,
    /// A packet of another length than its command has: the firmware uses stale bytes as values.
    WrongLength,
    /// A memory read whose reply has no room: the firmware writes beyond its buffer.
    MemoryReadTooLong,
    /// A log block over a raw memory address.
    RawMemory,
    /// UART frame with a wrong checksum: the firmware asserts.
    UartChecksum,
    /// UART frame longer than the firmware's buffer.
    UartOversize,
}

/// One thing that would have crashed a real drone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crash {
    /// Milliseconds after the drone was switched on.
    pub t_ms: u64,
    /// Why.
    pub hazard: Hazard,
    /// The packet in hexadecimal, header first; empty for UART frames that never became a packet.
    pub hex: String,
}

/// Everything that would have crashed a real drone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WouldCrash {
    /// How often.
    pub count: u64,
    /// How often by reason.
    pub by_reason: BTreeMap<Hazard, u64>,
    /// The first ones in full.
    pub records: Vec<Crash>,
}

impl WouldCrash {
    pub(crate) fn add(&mut self, t_ms: u64, hazard: Hazard, packet: Option<&Packet>) {
        self.count += 1;
        *self.by_reason.entry(hazard).or_default() += 1;
        if self.records.len() < KEPT {
            let hex = packet.map_or_else(String::new, |packet| hex(packet.as_bytes()));
            self.records.push(Crash { t_ms, hazard, hex });
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Roll-pitch-yaw-thrust setpoints against the thrust lock of a fresh drone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThrustLock {
    /// Setpoints whose thrust was ignored because none without thrust had come.
    pub ignored: u64,
    /// Times a setpoint without thrust unlocked it.
    pub unlocked: u64,
    /// When the first setpoint was ignored, ms after the drone was switched on.
    pub first_ignored_ms: Option<u64>,
}

/// A client came or went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkChange {
    /// Seconds after the drone was switched on.
    pub t_s: f64,
    /// Whether a client is connected from now on.
    pub connected: bool,
    /// Time since the last packet, ms.
    pub packet_age_ms: u64,
    /// Age of the last setpoint, ms.
    pub setpoint_age_ms: u64,
}

/// Packets of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCount {
    /// From the client.
    pub received: u64,
    /// To the client.
    pub sent: u64,
}

/// Packets since the drone was switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// By CRTP port number, 0 to 15.
    #[serde(serialize_with = "used_ports")]
    pub by_port: [PortCount; 16],
    /// Null packets received; they are in no other count.
    pub nulls: u64,
    /// Downlink packets dropped because the queue of 200 was full.
    pub dropped_full: u64,
    /// Downlink packets dropped when a log block found no client.
    pub flushed: u64,
    /// Log packets that came too late to be sampled on time and were left out.
    pub log_missed: u64,
    /// Uplink packets that no handler of the firmware answers or obeys.
    pub ignored: u64,
    /// Datagrams that are empty or longer than 31 bytes.
    pub bad_datagrams: u64,
    /// Datagrams the system did not take.
    pub unsent: u64,
    /// External positions and poses.
    pub external_positions: u64,
}

impl Traffic {
    /// The counters of one port.
    pub(crate) fn port(&mut self, port: Port) -> &mut PortCount {
        &mut self.by_port[usize::from(port.number() & 15)]
    }

    /// Packets from the client, null packets left out.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.by_port.iter().map(|port| port.received).sum()
    }
}

/// Ports without packets are left out of the JSON.
fn used_ports<S: Serializer>(ports: &[PortCount; 16], serializer: S) -> Result<S::Ok, S::Error> {
    let used = ports
        .iter()
        .enumerate()
        .filter(|(_, count)| **count != PortCount::default());
    serializer.collect_map(used)
}

pub(crate) fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
