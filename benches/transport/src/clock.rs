//! One monotonic clock for both ends, which are processes of one machine.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of a clock of the system.
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds of processor time that this process has used in all its threads.
pub(crate) fn cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// The instant at which the monotonic clock shows `ns`; now if that is past.
pub(crate) fn instant(ns: u64) -> Instant {
    Instant::now() + Duration::from_nanos(ns.saturating_sub(now_ns()))
}
