//! Port 6, localization: positions and poses from outside (channels 0 to 2), emergency stop and watchdog of
//! versions before 12, and the drone's ranges and lighthouse angles.

use arrayvec::ArrayVec;
use half::f16;

use crate::error::{ParseError, ValueError};
use crate::full_state::{compress_quaternion, decompress_quaternion, thousandths};
use crate::packet::{Channel, MAX_DATA, Packet, Port};
use crate::wire::{Field, Reader, Writer, layout};

layout! {
    /// The drone's position, measured from outside.
    pub struct Position {
        /// m.
        x: f32,
        /// m.
        y: f32,
        /// m.
        z: f32,
    }
}

layout! {
    /// The drone's position and attitude, measured from outside.
    pub struct Pose {
        /// m.
        x: f32,
        /// m.
        y: f32,
        /// m.
        z: f32,
        /// Quaternion.
        qx: f32,
        /// Quaternion.
        qy: f32,
        /// Quaternion.
        qz: f32,
        /// Quaternion.
        qw: f32,
    }
}

/// The position of one of several drones, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedPosition {
    /// The low byte of the drone's radio address.
    pub id: u8,
    /// x, y, z in m; saturates at ±32.767.
    pub position: [f64; 3],
}

/// The pose of one of several drones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedPose {
    /// The low byte of the drone's radio address.
    pub id: u8,
    /// x, y, z in m; saturates at ±32.767.
    pub position: [f64; 3],
    /// Quaternion x, y, z, w; compressed to 32 bits.
    pub attitude: [f64; 4],
}

/// A packet to the drone.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Channel 0.
    Position(Position),
    /// Channel 1, type 8.
    Pose(Pose),
    /// Channel 2: one to four.
    PackedPositions(ArrayVec<PackedPosition, 4>),
    /// Channel 1, type 9: one or two.
    PackedPoses(ArrayVec<PackedPose, 2>),
    /// Channel 1, type 2: a short packet for a loco positioning anchor.
    LppShort {
        /// The anchor.
        destination: u8,
        /// What it gets.
        data: ArrayVec<u8, { MAX_DATA - 2 }>,
    },
    /// Channel 1, type 3: motors off and locked (deprecated from version 12, still works).
    EmergencyStop,
    /// Channel 1, type 4: once sent it has to be repeated every second (deprecated from version 12, still works).
    FeedWatchdog,
    /// Channel 1, type 11: store lighthouse data persistently.
    LighthousePersist {
        /// One bit a base station: its geometry.
        geometry: u16,
        /// One bit a base station: its calibration.
        calibration: u16,
    },
}

impl Request {
    /// The packet.
    ///
    /// # Errors
    /// [`ValueError`] naming the field that is no number, or a list that is empty.
    pub fn encode(&self) -> Result<Packet, ValueError> {
        let mut writer = Writer::new(Port::LOCALIZATION, self.channel());
        match self {
            Self::Position(position) => position.put(&mut writer)?,
            Self::Pose(pose) => pose.put(writer.u8(8))?,
            Self::PackedPositions(items) => put_items(items, &mut writer)?,
            Self::PackedPoses(items) => put_items(items, writer.u8(9))?,
            Self::LppShort { destination, data } => {
                writer.u8(2).u8(*destination).bytes(data);
            }
            Self::EmergencyStop => _ = writer.u8(3),
            Self::FeedWatchdog => _ = writer.u8(4),
            Self::LighthousePersist {
                geometry,
                calibration,
            } => _ = writer.u8(11).u16(*geometry).u16(*calibration),
        }
        Ok(writer.packet())
    }

    const fn channel(&self) -> Channel {
        match self {
            Self::Position(_) => Channel::C0,
            Self::PackedPositions(_) => Channel::C2,
            _ => Channel::C1,
        }
    }

    /// The request in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets, types and lengths, and floats that are no numbers.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let kind = match packet.kind() {
            kind @ (0x60 | 0x62) => kind,
            _ => 0x61,
        };
        let mut reader = Reader::new(packet, kind, "localization packet")?;
        let request = match kind {
            0x60 => Self::Position(Position::get(&mut reader)?),
            0x62 => Self::PackedPositions(get_items(&mut reader)?),
            _ => Self::generic(&mut reader)?,
        };
        reader.finish()?;
        Ok(request)
    }

    fn generic(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match reader.u8()? {
            2 => Self::LppShort {
                destination: reader.u8()?,
                data: reader.rest().iter().copied().collect(),
            },
            3 => Self::EmergencyStop,
            4 => Self::FeedWatchdog,
            8 => Self::Pose(Pose::get(reader)?),
            9 => Self::PackedPoses(get_items(reader)?),
            11 => Self::LighthousePersist {
                geometry: reader.u16()?,
                calibration: reader.u16()?,
            },
            other => return Err(reader.command_error(other)),
        })
    }
}

fn put_items<T: Field>(items: &[T], writer: &mut Writer) -> Result<(), ValueError> {
    if items.is_empty() {
        return Err(ValueError::Range {
            field: "number of positions",
            value: 0.0,
            min: 1.0,
            max: 4.0,
        });
    }
    items.iter().try_for_each(|item| item.put("item", writer))
}

fn get_items<T: Field, const N: usize>(
    reader: &mut Reader<'_>,
) -> Result<ArrayVec<T, N>, ParseError> {
    let mut items = ArrayVec::new();
    items.push(reader.field("item")?);
    while !reader.is_empty() {
        let item = reader.field("item")?;
        items.try_push(item).map_err(|_| reader.length_error())?;
    }
    Ok(items)
}

fn put_position(position: [f64; 3], writer: &mut Writer) -> Result<(), ValueError> {
    for (field, value) in ["x", "y", "z"].into_iter().zip(position) {
        writer.bytes(&thousandths(field, value)?.to_le_bytes());
    }
    Ok(())
}

fn get_position(reader: &mut Reader<'_>) -> Result<[f64; 3], ParseError> {
    let mut position = [0.0; 3];
    for value in &mut position {
        *value = f64::from(reader.field::<i16>("position")?) / 1000.0;
    }
    Ok(position)
}

impl Field for PackedPosition {
    fn put(&self, _: &'static str, writer: &mut Writer) -> Result<(), ValueError> {
        put_position(self.position, writer.u8(self.id))
    }

    fn get(_: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            id: reader.u8()?,
            position: get_position(reader)?,
        })
    }
}

impl Field for PackedPose {
    fn put(&self, _: &'static str, writer: &mut Writer) -> Result<(), ValueError> {
        put_position(self.position, writer.u8(self.id))?;
        writer.u32(compress_quaternion(self.attitude)?);
        Ok(())
    }

    fn get(_: &'static str, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            id: reader.u8()?,
            position: get_position(reader)?,
            attitude: decompress_quaternion(reader.u32()?),
        })
    }
}

/// The distance to one loco positioning anchor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The anchor.
    pub anchor: u8,
    /// m; as the drone measured it, may be NaN.
    pub distance: f32,
}

/// Sweep angles of one lighthouse axis: that of the first sensor in rad, and by how much the others' are smaller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep {
    /// rad.
    pub first: f32,
    /// rad, of sensors 2, 3 and 4.
    pub differences: [f16; 3],
}

impl Sweep {
    /// The angles of all four sensors, rad.
    #[must_use]
    pub fn angles(&self) -> [f32; 4] {
        let [b, c, d] = self.differences.map(|d| self.first - f32::from(d));
        [self.first, b, c, d]
    }
}

/// Lighthouse angles of one base station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Angles {
    /// The base station.
    pub base_station: u8,
    /// Horizontal.
    pub x: Sweep,
    /// Vertical.
    pub y: Sweep,
}

/// A packet from the drone, all on channel 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Type 0, switched on by `locSrv.enRangeStreamFP32`: up to five distances.
    Ranges(ArrayVec<Range, 5>),
    /// Type 2: whether a short packet for an anchor was taken.
    LppShort {
        /// The anchor.
        destination: u8,
        /// Taken.
        success: bool,
    },
    /// Type 10: lighthouse angles.
    Angles(Angles),
    /// Type 11: whether lighthouse data was stored.
    LighthousePersist {
        /// Stored.
        success: bool,
    },
    /// Type 12: lighthouse angles of one of several base stations at the same time.
    MatchedAngles {
        /// The angles.
        angles: Angles,
        /// Number of the group, 0 to 15.
        group: u8,
        /// Base stations in the group, 0 to 15.
        count: u8,
    },
}

impl Report {
    /// The packet the drone sends.
    #[must_use]
    pub fn encode(&self) -> Packet {
        let mut writer = Writer::reply(Port::LOCALIZATION, Channel::C1);
        match self {
            Self::Ranges(ranges) => {
                writer.u8(0);
                for range in ranges {
                    writer.u8(range.anchor).bytes(&range.distance.to_le_bytes());
                }
            }
            Self::LppShort {
                destination,
                success,
            } => _ = writer.u8(2).u8(*destination).u8(u8::from(*success)),
            Self::Angles(angles) => angles.put(writer.u8(10)),
            Self::LighthousePersist { success } => _ = writer.u8(11).u8(u8::from(*success)),
            Self::MatchedAngles {
                angles,
                group,
                count,
            } => {
                angles.put(writer.u8(12));
                writer.u8(group << 4 | count & 0x0f);
            }
        }
        writer.packet()
    }

    /// The report in a packet.
    ///
    /// # Errors
    /// [`ParseError`] for other packets and types, and for reports too short.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x61, "localization report")?;
        match reader.u8()? {
            0 => Self::ranges(&mut reader),
            2 => Ok(Self::LppShort {
                destination: reader.u8()?,
                success: reader.u8()? != 0,
            }),
            10 => Ok(Self::Angles(Angles::get(&mut reader)?)),
            11 => Ok(Self::LighthousePersist {
                success: reader.u8()? != 0,
            }),
            12 => {
                let angles = Angles::get(&mut reader)?;
                let group = reader.u8()?;
                Ok(Self::MatchedAngles {
                    angles,
                    group: group >> 4,
                    count: group & 0x0f,
                })
            }
            other => Err(reader.command_error(other)),
        }
    }

    fn ranges(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut ranges = ArrayVec::new();
        while !reader.is_empty() {
            let range = Range {
                anchor: reader.u8()?,
                distance: f32::from_le_bytes(reader.array()?),
            };
            ranges.try_push(range).map_err(|_| reader.length_error())?;
        }
        Ok(Self::Ranges(ranges))
    }
}

impl Angles {
    fn put(&self, writer: &mut Writer) {
        writer.u8(self.base_station);
        for sweep in [self.x, self.y] {
            writer.bytes(&sweep.first.to_le_bytes());
            for difference in sweep.differences {
                writer.bytes(&difference.to_le_bytes());
            }
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            base_station: reader.u8()?,
            x: get_sweep(reader)?,
            y: get_sweep(reader)?,
        })
    }
}

fn get_sweep(reader: &mut Reader<'_>) -> Result<Sweep, ParseError> {
    let first = f32::from_le_bytes(reader.array()?);
    let mut differences = [f16::ZERO; 3];
    for difference in &mut differences {
        *difference = f16::from_le_bytes(reader.array()?);
    }
    Ok(Sweep { first, differences })
}
