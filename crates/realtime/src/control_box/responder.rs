//! The responder's side without its socket: a controller, the work it simulates, the disturbances it injects.
//!
//! Pure: says how long to work and wait, and never does either.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

use super::wire::{Command, State};
use crate::periodic::spin::RtLimit;
use crate::thread::policy::Policy;

/// Decides the torques.
pub trait Controller {
    /// The command for a state; its id is set by the caller.
    fn torque(&mut self, state: &State) -> super::wire::Joints;
}

impl<F: FnMut(&State) -> super::wire::Joints> Controller for F {
    fn torque(&mut self, state: &State) -> super::wire::Joints {
        self(state)
    }
}

/// Holds every joint at zero: a spring of 20 N m/rad and a damper of 8 N m s/rad.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldStill;

impl Controller for HoldStill {
    fn torque(&mut self, state: &State) -> super::wire::Joints {
        std::array::from_fn(|joint| -20.0 * state.position[joint] - 8.0 * state.velocity[joint])
    }
}

/// How the responder waits for a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// Sleeps in the receive call.
    #[default]
    Blocking,
    /// Sleeps after the socket polled the network device for some time.
    BusyPoll,
    /// Never sleeps.
    Spin,
}

impl std::str::FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "blocking" => Ok(Self::Blocking),
            "busy-poll" => Ok(Self::BusyPoll),
            "spin" => Ok(Self::Spin),
            other => Err(format!(
                "mode: {other:?} is none of blocking, busy-poll, spin"
            )),
        }
    }
}

/// What a spinning responder risks; `None` when nothing.
#[must_use]
pub fn spin_risk(policy: Policy, limit: RtLimit, online: usize) -> Option<String> {
    if !policy.is_real_time() {
        return (online < 3)
            .then(|| format!("spinning takes one of {online} cpus from everything else"));
    }
    limit.hole().map(|hole| {
        format!(
            "a real-time thread that never sleeps is held back for {} ms in each {} ms by kernel.sched_rt_runtime_us = {}, \
             which is more than 20 missed replies at 1 kHz",
            hole.as_millis(),
            limit.period_us / 1000,
            limit.runtime_us
        )
    })
}

/// Delays put in on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Each reply waits a random time between zero and this.
    pub jitter: Duration,
    /// Every so many replies one stall; 0 = none.
    pub stall_every: u64,
    /// Length of the stall.
    pub stall: Duration,
    /// Seed of the random delays.
    pub seed: u64,
}

/// Turns states into commands.
#[derive(Debug)]
pub struct Responder<C> {
    controller: C,
    disturbance: Disturbance,
    random: SmallRng,
    answered: u64,
}

impl<C: Controller> Responder<C> {
    /// A responder with its controller and the delays it puts in.
    pub fn new(controller: C, disturbance: Disturbance) -> Self {
        Self {
            controller,
            disturbance,
            random: SmallRng::seed_from_u64(disturbance.seed),
            answered: 0,
        }
    }

    /// The answer to a state, and how long to hold it back.
    pub fn handle_state(&mut self, state: &State) -> (Command, Duration) {
        self.answered += 1;
        let command = Command {
            id: state.id,
            torque: self.controller.torque(state),
        };
        (command, self.delay())
    }

    fn delay(&mut self) -> Duration {
        let Disturbance {
            jitter,
            stall_every,
            stall,
            ..
        } = self.disturbance;
        let jitter = if jitter.is_zero() {
            Duration::ZERO
        } else {
            jitter.mul_f64(self.random.random())
        };
        let stalled = stall_every > 0 && self.answered.is_multiple_of(stall_every);
        jitter + if stalled { stall } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOCK: RtLimit = RtLimit {
        runtime_us: 950_000,
        period_us: 1_000_000,
    };

    #[test]
    fn spinning_at_real_time_under_the_stock_limit_is_a_risk() {
        let risk = spin_risk(Policy::Fifo(80), STOCK, 8).unwrap();
        assert!(risk.contains("50 ms in each 1000 ms"), "{risk}");
        assert_eq!(
            spin_risk(
                Policy::Fifo(80),
                RtLimit {
                    runtime_us: -1,
                    ..STOCK
                },
                8
            ),
            None
        );
        assert_eq!(spin_risk(Policy::Other, STOCK, 8), None);
        assert!(spin_risk(Policy::Other, STOCK, 2).is_some());
    }

    #[test]
    fn delays_repeat_with_their_seed_and_stalls_come_on_time() {
        let disturbance = Disturbance {
            jitter: Duration::from_micros(100),
            stall_every: 3,
            stall: Duration::from_millis(20),
            seed: 9,
        };
        let delays = || {
            let mut responder = Responder::new(HoldStill, disturbance);
            (0..6)
                .map(|id| {
                    responder
                        .handle_state(&State {
                            id,
                            ..State::default()
                        })
                        .1
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(delays(), delays());
        let stalled: Vec<bool> = delays()
            .iter()
            .map(|delay| *delay >= disturbance.stall)
            .collect();
        assert_eq!(stalled, [false, false, true, false, false, true]);
        assert!(delays()[0] <= disturbance.jitter);
    }
}
