//! Reads uploaded trajectories out of the trajectory memory, plain and compressed. It never looks beyond the
//! memory: a definition that points outside is refused.

use super::body::wrap;
use super::curve::{Path, Piece, Point};
use crtp::Status;
use crtp::high_level::DefineTrajectory;

/// Trajectories that can be defined at a time (firmware `NUM_TRAJECTORY_DEFINITIONS`).
pub(crate) const DEFINITIONS: usize = 10;

const LOCATION_MEMORY: u8 = 1;
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;

/// How a trajectory is to be flown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Start {
    /// Shift it to the current position.
    pub(crate) position: bool,
    /// Turn it to the current heading.
    pub(crate) yaw: bool,
    pub(crate) reversed: bool,
    pub(crate) timescale: f32,
}

/// The path of a defined trajectory, starting at `from` where that was asked for.
pub(crate) fn load(
    definition: &DefineTrajectory,
    start: &Start,
    memory: &[u8],
    from: &Point,
) -> Result<Path, Status> {
    if definition.location != LOCATION_MEMORY || start.timescale <= 0.0 {
        return Err(Status::UNKNOWN_COMMAND);
    }
    let offset = usize::try_from(definition.offset).map_err(|_| Status::UNKNOWN_COMMAND)?;
    let bytes = memory.get(offset..).ok_or(Status::UNKNOWN_COMMAND)?;
    let pieces = match definition.kind {
        PLAIN => plain(bytes, definition.pieces.into()),
        COMPRESSED if start.timescale == 1.0 && !start.reversed => compressed(bytes),
        _ => None,
    };
    let pieces = pieces.ok_or(Status::UNKNOWN_COMMAND)?;
    let mut path = Path {
        stretch: start.timescale.into(),
        reversed: start.reversed,
        ..Path::of(pieces)
    };
    path.start_at(start, from);
    Ok(path)
}

impl Path {
    fn start_at(&mut self, start: &Start, from: &Point) {
        if !start.position {
            return;
        }
        if start.yaw {
            self.turn = wrap(from.yaw - self.first().yaw);
        }
        self.shift = from.position - self.first().position;
    }
}

/// `count` pieces of 132 bytes.
fn plain(bytes: &[u8], count: usize) -> Option<Vec<Piece>> {
    let (pieces, _) = bytes.as_chunks::<{ crtp::trajectory::Piece::SIZE }>();
    let read = pieces.get(..count)?.iter().map(|bytes| {
        let piece = crtp::trajectory::Piece::parse(bytes);
        Piece {
            axes: [piece.x, piece.y, piece.z, piece.yaw].map(|axis| axis.map(f64::from)),
            duration: piece.duration.into(),
        }
    });
    let pieces: Vec<Piece> = read.collect();
    let sound = pieces
        .iter()
        .all(|piece| piece.duration.is_finite() && piece.duration >= 0.0);
    (sound && !pieces.is_empty()).then_some(pieces)
}

/// Bezier curves: the start (x, y, z in mm, yaw in 0.1°), then pieces of a type byte (two bits an axis), a duration
/// in ms and control points, until a duration of 0.
fn compressed(mut bytes: &[u8]) -> Option<Vec<Piece>> {
    let mut start = [0.0; 4];
    for (axis, value) in start.iter_mut().enumerate() {
        *value = coordinate(&mut bytes, axis)?;
    }
    let mut pieces = Vec::new();
    loop {
        let [kinds] = take(&mut bytes)?;
        let duration = f64::from(u16::from_le_bytes(take(&mut bytes)?)) / 1000.0;
        if duration == 0.0 {
            break;
        }
        let mut axes = [[0.0; 8]; 4];
        for axis in 0..4 {
            let points = [0, 1, 3, 7][usize::from(kinds >> (2 * axis) & 3)];
            let mut control = [start[axis]; 8];
            for point in control.iter_mut().skip(1).take(points) {
                *point = coordinate(&mut bytes, axis)?;
            }
            axes[axis] = power_basis(&control, points, duration);
            start[axis] = control[points];
        }
        pieces.push(Piece { axes, duration });
    }
    (!pieces.is_empty()).then_some(pieces)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn coordinate(bytes: &mut &[u8], axis: usize) -> Option<f64> {
    let value = f64::from(i16::from_le_bytes(take(bytes)?));
    Some(if axis == 3 {
        (value / 10.0).to_radians()
    } else {
        value / 1000.0
    })
}

/// Coefficients of the Bezier curve of that degree over `duration`: differences of the control points times
/// binomials.
fn power_basis(control: &[f64; 8], degree: usize, duration: f64) -> [f64; 8] {
    let mut differences = *control;
    let mut coefficients = [0.0; 8];
    let mut factor = 1.0;
    for (power, coefficient) in coefficients.iter_mut().enumerate().take(degree + 1) {
        *coefficient = differences[0] * factor;
        factor *= (degree - power) as f64 / (power + 1) as f64 / duration;
        for i in 0..degree - power {
            differences[i] = differences[i + 1] - differences[i];
        }
    }
    coefficients
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::curve::Curve;
    use glam::DVec3;

    use crtp::trajectory::{CompressedSegment, CompressedStart};

    const AS_IT_IS: Start = Start {
        position: false,
        yaw: false,
        reversed: false,
        timescale: 1.0,
    };

    fn definition(kind: u8, pieces: u8) -> DefineTrajectory {
        DefineTrajectory {
            trajectory_id: 1,
            location: 1,
            kind,
            offset: 0,
            pieces,
        }
    }

    fn line() -> Vec<u8> {
        let mut memory = Vec::new();
        let mut piece = crtp::trajectory::Piece {
            x: [0.0; 8],
            y: [0.0; 8],
            z: [0.0; 8],
            yaw: [0.0; 8],
            duration: 2.0,
        };
        piece.x[0] = 1.0;
        piece.x[1] = 0.5;
        piece.append_to(&mut memory).unwrap();
        memory
    }

    #[test]
    fn plain_pieces_are_flown_forwards_and_backwards() {
        let memory = line();
        let path = load(&definition(PLAIN, 1), &AS_IT_IS, &memory, &Point::default()).unwrap();
        assert_eq!(path.first().position.x, 1.0);
        let curve = Curve::Path(path);
        assert_eq!(
            (curve.at(1.0).position.x, curve.at(1.0).velocity.x),
            (1.5, 0.5)
        );
        assert_eq!(
            (curve.at(5.0).position.x, curve.at(5.0).velocity.x),
            (2.0, 0.0)
        );
        let back = Start {
            reversed: true,
            timescale: 2.0,
            ..AS_IT_IS
        };
        let curve =
            Curve::Path(load(&definition(PLAIN, 1), &back, &memory, &Point::default()).unwrap());
        assert_eq!(
            (
                curve.duration(),
                curve.at(0.0).position.x,
                curve.at(2.0).velocity.x
            ),
            (4.0, 2.0, -0.25)
        );
    }

    #[test]
    fn relative_trajectories_start_where_the_drone_is() {
        let from = Point {
            position: DVec3::new(5.0, 6.0, 7.0),
            yaw: 1.5,
            ..Point::default()
        };
        let start = Start {
            position: true,
            yaw: true,
            ..AS_IT_IS
        };
        let path = load(&definition(PLAIN, 1), &start, &line(), &from).unwrap();
        assert!((path.first().position - from.position).length() < 1e-12);
        let moved = Curve::Path(path).at(1.0).position - from.position;
        assert!(
            (moved - DVec3::X.rotate_z(1.5) * 0.5).length() < 1e-9,
            "{moved}"
        );
    }

    #[test]
    fn compressed_segments_are_bezier_curves() {
        let mut memory = Vec::new();
        CompressedStart {
            position: [1.0, 0.0, 0.5],
            yaw: 0.0,
        }
        .append_to(&mut memory)
        .unwrap();
        let segment = CompressedSegment {
            x: vec![3.0],
            z: vec![0.5, 1.5, 1.5],
            duration_ms: 2000,
            ..Default::default()
        };
        segment.append_to(&mut memory).unwrap();
        CompressedSegment::default().append_to(&mut memory).unwrap();
        let path = load(
            &definition(COMPRESSED, 1),
            &AS_IT_IS,
            &memory,
            &Point::default(),
        )
        .unwrap();
        let curve = Curve::Path(path);
        let middle = curve.at(1.0);
        assert!(
            (middle.position - DVec3::new(2.0, 0.0, 1.0)).length() < 1e-9,
            "{middle:?}"
        );
        assert!((curve.at(2.0).position - DVec3::new(3.0, 0.0, 1.5)).length() < 1e-9);
    }

    #[test]
    fn definitions_that_point_outside_are_refused() {
        let outside = DefineTrajectory {
            offset: u32::MAX,
            ..definition(PLAIN, 1)
        };
        for definition in [
            outside,
            definition(PLAIN, 200),
            definition(COMPRESSED, 1),
            definition(7, 1),
        ] {
            assert_eq!(
                load(&definition, &AS_IT_IS, &[0xff; 4096], &Point::default()),
                Err(Status::UNKNOWN_COMMAND)
            );
        }
    }
}
