//! What moves the drone: setpoints, the high-level commander, the supervisor, external positions.

use crtp::commander::Rpyt;
use crtp::high_level::{Command, Reply};
use crtp::setpoint::{NotifySetpointsStop, Setpoint};
use crtp::{Channel, Packet, ParseError, Port, Status};

use crate::drone::Drone;
use crate::flight::Thrust;
use crate::record::Hazard;

/// Replies of the supervisor repeat the command with this bit set.
const REPLY: u8 = 0x80;

impl Drone {
    pub(super) fn rpyt(&mut self, packet: &Packet) {
        match Rpyt::parse(packet) {
            Ok(rpyt) => {
                self.commands.rpyt += 1;
                let outcome = self.flight.set_rpyt(&rpyt);
                self.note_thrust(outcome);
            }
            Err(error) => self.hazard(hazard_of(&error), packet),
        }
    }

    fn note_thrust(&mut self, outcome: Thrust) {
        match outcome {
            Thrust::Free => {}
            Thrust::Unlocked => self.thrust_lock.unlocked += 1,
            Thrust::Ignored => {
                self.thrust_lock.ignored += 1;
                self.thrust_lock.first_ignored_ms.get_or_insert(self.now_ms);
            }
        }
    }

    pub(super) fn generic(&mut self, packet: &Packet) {
        match packet.channel() {
            Channel::C0 => self.generic_setpoint(packet),
            Channel::C1 => self.meta(packet),
            _ => self.traffic.ignored += 1,
        }
    }

    fn generic_setpoint(&mut self, packet: &Packet) {
        let Some(&kind) = packet.data().first() else {
            self.hazard(Hazard::SetpointEmpty, packet);
            return;
        };
        match Setpoint::parse(packet) {
            Ok(setpoint) => {
                self.commands.count_generic(kind);
                self.flight.set(&setpoint);
            }
            Err(ParseError::Command { .. }) => {
                self.hazard(Hazard::SetpointType, packet);
                self.flight.set_null();
            }
            Err(ParseError::NotFinite { .. }) => self.hazard(Hazard::NotFinite, packet),
            Err(_) => self.hazard(Hazard::SetpointLength, packet),
        }
    }

    fn meta(&mut self, packet: &Packet) {
        match NotifySetpointsStop::parse(packet) {
            Ok(_) => {
                self.commands.notify_setpoints_stop += 1;
                self.flight.notify_setpoints_stop();
            }
            Err(ParseError::Command { .. }) => self.traffic.ignored += 1,
            Err(_) => self.hazard(Hazard::MetaLength, packet),
        }
    }

    pub(super) fn high_level(&mut self, packet: &Packet) {
        let status = match Command::parse(packet) {
            Ok(command) => {
                self.commands.count_high_level(command.number());
                self.flight
                    .high_level(&command, self.memories.trajectories())
            }
            Err(ParseError::Command { .. }) => Status::UNKNOWN_COMMAND,
            Err(error) => {
                self.hazard(hazard_of(&error), packet);
                return;
            }
        };
        let reply = Reply::to(packet, status).encode();
        self.send(reply.with_reserved_bits_of(packet));
    }

    pub(super) fn supervisor(&mut self, packet: &Packet) {
        match (packet.channel(), packet.data()) {
            (Channel::C0, [command @ 1..=11]) => {
                let set = self.flight.info().0 >> (command - 1) & 1;
                self.reply(Port::SUPERVISOR, Channel::C0, &[REPLY | command, set as u8]);
            }
            (Channel::C0, [12]) => {
                let [low, high] = self.flight.info().0.to_le_bytes();
                self.reply(Port::SUPERVISOR, Channel::C0, &[REPLY | 12, low, high]);
            }
            (Channel::C1, [1, arm]) => {
                let [done, armed] = self.arm(*arm != 0);
                self.reply(Port::SUPERVISOR, Channel::C1, &[REPLY | 1, done, armed]);
            }
            (Channel::C1, [2]) => {
                let done = u8::from(self.flight.supervisor.request_recovery());
                self.reply(Port::SUPERVISOR, Channel::C1, &[REPLY | 2, done, done]);
            }
            (Channel::C1, [3]) => self.emergency_stop(),
            (Channel::C1, [4]) => self.feed_watchdog(),
            (Channel::C0 | Channel::C1, [] | [1..=12, ..]) => {
                self.hazard(Hazard::WrongLength, packet)
            }
            _ => self.traffic.ignored += 1,
        }
    }

    /// Whether it was granted, and whether the drone is armed now.
    pub(super) fn arm(&mut self, arm: bool) -> [u8; 2] {
        self.commands.arm_requests += 1;
        let granted = self.flight.supervisor.request_arming(arm);
        [granted, self.flight.supervisor.is_armed()].map(u8::from)
    }

    fn emergency_stop(&mut self) {
        self.commands.emergency_stops += 1;
        self.flight.supervisor.stop();
    }

    fn feed_watchdog(&mut self) {
        self.commands.watchdog_feeds += 1;
        self.flight.supervisor.feed(self.now_ms);
    }

    /// External positions are counted; the simulated estimator needs none.
    pub(super) fn localization(&mut self, packet: &Packet) {
        let data = packet.data();
        match (packet.channel(), data) {
            (Channel::C0, _) => self.external(packet, data.len() == 12, data),
            (Channel::C1, [8, pose @ ..]) => self.external(packet, pose.len() == 28, pose),
            (Channel::C1, [9, packed @ ..]) => {
                self.external(packet, matches!(packed.len(), 11 | 22), &[])
            }
            (Channel::C2, packed) => {
                let whole = !packed.is_empty() && packed.len().is_multiple_of(7);
                self.external(packet, whole, &[]);
            }
            (Channel::C1, [3]) => self.emergency_stop(),
            (Channel::C1, [4]) => self.feed_watchdog(),
            (Channel::C1, [2, destination, ..]) => {
                self.reply(Port::LOCALIZATION, Channel::C1, &[2, *destination, 0]);
            }
            (Channel::C1, [11, _, _, _, _]) => {
                self.reply(Port::LOCALIZATION, Channel::C1, &[11, 1])
            }
            (Channel::C1, [] | [2 | 3 | 4 | 11, ..]) => self.hazard(Hazard::WrongLength, packet),
            _ => self.traffic.ignored += 1,
        }
    }

    fn external(&mut self, packet: &Packet, right_length: bool, floats: &[u8]) {
        let finite = floats
            .as_chunks::<4>()
            .0
            .iter()
            .all(|bytes| f32::from_le_bytes(*bytes).is_finite());
        match (right_length, finite) {
            (false, _) => self.hazard(Hazard::WrongLength, packet),
            (true, false) => self.hazard(Hazard::NotFinite, packet),
            (true, true) => self.traffic.external_positions += 1,
        }
    }
}

const fn hazard_of(error: &ParseError) -> Hazard {
    match error {
        ParseError::NotFinite { .. } => Hazard::NotFinite,
        _ => Hazard::WrongLength,
    }
}
