//! Port 3, the roll-pitch-yaw-thrust setpoint. Values are those on the wire; turning a user's signs into them
//! happens in the bridge.

use crate::error::{ParseError, ValueError};
use crate::packet::{Channel, Packet, Port};
use crate::wire::{Reader, Writer, layout};

/// Thrust above this is clipped by the firmware.
pub const MAX_THRUST: u16 = 60_000;
/// Thrust below this is taken for 0 by the firmware.
pub const MIN_THRUST: u16 = 1_000;

layout! {
    /// Roll, pitch, yaw rate and thrust, 14 bytes. After boot the drone ignores thrust until it has seen one
    /// such setpoint with thrust 0.
    pub struct Rpyt {
        /// Roll angle in degrees, right side down positive (rate in deg/s when `flightmode.stabModeRoll` is 0).
        roll: f32,
        /// Pitch angle in degrees as the firmware has it: the negative of cflib's argument.
        pitch: f32,
        /// Yaw rate in deg/s; the firmware negates it, so that clockwise (seen from above) is positive here.
        yaw_rate: f32,
        /// Thrust, 0 to 65535; see [`MIN_THRUST`] and [`MAX_THRUST`].
        thrust: u16,
    }
}

impl Rpyt {
    /// Level and without thrust: what unlocks thrust after boot.
    pub const ZERO: Self = Self {
        roll: 0.0,
        pitch: 0.0,
        yaw_rate: 0.0,
        thrust: 0,
    };

    /// The packet.
    ///
    /// # Errors
    /// [`ValueError::NotFinite`] naming the field.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        let mut writer = Writer::new(Port::COMMANDER, Channel::C0);
        self.put(&mut writer)?;
        Ok(writer.packet())
    }

    /// The setpoint in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, other lengths and floats that are no numbers.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x30, "roll-pitch-yaw-thrust setpoint")?;
        let setpoint = Self::get(&mut reader)?;
        reader.finish()?;
        Ok(setpoint)
    }
}
