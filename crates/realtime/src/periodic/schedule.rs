//! When the next cycle is due. Ticks are multiples of the period from the start and never move with "now";
//! a tick that passes while a cycle still runs is skipped and counted, never replayed.

use std::time::Duration;

use crate::mono::{Mono, ns};

/// What sets the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Our own clock: sleep until the tick.
    OwnClock,
    /// Someone else's clock: a cycle starts when an input arrives, and we never sleep.
    Input,
}

/// The ticks of one loop.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: Mono,
    period_ns: u64,
    due: Mono,
    pace: Pace,
    cycles: u64,
    skipped: u64,
}

impl Schedule {
    /// A schedule on its own clock with its first tick at `start`. A period of zero counts as one nanosecond.
    #[must_use]
    pub fn new(start: Mono, period: Duration) -> Self {
        Self {
            start,
            period_ns: ns(period).max(1),
            due: start,
            pace: Pace::OwnClock,
            cycles: 0,
            skipped: 0,
        }
    }

    /// A schedule paced by inputs that are expected once a period.
    #[must_use]
    pub fn following(start: Mono, period: Duration) -> Self {
        Self {
            pace: Pace::Input,
            ..Self::new(start, period)
        }
    }

    /// What sets the pace.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The tick of the cycle that runs or is waited for.
    #[must_use]
    pub fn due(&self) -> Mono {
        self.due
    }

    /// The period, nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Completed cycles.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Skipped ticks.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Ends the cycle at `now` and moves on to the first tick that is not past; returns how many ticks that skips.
    /// A tick due exactly now is not past.
    pub fn complete(&mut self, now: Mono) -> u64 {
        self.cycles += 1;
        let next = self.due.0 + self.period_ns;
        let skipped = now.0.saturating_sub(next).div_ceil(self.period_ns);
        self.due = Mono(next + skipped * self.period_ns);
        self.skipped += skipped;
        skipped
    }

    /// An input arrived: the cycle is due now. Returns how many whole periods brought no input since the last one.
    pub fn arrived(&mut self, now: Mono) -> u64 {
        let periods = now.ns_since(self.due) / self.period_ns;
        let skipped = if self.cycles == 0 {
            0
        } else {
            periods.saturating_sub(1)
        };
        self.due = now;
        self.cycles += 1;
        self.skipped += skipped;
        skipped
    }

    /// How far the tick is from where `cycles + skipped` periods after the start lie, nanoseconds. Zero on an own
    /// clock, whatever the cycles did; a timer that is based anew on "now" accumulates every lateness here.
    #[must_use]
    pub fn drift_ns(&self) -> i64 {
        let expected = self.start.0 + (self.cycles + self.skipped) * self.period_ns;
        self.due
            .0
            .cast_signed()
            .wrapping_sub(expected.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(4);
    const P: u64 = 4_000_000;

    fn overrun(end: u64) -> (u64, u64) {
        let mut schedule = Schedule::new(Mono(0), PERIOD);
        let skipped = schedule.complete(Mono(end));
        (skipped, schedule.due().0)
    }

    #[test]
    fn a_cycle_in_time_skips_nothing() {
        assert_eq!(overrun(P / 2), (0, P));
        assert_eq!(overrun(P), (0, P));
    }

    #[test]
    fn overruns_of_half_one_and_two_and_a_half_periods_skip_whole_ticks() {
        assert_eq!(overrun(P + P / 2), (1, 2 * P));
        assert_eq!(overrun(2 * P), (1, 2 * P));
        assert_eq!(overrun(3 * P + P / 2), (3, 4 * P));
    }

    #[test]
    fn an_input_that_stays_away_is_counted_and_sets_the_new_pace() {
        let mut schedule = Schedule::following(Mono(0), PERIOD);
        let arrivals = [100, P + 300, 2 * P + 100, 5 * P + 200, 6 * P + 200];
        let skipped: Vec<_> = arrivals
            .iter()
            .map(|at| schedule.arrived(Mono(*at)))
            .collect();
        assert_eq!(skipped, [0, 0, 0, 2, 0]);
        assert_eq!((schedule.pace(), schedule.skipped()), (Pace::Input, 2));
    }
}
