//! Curves the high-level commander flies along: polynomial pieces, planned or uploaded, and spirals. Time runs
//! from 0 at the start of the curve; beyond its end a curve rests at its last point.

use glam::DVec3;

/// Shortest time a planned curve may take, s: 0 would ask for an infinite speed.
const SHORTEST: f64 = 0.02;

/// A point of a curve: where to be, how fast, which way to head.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// m.
    pub(crate) position: DVec3,
    /// m/s.
    pub(crate) velocity: DVec3,
    /// m/s².
    pub(crate) acceleration: DVec3,
    /// rad.
    pub(crate) yaw: f64,
    /// rad/s.
    pub(crate) yaw_rate: f64,
}

impl Point {
    fn at_rest(self) -> Self {
        Self {
            velocity: DVec3::ZERO,
            acceleration: DVec3::ZERO,
            yaw_rate: 0.0,
            ..self
        }
    }
}

/// Eight coefficients per axis (x, y, z, yaw), lowest power first, over `duration` seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) axes: [[f64; 8]; 4],
    pub(crate) duration: f64,
}

impl Piece {
    /// The smoothest polynomial of degree 7 from one point to another that starts and ends without jerk.
    pub(crate) fn between(from: &Point, to: &Point, duration: f64) -> Self {
        let duration = if duration.is_finite() {
            duration.max(SHORTEST)
        } else {
            SHORTEST
        };
        let axis = |i: usize| {
            solve(
                [from.position[i], from.velocity[i], from.acceleration[i]],
                [to.position[i], to.velocity[i], to.acceleration[i]],
                duration,
            )
        };
        let yaw = solve(
            [from.yaw, from.yaw_rate, 0.0],
            [to.yaw, to.yaw_rate, 0.0],
            duration,
        );
        Self {
            axes: [axis(0), axis(1), axis(2), yaw],
            duration,
        }
    }

    pub(crate) fn at(&self, t: f64) -> Point {
        let [x, y, z, yaw] = self.axes.map(|axis| evaluate(&axis, t));
        let vector = |i: usize| DVec3::new(x[i], y[i], z[i]);
        Point {
            position: vector(0),
            velocity: vector(1),
            acceleration: vector(2),
            yaw: yaw[0],
            yaw_rate: yaw[1],
        }
    }
}

/// Coefficients for position, velocity and acceleration at both ends and no jerk there: the four upper ones solve
/// the linear system that is left over at the far end, in units of the duration.
fn solve(from: [f64; 3], to: [f64; 3], t: f64) -> [f64; 8] {
    let [p0, v0, a0] = from;
    let p = to[0] - (p0 + v0 * t + a0 * t * t / 2.0);
    let v = (to[1] - (v0 + a0 * t)) * t;
    let a = (to[2] - a0) * t * t;
    let scaled = [
        35.0 * p - 15.0 * v + 2.5 * a,
        -84.0 * p + 39.0 * v - 7.0 * a,
        70.0 * p - 34.0 * v + 6.5 * a,
        -20.0 * p + 10.0 * v - 2.0 * a,
    ];
    let mut power = t.powi(4);
    let upper = scaled.map(|c| {
        let coefficient = c / power;
        power *= t;
        coefficient
    });
    [
        p0,
        v0,
        a0 / 2.0,
        0.0,
        upper[0],
        upper[1],
        upper[2],
        upper[3],
    ]
}

/// Value, first and second derivative (Horner).
fn evaluate(coefficients: &[f64; 8], t: f64) -> [f64; 3] {
    let mut value = [0.0; 3];
    for &c in coefficients.iter().rev() {
        value[2] = value[2] * t + 2.0 * value[1];
        value[1] = value[1] * t + value[0];
        value[0] = value[0] * t + c;
    }
    value
}

/// Pieces one after the other, shifted, turned, stretched or backwards.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) pieces: Vec<Piece>,
    /// Above 1 slower.
    pub(crate) stretch: f64,
    pub(crate) reversed: bool,
    /// Added to every position, m, after turning.
    pub(crate) shift: DVec3,
    /// Turns the path about the world's z axis, rad.
    pub(crate) turn: f64,
}

impl Path {
    pub(crate) const fn of(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            stretch: 1.0,
            reversed: false,
            shift: DVec3::ZERO,
            turn: 0.0,
        }
    }

    /// Where it begins, in the direction it is flown.
    pub(crate) fn first(&self) -> Point {
        self.at(0.0)
    }

    fn duration(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.duration).sum::<f64>() * self.stretch
    }

    fn at(&self, t: f64) -> Point {
        let forward = if self.reversed {
            self.duration() - t
        } else {
            t
        } / self.stretch;
        let mut point = self.inner(forward);
        let speed = if self.reversed { -1.0 } else { 1.0 } / self.stretch;
        point.position = point.position.rotate_z(self.turn) + self.shift;
        point.velocity = point.velocity.rotate_z(self.turn) * speed;
        point.acceleration = point.acceleration.rotate_z(self.turn) * speed * speed;
        point.yaw += self.turn;
        point.yaw_rate *= speed;
        point
    }

    fn inner(&self, mut t: f64) -> Point {
        let mut last = Point::default();
        for piece in &self.pieces {
            if t < piece.duration {
                return piece.at(t.max(0.0));
            }
            t -= piece.duration;
            last = piece.at(piece.duration);
        }
        last
    }
}

/// A turn about a vertical axis with growing radius and height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spiral {
    pub(crate) start: Point,
    pub(crate) sideways: bool,
    pub(crate) clockwise: bool,
    /// rad.
    pub(crate) angle: f64,
    /// m, at the start and at the end.
    pub(crate) radius: [f64; 2],
    /// m.
    pub(crate) climb: f64,
    /// s.
    pub(crate) duration: f64,
}

impl Spiral {
    /// From the axis towards the drone when it heads to `yaw`: sideways flight looks along the radius, forward
    /// flight across it.
    fn outward(&self, yaw: f64) -> DVec3 {
        let sense = if self.clockwise { 1.0 } else { -1.0 };
        let direction = if self.sideways {
            DVec3::X * -sense
        } else {
            DVec3::Y * sense
        };
        direction.rotate_z(yaw)
    }

    fn place(&self, t: f64) -> (DVec3, f64) {
        let part = t / self.duration;
        let sense = if self.clockwise { 1.0 } else { -1.0 };
        let yaw = self.start.yaw - sense * self.angle * part;
        let axis = self.start.position - self.outward(self.start.yaw) * self.radius[0];
        let radius = self.radius[0] + (self.radius[1] - self.radius[0]) * part;
        let position = axis + self.outward(yaw) * radius + DVec3::Z * self.climb * part;
        (position, yaw)
    }

    fn at(&self, t: f64) -> Point {
        const STEP: f64 = 1e-4;
        let (position, yaw) = self.place(t);
        let ((before, yaw_before), (after, yaw_after)) =
            (self.place(t - STEP), self.place(t + STEP));
        Point {
            position,
            velocity: (after - before) / (2.0 * STEP),
            acceleration: (after + before - 2.0 * position) / (STEP * STEP),
            yaw,
            yaw_rate: (yaw_after - yaw_before) / (2.0 * STEP),
        }
    }
}

/// What the high-level commander flies along.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Curve {
    /// Pieces.
    Path(Path),
    /// A spiral.
    Spiral(Spiral),
}

impl Curve {
    /// s.
    pub(crate) fn duration(&self) -> f64 {
        match self {
            Self::Path(path) => path.duration(),
            Self::Spiral(spiral) => spiral.duration,
        }
    }

    /// The point `t` seconds after the start; at rest once the end is reached.
    pub(crate) fn at(&self, t: f64) -> Point {
        let end = self.duration();
        let inside = t.min(end);
        let point = match self {
            Self::Path(path) => path.at(inside),
            Self::Spiral(spiral) => spiral.at(inside),
        };
        if t < end { point } else { point.at_rest() }
    }
}
