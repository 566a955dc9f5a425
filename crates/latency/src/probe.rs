//! The prober: decides when each probe leaves and what each echo means.
//!
//! It sends nothing and reads no clock. Call [`Prober::poll_send`] until it says `None`, wait for an echo or for
//! [`Prober::poll_timeout`], hand in what happened, and repeat until [`Prober::phase`] has ended.

mod plan;
mod slots;
mod tally;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use plan::{MAX_BYTES, MAX_PROBES, Mode, Plan, PlanError};
pub use tally::{Counts, Measurement};

use crate::time::MonoNs;
use slots::{Slots, State};
use tally::Tally;

/// Sequence numbers from here on belong to the probes that look for the relay before the run.
pub const HELLO: u64 = 1 << 63;
/// First gap between two of them; it doubles up to [`HELLO_GAP_MAX`].
const HELLO_GAP: Duration = Duration::from_millis(100);
const HELLO_GAP_MAX: Duration = Duration::from_secs(1);

/// A probe that is to leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Identifies the run.
    pub run_id: u64,
    /// Counts from 0 within the run; from [`HELLO`] while looking for the relay.
    pub sequence: u64,
    /// When the schedule wanted it to leave.
    pub intended: MonoNs,
    /// When it leaves.
    pub sent: MonoNs,
    /// Size of the payload, bytes; 0 while looking for the relay.
    pub bytes: usize,
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Of the probe.
    pub run_id: u64,
    /// Of the probe.
    pub sequence: u64,
    /// When the relay received the probe and when it sent the echo, on the relay's own clock; `None` where the
    /// far end stamps nothing (the Crazyflie's link service).
    pub relay: Option<(MonoNs, MonoNs)>,
    /// Size of the payload that came back, bytes.
    pub bytes: usize,
}

/// What an echo turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Of another run, or of a probe that was never sent.
    Foreign,
    /// Of a probe that looked for the relay.
    Hello,
    /// The answer of a warm-up probe.
    Warmup,
    /// The answer, in time. The round trip in ns, from the intended send time in rate mode.
    Received(u64),
    /// The answer, after its time-out.
    Late,
    /// A further copy of an answer.
    Duplicate,
    /// The payload came back with another size.
    Damaged,
}

/// Where the run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking for the relay.
    Waiting,
    /// The relay answered; late copies of the first probes may still be under way.
    Settling,
    /// Probes leave.
    Measuring,
    /// All left; the last answers come in.
    Draining,
    /// Ended.
    Done,
    /// The relay did not answer within [`Plan::wait`].
    NoPeer,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Waiting {
        until: MonoNs,
        next: MonoNs,
        gap: Duration,
    },
    Settling {
        until: MonoNs,
    },
    /// `next` is when the next probe is due; `None` while ping-pong waits for an answer.
    Measuring {
        next: Option<MonoNs>,
    },
    Draining {
        until: MonoNs,
    },
    Done,
    NoPeer,
}

/// One run. See the module's description for how to drive it.
#[derive(Debug)]
pub struct Prober {
    plan: Plan,
    step: Step,
    hellos: u64,
    started: MonoNs,
    slots: Slots,
    tally: Tally,
}

impl Prober {
    /// Starts at `now`.
    ///
    /// # Errors
    /// The first value of the plan that is out of range.
    pub fn new(plan: Plan, now: MonoNs) -> Result<Self, PlanError> {
        plan.check()?;
        let step = if plan.wait.is_zero() {
            Step::Measuring { next: Some(now) }
        } else {
            Step::Waiting {
                until: now + plan.wait,
                next: now,
                gap: HELLO_GAP,
            }
        };
        Ok(Self {
            plan,
            step,
            hellos: 0,
            started: now,
            slots: Slots::with_capacity(plan.total()),
            tally: Tally::new(plan.warmup),
        })
    }

    /// The plan it follows.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where the run stands.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self.step {
            Step::Waiting { .. } => Phase::Waiting,
            Step::Settling { .. } => Phase::Settling,
            Step::Measuring { .. } => Phase::Measuring,
            Step::Draining { .. } => Phase::Draining,
            Step::Done => Phase::Done,
            Step::NoPeer => Phase::NoPeer,
        }
    }

    /// Whether the run is over, one way or the other.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        matches!(self.step, Step::Done | Step::NoPeer)
    }

    /// Probes sent and planned, warm-up included: for a progress bar.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.slots.len(), self.plan.total())
    }

    /// The probe that is to leave at `now`, if one is due. Call it right before sending and until it says
    /// `None`: a schedule that fell behind is caught up, each probe with its own intended time.
    pub fn poll_send(&mut self, now: MonoNs) -> Option<Probe> {
        match self.step {
            Step::Waiting { until, next, gap } if now >= next && now < until => {
                let gap_after = (gap * 2).min(HELLO_GAP_MAX);
                self.step = Step::Waiting {
                    until,
                    next: now + gap,
                    gap: gap_after,
                };
                Some(self.hello(now))
            }
            Step::Measuring { next: Some(due) } if now >= due => Some(self.send(due, now)),
            _ => None,
        }
    }

    /// The medium did not take the probe that [`Self::poll_send`] just gave out: it counts as unsent, not as lost.
    pub fn handle_unsent(&mut self, now: MonoNs, sequence: u64) {
        if sequence >= HELLO || !self.slots.forget(sequence) {
            return;
        }
        self.tally.unsent(sequence);
        self.after_resolution(now);
    }

    /// An echo came in at `now`.
    pub fn handle_echo(&mut self, now: MonoNs, echo: &Echo) -> Verdict {
        let verdict = self.judge(now, echo);
        self.tally.count(echo.sequence, verdict);
        match verdict {
            Verdict::Hello => self.relay_is_there(now),
            Verdict::Received(_) | Verdict::Warmup | Verdict::Damaged | Verdict::Late => {
                self.after_resolution(now);
            }
            Verdict::Foreign | Verdict::Duplicate => {}
        }
        verdict
    }

    /// An echo whose payload is not the one that was sent came in at `now`; it counts as one of another size.
    pub fn handle_damaged(&mut self, now: MonoNs, echo: &Echo) -> Verdict {
        self.handle_echo(
            now,
            &Echo {
                bytes: usize::MAX,
                ..*echo
            },
        )
    }

    /// The instant of [`Self::poll_timeout`] has come (it may be called at any other time as well).
    pub fn handle_timeout(&mut self, now: MonoNs) {
        match self.step {
            Step::Waiting { until, .. } if now >= until => self.step = Step::NoPeer,
            Step::Settling { until } if now >= until => {
                self.started = now;
                self.step = Step::Measuring { next: Some(now) };
            }
            Step::Draining { until } if now >= until => self.step = Step::Done,
            Step::Measuring { next: None } => {
                self.slots.time_out(now, self.plan.timeout);
                self.after_resolution(now);
            }
            _ => {}
        }
    }

    /// When [`Self::handle_timeout`] or [`Self::poll_send`] is due next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(MonoNs, &'static str)> {
        match self.step {
            Step::Waiting { until, next, .. } if next < until => Some((next, "look for the relay")),
            Step::Waiting { until, .. } => Some((until, "give up on the relay")),
            Step::Settling { until } => Some((until, "settled")),
            Step::Measuring { next: Some(due) } => Some((due, "next probe")),
            Step::Measuring { next: None } => {
                let sent = self.slots.last_sent()?;
                Some((sent + self.plan.timeout, "answer is late"))
            }
            Step::Draining { until } => Some((until, "stop waiting for answers")),
            Step::Done | Step::NoPeer => None,
        }
    }

    /// Ends the run, early or not, with what was measured. Probes that could still be answered in time when an
    /// early end cuts them off count as unsent.
    #[must_use]
    pub fn finish(mut self, now: MonoNs) -> Measurement {
        let partial = !matches!(self.step, Step::Done);
        if partial {
            for sequence in self.slots.open_after(now, self.plan.timeout) {
                self.tally.unsent(sequence);
            }
        }
        self.tally
            .finish(&self.plan, now.since(self.started), partial)
    }

    fn hello(&mut self, now: MonoNs) -> Probe {
        self.hellos += 1;
        Probe {
            run_id: self.plan.run_id,
            sequence: HELLO + self.hellos - 1,
            intended: now,
            sent: now,
            bytes: 0,
        }
    }

    fn send(&mut self, intended: MonoNs, now: MonoNs) -> Probe {
        let sequence = self.slots.push(intended, now);
        self.tally.sent(sequence, now.since(intended));
        self.step = if sequence + 1 == self.plan.total() {
            Step::Draining {
                until: now + self.plan.timeout + self.plan.drain,
            }
        } else {
            Step::Measuring {
                next: self.plan.due(self.started, sequence + 1),
            }
        };
        Probe {
            run_id: self.plan.run_id,
            sequence,
            intended,
            sent: now,
            bytes: self.plan.bytes,
        }
    }

    fn judge(&mut self, now: MonoNs, echo: &Echo) -> Verdict {
        if echo.run_id != self.plan.run_id {
            return Verdict::Foreign;
        }
        if echo.sequence >= HELLO {
            return if echo.sequence - HELLO < self.hellos {
                Verdict::Hello
            } else {
                Verdict::Foreign
            };
        }
        let Some(slot) = self.slots.get(echo.sequence) else {
            return Verdict::Foreign;
        };
        match slot.state {
            State::Answered => Verdict::Duplicate,
            State::Unsent => Verdict::Foreign,
            State::Open | State::TimedOut => self.answer(now, echo),
        }
    }

    fn answer(&mut self, now: MonoNs, echo: &Echo) -> Verdict {
        let Some(slot) = self.slots.answered(echo.sequence) else {
            return Verdict::Foreign;
        };
        if echo.bytes != self.plan.bytes {
            return Verdict::Damaged;
        }
        if echo.sequence < self.plan.warmup {
            return Verdict::Warmup;
        }
        let from_send = now.since(slot.sent);
        if from_send > crate::time::duration_ns(self.plan.timeout) {
            return Verdict::Late;
        }
        let rtt = match self.plan.mode {
            Mode::PingPong { .. } => from_send,
            Mode::Rate { .. } => now.since(slot.intended),
        };
        self.tally.sample(rtt, from_send, echo.relay);
        Verdict::Received(rtt)
    }

    fn relay_is_there(&mut self, now: MonoNs) {
        if let Step::Waiting { .. } = self.step {
            self.step = Step::Settling {
                until: now + self.plan.settle,
            };
        }
    }

    /// The next ping-pong probe may leave once the last one is answered or given up; a run ends early once
    /// nothing is left to wait for.
    fn after_resolution(&mut self, now: MonoNs) {
        match (self.step, self.plan.mode) {
            (Step::Measuring { next: None }, Mode::PingPong { gap })
                if !self.slots.last_is_open() =>
            {
                self.step = Step::Measuring {
                    next: Some(now + gap),
                };
            }
            (Step::Draining { .. }, _) if self.slots.all_resolved() => self.step = Step::Done,
            _ => {}
        }
    }
}
