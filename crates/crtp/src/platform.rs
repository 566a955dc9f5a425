//! Port 13, the platform: commands (channel 0; arming of protocol versions before 12), version questions
//! (channel 1) and the app channel (channel 2).

use arrayvec::ArrayVec;

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, MAX_DATA, Packet, Port};
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Writer, latin1};

/// A command to the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Turn the radio's unmodulated carrier on or off (for tests of the radio; the link is dead meanwhile).
    ContinuousWave(bool),
    /// Arm or disarm, in versions before 12.
    Arm(bool),
    /// Leave the crashed state, in versions before 12.
    Recover,
    /// Show success (or failure) to people near the drone.
    Notify {
        /// Which.
        success: bool,
    },
}

impl Command {
    /// The command's number, its first byte.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::ContinuousWave(_) => 0,
            Self::Arm(_) => 1,
            Self::Recover => 2,
            Self::Notify { .. } => 3,
        }
    }

    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::new(Port::PLATFORM, Channel::C0);
        writer.u8(self.number());
        match *self {
            Self::ContinuousWave(flag) | Self::Arm(flag) | Self::Notify { success: flag } => {
                writer.u8(u8::from(flag));
            }
            Self::Recover => {}
        }
        writer.packet()
    }

    /// The command in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xd0, "platform command")?;
        let command = match reader.u8()? {
            0 => Self::ContinuousWave(reader.field("enabled")?),
            1 => Self::Arm(reader.field("arm")?),
            2 => Self::Recover,
            3 => Self::Notify {
                success: reader.field("success")?,
            },
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(command)
    }
}

/// The platform's answer to [`Command::Arm`] or [`Command::Recover`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandReply {
    /// The command's number: 1 for arm, 2 for recover.
    pub command: u8,
    /// The request was granted.
    pub success: bool,
    /// Armed now, or not crashed now.
    pub state: bool,
}

impl CommandReply {
    /// The packet, 4 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::PLATFORM, Channel::C0)
            .u8(self.command)
            .u8(u8::from(self.success))
            .u8(u8::from(self.state))
            .packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xd0, "platform reply")?;
        Ok(Self {
            command: reader.u8()?,
            success: reader.u8()? != 0,
            state: reader.u8()? != 0,
        })
    }
}

/// A question about the drone's make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionRequest {
    /// The protocol version.
    Protocol,
    /// The firmware's tag.
    Firmware,
    /// The kind of drone.
    DeviceType,
}

impl VersionRequest {
    /// The packet, 2 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::PLATFORM, Channel::C1)
            .u8(*self as u8)
            .packet()
    }

    /// The question in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xd1, "version question")?;
        let request = match reader.u8()? {
            0 => Self::Protocol,
            1 => Self::Firmware,
            2 => Self::DeviceType,
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(request)
    }
}

/// The answer to a [`VersionRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionReply {
    /// The protocol version.
    Protocol(ProtocolVersion),
    /// The firmware's tag, such as `2026.08`; at most 29 bytes.
    Firmware(String),
    /// The kind of drone, such as `Crazyflie 2.1`; at most 29 bytes.
    DeviceType(String),
}

impl VersionReply {
    /// The packet.
    ///
    /// # Errors
    /// [`ValueError::TooLong`] for a text of more than 29 bytes.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        let mut writer = Writer::new(Port::PLATFORM, Channel::C1);
        let (number, text) = match self {
            Self::Protocol(version) => return Ok(writer.u8(0).u32(version.0).packet()),
            Self::Firmware(text) => (1, text),
            Self::DeviceType(text) => (2, text),
        };
        writer.u8(number).fits("version text", text.len())?;
        Ok(writer.bytes(text.as_bytes()).packet())
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xd1, "version answer")?;
        match reader.u8()? {
            0 => Ok(Self::Protocol(ProtocolVersion(reader.u32()?))),
            1 => Ok(Self::Firmware(latin1(reader.rest()))),
            2 => Ok(Self::DeviceType(latin1(reader.rest()))),
            other => Err(reader.command_error(other)),
        }
    }
}

/// A packet of the app channel, the same both ways: up to 30 bytes for the user's own program on the drone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App(pub ArrayVec<u8, MAX_DATA>);

impl App {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::PLATFORM, Channel::C2)
            .bytes(&self.0)
            .packet()
    }

    /// The bytes in a packet of the app channel.
    ///
    /// # Errors
    /// [`ParseError::Kind`] for other packets.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0xd2, "app channel packet")?;
        Ok(Self(reader.rest().iter().copied().collect()))
    }
}
