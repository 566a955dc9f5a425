//! What a run is to do.

use std::time::Duration;

use crate::time::MonoNs;

/// Most probes of one run, warm-up included.
pub const MAX_PROBES: u64 = 5_000_000;
/// Largest payload, bytes.
pub const MAX_BYTES: usize = 4 << 20;
/// Lowest and highest rate, Hz.
const MIN_HZ: f64 = 0.001;
const MAX_HZ: f64 = 100_000.0;
/// Longest time-out, drain, wait and settling time.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// When probes leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// The next one `gap` after the answer (or the time-out) of the last. Idle time is part of the result, so
    /// the gap belongs beside it.
    PingPong {
        /// Zero: back to back.
        gap: Duration,
    },
    /// At fixed instants, however late the answers are, so that a stall is seen by every probe it delays.
    Rate {
        /// Probes a second.
        hz: f64,
    },
}

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Identifies the run; choose it at random.
    pub run_id: u64,
    /// When probes leave.
    pub mode: Mode,
    /// Size of the payload, 0 to [`MAX_BYTES`].
    pub bytes: usize,
    /// Probes that count, 1 to [`MAX_PROBES`].
    pub count: u64,
    /// Probes before those, that do not count.
    pub warmup: u64,
    /// An answer that takes longer counts as late.
    pub timeout: Duration,
    /// How long to wait for late answers after the time-out of the last probe.
    pub drain: Duration,
    /// How long to look for the relay before giving up; zero: do not look, start at once.
    pub wait: Duration,
    /// Pause between the relay's first answer and the first probe.
    pub settle: Duration,
}

impl Default for Plan {
    /// 1000 probes back to back after 50 for warm-up, 1 s time-out, 0.5 s drain, 10 s for the relay to appear,
    /// 0.3 s to settle.
    fn default() -> Self {
        Self {
            run_id: 0,
            mode: Mode::PingPong {
                gap: Duration::ZERO,
            },
            bytes: 0,
            count: 1000,
            warmup: 50,
            timeout: Duration::from_secs(1),
            drain: Duration::from_millis(500),
            wait: Duration::from_secs(10),
            settle: Duration::from_millis(300),
        }
    }
}

/// Why a plan cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Too few or too many probes.
    #[error(
        "count {count} and warmup {warmup}: count is at least 1, both together at most {MAX_PROBES}"
    )]
    Count {
        /// As given.
        count: u64,
        /// As given.
        warmup: u64,
    },
    /// A payload that is too large.
    #[error("bytes {0}: 0 to {MAX_BYTES}")]
    Bytes(usize),
    /// A rate that is no rate.
    #[error("rate {0} Hz: {MIN_HZ} to {MAX_HZ}")]
    Rate(f64),
    /// A time that is out of range.
    #[error("{key} {value:?}: {at_least:?} to {MAX_WAIT:?}")]
    Time {
        /// Which.
        key: &'static str,
        /// As given.
        value: Duration,
        /// Least allowed.
        at_least: Duration,
    },
}

impl Plan {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), PlanError> {
        let (count, warmup) = (self.count, self.warmup);
        if count == 0 || count.saturating_add(warmup) > MAX_PROBES {
            return Err(PlanError::Count { count, warmup });
        }
        if self.bytes > MAX_BYTES {
            return Err(PlanError::Bytes(self.bytes));
        }
        self.check_times()?;
        match self.mode {
            Mode::Rate { hz } if !(MIN_HZ..=MAX_HZ).contains(&hz) => Err(PlanError::Rate(hz)),
            Mode::Rate { .. } | Mode::PingPong { .. } => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), PlanError> {
        let gap = match self.mode {
            Mode::PingPong { gap } => gap,
            Mode::Rate { .. } => Duration::ZERO,
        };
        let microsecond = Duration::from_micros(1);
        for (key, value, at_least) in [
            ("timeout", self.timeout, microsecond),
            ("drain", self.drain, Duration::ZERO),
            ("wait", self.wait, Duration::ZERO),
            ("settle", self.settle, Duration::ZERO),
            ("gap", gap, Duration::ZERO),
        ] {
            if !(at_least..=MAX_WAIT).contains(&value) {
                return Err(PlanError::Time {
                    key,
                    value,
                    at_least,
                });
            }
        }
        Ok(())
    }

    /// Probes in all.
    pub(super) const fn total(&self) -> u64 {
        self.count + self.warmup
    }

    /// When probe `sequence` of a schedule that began at `start` is due; `None` where that hangs on an answer.
    pub(super) fn due(&self, start: MonoNs, sequence: u64) -> Option<MonoNs> {
        match self.mode {
            Mode::PingPong { .. } => None,
            // Each instant is computed from the start, so that rounding does not add up.
            Mode::Rate { hz } => Some(MonoNs(
                start
                    .0
                    .saturating_add((sequence as f64 * 1e9 / hz).round() as u64),
            )),
        }
    }
}
