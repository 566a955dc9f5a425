//! The rarer requests about parameters (channel 3): setting by name, extended types, stored and default values.
//! The layouts only; which form a protocol version has is the client's choice.

use super::{
    ValueBytes, get_outcome, kind_of_number, number_of_kind, put_outcome, request, value_bytes,
};
use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, Packet, Port};
use crate::status::Status;
use crate::value::Value;
use crate::wire::{Reader, Writer};

/// A request on the channel of rarer things.
#[derive(Clone, Debug, PartialEq)]
pub enum Misc {
    /// Sets a value without knowing the table of contents.
    SetByName {
        /// Group.
        group: String,
        /// Name in the group.
        name: String,
        /// The value, of exactly the parameter's type.
        value: Value,
    },
    /// Extended type (versions before 11).
    ExtendedType(u16),
    /// Stores the current value in the drone's persistent memory.
    Store(u16),
    /// Whether a value is stored, and which.
    State(u16),
    /// Deletes the stored value.
    Clear(u16),
    /// Value after a restart without stored values (versions before 11).
    Default(u16),
    /// Extended type with a status byte (versions from 11).
    ExtendedTypeV2(u16),
    /// Default value with a status byte (versions from 11).
    DefaultV2(u16),
}

impl Misc {
    /// The request's number, its first byte.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::SetByName { .. } => 0,
            Self::ExtendedType(_) => 2,
            Self::Store(_) => 3,
            Self::State(_) => 4,
            Self::Clear(_) => 5,
            Self::Default(_) => 6,
            Self::ExtendedTypeV2(_) => 7,
            Self::DefaultV2(_) => 8,
        }
    }

    /// The packet.
    ///
    /// # Errors
    /// [`ValueError`] for names that are empty, not Latin-1 or too long.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        let mut writer = request(Channel::C3);
        writer.u8(self.number());
        match self {
            Self::SetByName { group, name, value } => {
                writer.text("group", group)?.text("name", name)?;
                let bytes = value.to_bytes();
                writer.fits("value", 1 + bytes.len())?;
                writer.u8(number_of_kind(value.kind())).bytes(&bytes);
            }
            Self::ExtendedType(id)
            | Self::Store(id)
            | Self::State(id)
            | Self::Clear(id)
            | Self::Default(id)
            | Self::ExtendedTypeV2(id)
            | Self::DefaultV2(id) => {
                writer.u16(*id);
            }
        }
        Ok(writer.packet())
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers, types and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x23, "parameter request")?;
        let request = match reader.u8()? {
            0 => Self::set_by_name(&mut reader)?,
            2 => Self::ExtendedType(reader.u16()?),
            3 => Self::Store(reader.u16()?),
            4 => Self::State(reader.u16()?),
            5 => Self::Clear(reader.u16()?),
            6 => Self::Default(reader.u16()?),
            7 => Self::ExtendedTypeV2(reader.u16()?),
            8 => Self::DefaultV2(reader.u16()?),
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(request)
    }

    fn set_by_name(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (group, name) = (reader.text()?, reader.text()?);
        let number = reader.u8()?;
        let kind = kind_of_number(number).ok_or_else(|| reader.command_error(number))?;
        match Value::take(kind, reader.rest()) {
            Some((value, [])) => Ok(Self::SetByName { group, name, value }),
            _ => Err(reader.length_error()),
        }
    }
}

/// A packet from the channel of rarer things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MiscReply {
    /// To [`Misc::SetByName`].
    SetByName {
        /// Group.
        group: String,
        /// Name in the group.
        name: String,
        /// [`Status::NOT_FOUND`], [`Status::INVALID`] for another type, [`Status::READ_ONLY`].
        status: Status,
    },
    /// Not asked for: the drone has changed a value by itself.
    Updated {
        /// The parameter's id.
        id: u16,
        /// The new value's bytes.
        value: ValueBytes,
    },
    /// To [`Misc::ExtendedType`]: 1 is persistent, but 2 can also mean "no such parameter".
    ExtendedType {
        /// The parameter's id.
        id: u16,
        /// The extended type.
        extended: u8,
    },
    /// To [`Misc::Store`].
    Store {
        /// The parameter's id.
        id: u16,
        /// The result.
        status: Status,
    },
    /// To [`Misc::State`]: status 0 is "not stored" with the default value, 1 "stored" with the default and the
    /// stored value, others are errors without values.
    State {
        /// The parameter's id.
        id: u16,
        /// 0, 1 or an error.
        status: u8,
        /// Bytes of the default value, then of the stored value if there is one.
        values: ValueBytes,
    },
    /// To [`Misc::Clear`].
    Clear {
        /// The parameter's id.
        id: u16,
        /// The result.
        status: Status,
    },
    /// To [`Misc::Default`]. The single byte 2 can also mean "no such parameter".
    Default {
        /// The parameter's id.
        id: u16,
        /// The default value's bytes.
        value: ValueBytes,
    },
    /// To [`Misc::ExtendedTypeV2`]: 1 is persistent.
    ExtendedTypeV2 {
        /// The parameter's id.
        id: u16,
        /// The extended type, or why there is none.
        extended: Result<u8, Status>,
    },
    /// To [`Misc::DefaultV2`].
    DefaultV2 {
        /// The parameter's id.
        id: u16,
        /// The default value's bytes, or why there is none.
        value: Result<ValueBytes, Status>,
    },
}

impl MiscReply {
    /// The reply's number, its first byte: that of the request.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::SetByName { .. } => 0,
            Self::Updated { .. } => 1,
            Self::ExtendedType { .. } => 2,
            Self::Store { .. } => 3,
            Self::State { .. } => 4,
            Self::Clear { .. } => 5,
            Self::Default { .. } => 6,
            Self::ExtendedTypeV2 { .. } => 7,
            Self::DefaultV2 { .. } => 8,
        }
    }

    /// The packet.
    ///
    /// # Errors
    /// [`ValueError`] for names that are empty, not Latin-1 or too long.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        let mut writer = match self {
            Self::Updated { .. } => Writer::reply(Port::PARAM, Channel::C3),
            _ => request(Channel::C3),
        };
        writer.u8(self.number());
        match self {
            Self::SetByName {
                group,
                name,
                status,
            } => {
                writer
                    .text("group", group)?
                    .text("name", name)?
                    .u8(status.0);
            }
            Self::Updated { id, value } | Self::Default { id, value } => {
                writer.u16(*id).bytes(value);
            }
            Self::ExtendedType { id, extended } => {
                writer.u16(*id).u8(*extended);
            }
            Self::Store { id, status } | Self::Clear { id, status } => {
                writer.u16(*id).u8(status.0);
            }
            Self::State { id, status, values } => {
                writer.u16(*id).u8(*status).bytes(values);
            }
            Self::ExtendedTypeV2 { id, extended } => match extended {
                Ok(extended) => _ = writer.u16(*id).u8(0).u8(*extended),
                Err(status) => _ = writer.u16(*id).u8(status.0),
            },
            Self::DefaultV2 { id, value } => put_outcome(value, writer.u16(*id)),
        }
        Ok(writer.packet())
    }

    /// The reply in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for replies too short or too long.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x23, "parameter reply")?;
        match reader.u8()? {
            0 => Ok(Self::SetByName {
                group: reader.text()?,
                name: reader.text()?,
                status: Status(reader.u8()?),
            }),
            number => {
                let id = reader.u16()?;
                Self::of_id(number, id, &mut reader)
            }
        }
    }

    fn of_id(number: u8, id: u16, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match number {
            1 => Self::Updated {
                id,
                value: value_bytes(reader)?,
            },
            2 => Self::ExtendedType {
                id,
                extended: reader.u8()?,
            },
            3 => Self::Store {
                id,
                status: Status(reader.u8()?),
            },
            4 => Self::State {
                id,
                status: reader.u8()?,
                values: value_bytes(reader)?,
            },
            5 => Self::Clear {
                id,
                status: Status(reader.u8()?),
            },
            6 => Self::Default {
                id,
                value: value_bytes(reader)?,
            },
            7 => Self::ExtendedTypeV2 {
                id,
                extended: match Status(reader.u8()?) {
                    Status::OK => Ok(reader.u8()?),
                    status => Err(status),
                },
            },
            8 => Self::DefaultV2 {
                id,
                value: get_outcome(reader)?,
            },
            other => return Err(reader.command_error(other)),
        })
    }
}
