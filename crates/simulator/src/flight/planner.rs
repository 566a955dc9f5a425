//! The high-level commander: turns takeoff, landing, flights to a place, spirals and uploaded trajectories into
//! setpoints. It refuses while the supervisor blocks it and is stopped by every setpoint of higher priority.

use std::f64::consts::TAU;

use crtp::Status;
use crtp::high_level::{Command, DefineTrajectory, Spiral as SpiralCommand};
use glam::DVec3;

use super::body::{Body, wrap};
use super::curve::{Curve, Path, Piece, Point, Spiral};
use super::setpoint::Setpoint;
use super::trajectory::{self, DEFINITIONS};

/// Speed of takeoff and landing where none is told, m/s.
const DEFAULT_SPEED: f64 = 0.5;
/// Firmware: the plan was refused, as a takeoff while flying or a second landing.
const NOT_NOW: Status = Status(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Stopped,
    Flying,
    Landing,
}

/// The planner with its trajectory definitions.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    phase: Phase,
    curve: Curve,
    begun_ms: u64,
    last: Point,
    group_mask: u8,
    blocked: bool,
    definitions: [Option<DefineTrajectory>; DEFINITIONS],
}

impl Default for Planner {
    fn default() -> Self {
        Self {
            phase: Phase::Stopped,
            curve: Curve::Path(Path::of(Vec::new())),
            begun_ms: 0,
            last: Point::default(),
            group_mask: 0,
            blocked: false,
            definitions: [None; DEFINITIONS],
        }
    }
}

impl Planner {
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Stopped;
    }

    /// Follows the supervisor: a drone that may not fly drops its plan.
    pub(crate) fn set_blocked(&mut self, blocked: bool) {
        if blocked {
            self.stop();
        }
        self.blocked = blocked;
    }

    pub(crate) const fn set_group_mask(&mut self, mask: u8) {
        self.group_mask = mask;
    }

    /// Whether a plan is being followed or held (bit 8 of the supervisor information).
    pub(crate) fn is_active(&self) -> bool {
        self.phase != Phase::Stopped
    }

    /// Whether the last curve has come to its end (bit 9).
    pub(crate) fn is_finished(&self, now_ms: u64) -> bool {
        self.elapsed(now_ms) >= self.curve.duration()
    }

    fn elapsed(&self, now_ms: u64) -> f64 {
        now_ms.saturating_sub(self.begun_ms) as f64 / 1000.0
    }

    /// The setpoint now: motors off while stopped.
    pub(crate) fn setpoint(&mut self, now_ms: u64, body: &Body) -> Setpoint {
        if self.phase == Phase::Landing && self.is_finished(now_ms) {
            self.phase = Phase::Stopped;
        }
        if self.phase == Phase::Stopped {
            self.track(body);
            return Setpoint::NULL;
        }
        self.last = self.curve.at(self.elapsed(now_ms));
        let Point {
            position,
            velocity,
            acceleration,
            yaw,
            yaw_rate,
        } = self.last;
        Setpoint::goal(position, velocity, acceleration, yaw, yaw_rate)
    }

    /// New plans start where the drone is.
    pub(crate) fn track(&mut self, body: &Body) {
        self.last = Point {
            position: body.position,
            velocity: body.velocity,
            yaw: body.yaw,
            ..Point::default()
        };
    }

    /// Carries out a command; `memory` is the trajectory memory.
    pub(crate) fn handle(&mut self, now_ms: u64, command: &Command, memory: &[u8]) -> Status {
        match command {
            Command::SetGroupMask(c) => {
                self.group_mask = c.mask;
                return Status::OK;
            }
            Command::DefineTrajectory(c) => return self.define(c),
            Command::Stop(c) => {
                if self.is_meant(c.group_mask) {
                    self.stop();
                }
                return Status::OK;
            }
            _ if self.blocked => return Status::BUSY,
            _ if !self.is_meant(group_of(command)) => return Status::OK,
            _ => {}
        }
        self.plan(now_ms, command, memory)
    }

    const fn is_meant(&self, group: u8) -> bool {
        group == 0 || group & self.group_mask != 0
    }

    fn define(&mut self, definition: &DefineTrajectory) -> Status {
        let Some(slot) = self
            .definitions
            .get_mut(usize::from(definition.trajectory_id))
        else {
            return Status::UNKNOWN_COMMAND;
        };
        *slot = Some(*definition);
        Status::OK
    }

    fn plan(&mut self, now_ms: u64, command: &Command, memory: &[u8]) -> Status {
        match *command {
            Command::GoToOld(c) => {
                let place = DVec3::new(c.x.into(), c.y.into(), c.z.into());
                self.go_to(
                    now_ms,
                    c.relative,
                    false,
                    place,
                    c.yaw.into(),
                    c.duration.into(),
                )
            }
            Command::GoTo(c) => {
                let place = DVec3::new(c.x.into(), c.y.into(), c.z.into());
                self.go_to(
                    now_ms,
                    c.relative,
                    c.linear,
                    place,
                    c.yaw.into(),
                    c.duration.into(),
                )
            }
            Command::Spiral(c) => self.spiral(now_ms, &c),
            Command::StartTrajectoryOld(c) => {
                let start = trajectory::Start {
                    position: c.relative,
                    yaw: false,
                    reversed: c.reversed,
                    timescale: c.timescale,
                };
                self.start(now_ms, c.trajectory_id, &start, memory)
            }
            Command::StartTrajectory(c) => {
                let start = trajectory::Start {
                    position: c.relative_position,
                    yaw: c.relative_yaw,
                    reversed: c.reversed,
                    timescale: c.timescale,
                };
                self.start(now_ms, c.trajectory_id, &start, memory)
            }
            _ => self.plan_vertical(now_ms, command),
        }
    }

    /// Takeoff and landing in all their forms.
    fn plan_vertical(&mut self, now_ms: u64, command: &Command) -> Status {
        match *command {
            Command::TakeoffOld(c) => self.takeoff(now_ms, c.height.into(), 0.0, c.duration.into()),
            Command::LandOld(c) => self.land(now_ms, c.height.into(), 0.0, c.duration.into()),
            Command::Takeoff(c) => {
                let yaw = self.yaw_for(c.use_current_yaw, c.yaw);
                self.takeoff(now_ms, c.height.into(), yaw, c.duration.into())
            }
            Command::Land(c) => {
                let yaw = self.yaw_for(c.use_current_yaw, c.yaw);
                self.land(now_ms, c.height.into(), yaw, c.duration.into())
            }
            Command::TakeoffWithVelocity(c) => {
                let base = if c.height_is_relative {
                    self.last.position.z
                } else {
                    0.0
                };
                let height = base + f64::from(c.height);
                let yaw = self.yaw_for(c.use_current_yaw, c.yaw);
                self.takeoff(now_ms, height, yaw, self.time_to(height, c.velocity))
            }
            Command::LandWithVelocity(c) => {
                let told = f64::from(c.height);
                let height = if c.height_is_relative {
                    self.last.position.z - told
                } else {
                    told
                };
                let yaw = self.yaw_for(c.use_current_yaw, c.yaw);
                self.land(now_ms, height, yaw, self.time_to(height, c.velocity))
            }
            // Everything else is dealt with before a plan is made.
            _ => Status::UNKNOWN_COMMAND,
        }
    }

    fn begin(&mut self, now_ms: u64, phase: Phase, curve: Curve) -> Status {
        self.phase = phase;
        self.curve = curve;
        self.begun_ms = now_ms;
        Status::OK
    }

    fn takeoff(&mut self, now_ms: u64, height: f64, yaw: f64, duration: f64) -> Status {
        if self.is_active() {
            return NOT_NOW;
        }
        let curve = self.vertical(height, yaw, duration);
        self.begin(now_ms, Phase::Flying, curve)
    }

    fn land(&mut self, now_ms: u64, height: f64, yaw: f64, duration: f64) -> Status {
        if self.phase == Phase::Landing {
            return NOT_NOW;
        }
        let curve = self.vertical(height, yaw, duration);
        self.begin(now_ms, Phase::Landing, curve)
    }

    /// Straight up or down, from rest to rest, turning the short way.
    fn vertical(&self, height: f64, yaw: f64, duration: f64) -> Curve {
        let from = Point {
            position: self.last.position,
            yaw: self.last.yaw,
            ..Point::default()
        };
        let to = Point {
            position: from.position.with_z(height),
            yaw: from.yaw + wrap(yaw - from.yaw),
            ..Point::default()
        };
        Curve::Path(Path::of(vec![Piece::between(&from, &to, duration)]))
    }

    fn yaw_for(&self, keep: bool, yaw: f32) -> f64 {
        if keep { self.last.yaw } else { yaw.into() }
    }

    fn time_to(&self, height: f64, speed: f32) -> f64 {
        let speed = if speed > 0.0 {
            f64::from(speed)
        } else {
            DEFAULT_SPEED
        };
        (height - self.last.position.z).abs() / speed
    }

    fn go_to(
        &mut self,
        now_ms: u64,
        relative: bool,
        linear: bool,
        place: DVec3,
        yaw: f64,
        duration: f64,
    ) -> Status {
        let from = if self.is_active() {
            self.curve.at(self.elapsed(now_ms))
        } else {
            self.last
        };
        let (base, base_yaw) = if relative {
            (from.position, from.yaw)
        } else {
            (DVec3::ZERO, 0.0)
        };
        let mut from = from;
        let mut to = Point {
            position: base + place,
            yaw: from.yaw + wrap(base_yaw + yaw - from.yaw),
            ..Point::default()
        };
        if linear && duration > 0.0 {
            for point in [&mut from, &mut to] {
                point.acceleration = DVec3::ZERO;
            }
            let velocity = (to.position - from.position) / duration;
            let rate = (to.yaw - from.yaw) / duration;
            (from.velocity, to.velocity) = (velocity, velocity);
            (from.yaw_rate, to.yaw_rate) = (rate, rate);
        }
        let curve = Curve::Path(Path::of(vec![Piece::between(&from, &to, duration)]));
        self.begin(now_ms, Phase::Flying, curve)
    }

    fn spiral(&mut self, now_ms: u64, c: &SpiralCommand) -> Status {
        let curve = Curve::Spiral(Spiral {
            start: self.last,
            sideways: c.sideways,
            clockwise: c.clockwise,
            angle: f64::from(c.angle).clamp(-TAU, TAU),
            radius: [f64::from(c.r0).max(0.0), f64::from(c.rf).max(0.0)],
            climb: c.dz.into(),
            duration: f64::from(c.duration).max(0.02),
        });
        self.begin(now_ms, Phase::Flying, curve)
    }

    /// An id that was never defined does nothing and succeeds, as on board.
    fn start(&mut self, now_ms: u64, id: u8, start: &trajectory::Start, memory: &[u8]) -> Status {
        let Some(definition) = self.definitions.get(usize::from(id)).copied().flatten() else {
            return Status::OK;
        };
        match trajectory::load(&definition, start, memory, &self.last) {
            Ok(path) => self.begin(now_ms, Phase::Flying, Curve::Path(path)),
            Err(status) => status,
        }
    }
}

const fn group_of(command: &Command) -> u8 {
    match command {
        Command::SetGroupMask(_) | Command::DefineTrajectory(_) => 0,
        Command::TakeoffOld(c) | Command::LandOld(c) => c.group_mask,
        Command::Stop(c) => c.group_mask,
        Command::GoToOld(c) => c.group_mask,
        Command::StartTrajectoryOld(c) => c.group_mask,
        Command::Takeoff(c) | Command::Land(c) => c.group_mask,
        Command::TakeoffWithVelocity(c) | Command::LandWithVelocity(c) => c.group_mask,
        Command::Spiral(c) => c.group_mask,
        Command::GoTo(c) => c.group_mask,
        Command::StartTrajectory(c) => c.group_mask,
    }
}
