//! From packets to what they mean, port by port. Every byte that would have crashed a real drone is recorded here
//! and goes no further.

mod commands;
mod param;
mod services;

use crtp::{Channel, Packet, Port};

use super::Drone;

impl Drone {
    pub(super) fn dispatch(&mut self, packet: &Packet) {
        match packet.port() {
            Port::PARAM => self.param(packet),
            Port::COMMANDER if packet.channel() == Channel::C0 => self.rpyt(packet),
            Port::MEMORY => self.memory(packet),
            Port::LOG => self.log(packet),
            Port::LOCALIZATION => self.localization(packet),
            Port::GENERIC_SETPOINT => self.generic(packet),
            Port::HIGH_LEVEL => self.high_level(packet),
            Port::SUPERVISOR => self.supervisor(packet),
            Port::PLATFORM => self.platform(packet),
            _ => self.traffic.ignored += 1,
        }
    }
}
