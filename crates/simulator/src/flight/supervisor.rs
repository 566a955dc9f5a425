//! Decides whether the motors may run: preflight checks, arming, the setpoint watchdog, tumbling, emergency stop.
//! A state machine after the firmware's, told the conditions and the time; it drives nothing itself.

use crtp::supervisor::Info;
use glam::DVec3;

use super::body::GRAVITY;

/// Age of the setpoint from which a flying drone levels out, ms.
pub const LEVEL_OUT_MS: u64 = 500;
/// Age of the setpoint from which the motors stop and the drone locks, ms.
pub const LOCK_MS: u64 = 2000;
/// The drone counts as flying for this long after the motors last ran, ms.
const FLYING_HYSTERESIS_MS: u64 = 2000;
/// Armed without flying for longer than this disarms, ms.
const PREFLIGHT_TIMEOUT_MS: u64 = 30_000;
/// Landed for longer than this disarms, ms.
const LANDING_TIMEOUT_MS: u64 = 3000;
/// Once fed, the emergency watchdog wants to be fed again within this time, ms.
const WATCHDOG_MS: u64 = 1000;
/// Tilted: less than this along the body's z axis, g, for longer than the time, ms.
const TILTED: (f64, u64) = (0.5, 1000);
/// Upside down, likewise.
const UPSIDE_DOWN: (f64, u64) = (-0.2, 100);
/// Falling freely (no tumble): all axes feel less than this, g.
const FREE_FALL: f64 = 0.1;

/// Where the supervisor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Before the first update.
    NotInitialized,
    /// Not level, or crashed.
    PreflightNotPassed,
    /// Could be armed.
    PreflightPassed,
    /// Motors are being checked.
    Arming,
    /// Armed, on the ground.
    ReadyToFly,
    /// In flight, and for two seconds after.
    Flying,
    /// Motors off after a flight.
    Landed,
    /// On the way back to the checks.
    Reset,
    /// No setpoint for 500 ms: held level.
    WarningLevelOut,
    /// Motors off in flight.
    FreeFall,
    /// Motors off until the drone is restarted.
    Locked,
    /// Tumbled in flight; asks for recovery.
    Crashed,
}

/// What the supervisor looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) motors_run: bool,
    /// m/s², body frame.
    pub(crate) specific_force: DVec3,
    pub(crate) setpoint_age_ms: u64,
}

/// The supervisor.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    auto_arm: bool,
    state: State,
    armed: bool,
    crashed: bool,
    tumbled: bool,
    flying: bool,
    emergency: bool,
    fed_ms: Option<u64>,
    tilted_since_ms: Option<u64>,
    motors_ran_ms: Option<u64>,
    entered_ms: u64,
}

impl Supervisor {
    pub(crate) const fn new(auto_arm: bool) -> Self {
        Self {
            auto_arm,
            state: State::NotInitialized,
            armed: false,
            crashed: false,
            tumbled: false,
            flying: false,
            emergency: false,
            fed_ms: None,
            tilted_since_ms: None,
            motors_ran_ms: None,
            entered_ms: 0,
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    pub(crate) const fn is_armed(&self) -> bool {
        self.armed
    }

    pub(crate) const fn can_fly(&self) -> bool {
        matches!(
            self.state,
            State::Arming
                | State::ReadyToFly
                | State::Flying
                | State::WarningLevelOut
                | State::Landed
        )
    }

    /// The information bits, without those of the high-level commander.
    pub(crate) fn info(&self) -> Info {
        [
            (self.state == State::PreflightPassed, Info::CAN_BE_ARMED),
            (self.armed, Info::ARMED),
            (self.auto_arm, Info::AUTO_ARM),
            (self.can_fly(), Info::CAN_FLY),
            (
                matches!(self.state, State::Flying | State::WarningLevelOut),
                Info::FLYING,
            ),
            (self.tumbled, Info::TUMBLED),
            (self.state == State::Locked, Info::LOCKED),
            (self.crashed, Info::CRASHED),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .fold(Info::default(), |bits, (_, bit)| bits.with(bit))
    }

    /// Whether the request was granted.
    pub(crate) fn request_arming(&mut self, arm: bool) -> bool {
        let granted = arm == self.armed || !arm || self.state == State::PreflightPassed;
        if granted {
            self.armed = arm;
        }
        granted
    }

    /// Whether the drone is ready for the checks again.
    pub(crate) const fn request_recovery(&mut self) -> bool {
        if self.crashed && !self.tumbled {
            self.crashed = false;
        }
        !self.crashed
    }

    /// Motors off until the drone is restarted.
    pub(crate) const fn stop(&mut self) {
        self.emergency = true;
    }

    /// Starts the emergency watchdog, or keeps it quiet for another second.
    pub(crate) const fn feed(&mut self, now_ms: u64) {
        self.fed_ms = Some(now_ms);
    }

    /// Looks at the conditions; at most one transition.
    pub(crate) fn update(&mut self, now_ms: u64, conditions: &Conditions) {
        self.tumbled = self.check_tumbled(now_ms, conditions.specific_force / GRAVITY);
        if conditions.motors_run {
            self.motors_ran_ms = Some(now_ms);
        }
        self.flying = self
            .motors_ran_ms
            .is_some_and(|ran| now_ms - ran < FLYING_HYSTERESIS_MS);
        self.emergency |= self.fed_ms.is_some_and(|fed| now_ms >= fed + WATCHDOG_MS);
        let next = self.next(now_ms, conditions.setpoint_age_ms);
        if next != self.state {
            self.enter(now_ms, next);
        }
    }

    fn check_tumbled(&mut self, now_ms: u64, force: DVec3) -> bool {
        if force.abs().max_element() < FREE_FALL || force.z >= TILTED.0 {
            self.tilted_since_ms = None;
            return false;
        }
        let lasted = now_ms - *self.tilted_since_ms.get_or_insert(now_ms);
        lasted > TILTED.1 || (force.z < UPSIDE_DOWN.0 && lasted > UPSIDE_DOWN.1)
    }

    fn next(&self, now_ms: u64, age_ms: u64) -> State {
        let entered = now_ms - self.entered_ms;
        let late = age_ms > LEVEL_OUT_MS;
        let lost = age_ms > LOCK_MS;
        match self.state {
            State::NotInitialized | State::Reset => State::PreflightNotPassed,
            State::PreflightNotPassed | State::PreflightPassed | State::ReadyToFly
                if self.emergency =>
            {
                State::FreeFall
            }
            State::PreflightNotPassed if !self.tumbled => State::PreflightPassed,
            State::PreflightPassed | State::Arming | State::ReadyToFly if self.tumbled => {
                State::PreflightNotPassed
            }
            State::PreflightPassed if self.armed => State::Arming,
            State::Arming => State::ReadyToFly,
            State::ReadyToFly if !self.armed || entered > PREFLIGHT_TIMEOUT_MS => {
                State::PreflightNotPassed
            }
            State::ReadyToFly | State::Landed if self.flying => State::Flying,
            State::Flying if lost || self.emergency => State::FreeFall,
            State::Flying if self.tumbled => State::Crashed,
            State::Flying if !self.armed => State::Reset,
            State::Flying if late => State::WarningLevelOut,
            State::Flying if !self.flying => State::Landed,
            State::Landed if !self.armed || entered > LANDING_TIMEOUT_MS => State::Reset,
            State::WarningLevelOut if lost || self.tumbled || self.emergency => State::FreeFall,
            State::WarningLevelOut if !late => State::Flying,
            State::FreeFall => State::Locked,
            State::Crashed if self.emergency => State::Locked,
            State::Crashed if !self.crashed && !self.tumbled => State::PreflightNotPassed,
            stay => stay,
        }
    }

    fn enter(&mut self, now_ms: u64, state: State) {
        self.state = state;
        self.entered_ms = now_ms;
        self.crashed |= state == State::Crashed;
        if !self.can_fly() {
            self.armed = false;
        }
        if self.auto_arm && state == State::PreflightPassed {
            self.armed = true;
        }
    }
}
