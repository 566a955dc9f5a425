//! Port 9, the supervisor of protocol version 12: information (channel 0) and commands (channel 1), and the
//! bits that say in which state the drone is. Earlier versions arm through [`crate::platform`].

use crate::error::ParseError;
use crate::packet::{Channel, Packet, Port};
use crate::wire::{Reader, Writer};

/// Replies carry the request's number with this bit set.
const REPLY: u8 = 0x80;
/// Request for the whole bit field.
const BIT_FIELD: u8 = 12;

/// The supervisor's state: the log variable `supervisor.info` and the answer to [`InfoRequest::BitField`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Info(pub u16);

impl Info {
    /// Preflight checks have passed; an arm request would succeed.
    pub const CAN_BE_ARMED: Self = Self(1 << 0);
    /// Motors may spin.
    pub const ARMED: Self = Self(1 << 1);
    /// The drone arms by itself.
    pub const AUTO_ARM: Self = Self(1 << 2);
    /// Setpoints reach the motors.
    pub const CAN_FLY: Self = Self(1 << 3);
    /// A motor ran above idle within the last 2 s.
    pub const FLYING: Self = Self(1 << 4);
    /// Upside down.
    pub const TUMBLED: Self = Self(1 << 5);
    /// Locked until the drone is restarted.
    pub const LOCKED: Self = Self(1 << 6);
    /// Crashed; a recovery request is needed.
    pub const CRASHED: Self = Self(1 << 7);
    /// The high-level commander flies the drone.
    pub const HIGH_LEVEL_ACTIVE: Self = Self(1 << 8);
    /// The high-level commander has finished its trajectory.
    pub const TRAJECTORY_FINISHED: Self = Self(1 << 9);
    /// The high-level commander is disabled.
    pub const HIGH_LEVEL_DISABLED: Self = Self(1 << 10);
    /// A deck has failed.
    pub const DECK_FAULT: Self = Self(1 << 11);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Why the drone would not fly now, in words; `None` if it would.
    #[must_use]
    pub const fn refusal(self) -> Option<&'static str> {
        if self.has(Self::LOCKED) {
            Some("locked: restart the drone")
        } else if self.has(Self::CRASHED) {
            Some("crashed: ask for recovery first")
        } else if self.has(Self::TUMBLED) {
            Some("tumbled: put it upright")
        } else if self.has(Self::CAN_FLY) {
            None
        } else if self.has(Self::ARMED) {
            Some("armed but not ready to fly yet")
        } else if self.has(Self::CAN_BE_ARMED) {
            Some("not armed")
        } else if self.has(Self::DECK_FAULT) {
            Some("not armed: a deck has failed")
        } else {
            Some("not armed: preflight not passed")
        }
    }
}

/// A question to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoRequest {
    /// One bit of [`Info`], 0 to 10.
    Bit(u8),
    /// All of [`Info`].
    BitField,
}

impl InfoRequest {
    /// The packet, 2 bytes. Bits above 10 have no question of their own and ask for the bit field.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let number = match self {
            Self::Bit(bit) => (bit + 1).min(BIT_FIELD),
            Self::BitField => BIT_FIELD,
        };
        Writer::new(Port::SUPERVISOR, Channel::C0)
            .u8(number)
            .packet()
    }

    /// The question in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x90, "supervisor question")?;
        let request = match reader.u8()? {
            number @ 1..=11 => Self::Bit(number - 1),
            BIT_FIELD => Self::BitField,
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(request)
    }
}

/// The supervisor's answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoReply {
    /// One bit.
    Bit {
        /// Which, 0 to 10.
        bit: u8,
        /// Whether it is set.
        set: bool,
    },
    /// All bits.
    BitField(Info),
}

impl InfoReply {
    /// The answer to a question.
    #[must_use]
    pub const fn to(request: InfoRequest, info: Info) -> Self {
        match request {
            InfoRequest::Bit(bit @ 0..=10) => Self::Bit {
                bit,
                set: info.0 >> bit & 1 == 1,
            },
            InfoRequest::Bit(_) | InfoRequest::BitField => Self::BitField(info),
        }
    }

    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::reply(Port::SUPERVISOR, Channel::C0);
        match self {
            Self::Bit { bit, set } => writer.u8(REPLY | (bit + 1)).u8(u8::from(*set)),
            Self::BitField(info) => writer.u8(REPLY | BIT_FIELD).u16(info.0),
        };
        writer.packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x90, "supervisor answer")?;
        match reader.u8()? {
            number @ 0x81..=0x8b => Ok(Self::Bit {
                bit: (number & !REPLY) - 1,
                set: reader.u8()? != 0,
            }),
            0x8c => Ok(Self::BitField(Info(reader.u16()?))),
            other => Err(reader.command_error(other)),
        }
    }
}

/// A command to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Arm, or disarm.
    Arm(bool),
    /// Leave the crashed state.
    Recover,
    /// Motors off and locked until restart. No answer.
    EmergencyStop,
    /// Once sent it has to be repeated at least every second, or the motors stop and the drone locks. No answer.
    FeedWatchdog,
}

impl Command {
    /// The command's number, its first byte.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Arm(_) => 1,
            Self::Recover => 2,
            Self::EmergencyStop => 3,
            Self::FeedWatchdog => 4,
        }
    }

    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::new(Port::SUPERVISOR, Channel::C1);
        writer.u8(self.number());
        if let Self::Arm(arm) = self {
            writer.u8(u8::from(*arm));
        }
        writer.packet()
    }

    /// The command in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, numbers and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x91, "supervisor command")?;
        let command = match reader.u8()? {
            1 => Self::Arm(reader.u8()? != 0),
            2 => Self::Recover,
            3 => Self::EmergencyStop,
            4 => Self::FeedWatchdog,
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(command)
    }
}

/// The supervisor's answer to [`Command::Arm`] or [`Command::Recover`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandReply {
    /// To an arm or disarm request.
    Arm {
        /// The request was granted.
        success: bool,
        /// Armed now.
        armed: bool,
    },
    /// To a recovery request.
    Recover {
        /// The request was granted.
        success: bool,
        /// Not crashed now.
        recovered: bool,
    },
}

impl CommandReply {
    /// The packet, 4 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let (number, success, state) = match *self {
            Self::Arm { success, armed } => (1, success, armed),
            Self::Recover { success, recovered } => (2, success, recovered),
        };
        Writer::reply(Port::SUPERVISOR, Channel::C1)
            .u8(REPLY | number)
            .u8(u8::from(success))
            .u8(u8::from(state))
            .packet()
    }

    /// The answer in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and numbers, and for answers too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x91, "supervisor reply")?;
        let number = reader.u8()?;
        let (success, state) = (reader.u8()? != 0, reader.u8()? != 0);
        match number {
            0x81 => Ok(Self::Arm {
                success,
                armed: state,
            }),
            0x82 => Ok(Self::Recover {
                success,
                recovered: state,
            }),
            other => Err(reader.command_error(other)),
        }
    }
}
