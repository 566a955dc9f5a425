//! Syslink frames on a UART: `BC CF TYPE LEN DATA CK0 CK1`, the dialect of firmware from 2020 to 2022 that was built
//! with the UART link. Owns the bytes of a frame, how to find frames in a stream, and the sessions of both ends.
//!
//! There is no clear-to-send: the drone answers each packet with at most one of its own, so a host that wants to
//! hear something has to keep asking. Layout: firmware `syslink.c`, checked against the cflib of 2020.

mod device;
mod host;
#[cfg(test)]
mod tests;

use arrayvec::ArrayVec;
use crtp::{Admitted, MAX_PACKET, Packet};

pub use device::Device;
pub use host::Host;

const START: [u8; 2] = [0xbc, 0xcf];
/// A CRTP packet.
const RADIO_RAW: u8 = 0;
/// Largest LEN the firmware takes.
const MAX_LEN: usize = 64;
/// Start, type, LEN and checksum.
const OVERHEAD: usize = 6;
/// Most bytes of a frame that carries a CRTP packet.
pub const MAX_FRAME: usize = MAX_PACKET + OVERHEAD;

/// One whole frame, ready to write.
pub type FrameBytes = ArrayVec<u8, MAX_FRAME>;

/// The frame of a packet on its way to a drone; only the gate makes such a packet.
#[must_use]
pub fn to_drone(packet: &Admitted) -> FrameBytes {
    encode(packet)
}

/// The frame of a packet on its way from a drone to a host.
#[must_use]
pub fn to_host(packet: &Packet) -> FrameBytes {
    encode(packet)
}

fn encode(packet: &Packet) -> FrameBytes {
    let data = packet.as_bytes();
    let mut frame = FrameBytes::new();
    frame.extend(START);
    frame.extend([RADIO_RAW, data.len() as u8]);
    frame.extend(data.iter().copied());
    let sums = checksum(&frame[2..]);
    frame.extend(sums);
    frame
}

/// Sum of the bytes from TYPE on, and sum of these sums, both modulo 256.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    bytes.iter().fold([0, 0], |[sum, sums]: [u8; 2], &byte| {
        let sum = sum.wrapping_add(byte);
        [sum, sums.wrapping_add(sum)]
    })
}

/// Counters since the decoder was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeStats {
    /// Frames with a good checksum.
    pub frames: u64,
    /// Candidates whose checksum was wrong.
    pub bad_checksum: u64,
    /// Candidates with LEN above 64.
    pub oversize: u64,
    /// Good frames of another type, or without a packet of 1 to 31 bytes.
    pub other: u64,
    /// Bytes that belong to no frame.
    pub resync_bytes: u64,
}

impl DecodeStats {
    /// Damage of any kind.
    #[must_use]
    pub const fn damaged(&self) -> u64 {
        self.bad_checksum + self.oversize
    }
}

/// Finds packets in a stream of bytes. After a false start it goes on one byte behind it. The firmware drops damaged
/// frames without a word, and so does this, but it counts them.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    buffer: ArrayVec<u8, { MAX_LEN + OVERHEAD }>,
    stats: DecodeStats,
}

impl Decoder {
    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> DecodeStats {
        self.stats
    }

    /// Forgets a frame that has begun; the counters stay.
    pub fn reset(&mut self) {
        self.buffer.clear();
    }

    /// Takes bytes from the front of `input` until a packet is whole. `None`: `input` is used up.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Packet> {
        loop {
            while let Some(end) = self.whole() {
                if let Some(packet) = self.take(end) {
                    return Some(packet);
                }
            }
            let (&byte, rest) = input.split_first()?;
            *input = rest;
            self.buffer.push(byte);
        }
    }

    /// Length of the frame at the front once all of it is here; what cannot be a frame is passed over.
    fn whole(&mut self) -> Option<usize> {
        loop {
            match self.buffer[..] {
                [] => return None,
                [start, ..] if start != START[0] => self.skip(),
                [_] => return None,
                [_, start, ..] if start != START[1] => self.skip(),
                [_, _, _, length, ..] if usize::from(length) > MAX_LEN => {
                    self.stats.oversize += 1;
                    self.skip();
                }
                [_, _, _, length, ..] => {
                    let end = usize::from(length) + OVERHEAD;
                    return (self.buffer.len() >= end).then_some(end);
                }
                _ => return None,
            }
        }
    }

    fn take(&mut self, end: usize) -> Option<Packet> {
        let (body, sums) = self.buffer[2..end].split_at(end - 4);
        if checksum(body) != sums {
            self.stats.bad_checksum += 1;
            self.skip();
            return None;
        }
        let packet = Packet::from_bytes(&body[2..]);
        let packet = packet.ok().filter(|_| body[0] == RADIO_RAW);
        self.stats.frames += 1;
        self.stats.other += u64::from(packet.is_none());
        self.buffer.drain(..end);
        packet
    }

    fn skip(&mut self) {
        self.buffer.remove(0);
        self.stats.resync_bytes += 1;
    }
}
