//! Port 4, memories: which there are (channel 0), reading (1) and writing (2). What the bytes of the trajectory
//! memory mean is in [`crate::trajectory`].

use arrayvec::ArrayVec;

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, Packet, Port};
use crate::status::Status;
use crate::wire::{Reader, Writer};

/// Most bytes of one read; the reply has no room for more.
pub const MAX_READ: usize = 24;
/// Most bytes of one write.
pub const MAX_WRITE: usize = 25;

/// What a memory is for: its type number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// Configuration EEPROM of the drone.
    pub const EEPROM: Self = Self(0x00);
    /// One-wire memory of a deck.
    pub const ONE_WIRE: Self = Self(0x01);
    /// Colours of the LED ring.
    pub const LED_RING: Self = Self(0x10);
    /// Loco positioning.
    pub const LOCO: Self = Self(0x11);
    /// Trajectories.
    pub const TRAJECTORY: Self = Self(0x12);
    /// Loco positioning, second form.
    pub const LOCO_2: Self = Self(0x13);
    /// Lighthouse geometry and calibration.
    pub const LIGHTHOUSE: Self = Self(0x14);
    /// For tests of the memory port.
    pub const TESTER: Self = Self(0x15);
    /// Firmware of decks.
    pub const DECK: Self = Self(0x19);
}

/// A question about memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoRequest {
    /// How many there are.
    Count,
    /// About the one with this id. Real firmware asserts on ids it does not have.
    Details(u8),
}

impl InfoRequest {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::new(Port::MEMORY, Channel::C0);
        match self {
            Self::Count => writer.u8(1),
            Self::Details(id) => writer.u8(2).u8(*id),
        };
        writer.packet()
    }

    /// The question in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x40, "memory question")?;
        let request = match reader.u8()? {
            1 => Self::Count,
            2 => Self::Details(reader.u8()?),
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(request)
    }
}

/// One memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// Its id.
    pub id: u8,
    /// What it is for.
    pub kind: Kind,
    /// Bytes.
    pub size: u32,
    /// Serial number, zeros if it has none. Clients expect 8 bytes.
    pub serial: [u8; 8],
}

/// An answer about memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoReply {
    /// How many there are; ids run from 0 to one below.
    Count(u8),
    /// One of them.
    Details(Details),
}

impl InfoReply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::reply(Port::MEMORY, Channel::C0);
        match self {
            Self::Count(count) => writer.u8(1).u8(*count),
            Self::Details(details) => writer
                .u8(2)
                .u8(details.id)
                .u8(details.kind.0)
                .u32(details.size)
                .bytes(&details.serial),
        };
        writer.packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x40, "memory answer")?;
        match reader.u8()? {
            1 => Ok(Self::Count(reader.u8()?)),
            2 => Ok(Self::Details(Details {
                id: reader.u8()?,
                kind: Kind(reader.u8()?),
                size: reader.u32()?,
                serial: reader.array()?,
            })),
            other => Err(reader.command_error(other)),
        }
    }
}

/// Asks for bytes of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The memory.
    pub id: u8,
    /// First byte.
    pub address: u32,
    /// Bytes, at most [`MAX_READ`].
    pub length: u8,
}

impl Read {
    /// The packet, 7 bytes.
    ///
    /// # Errors
    /// [`ValueError::TooLong`] for more than [`MAX_READ`] bytes.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        if usize::from(self.length) > MAX_READ {
            return Err(ValueError::TooLong {
                field: "length",
                got: self.length.into(),
                max: MAX_READ,
            });
        }
        let mut writer = Writer::new(Port::MEMORY, Channel::C1);
        Ok(writer
            .u8(self.id)
            .u32(self.address)
            .u8(self.length)
            .packet())
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x41, "memory read")?;
        let read = Self {
            id: reader.u8()?,
            address: reader.u32()?,
            length: reader.u8()?,
        };
        reader.finish()?;
        Ok(read)
    }
}

/// The answer to [`Read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// The memory.
    pub id: u8,
    /// First byte.
    pub address: u32,
    /// The bytes, or why there are none.
    pub data: Result<ArrayVec<u8, MAX_READ>, Status>,
}

impl ReadReply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::reply(Port::MEMORY, Channel::C1);
        writer.u8(self.id).u32(self.address);
        match &self.data {
            Ok(data) => writer.u8(0).bytes(data),
            Err(status) => writer.u8(status.0),
        };
        writer.packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x41, "memory data")?;
        let (id, address) = (reader.u8()?, reader.u32()?);
        let data = match Status(reader.u8()?) {
            Status::OK => Ok(reader.rest().iter().copied().collect()),
            status => Err(status),
        };
        Ok(Self { id, address, data })
    }
}

/// Writes bytes of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The memory.
    pub id: u8,
    /// First byte.
    pub address: u32,
    /// The bytes, at least one.
    pub data: ArrayVec<u8, MAX_WRITE>,
}

impl Write {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::MEMORY, Channel::C2)
            .u8(self.id)
            .u32(self.address)
            .bytes(&self.data)
            .packet()
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and for writes of nothing.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x42, "memory write")?;
        let (id, address) = (reader.u8()?, reader.u32()?);
        if reader.is_empty() {
            return Err(reader.length_error());
        }
        let data = reader.rest().iter().copied().collect();
        Ok(Self { id, address, data })
    }
}

/// The answer to [`Write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteReply {
    /// The memory.
    pub id: u8,
    /// First byte.
    pub address: u32,
    /// The result.
    pub status: Status,
}

impl WriteReply {
    /// The packet, 7 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::reply(Port::MEMORY, Channel::C2)
            .u8(self.id)
            .u32(self.address)
            .u8(self.status.0)
            .packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x42, "memory write reply")?;
        Ok(Self {
            id: reader.u8()?,
            address: reader.u32()?,
            status: Status(reader.u8()?),
        })
    }
}
