//! Port 5, log: control of blocks (channel 1) and their data (channel 2). The table of contents (channel 0) is
//! in [`crate::toc`]; what a block contains is remembered by the client.

use arrayvec::ArrayVec;

use crate::error::ParseError;
use crate::packet::{Channel, Packet, Port};
use crate::status::Status;
use crate::value::Kind;
use crate::wire::{Reader, Writer};

/// Most value bytes of a block.
pub const MAX_BLOCK: usize = 26;
/// Most variables in one create or append request.
pub const MAX_VARIABLES: usize = 9;

/// A log type: the low nibble of the type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type(Kind);

impl Type {
    /// The log type with this number, 1 to 8; higher bits are ignored.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(Self(match number & 0x0f {
            1 => Kind::U8,
            2 => Kind::U16,
            3 => Kind::U32,
            4 => Kind::I8,
            5 => Kind::I16,
            6 => Kind::I32,
            7 => Kind::F32,
            8 => Kind::F16,
            _ => return None,
        }))
    }

    /// The log type of these numbers; 64-bit types have none.
    #[must_use]
    pub const fn from_kind(kind: Kind) -> Option<Self> {
        match kind {
            Kind::I64 | Kind::U64 | Kind::F64 => None,
            other => Some(Self(other)),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self.0 {
            Kind::U8 => 1,
            Kind::U16 => 2,
            Kind::U32 => 3,
            Kind::I8 => 4,
            Kind::I16 => 5,
            Kind::I32 => 6,
            Kind::F16 => 8,
            Kind::F32 | Kind::I64 | Kind::U64 | Kind::F64 => 7,
        }
    }

    /// The numbers it stands for.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.0
    }
}

/// One variable of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The type to be sent.
    pub send_as: Type,
    /// The type it is stored as. The firmware takes it from its own table.
    pub stored_as: Type,
    /// Its id in the table of contents.
    pub id: u16,
}

/// Variables of one create or append request.
pub type Variables = ArrayVec<Variable, MAX_VARIABLES>;

/// A request on the control channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// A new block with its first variables.
    Create {
        /// The block's id, the client's choice.
        block: u8,
        /// Up to 9 variables.
        variables: Variables,
    },
    /// More variables for a block.
    Append {
        /// The block.
        block: u8,
        /// Up to 9 variables.
        variables: Variables,
    },
    /// Delete a block.
    Delete {
        /// The block.
        block: u8,
    },
    /// Start a block with a period in tens of milliseconds (command 3, as cflib sends it).
    StartTens {
        /// The block.
        block: u8,
        /// Period in 10 ms; 0 sends once.
        tens_of_ms: u8,
    },
    /// Stop a block.
    Stop {
        /// The block.
        block: u8,
    },
    /// Delete all blocks.
    Reset,
    /// Start a block with a period in milliseconds (command 8).
    Start {
        /// The block.
        block: u8,
        /// Period in ms; 0 sends once.
        period_ms: u16,
    },
}

impl Control {
    /// The request's number, its first byte.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Delete { .. } => 2,
            Self::StartTens { .. } => 3,
            Self::Stop { .. } => 4,
            Self::Reset => 5,
            Self::Create { .. } => 6,
            Self::Append { .. } => 7,
            Self::Start { .. } => 8,
        }
    }

    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::new(Port::LOG, Channel::C1);
        writer.u8(self.number());
        match self {
            Self::Create { block, variables } | Self::Append { block, variables } => {
                writer.u8(*block);
                put_variables(variables, &mut writer);
            }
            Self::Delete { block } | Self::Stop { block } => {
                writer.u8(*block);
            }
            Self::StartTens { block, tens_of_ms } => {
                writer.u8(*block).u8(*tens_of_ms);
            }
            Self::Reset => {}
            Self::Start { block, period_ms } => {
                writer.u8(*block).u16(*period_ms);
            }
        }
        writer.packet()
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers, types and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x51, "log control")?;
        let number = reader.u8()?;
        let control = match number {
            5 => Self::Reset,
            2..=8 => Self::of_block(number, reader.u8()?, &mut reader)?,
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(control)
    }

    fn of_block(number: u8, block: u8, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match number {
            2 => Self::Delete { block },
            3 => Self::StartTens {
                block,
                tens_of_ms: reader.u8()?,
            },
            4 => Self::Stop { block },
            6 => Self::Create {
                block,
                variables: get_variables(reader)?,
            },
            7 => Self::Append {
                block,
                variables: get_variables(reader)?,
            },
            _ => Self::Start {
                block,
                period_ms: reader.u16()?,
            },
        })
    }
}

fn put_variables(variables: &[Variable], writer: &mut Writer) {
    for variable in variables {
        let types = variable.stored_as.number() << 4 | variable.send_as.number();
        writer.u8(types).u16(variable.id);
    }
}

/// Whole entries. cflib writes the type byte of a tenth variable before it sees that there is no room for it;
/// like the firmware, this ignores that byte.
fn get_variables(reader: &mut Reader<'_>) -> Result<Variables, ParseError> {
    let rest = reader.rest();
    let stray = usize::from(rest.len() == 3 * MAX_VARIABLES + 1);
    let mut variables = Variables::new();
    for entry in rest[..rest.len() - stray].chunks(3) {
        let &[types, low, high] = entry else {
            return Err(reader.length_error());
        };
        let send_as = Type::from_number(types).ok_or_else(|| reader.command_error(types))?;
        variables.push(Variable {
            send_as,
            stored_as: Type::from_number(types >> 4).unwrap_or(send_as),
            id: u16::from_le_bytes([low, high]),
        });
    }
    Ok(variables)
}

/// The drone's answer to a control request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlReply {
    /// The request's number.
    pub command: u8,
    /// The block it was about (unused after a reset).
    pub block: u8,
    /// The result.
    pub status: Status,
}

impl ControlReply {
    /// The packet, 4 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::LOG, Channel::C1)
            .u8(self.command)
            .u8(self.block)
            .u8(self.status.0)
            .packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x51, "log control reply")?;
        Ok(Self {
            command: reader.u8()?,
            block: reader.u8()?,
            status: Status(reader.u8()?),
        })
    }
}

/// Values of a block at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The block.
    pub block: u8,
    /// The drone's clock in ms, modulo 2²⁴ (4 h 39 min).
    pub time_ms: u32,
    /// The values' bytes in the order of the variables.
    pub values: ArrayVec<u8, MAX_BLOCK>,
}

impl Data {
    /// The packet the drone sends.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let [a, b, c, _] = self.time_ms.to_le_bytes();
        Writer::reply(Port::LOG, Channel::C2)
            .u8(self.block)
            .bytes(&[a, b, c])
            .bytes(&self.values)
            .packet()
    }

    /// The values in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for packets without block and time.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x52, "log data")?;
        let block = reader.u8()?;
        let [a, b, c] = reader.array()?;
        Ok(Self {
            block,
            time_ms: u32::from_le_bytes([a, b, c, 0]),
            values: reader.rest().iter().copied().collect(),
        })
    }
}
