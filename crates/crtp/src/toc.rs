//! Tables of contents, which log (port 5) and param (port 2) have in the same form on their channels 0.

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, Packet, Port};
use crate::wire::{Reader, Writer};

/// Whose table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Log variables.
    Log,
    /// Parameters.
    Param,
}

impl Table {
    const fn port(self) -> Port {
        match self {
            Self::Log => Port::LOG,
            Self::Param => Port::PARAM,
        }
    }

    const fn kind(self) -> u8 {
        self.port().number() << 4
    }
}

/// A request for a table of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// How many entries.
    Info,
    /// The entry with this id.
    Item(u16),
}

impl Request {
    /// The packet.
    #[must_use]
    pub fn encode(&self, table: Table) -> Packet {
        let mut writer = Writer::new(table.port(), Channel::C0);
        match self {
            Self::Info => writer.u8(3),
            Self::Item(id) => writer.u8(2).u16(*id),
        };
        writer.packet()
    }

    /// The request in a packet of that table's port.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(table: Table, packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, table.kind(), "table of contents request")?;
        let request = match reader.u8()? {
            2 => Self::Item(reader.u16()?),
            3 => Self::Info,
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(request)
    }
}

/// Limits of a log table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Log blocks the drone can hold.
    pub blocks: u8,
    /// Log variables it can hold, over all blocks.
    pub variables: u8,
}

/// One entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: u16,
    /// Type and flags, see [`crate::log::Type`] and [`crate::param::Meta`].
    pub kind: u8,
    /// Group; with the name at most 24 characters.
    pub group: String,
    /// Name in the group.
    pub name: String,
}

/// An answer about a table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Number of entries.
    Info {
        /// Entries; ids run from 0 to one below.
        count: u16,
        /// Checksum over the table, for caches.
        crc: u32,
        /// Only in log tables.
        limits: Option<Limits>,
    },
    /// An entry.
    Item(Item),
    /// There is no entry with that id.
    OutOfRange,
}

impl Reply {
    /// The packet.
    ///
    /// # Errors
    /// [`ValueError`] for names that are empty, not Latin-1 or too long.
    pub fn encode(&self, table: Table) -> Result<Packet, ValueError> {
        let mut writer = Writer::reply(table.port(), Channel::C0);
        match self {
            Self::Info { count, crc, limits } => {
                writer.u8(3).u16(*count).u32(*crc);
                if let Some(limits) = limits {
                    writer.u8(limits.blocks).u8(limits.variables);
                }
            }
            Self::Item(item) => {
                writer.u8(2).u16(item.id).u8(item.kind);
                writer
                    .text("group", &item.group)?
                    .text("name", &item.name)?;
            }
            Self::OutOfRange => {
                writer.u8(2);
            }
        }
        Ok(writer.packet())
    }

    /// The answer in a packet of that table's port.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for answers too short.
    pub fn parse(table: Table, packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, table.kind(), "table of contents")?;
        match reader.u8()? {
            2 if reader.is_empty() => Ok(Self::OutOfRange),
            2 => Ok(Self::Item(Item {
                id: reader.u16()?,
                kind: reader.u8()?,
                group: reader.text()?,
                name: reader.text()?,
            })),
            3 => Self::info(&mut reader),
            other => Err(reader.command_error(other)),
        }
    }

    fn info(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let count = reader.u16()?;
        let crc = reader.u32()?;
        let limits = match (reader.u8(), reader.u8()) {
            (Ok(blocks), Ok(variables)) => Some(Limits { blocks, variables }),
            _ => None,
        };
        Ok(Self::Info { count, crc, limits })
    }
}
