//! Port 15, the link services: echo (channel 0), source (1), sink (2) and null packets (3).
//! Builds and reads these packets; measuring with echoes is the caller's.

use arrayvec::ArrayVec;

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, MAX_DATA, Packet, Port};
use crate::wire::{Reader, Writer};

/// Data of an echo, source or sink packet.
pub type Bytes = ArrayVec<u8, MAX_DATA>;

/// What the first 18 bytes of a source reply have to be for cflib to go on.
pub const SOURCE_TEXT: &[u8; 18] = b"Bitcraze Crazyflie";

/// A packet to the drone's link service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Comes back unchanged.
    Echo(Bytes),
    /// Answered by [`source_reply`]; cflib's first request.
    Source,
    /// Swallowed without an answer.
    Sink,
    /// Nothing.
    Null,
}

impl Request {
    /// The packet; source requests as cflib sends them (`fd00`).
    #[must_use]
    pub fn encode(&self) -> Packet {
        match self {
            Self::Echo(bytes) => Writer::new(Port::LINK, Channel::C0).bytes(bytes).packet(),
            Self::Source => Writer::new(Port::LINK, Channel::C1).u8(0).packet(),
            Self::Sink => Writer::new(Port::LINK, Channel::C2).packet(),
            Self::Null => Packet::NULL,
        }
    }

    /// The request in a packet; no data is too short or too long.
    ///
    /// # Errors
    /// [`ParseError::Kind`] for packets of other ports.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        match packet.kind() {
            0xf0 => Ok(Self::Echo(packet.data().iter().copied().collect())),
            0xf1 => Ok(Self::Source),
            0xf2 => Ok(Self::Sink),
            0xf3 => Ok(Self::Null),
            _ => Err(ParseError::Kind {
                what: "link service request",
                header: packet.header(),
            }),
        }
    }
}

/// An echo request, and its reply: the drone returns the packet as it is.
///
/// # Errors
/// [`ValueError::TooLong`] for more than 30 bytes.
pub fn echo(data: &[u8]) -> Result<Packet, ValueError> {
    let mut writer = Writer::new(Port::LINK, Channel::C0);
    writer.fits("echo data", data.len())?;
    Ok(writer.bytes(data).packet())
}

/// The drone's answer to [`Request::Source`]: [`SOURCE_TEXT`] and zeros, 30 bytes.
#[must_use]
pub fn source_reply() -> Packet {
    Writer::new(Port::LINK, Channel::C1)
        .bytes(SOURCE_TEXT)
        .bytes(&[0; MAX_DATA - SOURCE_TEXT.len()])
        .packet()
}

/// Whether a source reply is that of a Crazyflie.
///
/// # Errors
/// [`ParseError::Kind`] for other packets.
pub fn is_crazyflie(packet: &Packet) -> Result<bool, ParseError> {
    let mut reader = Reader::new(packet, 0xf1, "link source reply")?;
    Ok(reader.rest().starts_with(SOURCE_TEXT))
}

/// The link-statistics ping of cflib: byte 0 and a number of the client's own as a double, which the drone
/// returns unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ping(pub f64);

impl Ping {
    /// The packet, 10 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::LINK, Channel::C0)
            .u8(0)
            .bytes(&self.0.to_le_bytes())
            .packet()
    }

    /// The ping in an echo packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and echoes of other kinds.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xf0, "echo ping")?;
        match reader.u8()? {
            0 => {}
            other => return Err(reader.command_error(other)),
        }
        let number = f64::from_le_bytes(reader.array()?);
        reader.finish()?;
        Ok(Self(number))
    }
}
