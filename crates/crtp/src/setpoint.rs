//! Port 7, generic setpoints (channel 0) and the meta command (channel 1). The yaw signs of old and new protocol
//! versions meet here and nowhere else: a [`Setpoint`] always has counter-clockwise yaw rates.
//!
//! | setpoint | versions to 8 | versions from 9 |
//! |---|---|---|
//! | velocity, world | type 1, yaw rate negated on the wire | type 8, as it is |
//! | z distance | type 2, negated | type 9, as it is |
//! | hover | type 5, negated | type 10, as it is |
//! | all others | the same type and bytes | |

use arrayvec::ArrayVec;

use crate::error::{ParseError, ValueError};
use crate::full_state::FullState;
use crate::packet::{Channel, Packet, Port};
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Writer, layout};

layout! {
    /// Velocity in the world frame (types 1 and 8).
    pub struct VelocityWorld {
        /// m/s.
        vx: f32,
        /// m/s.
        vy: f32,
        /// m/s.
        vz: f32,
        /// deg/s, counter-clockwise positive.
        yaw_rate: f32,
    }
}

layout! {
    /// Height with roll and pitch angles (types 2 and 9).
    pub struct ZDistance {
        /// Degrees, as the firmware has it.
        roll: f32,
        /// Degrees, as the firmware has it (and cflib passes it on).
        pitch: f32,
        /// deg/s, counter-clockwise positive.
        yaw_rate: f32,
        /// Height in m, world frame.
        z: f32,
    }
}

layout! {
    /// Vertical velocity with roll and pitch angles (type 4).
    pub struct AltitudeHold {
        /// Degrees, as the firmware has it.
        roll: f32,
        /// Degrees, as the firmware has it.
        pitch: f32,
        /// deg/s, counter-clockwise positive.
        yaw_rate: f32,
        /// Vertical velocity in m/s, world frame.
        vz: f32,
    }
}

layout! {
    /// Horizontal velocity in the body frame with a height (types 5 and 10).
    pub struct Hover {
        /// Forward, m/s.
        vx: f32,
        /// Left, m/s.
        vy: f32,
        /// deg/s, counter-clockwise positive.
        yaw_rate: f32,
        /// Height in m, world frame.
        z: f32,
    }
}

layout! {
    /// Position and heading in the world frame (type 7).
    pub struct Position {
        /// m.
        x: f32,
        /// m.
        y: f32,
        /// m.
        z: f32,
        /// Heading in degrees, counter-clockwise positive.
        yaw: f32,
    }
}

layout! {
    /// Angles or rates with a raw thrust (type 11).
    pub struct Manual {
        /// Degrees, or deg/s if `rate`.
        roll: f32,
        /// Degrees, or deg/s if `rate`, as the firmware has it: the negative of cflib's argument.
        pitch: f32,
        /// deg/s, as the firmware has it.
        yaw_rate: f32,
        /// Thrust, 0 to 65535.
        thrust: u16,
        /// Whether roll and pitch are rates. The firmware takes only 1 for true.
        rate: bool,
    }
}

impl Manual {
    /// Thrust for 0 to 100 percent, as cflib computes it: 10001 at 0 %, 60000 at 100 %.
    ///
    /// # Errors
    /// [`ValueError::Range`] outside of 0 to 100.
    pub fn thrust_of_percent(percent: f64) -> Result<u16, ValueError> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(ValueError::Range {
                field: "thrust percentage",
                value: percent,
                min: 0.0,
                max: 100.0,
            });
        }
        Ok((10_001.0 + 0.01 * percent * (60_000.0 - 10_001.0)) as u16)
    }
}

/// Channels of a remote control (type 3), each 1000 to 2000 with 1500 in the middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cppm {
    /// Roll, inverted on board.
    pub roll: u16,
    /// Pitch, inverted on board.
    pub pitch: u16,
    /// Yaw rate, inverted on board.
    pub yaw: u16,
    /// Thrust, 1000 for none.
    pub thrust: u16,
    /// Auxiliary channels; the first below 1500 turns self-levelling off.
    pub aux: ArrayVec<u16, 10>,
}

impl Cppm {
    fn put(&self, writer: &mut Writer) {
        writer.u8(self.aux.len() as u8);
        for value in [self.roll, self.pitch, self.yaw, self.thrust] {
            writer.u16(value);
        }
        for &value in &self.aux {
            writer.u16(value);
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let count = reader.u8()? & 0x0f;
        if count > 10 {
            return Err(reader.length_error());
        }
        Ok(Self {
            roll: reader.u16()?,
            pitch: reader.u16()?,
            yaw: reader.u16()?,
            thrust: reader.u16()?,
            aux: (0..count).map(|_| reader.u16()).collect::<Result<_, _>>()?,
        })
    }
}

/// A generic setpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Setpoint {
    /// Motors off at once (type 0).
    Stop,
    /// Types 1 and 8.
    VelocityWorld(VelocityWorld),
    /// Types 2 and 9.
    ZDistance(ZDistance),
    /// Type 3.
    Cppm(Cppm),
    /// Type 4.
    AltitudeHold(AltitudeHold),
    /// Types 5 and 10.
    Hover(Hover),
    /// Type 6.
    FullState(FullState),
    /// Type 7.
    Position(Position),
    /// Type 11.
    Manual(Manual),
}

impl Setpoint {
    /// The packet for a drone of this protocol version.
    ///
    /// # Errors
    /// [`ValueError`] naming the field that is no number.
    pub fn encode(&self, version: ProtocolVersion) -> Result<Packet, ValueError> {
        let mut writer = Writer::new(Port::GENERIC_SETPOINT, Channel::C0);
        let legacy = !version.has_counter_clockwise_yaw();
        writer.u8(self.number(legacy));
        match self {
            Self::Stop => {}
            Self::VelocityWorld(s) => s.turned(legacy).put(&mut writer)?,
            Self::ZDistance(s) => s.turned(legacy).put(&mut writer)?,
            Self::Cppm(s) => s.put(&mut writer),
            Self::AltitudeHold(s) => s.put(&mut writer)?,
            Self::Hover(s) => s.turned(legacy).put(&mut writer)?,
            Self::FullState(s) => s.put(&mut writer)?,
            Self::Position(s) => s.put(&mut writer)?,
            Self::Manual(s) => s.put(&mut writer)?,
        }
        Ok(writer.packet())
    }

    /// The setpoint in a packet, of any protocol version.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, other lengths and floats that are no numbers.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x70, "generic setpoint")?;
        let r = &mut reader;
        let number = r.u8()?;
        let legacy = matches!(number, 1 | 2 | 5);
        let setpoint = match number {
            0 => Self::Stop,
            1 | 8 => Self::VelocityWorld(VelocityWorld::get(r)?.turned(legacy)),
            2 | 9 => Self::ZDistance(ZDistance::get(r)?.turned(legacy)),
            3 => Self::Cppm(Cppm::get(r)?),
            4 => Self::AltitudeHold(AltitudeHold::get(r)?),
            5 | 10 => Self::Hover(Hover::get(r)?.turned(legacy)),
            6 => Self::FullState(FullState::get(r)?),
            7 => Self::Position(Position::get(r)?),
            11 => Self::Manual(Manual::get(r)?),
            other => return Err(reader.command_error(other)),
        };
        reader.finish()?;
        Ok(setpoint)
    }

    const fn number(&self, legacy: bool) -> u8 {
        match (self, legacy) {
            (Self::Stop, _) => 0,
            (Self::VelocityWorld(_), true) => 1,
            (Self::VelocityWorld(_), false) => 8,
            (Self::ZDistance(_), true) => 2,
            (Self::ZDistance(_), false) => 9,
            (Self::Cppm(_), _) => 3,
            (Self::AltitudeHold(_), _) => 4,
            (Self::Hover(_), true) => 5,
            (Self::Hover(_), false) => 10,
            (Self::FullState(_), _) => 6,
            (Self::Position(_), _) => 7,
            (Self::Manual(_), _) => 11,
        }
    }
}

/// The yaw rate of the legacy types is clockwise on the wire.
macro_rules! turned {
    ($($ty:ident),*) => {$(
        impl $ty {
            fn turned(self, legacy: bool) -> Self {
                let yaw_rate = if legacy { -self.yaw_rate } else { self.yaw_rate };
                Self { yaw_rate, ..self }
            }
        }
    )*};
}

turned!(VelocityWorld, ZDistance, Hover);

/// The meta command: setpoints end here, the high-level commander may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifySetpointsStop {
    /// For how many milliseconds the last setpoint shall stay valid. Firmware since December 2021 ignores it.
    pub remain_valid_ms: u32,
}

impl NotifySetpointsStop {
    /// The packet, 6 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::GENERIC_SETPOINT, Channel::C1)
            .u8(0)
            .u32(self.remain_valid_ms)
            .packet()
    }

    /// The command in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, commands and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x71, "setpoint meta command")?;
        match reader.u8()? {
            0 => {}
            other => return Err(reader.command_error(other)),
        }
        let remain_valid_ms = reader.u32()?;
        reader.finish()?;
        Ok(Self { remain_valid_ms })
    }
}
