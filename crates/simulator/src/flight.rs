//! The flying half of the drone: body, sensors, battery, commander and supervisor, stepped together in fixed steps
//! of 2 ms. It knows setpoints and commands, no packets' bytes and no sockets.

pub(crate) mod body;
mod commander;
mod control;
mod curve;
mod planner;
pub(crate) mod sensors;
pub(crate) mod setpoint;
mod supervisor;
mod trajectory;

use crtp::Status;
use crtp::commander::Rpyt;
use crtp::high_level;
use crtp::supervisor::Info;

use body::{Body, Command};
use commander::Commander;
pub(crate) use commander::Thrust;
use sensors::{Battery, Sensors};
use setpoint::Setpoint;
use supervisor::Conditions;
pub(crate) use supervisor::Supervisor;
pub use supervisor::{LEVEL_OUT_MS, LOCK_MS, State};

use crate::Config;
use crate::record::FlightRecord;

/// One step, ms.
pub(crate) const STEP_MS: u64 = 2;
/// The high-level commander's period, ms.
const PLANNER_MS: u64 = 10;

/// The state of the flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) now_ms: u64,
    pub(crate) body: Body,
    pub(crate) command: Command,
    pub(crate) sensors: Sensors,
    pub(crate) battery: Battery,
    pub(crate) commander: Commander,
    pub(crate) supervisor: Supervisor,
    pub(crate) record: FlightRecord,
    /// CRTP packets received, as the radio's counter shows them.
    pub(crate) packets: u64,
}

/// Yaw rate the controller asks for, rad/s, counter-clockwise.
pub(crate) fn yaw_rate_wanted(flight: &Flight) -> f64 {
    control::yaw_rate(flight.setpoint().yaw, &flight.body)
}

impl Flight {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            now_ms: 0,
            body: Body::at(config.position(), config.heading),
            command: Command::OFF,
            sensors: Sensors::new(config.seed, config.noise),
            battery: Battery::new(config.charge),
            commander: Commander::new(),
            supervisor: Supervisor::new(config.auto_arm),
            record: FlightRecord::default(),
            packets: 0,
        }
    }

    /// Steps up to `now_ms`.
    pub(crate) fn advance(&mut self, now_ms: u64) {
        while self.now_ms + STEP_MS <= now_ms {
            self.now_ms += STEP_MS;
            self.step();
        }
    }

    fn step(&mut self) {
        if self.now_ms.is_multiple_of(PLANNER_MS) {
            self.commander
                .planner
                .set_blocked(!self.supervisor.can_fly());
            self.commander.step(self.now_ms, &self.body);
        }
        self.supervise();
        self.command = control::control(&self.effective_setpoint(), &self.body);
        let dt = STEP_MS as f64 / 1000.0;
        if let Some(impact) = self.body.step(&self.command, dt) {
            self.record.touchdown(impact);
        }
        self.sensors.measure(&self.body);
        self.battery.step(self.body.thrust, dt);
        self.record.follow(STEP_MS, &self.body);
    }

    fn supervise(&mut self) {
        let before = self.supervisor.state();
        let age = self.commander.age_ms(self.now_ms);
        self.supervisor.update(
            self.now_ms,
            &Conditions {
                motors_run: self.command.thrust > 0.0,
                specific_force: self.sensors.acc * body::GRAVITY,
                setpoint_age_ms: age,
            },
        );
        let after = self.supervisor.state();
        if after != before {
            self.record
                .transition(self.now_ms, (before, after), age, self.body.position.z);
        }
    }

    /// The setpoint after the supervisor's word.
    fn effective_setpoint(&self) -> Setpoint {
        let setpoint = *self.commander.setpoint();
        match self.supervisor.state() {
            State::Arming | State::ReadyToFly | State::Flying | State::Landed => setpoint,
            State::WarningLevelOut => setpoint.leveled(),
            _ => Setpoint::NULL,
        }
    }

    /// The setpoint that counts, before the supervisor's word.
    pub(crate) const fn setpoint(&self) -> &Setpoint {
        self.commander.setpoint()
    }

    /// All information bits.
    pub(crate) fn info(&self) -> Info {
        let planner = &self.commander.planner;
        [
            (planner.is_active(), Info::HIGH_LEVEL_ACTIVE),
            (planner.is_finished(self.now_ms), Info::TRAJECTORY_FINISHED),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .fold(self.supervisor.info(), |bits, (_, bit)| bits.with(bit))
    }

    /// Whether anything moves, so that the flight should be looked at often.
    pub(crate) fn is_active(&self) -> bool {
        self.command.thrust > 0.0 || !self.body.on_ground()
    }

    pub(crate) fn set(&mut self, setpoint: &crtp::setpoint::Setpoint) {
        self.commander
            .set(self.now_ms, Setpoint::from_generic(setpoint));
    }

    /// A setpoint of a type the firmware does not know: motors off, with a client's priority.
    pub(crate) fn set_null(&mut self) {
        self.commander.set(self.now_ms, Setpoint::NULL);
    }

    pub(crate) fn set_rpyt(&mut self, rpyt: &Rpyt) -> Thrust {
        self.commander.set_rpyt(self.now_ms, rpyt)
    }

    pub(crate) fn notify_setpoints_stop(&mut self) {
        self.commander.notify_setpoints_stop(&self.body);
    }

    pub(crate) fn high_level(&mut self, command: &high_level::Command, memory: &[u8]) -> Status {
        self.commander
            .planner
            .set_blocked(!self.supervisor.can_fly());
        self.commander.high_level(self.now_ms, command, memory)
    }
}
