//! One CRTP packet: a header byte and up to 30 data bytes, held in place without allocation.
//!
//! The two reserved header bits (3 and 2) differ between clients and replies; they are kept as received
//! and masked in every comparison.

use std::fmt;

/// Most data bytes behind the header.
pub const MAX_DATA: usize = 30;
/// Most bytes of a packet, header included.
pub const MAX_PACKET: usize = MAX_DATA + 1;

/// CRTP port, the high four bits of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(u8);

impl Port {
    /// Console text from the drone.
    pub const CONSOLE: Self = Self(0);
    /// Parameters.
    pub const PARAM: Self = Self(2);
    /// Roll, pitch, yaw rate and thrust setpoints.
    pub const COMMANDER: Self = Self(3);
    /// Memories.
    pub const MEMORY: Self = Self(4);
    /// Log blocks.
    pub const LOG: Self = Self(5);
    /// External positioning.
    pub const LOCALIZATION: Self = Self(6);
    /// Generic setpoints and their meta commands.
    pub const GENERIC_SETPOINT: Self = Self(7);
    /// High-level commander.
    pub const HIGH_LEVEL: Self = Self(8);
    /// Supervisor (protocol 12 and later).
    pub const SUPERVISOR: Self = Self(9);
    /// Platform, version and app channel.
    pub const PLATFORM: Self = Self(13);
    /// Link services: echo, source, sink and null packets.
    pub const LINK: Self = Self(15);

    /// The port with this number; `None` above 15.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < 16 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The port's number, 0 to 15.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}", self.0)
    }
}

/// CRTP channel, the low two bits of the header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(u8);

impl Channel {
    /// Channel 0.
    pub const C0: Self = Self(0);
    /// Channel 1.
    pub const C1: Self = Self(1);
    /// Channel 2.
    pub const C2: Self = Self(2);
    /// Channel 3.
    pub const C3: Self = Self(3);

    /// The channel with this number; `None` above 3.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < 4 { Some(Self(number)) } else { None }
    }

    /// The channel's number, 0 to 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}", self.0)
    }
}

/// Why bytes are no CRTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// There is no header byte.
    #[error("a CRTP packet needs a header byte, got 0 bytes")]
    Empty,
    /// More than [`MAX_PACKET`] bytes.
    #[error("a CRTP packet has at most 31 bytes, got {0}")]
    TooLong(usize),
}

/// One CRTP packet, header and data, in 32 bytes without allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    len: u8,
    bytes: [u8; MAX_PACKET],
}

impl Packet {
    /// The null packet `ff`, as clients send it to scan or to poll.
    pub const NULL: Self = {
        let mut bytes = [0; MAX_PACKET];
        bytes[0] = 0xff;
        Self { len: 1, bytes }
    };

    /// A packet with the reserved bits set, as cflib sends them (`3c` for port 3, channel 0).
    ///
    /// # Errors
    /// [`PacketError::TooLong`] if `data` has more than 30 bytes.
    pub fn new(port: Port, channel: Channel, data: &[u8]) -> Result<Self, PacketError> {
        Self::with_header(port.0 << 4 | 0x0c | channel.0, data)
    }

    /// A packet with the reserved bits clear, as the firmware's freshly built replies have them.
    ///
    /// # Errors
    /// [`PacketError::TooLong`] if `data` has more than 30 bytes.
    pub fn reply(port: Port, channel: Channel, data: &[u8]) -> Result<Self, PacketError> {
        Self::with_header(port.0 << 4 | channel.0, data)
    }

    /// A packet with this header byte as it is.
    ///
    /// # Errors
    /// [`PacketError::TooLong`] if `data` has more than 30 bytes.
    pub fn with_header(header: u8, data: &[u8]) -> Result<Self, PacketError> {
        let mut bytes = [0; MAX_PACKET];
        let Some(room) = bytes.get_mut(1..=data.len()) else {
            return Err(PacketError::TooLong(data.len() + 1));
        };
        room.copy_from_slice(data);
        bytes[0] = header;
        Ok(Self {
            len: data.len() as u8 + 1,
            bytes,
        })
    }

    /// The first `len` (at most 30) bytes of `data` behind a header; cannot fail.
    pub(crate) fn from_parts(header: u8, data: &[u8; MAX_DATA], len: usize) -> Self {
        let mut bytes = [0; MAX_PACKET];
        let len = len.min(MAX_DATA);
        bytes[0] = header;
        bytes[1..=len].copy_from_slice(&data[..len]);
        Self {
            len: len as u8 + 1,
            bytes,
        }
    }

    /// The packet with the reserved header bits of `request`: the firmware answers many requests in the
    /// request's own buffer.
    #[must_use]
    pub const fn with_reserved_bits_of(mut self, request: &Self) -> Self {
        self.bytes[0] = self.kind() | request.bytes[0] & 0x0c;
        self
    }

    /// The packet in these bytes, header first.
    ///
    /// # Errors
    /// [`PacketError`] if there are none, or more than 31.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PacketError> {
        let (&header, data) = bytes.split_first().ok_or(PacketError::Empty)?;
        Self::with_header(header, data)
    }

    /// Header and data, 1 to 31 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The data behind the header, 0 to 30 bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.as_bytes()[1..]
    }

    /// The header byte as received, reserved bits included.
    #[must_use]
    pub const fn header(&self) -> u8 {
        self.bytes[0]
    }

    /// The header with the two reserved bits cleared: what to match on.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.bytes[0] & 0xf3
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> Port {
        Port(self.bytes[0] >> 4)
    }

    /// The channel.
    #[must_use]
    pub const fn channel(&self) -> Channel {
        Channel(self.bytes[0] & 0x03)
    }

    /// Whether this is a null packet: port 15, channel 3, whatever the reserved bits and the data.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        self.kind() == 0xf3
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl TryFrom<&[u8]> for Packet {
    type Error = PacketError;

    fn try_from(bytes: &[u8]) -> Result<Self, PacketError> {
        Self::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_alone_is_legal_and_reserved_bits_are_masked() {
        let packet = Packet::from_bytes(&[0xfd]).unwrap();
        assert_eq!(
            (packet.port(), packet.channel(), packet.data()),
            (Port::LINK, Channel::C1, &[][..])
        );
        assert_eq!(packet.kind(), Packet::from_bytes(&[0xf1]).unwrap().kind());
    }

    #[test]
    fn thirty_data_bytes_fit_and_thirty_one_are_refused() {
        assert_eq!(
            Packet::new(Port::LINK, Channel::C0, &[7; 30])
                .unwrap()
                .as_bytes()
                .len(),
            31
        );
        assert_eq!(
            Packet::new(Port::LINK, Channel::C0, &[7; 31]),
            Err(PacketError::TooLong(32))
        );
        assert_eq!(Packet::from_bytes(&[]), Err(PacketError::Empty));
    }

    #[test]
    fn every_null_header_is_null() {
        for header in [0xff, 0xf3, 0xf7, 0xfb] {
            assert!(Packet::with_header(header, &[1, 2]).unwrap().is_null());
        }
        assert!(!Packet::with_header(0xf0, &[]).unwrap().is_null());
    }
}
