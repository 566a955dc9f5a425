//! Monotonic time as the plain nanosecond number that an absolute sleep needs, and the clock behind it.
//!
//! Cores take [`Mono`] as an argument and never read a clock; only [`SystemClock`] does.

use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

const NS_PER_S: u64 = 1_000_000_000;

/// A point on `CLOCK_MONOTONIC`, nanoseconds. [`std::time::Instant`] hides the number, and the kernel's absolute
/// sleep takes nothing else.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Mono(pub u64);

impl Mono {
    /// Nanoseconds from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn ns_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(ns(by)))
    }
}

impl Sub for Mono {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.ns_since(earlier))
    }
}

/// A duration in nanoseconds, saturating at `u64::MAX` (584 years).
#[must_use]
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Where a loop gets its time from: the machine, or a test.
pub trait Clock {
    /// Now.
    fn now(&self) -> Mono;
    /// CPU time the calling thread has used, nanoseconds.
    fn thread_cpu_ns(&self) -> u64;
    /// Returns at `at` or later; at once when `at` is past.
    fn sleep_until(&mut self, at: Mono);
}

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Mono {
        Mono(to_ns(clock_gettime(ClockId::Monotonic)))
    }

    fn thread_cpu_ns(&self) -> u64 {
        to_ns(clock_gettime(ClockId::ThreadCPUTime))
    }

    fn sleep_until(&mut self, at: Mono) {
        let request = Timespec {
            tv_sec: (at.0 / NS_PER_S) as i64,
            tv_nsec: (at.0 % NS_PER_S) as i64,
        };
        while clock_nanosleep_absolute(SleepClock::Monotonic, &request) == Err(Errno::INTR) {}
    }
}

fn to_ns(time: Timespec) -> u64 {
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}
