//! The box as a state machine: when a state is due, what a reply is worth, when it stops.
//!
//! Takes the time as an argument and does no I/O. A slot that passed more than half a period ago is skipped, so the
//! box never sends two states within less than half a period; a state it sends late is not held against the
//! responder.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::score::Score;
use super::wire::{Command, JOINTS, Joints, State, WireError};
use crate::mono::{Mono, ns};
use crate::periodic::schedule::Schedule;

/// States whose fate is remembered.
const MEMORY: usize = 128;
const STOP_REASON: &str = "communication_constraints_violation";

/// What the box does with the arm when no command came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMiss {
    /// The last torques once more, unchanged.
    #[default]
    Replay,
    /// The last change of the torques continues.
    Extrapolate,
}

/// The contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// A state each period.
    pub period: Duration,
    /// Misses in a row that stop the box.
    pub stop_after: u32,
    /// Pause after a stop before it starts again; none = it stays stopped.
    pub auto_recover: Option<Duration>,
    /// What happens to the arm on a miss.
    pub on_miss: OnMiss,
    /// A state sent later than this is not held against the responder.
    pub late_limit: Duration,
    /// Id of the first state.
    pub first_id: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(1),
            stop_after: 20,
            auto_recover: None,
            on_miss: OnMiss::Replay,
            late_limit: Duration::from_micros(200),
            first_id: 1,
        }
    }
}

/// What a reply was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The right id in time.
    Accepted,
    /// In time or not cannot be told, because the box was late itself.
    Unjudged,
    /// The right answer to a state whose time was over.
    Late,
    /// An answer to a state the box does not remember.
    Stale,
    /// Answered before.
    Duplicate,
    /// An id that was never sent, or torques that are no numbers.
    Malformed,
    /// Not 371 bytes.
    WrongSize,
}

/// Something worth a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Too many misses in a row.
    Stopped {
        /// Id of the last missed state.
        id: u64,
        /// Misses in a row.
        streak: u32,
        /// The name of the violation.
        reason: &'static str,
    },
    /// The pause after a stop is over.
    Recovered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Paused(Mono),
    Stopped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    id: u64,
    at: Mono,
    answered: bool,
    /// The box sent it late, or could not tell when the answer came.
    unjudged: bool,
}

/// The box.
#[derive(Debug)]
pub struct ControlBox {
    rules: Rules,
    schedule: Schedule,
    next_id: u64,
    open: Option<Sent>,
    memory: [Option<Sent>; MEMORY],
    phase: Phase,
    arm: Arm,
    last_accepted: u64,
    output: Option<State>,
    event: Option<Event>,
    score: Score,
}

impl ControlBox {
    /// A box whose first state is due at `start`.
    ///
    /// # Errors
    /// Only when the histograms cannot be made, which the fixed bounds exclude.
    pub fn new(rules: Rules, start: Mono) -> Result<Self, hdrhistogram::CreationError> {
        Ok(Self {
            rules,
            schedule: Schedule::new(start, rules.period),
            next_id: rules.first_id,
            open: None,
            memory: [None; MEMORY],
            phase: Phase::Running,
            arm: Arm::default(),
            last_accepted: rules.first_id.wrapping_sub(1),
            output: None,
            event: None,
            score: Score::new(rules.stop_after)?,
        })
    }

    /// When [`ControlBox::handle_timeout`] wants to be called; `None` once stopped for good.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Mono, &'static str)> {
        match self.phase {
            Phase::Running => Some((self.schedule.due(), "state due")),
            Phase::Paused(until) => Some((until, "recover from stop")),
            Phase::Stopped => None,
        }
    }

    /// The state to send now, if any; the time it is sent is that of the call that made it.
    pub fn poll_transmit(&mut self) -> Option<State> {
        self.output.take()
    }

    /// Something that happened, if any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    /// The score so far.
    #[must_use]
    pub fn score(&self) -> &Score {
        &self.score
    }

    /// The network refused the state just taken from [`ControlBox::poll_transmit`].
    pub fn note_send_error(&mut self) {
        self.score.counts.send_errors += 1;
    }

    /// Ends the run: the state in flight, if any, stays unjudged.
    #[must_use]
    pub fn finish(mut self) -> Score {
        self.score.end_streak();
        self.score
    }

    /// States sent and not yet counted as accepted, missed or excluded: 0 or 1.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        u64::from(
            self.open
                .is_some_and(|open| open.unjudged || !open.answered),
        )
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Mono) {
        match self.phase {
            Phase::Running if now >= self.schedule.due() => self.slot(now),
            Phase::Paused(until) if now >= until => self.recover(now),
            Phase::Running | Phase::Paused(_) | Phase::Stopped => {}
        }
    }

    fn slot(&mut self, now: Mono) {
        self.close(now);
        if self.phase != Phase::Running || self.skip_passed_slots(now) {
            return;
        }
        self.send(now);
    }

    /// Judges the open state, whose time is over.
    fn close(&mut self, now: Mono) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.memory[(open.id % MEMORY as u64) as usize] = Some(open);
        if open.unjudged {
            self.score.counts.excluded += 1;
            return;
        }
        if open.answered {
            return;
        }
        self.arm.without_command(self.rules.on_miss);
        let streak = self.score.miss();
        if streak >= self.rules.stop_after {
            self.stop(now, open.id, streak);
        }
    }

    fn stop(&mut self, now: Mono, id: u64, streak: u32) {
        self.score.counts.stops += 1;
        self.score.end_streak();
        self.arm.halt();
        self.event = Some(Event::Stopped {
            id,
            streak,
            reason: STOP_REASON,
        });
        self.phase = match self.rules.auto_recover {
            Some(pause) => Phase::Paused(now + pause),
            None => Phase::Stopped,
        };
    }

    fn recover(&mut self, now: Mono) {
        self.phase = Phase::Running;
        self.schedule = Schedule::new(now, self.rules.period);
        self.event = Some(Event::Recovered);
        self.slot(now);
    }

    /// When the slot passed more than half a period ago, moves on to the next one that is not past.
    fn skip_passed_slots(&mut self, now: Mono) -> bool {
        let lateness = now.ns_since(self.schedule.due());
        if lateness <= self.schedule.period_ns() / 2 {
            return false;
        }
        self.score.counts.box_overrun += 1 + self.schedule.complete(now);
        true
    }

    fn send(&mut self, now: Mono) {
        let lateness = now.ns_since(self.schedule.due());
        let late = lateness > ns(self.rules.late_limit);
        self.score.send_lateness.saturating_record(lateness);
        self.score.counts.sent += 1;
        self.score.counts.box_late_sends += u64::from(late);
        self.arm.step(self.rules.period.as_secs_f64());
        self.output = Some(self.state(now));
        self.open = Some(Sent {
            id: self.next_id,
            at: now,
            answered: false,
            unjudged: late,
        });
        self.next_id = self.next_id.wrapping_add(1);
        self.schedule.complete(now);
    }

    fn state(&self, now: Mono) -> State {
        State {
            id: self.next_id,
            time_ns: now.0,
            last_accepted: self.last_accepted,
            success_rate: self.score.success_rate(),
            position: self.arm.position,
            velocity: self.arm.velocity,
            torque: self.arm.torque,
        }
    }

    /// Takes a datagram that arrived by `now`. The caller hands over everything that arrived before it calls
    /// [`ControlBox::handle_timeout`].
    pub fn handle_reply(&mut self, now: Mono, bytes: &[u8]) -> Reply {
        let counts = &mut self.score.counts;
        match Command::decode(bytes) {
            Ok(command) => self.judge(now, &command),
            Err(WireError::Size { .. }) => {
                counts.wrong_size += 1;
                Reply::WrongSize
            }
            Err(WireError::NotFinite { .. }) => {
                counts.malformed += 1;
                Reply::Malformed
            }
        }
    }

    fn judge(&mut self, now: Mono, command: &Command) -> Reply {
        match &mut self.open {
            Some(open) if open.id == command.id && !open.answered => self.answer(now, command),
            Some(open) if open.id == command.id => {
                self.score.counts.duplicate += 1;
                Reply::Duplicate
            }
            _ => self.judge_old(command.id),
        }
    }

    fn answer(&mut self, now: Mono, command: &Command) -> Reply {
        let due = self.schedule.due();
        let Some(open) = &mut self.open else {
            return self.judge_old(command.id);
        };
        open.answered = true;
        open.unjudged |= now.ns_since(due) > ns(self.rules.late_limit);
        self.last_accepted = command.id;
        self.arm.command(&command.torque);
        if open.unjudged {
            self.score.end_streak();
            return Reply::Unjudged;
        }
        self.score
            .round_trip
            .saturating_record(now.ns_since(open.at));
        self.score.slack.saturating_record(due.ns_since(now));
        self.score.hit();
        Reply::Accepted
    }

    fn judge_old(&mut self, id: u64) -> Reply {
        let counts = &mut self.score.counts;
        let sent = self.next_id.wrapping_sub(self.rules.first_id);
        let age = self.next_id.wrapping_sub(1).wrapping_sub(id);
        if age >= sent {
            counts.malformed += 1;
            return Reply::Malformed;
        }
        match &mut self.memory[(id % MEMORY as u64) as usize] {
            Some(sent) if sent.id == id && sent.answered => {
                counts.duplicate += 1;
                Reply::Duplicate
            }
            Some(sent) if sent.id == id => {
                sent.answered = true;
                counts.late += 1;
                Reply::Late
            }
            _ => {
                counts.stale += 1;
                Reply::Stale
            }
        }
    }
}

/// Seven joints of unit inertia, so that commands have a visible consequence.
#[derive(Clone, Copy, Debug)]
struct Arm {
    position: Joints,
    velocity: Joints,
    torque: Joints,
    change: Joints,
}

impl Default for Arm {
    fn default() -> Self {
        Self {
            position: std::array::from_fn(|joint| 0.1 * (joint + 1) as f64),
            velocity: [0.0; JOINTS],
            torque: [0.0; JOINTS],
            change: [0.0; JOINTS],
        }
    }
}

impl Arm {
    fn step(&mut self, dt: f64) {
        for joint in 0..JOINTS {
            self.velocity[joint] += self.torque[joint] * dt;
            self.position[joint] += self.velocity[joint] * dt;
        }
    }

    fn command(&mut self, torque: &Joints) {
        self.change = std::array::from_fn(|joint| torque[joint] - self.torque[joint]);
        self.torque = *torque;
    }

    fn without_command(&mut self, on_miss: OnMiss) {
        if on_miss == OnMiss::Extrapolate {
            self.torque = std::array::from_fn(|joint| self.torque[joint] + self.change[joint]);
        }
    }

    fn halt(&mut self) {
        (self.velocity, self.torque, self.change) = ([0.0; JOINTS], [0.0; JOINTS], [0.0; JOINTS]);
    }
}
