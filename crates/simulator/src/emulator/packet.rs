//! The few fields of IPv4 packets that an emulated path may have to change: ports and checksums of UDP and TCP.
//!
//! Anything else (other protocols, later fragments, damaged headers) is left alone.

use std::sync::atomic::{AtomicU64, Ordering};

const UDP: u8 = 17;
const TCP: u8 = 6;
const FIRST_PORT: u16 = 1024;
const PORTS: u32 = 65_536 - FIRST_PORT as u32;
/// How far one change of the NAT moves a port.
const PORT_STEP: u32 = 7919;

/// Where the transport header of an unfragmented or first IPv4 packet is, and its protocol.
fn transport(packet: &[u8]) -> Option<(usize, u8)> {
    let first = *packet.first()?;
    let header = usize::from(first & 15) * 4;
    let offset = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
    let known = matches!(packet.get(9), Some(&UDP | &TCP));
    let fits = first >> 4 == 4 && header >= 20 && packet.len() >= header + 8;
    (known && fits && offset == 0).then(|| (header, packet[9]))
}

/// Bytes of the IP and transport headers; the whole packet if it is neither UDP nor TCP.
pub(super) fn header_len(packet: &[u8]) -> usize {
    match transport(packet) {
        Some((ip, UDP)) => ip + 8,
        Some((ip, _)) => packet
            .get(ip + 12)
            .map_or(packet.len(), |b| ip + usize::from(b >> 4) * 4),
        None => packet.len(),
    }
}

fn read_u16(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]))
}

fn write_u16(packet: &mut [u8], at: usize, value: u16) {
    if let Some(place) = packet.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Makes the checksum of a whole UDP packet fit its bytes, so that the damage reaches the program. TCP keeps the wrong
/// one: its receiver shall notice.
pub(super) fn refresh_udp_checksum(packet: &mut [u8]) {
    let Some((ip, UDP)) = transport(packet) else {
        return;
    };
    let more_fragments = packet[6] & 0x20 != 0;
    if more_fragments {
        return;
    }
    write_u16(packet, ip + 6, 0);
    let sum = udp_checksum(packet, ip);
    write_u16(packet, ip + 6, sum);
}

/// RFC 768 over pseudo header and datagram.
fn udp_checksum(packet: &[u8], ip: usize) -> u16 {
    let datagram = packet.get(ip..).unwrap_or_default();
    let addresses = packet.get(12..20).unwrap_or_default();
    let mut sum = u64::from(UDP) + datagram.len() as u64;
    for bytes in [addresses, datagram] {
        for pair in bytes.chunks(2) {
            sum += u64::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]));
        }
    }
    match !fold(sum) {
        0 => 0xffff,
        other => other,
    }
}

const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes a port and updates the checksum over it (RFC 1624, equation 3).
fn set_port(packet: &mut [u8], at: usize, checksum_at: usize, port: u16) {
    let (Some(old), Some(sum)) = (read_u16(packet, at), read_u16(packet, checksum_at)) else {
        return;
    };
    write_u16(packet, at, port);
    if sum != 0 {
        let new = !fold(u64::from(!sum) + u64::from(!old) + u64::from(port));
        write_u16(packet, checksum_at, new);
    }
}

const fn checksum_at(ip: usize, protocol: u8) -> usize {
    if protocol == UDP { ip + 6 } else { ip + 16 }
}

fn shifted(port: u16, by: u32) -> u16 {
    if port < FIRST_PORT {
        return port;
    }
    FIRST_PORT + ((u32::from(port - FIRST_PORT) + by) % PORTS) as u16
}

/// The ports of end a as end b sees them. Both directions share it.
#[derive(Debug)]
pub(super) struct Nat {
    /// One bit for each source port that has been used.
    used: Vec<AtomicU64>,
}

impl Nat {
    pub(super) fn new() -> Self {
        Self {
            used: (0..1024).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A packet of end a leaves through the NAT after `epoch` changes.
    pub(super) fn outward(&self, packet: &mut [u8], epoch: usize) {
        let Some((ip, protocol)) = transport(packet) else {
            return;
        };
        let Some(port) = read_u16(packet, ip) else {
            return;
        };
        let bit = 1 << (port % 64);
        self.used[usize::from(port / 64)].fetch_or(bit, Ordering::Relaxed);
        if epoch > 0 {
            let by = (epoch as u32 * PORT_STEP) % PORTS;
            set_port(packet, ip, checksum_at(ip, protocol), shifted(port, by));
        }
    }

    /// A packet for end a comes to the NAT after `epoch` changes; returns whether its port is mapped.
    pub(super) fn inward(&self, packet: &mut [u8], epoch: usize) -> bool {
        let Some((ip, protocol)) = transport(packet).filter(|_| epoch > 0) else {
            return true;
        };
        let Some(outer) = read_u16(packet, ip + 2) else {
            return true;
        };
        let back = PORTS - (epoch as u32 * PORT_STEP) % PORTS;
        let port = shifted(outer, back);
        let bit = 1 << (port % 64);
        if self.used[usize::from(port / 64)].load(Ordering::Relaxed) & bit == 0 {
            return false;
        }
        set_port(packet, ip + 2, checksum_at(ip, protocol), port);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x45, 0, 0, 0, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
        ];
        packet.extend(source.to_be_bytes());
        packet.extend(destination.to_be_bytes());
        packet.extend((payload.len() as u16 + 8).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        refresh_udp_checksum(&mut packet);
        packet
    }

    fn is_sound(packet: &[u8]) -> bool {
        let mut copy = packet.to_vec();
        refresh_udp_checksum(&mut copy);
        copy == packet
    }

    #[test]
    fn the_checksum_is_that_of_rfc_768() {
        // Sum of pseudo header and datagram by hand: 0a4d+0001+0a4d+0002+0011+000a+03e8+07d0+000a+6162 = 81dc.
        let packet = udp(1000, 2000, b"ab");
        assert_eq!(read_u16(&packet, 26), Some(!0x81dc));
    }

    #[test]
    fn ports_go_out_and_come_back_with_fitting_checksums() {
        let nat = Nat::new();
        for epoch in [0, 1, 2, 50] {
            let mut out = udp(40_000, 5000, b"hello");
            nat.outward(&mut out, epoch);
            let outer = read_u16(&out, 20).unwrap();
            assert_eq!(outer == 40_000, epoch == 0);
            assert!(is_sound(&out));
            let mut back = udp(5000, outer, b"hi");
            assert!(nat.inward(&mut back, epoch));
            assert_eq!(read_u16(&back, 22), Some(40_000));
            assert!(is_sound(&back));
        }
    }

    #[test]
    fn a_port_of_before_the_change_leads_nowhere() {
        let nat = Nat::new();
        nat.outward(&mut udp(40_000, 5000, b"x"), 0);
        assert!(!nat.inward(&mut udp(5000, 40_000, b"x"), 1));
    }

    #[test]
    fn what_is_no_udp_or_tcp_is_left_alone() {
        let nat = Nat::new();
        for len in 0..60 {
            for first in [0x45u8, 0x60, 0x4f, 0xff] {
                let mut packet = vec![first; len];
                let before = packet.clone();
                nat.outward(&mut packet, 1);
                assert!(nat.inward(&mut packet, 1));
                refresh_udp_checksum(&mut packet);
                assert!(header_len(&packet) <= len);
                assert_eq!(packet, before);
            }
        }
    }
}
