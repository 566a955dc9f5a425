//! Ports that answer questions: log, memory, platform and versions.

use crtp::memory::{InfoReply, MAX_READ};
use crtp::{Channel, Packet, Port};

use crate::drone::Drone;
use crate::drone::log::RAW;
use crate::drone::memory::Memories;
use crate::record::Hazard;

/// CRTP protocol version spoken here.
const PROTOCOL: u32 = 12;
const FIRMWARE: &[u8] = b"\x012026.08 simulated";
const DEVICE: &[u8] = b"\x02CF21";

impl Drone {
    pub(super) fn log(&mut self, packet: &Packet) {
        match packet.channel() {
            Channel::C0 => match self.log_table.answer(packet.data()) {
                Some(answer) => self.send(answer),
                None => self.traffic.ignored += 1,
            },
            Channel::C1 => self.log_control(packet),
            _ => self.traffic.ignored += 1,
        }
    }

    /// Answered with the command, the block and a status.
    fn log_control(&mut self, packet: &Packet) {
        let data = packet.data();
        if let Some(hazard) = log_hazard(data) {
            self.hazard(hazard, packet);
            return;
        }
        let status = self.logger.control(self.now_ms, data);
        let byte = |i: usize| data.get(i).copied().unwrap_or(0);
        self.answer(packet, &[byte(0), byte(1), status.0]);
    }

    pub(super) fn memory(&mut self, packet: &Packet) {
        match (packet.channel(), packet.data()) {
            (Channel::C0, [1, ..]) => self.send(InfoReply::Count(Memories::COUNT).encode()),
            (Channel::C0, [2, id, ..]) => match Memories::details(*id) {
                Some(details) => self.send(InfoReply::Details(details).encode()),
                None => self.hazard(Hazard::MemoryUnknown, packet),
            },
            (Channel::C1 | Channel::C2, [id, ..]) if *id >= Memories::COUNT => {
                self.hazard(Hazard::MemoryUnknown, packet)
            }
            (Channel::C1, [id, a, b, c, d, length, ..]) => {
                self.memory_read(packet, *id, [*a, *b, *c, *d], usize::from(*length));
            }
            (Channel::C2, [id, a, b, c, d, bytes @ ..]) => {
                let status = self
                    .memories
                    .write(*id, u32::from_le_bytes([*a, *b, *c, *d]), bytes);
                self.reply(Port::MEMORY, Channel::C2, &[*id, *a, *b, *c, *d, status.0]);
            }
            (Channel::C0, [_, ..]) | (Channel::C3, _) => self.traffic.ignored += 1,
            _ => self.hazard(Hazard::WrongLength, packet),
        }
    }

    fn memory_read(&mut self, packet: &Packet, id: u8, address: [u8; 4], length: usize) {
        let mut data = [0; crtp::MAX_DATA];
        let Some(room) = data
            .get_mut(6..6 + length)
            .filter(|room| room.len() <= MAX_READ)
        else {
            self.hazard(Hazard::MemoryReadTooLong, packet);
            return;
        };
        let status = self.memories.read(id, u32::from_le_bytes(address), room);
        data[0] = id;
        data[1..5].copy_from_slice(&address);
        data[5] = status.0;
        let end = if status.is_ok() { 6 + length } else { 6 };
        self.reply(Port::MEMORY, Channel::C1, &data[..end]);
    }

    pub(super) fn platform(&mut self, packet: &Packet) {
        match (packet.channel(), packet.data()) {
            (Channel::C0, data) => self.platform_command(packet, data),
            (Channel::C1, [0, ..]) => {
                let [a, b, c, d] = PROTOCOL.to_le_bytes();
                self.answer(packet, &[0, a, b, c, d]);
            }
            (Channel::C1, [1, ..]) => self.answer(packet, FIRMWARE),
            (Channel::C1, [2, ..]) => self.answer(packet, DEVICE),
            (Channel::C2, _) => self.send(*packet),
            _ => self.traffic.ignored += 1,
        }
    }

    /// Arming and recovery of clients before protocol 12 still work, with a warning.
    fn platform_command(&mut self, packet: &Packet, data: &[u8]) {
        match *data {
            [1, arm] => {
                self.say("PLATFORM: arming moved to the supervisor port\n");
                let [done, armed] = self.arm(arm != 0);
                self.answer(packet, &[1, done, armed]);
            }
            [2] => {
                self.say("PLATFORM: recovery moved to the supervisor port\n");
                let done = u8::from(self.flight.supervisor.request_recovery());
                self.answer(packet, &[2, done, done]);
            }
            [0, _] | [3, _] => self.send(*packet),
            [] | [0..=3, ..] => self.hazard(Hazard::WrongLength, packet),
            _ => self.traffic.ignored += 1,
        }
    }
}

/// Log control packets too short for their command, and raw memory addresses.
fn log_hazard(data: &[u8]) -> Option<Hazard> {
    let needed = match data.first() {
        None => return Some(Hazard::WrongLength),
        Some(2 | 4 | 6 | 7) => 2,
        Some(3) => 3,
        Some(8) => 4,
        Some(_) => 1,
    };
    let raw = || {
        let entries = data.get(2..).unwrap_or(&[]).as_chunks::<3>().0;
        matches!(data, [6 | 7, ..])
            && entries
                .iter()
                .any(|entry| u16::from_le_bytes([entry[1], entry[2]]) == RAW)
    };
    match data.len() < needed {
        true => Some(Hazard::WrongLength),
        false => raw().then_some(Hazard::RawMemory),
    }
}
