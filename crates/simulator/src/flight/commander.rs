//! Who is in command: the setpoint that counts, its age and priority, and the thrust lock of a fresh drone. What
//! the high-level commander wants comes from the planner.

use crtp::Status;
use crtp::commander::Rpyt;
use crtp::high_level::Command;

use super::body::Body;
use super::planner::Planner;
use super::setpoint::Setpoint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    /// Nobody has commanded yet.
    Disabled,
    HighLevel,
    Client,
}

/// What became of a roll-pitch-yaw-thrust setpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thrust {
    /// It counts as it is.
    Free,
    /// It was the first without thrust: from now on thrust counts.
    Unlocked,
    /// Its thrust was ignored.
    Ignored,
}

/// The commander.
#[derive(Clone, Debug)]
pub(crate) struct Commander {
    setpoint: Setpoint,
    updated_ms: u64,
    priority: Priority,
    thrust_locked: bool,
    pub(crate) planner: Planner,
}

impl Commander {
    pub(crate) fn new() -> Self {
        Self {
            setpoint: Setpoint::NULL,
            updated_ms: 0,
            priority: Priority::Disabled,
            thrust_locked: true,
            planner: Planner::default(),
        }
    }

    pub(crate) const fn setpoint(&self) -> &Setpoint {
        &self.setpoint
    }

    /// ms since the last setpoint of whoever is in command.
    pub(crate) const fn age_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.updated_ms)
    }

    /// A client's setpoint: it stops the high-level commander.
    pub(crate) fn set(&mut self, now_ms: u64, setpoint: Setpoint) {
        self.setpoint = setpoint;
        self.updated_ms = now_ms;
        self.priority = Priority::Client;
        self.planner.stop();
    }

    /// A client's roll-pitch-yaw-thrust setpoint. Thrust is locked until one without thrust has come.
    pub(crate) fn set_rpyt(&mut self, now_ms: u64, rpyt: &Rpyt) -> Thrust {
        if self.priority == Priority::Disabled {
            self.thrust_locked = true;
        }
        let outcome = match (self.thrust_locked, rpyt.thrust) {
            (true, 0) => Thrust::Unlocked,
            (true, _) => Thrust::Ignored,
            (false, _) => Thrust::Free,
        };
        self.thrust_locked = outcome == Thrust::Ignored;
        self.set(now_ms, Setpoint::from_rpyt(rpyt, self.thrust_locked));
        outcome
    }

    /// The client's setpoints end; the high-level commander may take over from where the drone is.
    pub(crate) fn notify_setpoints_stop(&mut self, body: &Body) {
        self.planner.track(body);
        self.priority = Priority::HighLevel;
    }

    pub(crate) fn high_level(&mut self, now_ms: u64, command: &Command, memory: &[u8]) -> Status {
        self.planner.handle(now_ms, command, memory)
    }

    /// Asks the high-level commander, which counts unless a client is in command.
    pub(crate) fn step(&mut self, now_ms: u64, body: &Body) {
        let setpoint = self.planner.setpoint(now_ms, body);
        if self.priority > Priority::HighLevel {
            return;
        }
        self.setpoint = setpoint;
        self.updated_ms = now_ms;
        if self.planner.is_active() {
            self.priority = Priority::HighLevel;
        }
    }
}
