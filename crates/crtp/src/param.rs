//! Port 2, parameters: read (channel 1), write (2) and the rest (3). The table of contents (channel 0) is in
//! [`crate::toc`]. Which type a parameter has is in that table, so values travel as bytes here.

mod misc;

use arrayvec::ArrayVec;

pub use misc::{Misc, MiscReply};

use crate::error::ParseError;
use crate::packet::{Channel, Packet, Port};
use crate::status::Status;
use crate::value::{Kind, MAX_VALUE, Value};
use crate::wire::{Reader, Writer};

/// Bytes of a value, 1 to 8 in requests; replies may have room for two.
pub type ValueBytes = ArrayVec<u8, { 2 * MAX_VALUE }>;

/// Type and flags of a parameter, from its entry in the table of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The value's type.
    pub kind: Kind,
    /// Has an extended type (asked for with [`Misc::ExtendedType`]).
    pub extended: bool,
    /// Part of the firmware's stable interface.
    pub core: bool,
    /// Writes are not even answered.
    pub read_only: bool,
}

impl Meta {
    /// Of a type byte; `None` for types unknown here.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        let Some(kind) = kind_of_number(byte & 0x0f) else {
            return None;
        };
        Some(Self {
            kind,
            extended: byte & 0x10 != 0,
            core: byte & 0x20 != 0,
            read_only: byte & 0x40 != 0,
        })
    }

    /// The type byte.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        number_of_kind(self.kind)
            | (self.extended as u8) << 4
            | (self.core as u8) << 5
            | (self.read_only as u8) << 6
    }
}

const fn kind_of_number(number: u8) -> Option<Kind> {
    Some(match number {
        0x0 => Kind::I8,
        0x1 => Kind::I16,
        0x2 => Kind::I32,
        0x3 => Kind::I64,
        0x5 => Kind::F16,
        0x6 => Kind::F32,
        0x7 => Kind::F64,
        0x8 => Kind::U8,
        0x9 => Kind::U16,
        0xa => Kind::U32,
        0xb => Kind::U64,
        _ => return None,
    })
}

const fn number_of_kind(kind: Kind) -> u8 {
    match kind {
        Kind::I8 => 0x0,
        Kind::I16 => 0x1,
        Kind::I32 => 0x2,
        Kind::I64 => 0x3,
        Kind::F16 => 0x5,
        Kind::F32 => 0x6,
        Kind::F64 => 0x7,
        Kind::U8 => 0x8,
        Kind::U16 => 0x9,
        Kind::U32 => 0xa,
        Kind::U64 => 0xb,
    }
}

fn request(channel: Channel) -> Writer {
    Writer::new(Port::PARAM, channel)
}

fn value_bytes(reader: &mut Reader<'_>) -> Result<ValueBytes, ParseError> {
    reader.rest().try_into().map_err(|_| reader.length_error())
}

/// Asks for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The parameter's id.
    pub id: u16,
}

impl Read {
    /// The packet, 3 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        request(Channel::C1).u16(self.id).packet()
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x21, "parameter read")?;
        let id = reader.u16()?;
        reader.finish()?;
        Ok(Self { id })
    }
}

/// The answer to [`Read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReply {
    /// The parameter's id.
    pub id: u16,
    /// The value's bytes, or why there is none.
    pub value: Result<ValueBytes, Status>,
}

impl ReadReply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = request(Channel::C1);
        writer.u16(self.id);
        put_outcome(&self.value, &mut writer);
        writer.packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short or too long.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x21, "parameter value")?;
        Ok(Self {
            id: reader.u16()?,
            value: get_outcome(&mut reader)?,
        })
    }
}

/// A status byte, and the value behind it if the status is 0.
fn put_outcome(value: &Result<ValueBytes, Status>, writer: &mut Writer) {
    match value {
        Ok(bytes) => writer.u8(0).bytes(bytes),
        Err(status) => writer.u8(status.0),
    };
}

fn get_outcome(reader: &mut Reader<'_>) -> Result<Result<ValueBytes, Status>, ParseError> {
    match Status(reader.u8()?) {
        Status::OK => Ok(Ok(value_bytes(reader)?)),
        status => Ok(Err(status)),
    }
}

/// Sets a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Write {
    /// The parameter's id.
    pub id: u16,
    /// The value, of exactly the parameter's type.
    pub value: Value,
}

impl Write {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        request(Channel::C2)
            .u16(self.id)
            .bytes(&self.value.to_bytes())
            .packet()
    }

    /// The id and the value's bytes in a packet; the receiver knows the type.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for values of no or too many bytes.
    pub fn parse(packet: &Packet) -> Result<(u16, ValueBytes), ParseError> {
        let mut reader = Reader::new(packet, 0x22, "parameter write")?;
        let id = reader.u16()?;
        let bytes = value_bytes(&mut reader)?;
        if bytes.is_empty() || bytes.len() > MAX_VALUE {
            return Err(reader.length_error());
        }
        Ok((id, bytes))
    }
}

/// The answer to [`Write`]: the request's echo. It has no status byte, so that a missing parameter (3 bytes: id
/// and [`Status::NOT_FOUND`]) looks like the echo of a one-byte value 2; read-only parameters are not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReply {
    /// The parameter's id.
    pub id: u16,
    /// The value's bytes as written.
    pub value: ValueBytes,
}

impl WriteReply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        request(Channel::C2)
            .u16(self.id)
            .bytes(&self.value)
            .packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short or too long.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x22, "parameter write reply")?;
        Ok(Self {
            id: reader.u16()?,
            value: value_bytes(&mut reader)?,
        })
    }
}
