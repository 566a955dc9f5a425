//! What the bytes of the trajectory memory (kind `0x12`, 4096 bytes) mean: polynomial pieces, or compressed
//! segments behind a start. Writing them to a drone is the client's.

use crate::error::ValueError;
use crate::full_state::thousandths;

/// Bytes of the trajectory memory.
pub const MEMORY_SIZE: usize = 4096;

/// One piece of an uncompressed trajectory: a polynomial of degree 7 for each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Coefficients of 1, t, t², … t⁷; m and s.
    pub x: [f32; 8],
    /// As x.
    pub y: [f32; 8],
    /// As x.
    pub z: [f32; 8],
    /// As x, rad and s.
    pub yaw: [f32; 8],
    /// s.
    pub duration: f32,
}

impl Piece {
    /// Bytes of a piece; 31 fit the memory.
    pub const SIZE: usize = 132;

    /// Appends the piece's bytes.
    ///
    /// # Errors
    /// [`ValueError::NotFinite`] naming the axis; nothing is appended then.
    pub fn append_to(&self, memory: &mut Vec<u8>) -> Result<(), ValueError> {
        let axes = [
            ("x", &self.x[..]),
            ("y", &self.y),
            ("z", &self.z),
            ("yaw", &self.yaw),
            ("duration", std::slice::from_ref(&self.duration)),
        ];
        for (field, values) in axes {
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                let value = f64::from(*value);
                return Err(ValueError::NotFinite { field, value });
            }
        }
        let values = axes.iter().flat_map(|(_, values)| *values);
        memory.extend(values.flat_map(|value| value.to_le_bytes()));
        Ok(())
    }

    /// The piece in 132 bytes.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::SIZE]) -> Self {
        let mut values = bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let mut axis = || std::array::from_fn(|_| values.next().unwrap_or_default());
        let (x, y, z, yaw) = (axis(), axis(), axis(), axis());
        let [duration] = { std::array::from_fn(|_| values.next().unwrap_or_default()) };
        Self {
            x,
            y,
            z,
            yaw,
            duration,
        }
    }
}

/// Where a compressed trajectory starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompressedStart {
    /// x, y, z in m; ±32.767.
    pub position: [f64; 3],
    /// rad; ±57.
    pub yaw: f64,
}

impl CompressedStart {
    /// Appends the start's 8 bytes. Values out of range saturate.
    ///
    /// # Errors
    /// [`ValueError::NotFinite`] naming the field; nothing is appended then.
    pub fn append_to(&self, memory: &mut Vec<u8>) -> Result<(), ValueError> {
        let [x, y, z] = self.position;
        let values = [
            thousandths("x", x)?,
            thousandths("y", y)?,
            thousandths("z", z)?,
            tenth_degrees("yaw", self.yaw)?,
        ];
        memory.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Ok(())
    }
}

/// One segment of a compressed trajectory: a Bézier curve for each axis, from where the previous one ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompressedSegment {
    /// Control points in m: none (stands still), 1 (straight), 3 (cubic) or 7.
    pub x: Vec<f64>,
    /// As x.
    pub y: Vec<f64>,
    /// As x.
    pub z: Vec<f64>,
    /// As x, rad.
    pub yaw: Vec<f64>,
    /// ms.
    pub duration_ms: u16,
}

impl CompressedSegment {
    /// Appends the segment's bytes, 3 to 59. Values out of range saturate.
    ///
    /// # Errors
    /// [`ValueError`] naming the axis with another number of control points or with one that is no number;
    /// nothing is appended then.
    pub fn append_to(&self, memory: &mut Vec<u8>) -> Result<(), ValueError> {
        let axes = [
            ("x", &self.x),
            ("y", &self.y),
            ("z", &self.z),
            ("yaw", &self.yaw),
        ];
        let mut kinds = 0;
        let mut points = Vec::new();
        for (i, (field, values)) in axes.into_iter().enumerate() {
            kinds |= curve_kind(field, values.len())? << (2 * i);
            let convert = if field == "yaw" {
                tenth_degrees
            } else {
                thousandths
            };
            for &value in values {
                points.push(convert(field, value)?);
            }
        }
        memory.push(kinds);
        memory.extend(self.duration_ms.to_le_bytes());
        memory.extend(points.iter().flat_map(|point| point.to_le_bytes()));
        Ok(())
    }
}

fn curve_kind(field: &'static str, points: usize) -> Result<u8, ValueError> {
    match points {
        0 => Ok(0),
        1 => Ok(1),
        3 => Ok(2),
        7 => Ok(3),
        got => Err(ValueError::ControlPoints { field, got }),
    }
}

/// Tenths of a degree, cut off toward zero as cflib does, saturating.
fn tenth_degrees(field: &'static str, radians: f64) -> Result<i16, ValueError> {
    if !radians.is_finite() {
        let value = radians;
        return Err(ValueError::NotFinite { field, value });
    }
    Ok((radians.to_degrees() * 10.0).clamp(-32767.0, 32767.0) as i16)
}
