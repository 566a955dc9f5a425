//! The full-state setpoint (generic setpoint type 6) and its compressed quaternion. Values outside of the
//! 16-bit range saturate and never wrap.

use crate::error::{ParseError, ValueError};
use crate::wire::{Reader, Writer};

/// Position, velocity, acceleration, attitude and body rates at once, 28 bytes behind the type.
///
/// Doubles, so that the bytes are cflib's to the last bit: thousandths are cut off toward zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullState {
    /// x, y, z in m, world frame; ±32.767 on the wire.
    pub position: [f64; 3],
    /// x, y, z in m/s, world frame; ±32.767 on the wire.
    pub velocity: [f64; 3],
    /// x, y, z in m/s², world frame; ±32.767 on the wire.
    pub acceleration: [f64; 3],
    /// Attitude quaternion x, y, z, w; normalized before it is compressed.
    pub attitude: [f64; 4],
    /// Roll, pitch and yaw rate in rad/s, body frame; ±32.767 on the wire. (The firmware takes the wire's
    /// number for milliradians per second.)
    pub rates: [f64; 3],
}

impl FullState {
    pub(crate) fn put(&self, writer: &mut Writer) -> Result<(), ValueError> {
        put_thousandths("position", &self.position, writer)?;
        put_thousandths("velocity", &self.velocity, writer)?;
        put_thousandths("acceleration", &self.acceleration, writer)?;
        writer.u32(compress_quaternion(self.attitude)?);
        put_thousandths("rates", &self.rates, writer)
    }

    pub(crate) fn get(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            position: get_thousandths(reader)?,
            velocity: get_thousandths(reader)?,
            acceleration: get_thousandths(reader)?,
            attitude: decompress_quaternion(reader.u32()?),
            rates: get_thousandths(reader)?,
        })
    }
}

fn put_thousandths(
    field: &'static str,
    values: &[f64; 3],
    writer: &mut Writer,
) -> Result<(), ValueError> {
    for &value in values {
        writer.bytes(&thousandths(field, value)?.to_le_bytes());
    }
    Ok(())
}

fn get_thousandths(reader: &mut Reader<'_>) -> Result<[f64; 3], ParseError> {
    let mut values = [0.0; 3];
    for value in &mut values {
        *value = f64::from(i16::from_le_bytes(reader.array()?)) / 1000.0;
    }
    Ok(values)
}

/// Thousandths of `value`, cut off toward zero as cflib does, saturating at ±32767.
///
/// # Errors
/// [`ValueError::NotFinite`] for NaN and infinities.
pub(crate) fn thousandths(field: &'static str, value: f64) -> Result<i16, ValueError> {
    if !value.is_finite() {
        return Err(ValueError::NotFinite { field, value });
    }
    Ok((value * 1000.0).clamp(-32767.0, 32767.0) as i16)
}

/// Compresses an attitude (x, y, z, w; normalized first) into 32 bits.
///
/// Bits 31 and 30 are the index of the component of largest magnitude (the first of equal ones); the sign of
/// the whole quaternion is chosen to make it positive. The other three follow in index order, first one most
/// significant, each a sign bit and a 9-bit magnitude in units of 1/(511·√2), rounded (firmware
/// `quatcompress.h`).
///
/// # Errors
/// [`ValueError::NotFinite`] for a component that is no number, [`ValueError::Range`] for a quaternion of
/// length 0.
pub fn compress_quaternion(attitude: [f64; 4]) -> Result<u32, ValueError> {
    let unit = normalized(attitude)?;
    let largest = (1..4).fold(0, |best, i| {
        if unit[i].abs() > unit[best].abs() {
            i
        } else {
            best
        }
    });
    let negate = unit[largest] < 0.0;
    let mut bits = largest as u32;
    for (_, &value) in unit.iter().enumerate().filter(|&(i, _)| i != largest) {
        let sign = u32::from((value < 0.0) != negate);
        let magnitude = (511.0 * value.abs() * std::f64::consts::SQRT_2 + 0.5) as u32;
        bits = bits << 10 | sign << 9 | magnitude.min(511);
    }
    Ok(bits)
}

fn normalized(attitude: [f64; 4]) -> Result<[f64; 4], ValueError> {
    if let Some(&value) = attitude.iter().find(|value| !value.is_finite()) {
        let field = "attitude";
        return Err(ValueError::NotFinite { field, value });
    }
    // Scaled first, so that neither tiny nor huge components lose the length.
    let scale = attitude.iter().fold(0.0_f64, |max, v| max.max(v.abs()));
    if scale == 0.0 {
        return Err(ValueError::Range {
            field: "length of attitude quaternion",
            value: 0.0,
            min: f64::MIN_POSITIVE,
            max: f64::MAX,
        });
    }
    let scaled = attitude.map(|value| value / scale);
    let length = scaled.iter().map(|v| v * v).sum::<f64>().sqrt();
    Ok(scaled.map(|value| value / length))
}

/// The attitude (x, y, z, w; length 1) in 32 compressed bits; never fails, every bit pattern is an attitude.
#[must_use]
pub fn decompress_quaternion(bits: u32) -> [f64; 4] {
    let largest = (bits >> 30) as usize;
    let mut attitude = [0.0; 4];
    let mut shift = 20_u32;
    let mut squares = 0.0;
    for (i, value) in attitude.iter_mut().enumerate() {
        if i == largest {
            continue;
        }
        let part = bits >> shift & 0x3ff;
        let magnitude = f64::from(part & 0x1ff) / 511.0 * std::f64::consts::FRAC_1_SQRT_2;
        *value = if part & 0x200 == 0 {
            magnitude
        } else {
            -magnitude
        };
        squares += magnitude * magnitude;
        shift = shift.saturating_sub(10);
    }
    if let Some(value) = attitude.get_mut(largest) {
        *value = (1.0 - squares).max(0.0).sqrt();
    }
    attitude
}
