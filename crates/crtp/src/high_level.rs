//! Port 8, the high-level commander: every command of protocol versions 6 to 12 and the drone's reply. Lengths
//! in m, times in s, angles in rad; group mask 0 means every drone.

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, Packet, Port};
use crate::status::Status;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Writer, layout};

layout! {
    /// Which groups the drone belongs to (command 0; the parameter `hlCommander.groupmask` replaces it).
    pub struct SetGroupMask {
        /// One bit a group.
        mask: u8,
    }
}

layout! {
    /// Takeoff or landing of old clients (commands 1 and 2).
    pub struct Vertical {
        /// Groups meant.
        group_mask: u8,
        /// Target height, m, absolute.
        height: f32,
        /// s.
        duration: f32,
    }
}

layout! {
    /// Motors off (command 3).
    pub struct Stop {
        /// Groups meant.
        group_mask: u8,
    }
}

layout! {
    /// Flight to a place, of versions before 8 (command 4).
    pub struct GoTo {
        /// Groups meant.
        group_mask: u8,
        /// Position and yaw are relative to the current setpoint.
        relative: bool,
        /// m.
        x: f32,
        /// m.
        y: f32,
        /// m.
        z: f32,
        /// rad.
        yaw: f32,
        /// s.
        duration: f32,
    }
}

layout! {
    /// Start of a trajectory, of versions before 10 (command 5).
    pub struct StartTrajectory {
        /// Groups meant.
        group_mask: u8,
        /// Shifted to the current setpoint.
        relative: bool,
        /// Flown backwards.
        reversed: bool,
        /// As in [`DefineTrajectory`].
        trajectory_id: u8,
        /// 1 as recorded, above slower.
        timescale: f32,
    }
}

layout! {
    /// Names a trajectory in the drone's trajectory memory (command 6).
    pub struct DefineTrajectory {
        /// Its name from now on.
        trajectory_id: u8,
        /// 1 for the trajectory memory.
        location: u8,
        /// 0 for polynomial pieces, 1 for compressed ones.
        kind: u8,
        /// Offset into the memory, bytes.
        offset: u32,
        /// Number of pieces.
        pieces: u8,
    }
}

layout! {
    /// Takeoff or landing within a time (commands 7 and 8).
    pub struct VerticalTimed {
        /// Groups meant.
        group_mask: u8,
        /// Target height, m, absolute.
        height: f32,
        /// rad.
        yaw: f32,
        /// Keep the current yaw; `yaw` is ignored.
        use_current_yaw: bool,
        /// s.
        duration: f32,
    }
}

layout! {
    /// Takeoff or landing with a velocity (commands 9 and 10).
    pub struct VerticalWithVelocity {
        /// Groups meant.
        group_mask: u8,
        /// Target height, m.
        height: f32,
        /// Relative to the current height: up positive for takeoff, down positive for landing.
        height_is_relative: bool,
        /// rad.
        yaw: f32,
        /// Keep the current yaw; `yaw` is ignored.
        use_current_yaw: bool,
        /// m/s; the firmware takes 0.5 for 0 and below.
        velocity: f32,
    }
}

layout! {
    /// Part of a spiral, of versions from 8 (command 11).
    pub struct Spiral {
        /// Groups meant.
        group_mask: u8,
        /// Sideways instead of forward.
        sideways: bool,
        /// Clockwise instead of counter-clockwise.
        clockwise: bool,
        /// Angle, rad, ±2π.
        angle: f32,
        /// Radius at the start, m.
        r0: f32,
        /// Radius at the end, m.
        rf: f32,
        /// Climb, m.
        dz: f32,
        /// s.
        duration: f32,
    }
}

layout! {
    /// Flight to a place, of versions from 8 (command 12).
    pub struct GoTo2 {
        /// Groups meant.
        group_mask: u8,
        /// Position and yaw are relative to the current setpoint.
        relative: bool,
        /// Straight and at constant speed instead of a smooth polynomial.
        linear: bool,
        /// m.
        x: f32,
        /// m.
        y: f32,
        /// m.
        z: f32,
        /// rad.
        yaw: f32,
        /// s.
        duration: f32,
    }
}

layout! {
    /// Start of a trajectory, of versions from 10 (command 13).
    pub struct StartTrajectory2 {
        /// Groups meant.
        group_mask: u8,
        /// Shifted to the current position.
        relative_position: bool,
        /// Turned to the current yaw.
        relative_yaw: bool,
        /// Flown backwards.
        reversed: bool,
        /// As in [`DefineTrajectory`].
        trajectory_id: u8,
        /// 1 as recorded, above slower.
        timescale: f32,
    }
}

macro_rules! commands {
    ($($(#[$meta:meta])* $number:literal => $variant:ident($ty:ident),)*) => {
        /// A command of the high-level commander.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Command {
            $($(#[$meta])* $variant($ty),)*
        }

        impl Command {
            /// The command's number, its first byte.
            #[must_use]
            pub const fn number(&self) -> u8 {
                match self { $(Self::$variant(_) => $number,)* }
            }

            /// The packet.
            ///
            /// # Errors
            /// [`ValueError::NotFinite`] naming the field.
            pub fn encode(&self) -> Result<Packet, ValueError> {
                let mut writer = Writer::new(Port::HIGH_LEVEL, Channel::C0);
                writer.u8(self.number());
                match self { $(Self::$variant(command) => command.put(&mut writer)?,)* }
                Ok(writer.packet())
            }

            /// The command in a packet.
            ///
            /// # Errors
            /// [`ParseError`] for other packets, other lengths and floats that are no numbers.
            pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
                let mut reader = Reader::new(packet, 0x80, "high-level command")?;
                let command = match reader.u8()? {
                    $($number => Self::$variant($ty::get(&mut reader)?),)*
                    other => return Err(reader.command_error(other)),
                };
                reader.finish()?;
                Ok(command)
            }
        }
    };
}

commands! {
    /// See [`SetGroupMask`].
    0 => SetGroupMask(SetGroupMask),
    /// Takeoff of old clients.
    1 => TakeoffOld(Vertical),
    /// Landing of old clients.
    2 => LandOld(Vertical),
    /// See [`Stop`].
    3 => Stop(Stop),
    /// See [`GoTo`].
    4 => GoToOld(GoTo),
    /// See [`StartTrajectory`].
    5 => StartTrajectoryOld(StartTrajectory),
    /// See [`DefineTrajectory`].
    6 => DefineTrajectory(DefineTrajectory),
    /// Takeoff within a time.
    7 => Takeoff(VerticalTimed),
    /// Landing within a time.
    8 => Land(VerticalTimed),
    /// Takeoff with a velocity.
    9 => TakeoffWithVelocity(VerticalWithVelocity),
    /// Landing with a velocity.
    10 => LandWithVelocity(VerticalWithVelocity),
    /// See [`Spiral`].
    11 => Spiral(Spiral),
    /// See [`GoTo2`].
    12 => GoTo(GoTo2),
    /// See [`StartTrajectory2`].
    13 => StartTrajectory(StartTrajectory2),
}

impl Command {
    /// The command in the form a drone of this version has: `GO_TO` and `START_TRAJECTORY` have an older form.
    ///
    /// # Errors
    /// [`ValueError::Version`] for what the older form cannot say: linear flight, relative yaw, spirals.
    pub fn for_version(self, version: ProtocolVersion) -> Result<Self, ValueError> {
        match self {
            Self::GoTo(go_to) if !version.has_go_to_2() => go_to.older(version).map(Self::GoToOld),
            Self::Spiral(_) if !version.has_go_to_2() => Err(too_old("a spiral", 8, version)),
            Self::StartTrajectory(start) if !version.has_start_trajectory_2() => {
                start.older(version).map(Self::StartTrajectoryOld)
            }
            other => Ok(other),
        }
    }
}

const fn too_old(what: &'static str, since: u32, version: ProtocolVersion) -> ValueError {
    ValueError::Version {
        what,
        since,
        version,
    }
}

impl GoTo2 {
    fn older(self, version: ProtocolVersion) -> Result<GoTo, ValueError> {
        if self.linear {
            return Err(too_old("linear flight", 8, version));
        }
        Ok(GoTo {
            group_mask: self.group_mask,
            relative: self.relative,
            x: self.x,
            y: self.y,
            z: self.z,
            yaw: self.yaw,
            duration: self.duration,
        })
    }
}

impl StartTrajectory2 {
    fn older(self, version: ProtocolVersion) -> Result<StartTrajectory, ValueError> {
        if self.relative_yaw {
            return Err(too_old("a trajectory with relative yaw", 10, version));
        }
        Ok(StartTrajectory {
            group_mask: self.group_mask,
            relative: self.relative_position,
            reversed: self.reversed,
            trajectory_id: self.trajectory_id,
            timescale: self.timescale,
        })
    }
}

/// The drone's answer: the command, the two bytes that followed it, and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The command's number.
    pub command: u8,
    /// The request's second and third byte.
    pub echo: [u8; 2],
    /// [`Status::BUSY`] when the supervisor does not allow flight, [`Status::UNKNOWN_COMMAND`] for a bad id.
    pub status: Status,
}

impl Reply {
    /// The answer to a request.
    #[must_use]
    pub fn to(request: &Packet, status: Status) -> Self {
        let byte = |i: usize| request.data().get(i).copied().unwrap_or(0);
        Self {
            command: byte(0),
            echo: [byte(1), byte(2)],
            status,
        }
    }

    /// The packet, 5 bytes.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::new(Port::HIGH_LEVEL, Channel::C0)
            .u8(self.command)
            .bytes(&self.echo)
            .u8(self.status.0)
            .packet()
    }

    /// The reply in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and lengths.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x80, "high-level reply")?;
        let reply = Self {
            command: reader.u8()?,
            echo: reader.array()?,
            status: Status(reader.u8()?),
        };
        reader.finish()?;
        Ok(reply)
    }
}
