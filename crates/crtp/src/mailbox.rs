//! Which uplink packets are setpoints, of which only the newest matters. Owns that one rule; queues and
//! expiries live elsewhere.

use crate::packet::Packet;

/// The setpoint mailbox of an uplink packet, or `None` for a packet to be delivered reliably and in order.
///
/// Roll-pitch-yaw-thrust setpoints are 0, generic setpoints are 1, external positions and poses, plain or
/// packed, are 2. Meta commands, emergency stop and everything else are no setpoints.
#[must_use]
pub fn mailbox_key(packet: &Packet) -> Option<u8> {
    match (packet.kind(), packet.data().first()) {
        (0x30, _) => Some(0),
        (0x70, _) => Some(1),
        (0x60 | 0x62, _) | (0x61, Some(8 | 9)) => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> Option<u8> {
        mailbox_key(&Packet::from_bytes(bytes).unwrap())
    }

    #[test]
    fn setpoints_have_a_mailbox_and_commands_have_none() {
        assert_eq!(key(&[0x3c, 0]), Some(0));
        assert_eq!(key(&[0x30, 0]), Some(0));
        assert_eq!(key(&[0x7c, 7]), Some(1));
        assert_eq!(key(&[0x6c]), Some(2));
        assert_eq!(key(&[0x6e]), Some(2));
        assert_eq!(key(&[0x6d, 8]), Some(2));
        assert_eq!(key(&[0x6d, 9]), Some(2));
        for ordered in [
            &[0x7d, 0][..],
            &[0x6d, 3],
            &[0x6d, 4],
            &[0x8c, 7],
            &[0xfc],
            &[0xff],
        ] {
            assert_eq!(key(ordered), None);
        }
    }
}
