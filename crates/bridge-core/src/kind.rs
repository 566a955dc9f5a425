//! What an uplink packet means for the safety rules, by port, channel and first byte.
//!
//! It judges nothing: lengths and values are the gate's business, and what it does not know is `Other`.

use std::time::Duration;

use crtp::{Channel, Packet, Port};

/// Below this the firmware turns thrust into 0.
const LEAST_THRUST: u16 = 1000;
/// A command that moves the drone is not worth sending any later.
pub const FLIGHT_COMMAND_LIFE: Duration = Duration::from_millis(500);
/// Log samples older than this are of no use to anybody.
pub const SAMPLE_LIFE: Duration = Duration::from_secs(1);

/// What a packet to the drone means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A low-level setpoint that may move something.
    Live,
    /// A low-level setpoint that ends a stream: stop, or no thrust.
    Still,
    /// Lower the priority of the setpoints sent so far.
    NotifyStop,
    /// A high-level command after which the drone is in the air.
    Fly,
    /// A high-level command after which it is not.
    Land,
    /// Motors off, whatever was going on.
    Emergency,
    /// A client has just connected: no client asks for the protocol version in flight.
    NewClient,
    /// Anything else.
    Other,
}

/// The meaning of `packet`.
#[must_use]
pub fn kind(packet: &Packet) -> Kind {
    let data = packet.data();
    match (packet.port(), packet.channel()) {
        (Port::COMMANDER, Channel::C0) => rpyt(data),
        (Port::GENERIC_SETPOINT, Channel::C0) => generic(data),
        (Port::GENERIC_SETPOINT, Channel::C1) if data.first() == Some(&0) => Kind::NotifyStop,
        (Port::HIGH_LEVEL, Channel::C0) => high_level(data),
        (Port::SUPERVISOR, Channel::C1) if data == [3] => Kind::Emergency,
        (Port::LOCALIZATION, Channel::C1) if data == [3] => Kind::Emergency,
        (Port::PLATFORM, Channel::C1) if data == [0] => Kind::NewClient,
        _ => Kind::Other,
    }
}

/// Whether this is a roll, pitch, yaw rate and thrust setpoint, and which thrust it has.
#[must_use]
pub fn rpyt_thrust(packet: &Packet) -> Option<u16> {
    let at = (packet.port(), packet.channel()) == (Port::COMMANDER, Channel::C0);
    at.then(|| u16_at(packet.data(), 12)).flatten()
}

/// For how long an ordered packet is worth sending; `None`: for ever.
#[must_use]
pub fn life(packet: &Packet) -> Option<Duration> {
    match (packet.port(), packet.channel()) {
        (Port::HIGH_LEVEL | Port::SUPERVISOR | Port::GENERIC_SETPOINT, _) => {
            Some(FLIGHT_COMMAND_LIFE)
        }
        (Port::LOG, Channel::C2) => Some(SAMPLE_LIFE),
        _ => None,
    }
}

fn rpyt(data: &[u8]) -> Kind {
    powered(u16_at(data, 12))
}

fn generic(data: &[u8]) -> Kind {
    match data.first() {
        Some(0) => Kind::Still,
        Some(11) => powered(u16_at(data, 13)),
        Some(_) => Kind::Live,
        None => Kind::Other,
    }
}

fn powered(thrust: Option<u16>) -> Kind {
    match thrust {
        Some(thrust) if thrust >= LEAST_THRUST => Kind::Live,
        Some(_) => Kind::Still,
        None => Kind::Other,
    }
}

fn high_level(data: &[u8]) -> Kind {
    match data.first() {
        Some(1 | 4 | 5 | 7 | 9 | 11 | 12 | 13) => Kind::Fly,
        Some(2 | 3 | 8 | 10) => Kind::Land,
        _ => Kind::Other,
    }
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::packet;

    #[test]
    fn packets_mean_what_the_firmware_takes_them_for() {
        for (hex, expected) in [
            ("3c000020410000a0400000a0413075", Kind::Live),
            ("3c000000000000000000000000e703", Kind::Still),
            ("3c0000000000000000000000000000", Kind::Still),
            ("7c00", Kind::Still),
            ("7c070000803f000000400000003f0000b442", Kind::Live),
            ("7c0b0000a0400000404000002041b88800", Kind::Live),
            ("7c0b0000a0400000404000002041000000", Kind::Still),
            ("7d0000000000", Kind::NotifyStop),
            ("8c07000000003f000000000000000040", Kind::Fly),
            ("8c080000000000000000000100000040", Kind::Land),
            ("8c0300", Kind::Land),
            ("8c0003", Kind::Other),
            ("9d03", Kind::Emergency),
            ("6d03", Kind::Emergency),
            ("9d0101", Kind::Other),
            ("dd00", Kind::NewClient),
            ("5d05", Kind::Other),
            ("7c", Kind::Other),
        ] {
            assert_eq!(kind(&packet(hex)), expected, "{hex}");
        }
    }

    #[test]
    fn only_what_moves_the_drone_and_samples_grow_old() {
        assert_eq!(life(&packet("8c0300")), Some(FLIGHT_COMMAND_LIFE));
        assert_eq!(life(&packet("9d0101")), Some(FLIGHT_COMMAND_LIFE));
        assert_eq!(life(&packet("5201a12000")), Some(SAMPLE_LIFE));
        assert_eq!(life(&packet("5c03")), None);
        assert_eq!(life(&packet("2e260002")), None);
    }
}
