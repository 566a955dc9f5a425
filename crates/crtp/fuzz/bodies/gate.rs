//! What the gate admits, the layouts can read, and setpoints become the same bytes again.

use crtp::setpoint::{NotifySetpointsStop, Setpoint};
use crtp::{Gate, Packet, ProtocolVersion, commander, high_level, localization, supervisor};

/// The bytes of a packet without the two header bits no one looks at.
fn plain(packet: &Packet) -> Vec<u8> {
    let mut bytes = packet.as_bytes().to_vec();
    bytes[0] = packet.kind();
    bytes
}

fn same(packet: &Packet, again: Packet) {
    assert_eq!(plain(packet), plain(&again));
}

/// One input.
pub(crate) fn run(data: &[u8]) {
    let Ok(packet) = Packet::from_bytes(data) else {
        return;
    };
    let mut gate = Gate::new();
    gate.observe(&packet);
    let Ok(admitted) = gate.admit(&packet) else {
        return;
    };
    assert_eq!(admitted.into_packet(), packet);
    match packet.kind() {
        0x30 => same(
            &packet,
            commander::Rpyt::parse(&packet).unwrap().encode().unwrap(),
        ),
        0x70 => setpoint(&packet),
        0x71 => same(
            &packet,
            NotifySetpointsStop::parse(&packet).unwrap().encode(),
        ),
        0x60..=0x62 => _ = localization::Request::parse(&packet).unwrap(),
        0x80 => _ = high_level::Command::parse(&packet).unwrap(),
        0x90 => same(
            &packet,
            supervisor::InfoRequest::parse(&packet).unwrap().encode(),
        ),
        0x91 => _ = supervisor::Command::parse(&packet).unwrap(),
        _ => {}
    }
}

/// Flags and quaternions have several spellings; all other setpoints have one.
fn setpoint(packet: &Packet) {
    let setpoint = Setpoint::parse(packet).unwrap();
    let legacy = matches!(packet.data()[0], 1 | 2 | 5);
    let version = ProtocolVersion(if legacy { 8 } else { 12 });
    let again = setpoint.encode(version).unwrap();
    match setpoint {
        Setpoint::FullState(_) | Setpoint::Manual(_) | Setpoint::Cppm(_) => {
            assert_eq!(again.as_bytes().len(), packet.as_bytes().len());
        }
        _ => same(packet, again),
    }
}
