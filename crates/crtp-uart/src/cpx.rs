//! CPX frames on a UART: `FF LEN CPX0 CPX1 DATA XOR`, and `FF 00` as clear-to-send.
//!
//! Owns the bytes of one frame and how to find frames in a stream. Knows no credit, no clock and no port.
//! Layout: firmware `cpx_uart_transport`, mainline since July 2022.

mod decoder;
mod header;
pub mod stream;

use arrayvec::ArrayVec;
use crtp::{Admitted, Packet};

pub use decoder::{DecodeStats, Decoder, Frame, Item};
pub use header::{Function, Header, Target};

/// First byte of everything.
pub const START: u8 = 0xff;
/// Clear-to-send: the peer may send one more frame.
pub const CLEAR_TO_SEND: [u8; 2] = [START, 0];
/// Largest LEN: two routing bytes and 98 data bytes. The firmware's buffer ends here.
pub const MAX_LEN: usize = 100;
/// Most data bytes behind the routing bytes.
pub const MAX_DATA: usize = MAX_LEN - 2;
/// Most bytes of a frame: start, LEN, [`MAX_LEN`], XOR.
pub const MAX_FRAME: usize = MAX_LEN + 3;

/// Bytes of a frame around a CRTP packet: start, LEN, two routing bytes, XOR.
pub const OVERHEAD: usize = 5;

/// One whole frame, ready to write.
pub type FrameBytes = ArrayVec<u8, MAX_FRAME>;

/// A SYSTEM message of the host: data bytes behind routing `19 01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// `21 01`: CRTP goes over this link; `21 00`: back to the radio.
    UseThisLink(bool),
    /// `20 01`: a client is connected; without it the drone deletes its log blocks. `20 00`: it is gone.
    ClientConnected(bool),
}

impl System {
    /// The message of these data bytes, if it is one of ours.
    #[must_use]
    pub const fn parse(data: &[u8]) -> Option<Self> {
        match data {
            [0x21, on @ (0 | 1)] => Some(Self::UseThisLink(*on == 1)),
            [0x20, on @ (0 | 1)] => Some(Self::ClientConnected(*on == 1)),
            _ => None,
        }
    }

    /// The two data bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 2] {
        match self {
            Self::UseThisLink(on) => [0x21, on as u8],
            Self::ClientConnected(on) => [0x20, on as u8],
        }
    }
}

/// The frame of a packet on its way to a drone; only the gate makes such a packet.
#[must_use]
pub fn to_drone(packet: &Admitted) -> FrameBytes {
    encode(Header::HOST_CRTP, packet.as_bytes())
}

/// The frame of a packet on its way from a drone to a host.
#[must_use]
pub fn to_host(packet: &Packet) -> FrameBytes {
    encode(Header::DRONE_CRTP, packet.as_bytes())
}

/// The frame of a SYSTEM message to a drone.
#[must_use]
pub fn system(message: System) -> FrameBytes {
    encode(Header::HOST_SYSTEM, &message.bytes())
}

/// At most [`MAX_DATA`] bytes of data are taken; callers have at most 31.
fn encode(header: Header, data: &[u8]) -> FrameBytes {
    let data = &data[..data.len().min(MAX_DATA)];
    let mut frame = FrameBytes::new();
    frame.extend([START, data.len() as u8 + 2]);
    frame.extend(header.bytes());
    frame.extend(data.iter().copied());
    frame.push(checksum(&frame));
    frame
}

/// XOR over every byte before it, start and LEN included.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

#[cfg(test)]
mod tests;
