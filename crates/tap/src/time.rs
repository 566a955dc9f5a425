//! Monotonic time as a plain nanosecond number that fits into a message or a file.
//!
//! [`MonoNs`] is an argument everywhere; only [`MonoNs::now`] and [`Anchor::now`] read a clock, for the programs
//! that drive the cores.

use std::ops::{Add, AddAssign};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A point on `CLOCK_MONOTONIC`, nanoseconds. [`Instant`] hides the number, and messages and files need it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MonoNs(pub u64);

impl MonoNs {
    /// The machine's monotonic clock.
    #[must_use]
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        Self(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }

    /// Nanoseconds from `earlier` to `self`; 0 when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// How long to wait at `now` for `self` to come; zero when it is past.
    #[must_use]
    pub const fn after(self, now: Self) -> Duration {
        Duration::from_nanos(self.since(now))
    }
}

impl Add<Duration> for MonoNs {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(duration_ns(by)))
    }
}

impl AddAssign<Duration> for MonoNs {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

/// A duration in nanoseconds, saturating at `u64::MAX` (584 years).
#[must_use]
pub fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Readings of which the closest is kept.
const TRIES: usize = 16;

/// One moment on both clocks, so that an [`Instant`] can be written as [`MonoNs`]. Both read the same kernel
/// clock on Linux, so the pair is good for the whole run.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    instant: Instant,
    mono: MonoNs,
}

impl Anchor {
    /// The process' one anchor: stamps made through two of them would be off by what lies between the two readings,
    /// and a packet could seem to leave before it came.
    #[must_use]
    pub fn now() -> Self {
        static ANCHOR: OnceLock<Anchor> = OnceLock::new();
        *ANCHOR.get_or_init(Self::measure)
    }

    /// Reads one clock between two readings of the other, and keeps the closest of a few tries: whoever is preempted
    /// between the readings would be off by that for the whole run.
    fn measure() -> Self {
        let mut best = Self::bracket();
        for _ in 1..TRIES {
            let next = Self::bracket();
            if next.1 < best.1 {
                best = next;
            }
        }
        best.0
    }

    /// An anchor, and how far apart the readings around it were.
    fn bracket() -> (Self, Duration) {
        let before = Instant::now();
        let mono = MonoNs::now();
        let gap = before.elapsed();
        let anchor = Self {
            instant: before + gap / 2,
            mono,
        };
        (anchor, gap)
    }

    /// The same moment as a number.
    #[must_use]
    pub fn mono(&self, at: Instant) -> MonoNs {
        let after = duration_ns(at.saturating_duration_since(self.instant));
        let before = duration_ns(self.instant.saturating_duration_since(at));
        MonoNs(self.mono.0.saturating_add(after).saturating_sub(before))
    }

    /// The same moment as an [`Instant`].
    #[must_use]
    pub fn instant(&self, at: MonoNs) -> Instant {
        let forward = self.instant + Duration::from_nanos(at.since(self.mono));
        let back = Duration::from_nanos(self.mono.since(at));
        forward.checked_sub(back).unwrap_or(self.instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_converts_both_ways() {
        let anchor = Anchor::now();
        for offset in [0, 1, 1_000_000_000] {
            let later = anchor.instant + Duration::from_nanos(offset);
            assert_eq!(anchor.mono(later).0, anchor.mono.0 + offset);
            assert_eq!(anchor.instant(anchor.mono(later)), later);
        }
        let earlier = anchor.instant - Duration::from_millis(5);
        assert_eq!(anchor.mono(earlier).0, anchor.mono.0 - 5_000_000);
        assert_eq!(anchor.instant(anchor.mono(earlier)), earlier);
    }

    #[test]
    fn stamps_through_two_anchors_keep_their_order() {
        let (at, first) = (Instant::now(), Anchor::now());
        let others = (0..1000).map(|_| Anchor::now().mono(at));
        assert!(others.into_iter().all(|stamp| stamp == first.mono(at)));
    }

    #[test]
    fn time_never_goes_below_zero() {
        assert_eq!(MonoNs(5).since(MonoNs(9)), 0);
        assert_eq!(MonoNs(5).after(MonoNs(9)), Duration::ZERO);
        assert_eq!(MonoNs(u64::MAX) + Duration::from_secs(1), MonoNs(u64::MAX));
    }
}
