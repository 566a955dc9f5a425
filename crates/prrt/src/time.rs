//! Time as it travels: a 32-bit microsecond stamp that wraps every 71 minutes and a 16-bit code for durations.
//! Neither ever reads a clock.

use std::time::{Duration, Instant};

/// Longest life a message may be given; longer lives could not be told from a wrapped stamp.
pub const MAX_LIFE: Duration = Duration::from_secs(30 * 60);

/// Sender time of a datagram in microseconds, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp(pub u32);

impl Stamp {
    /// Microseconds from `earlier` to `self`; negative if `self` is the earlier one.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0).cast_signed() as i64
    }
}

/// Turns local instants into stamps: microseconds since `start` plus a first value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    start: Instant,
    first: u32,
}

impl Epoch {
    pub(crate) const fn new(start: Instant, first: u32) -> Self {
        Self { start, first }
    }

    pub(crate) fn stamp(self, now: Instant) -> Stamp {
        let micros = now.saturating_duration_since(self.start).as_micros();
        Stamp(self.first.wrapping_add((micros & 0xffff_ffff) as u32))
    }
}

/// A duration in 16 bits: `mantissa << exponent` microseconds with an 11-bit mantissa (exact below 2 ms, within
/// 0.1 % above), or "for ever".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span(u16);

const MANTISSA_BITS: u32 = 11;
const MANTISSA_MAX: u64 = (1 << MANTISSA_BITS) - 1;
const MAX_EXPONENT: u32 = 22;

impl Span {
    /// No end.
    pub const FOREVER: Self = Self(u16::MAX);
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The largest code that is not longer than `span`.
    pub fn floor(span: Duration) -> Self {
        let micros = clamp_micros(span);
        let exponent = exponent_of(micros);
        Self::pack(exponent, micros >> exponent)
    }

    /// The smallest code that is not shorter than `span` (at most about 2.3 hours).
    pub fn ceil(span: Duration) -> Self {
        let micros = clamp_micros(span);
        let exponent = exponent_of(micros);
        let mantissa = micros.div_ceil(1 << exponent);
        if mantissa > MANTISSA_MAX {
            return Self::pack(exponent + 1, mantissa.div_ceil(2));
        }
        Self::pack(exponent, mantissa)
    }

    /// [`Span::floor`] of a bounded life, [`Span::FOREVER`] of an unbounded one.
    pub fn of_life(life: Option<Duration>) -> Self {
        life.map_or(Self::FOREVER, Self::floor)
    }

    const fn pack(exponent: u32, mantissa: u64) -> Self {
        Self(((exponent << MANTISSA_BITS) as u16) | mantissa as u16)
    }

    /// The code as it travels.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Takes a code from the wire.
    pub const fn from_wire(raw: u16) -> Self {
        Self(raw)
    }

    /// The duration; `None` for "for ever".
    pub const fn duration(self) -> Option<Duration> {
        if self.0 == Self::FOREVER.0 {
            return None;
        }
        let mantissa = self.0 as u64 & MANTISSA_MAX;
        Some(Duration::from_micros(
            mantissa << (self.0 as u32 >> MANTISSA_BITS),
        ))
    }
}

fn clamp_micros(span: Duration) -> u64 {
    let max = u128::from(MANTISSA_MAX << MAX_EXPONENT);
    span.as_micros().min(max) as u64
}

const fn exponent_of(micros: u64) -> u32 {
    (u64::BITS - micros.leading_zeros()).saturating_sub(MANTISSA_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stamps_keep_their_distance_across_the_wrap() {
        let start = Instant::now();
        let epoch = Epoch::new(start, u32::MAX - 10);
        let before = epoch.stamp(start);
        let after = epoch.stamp(start + Duration::from_micros(30));
        assert_eq!(after.since(before), 30);
        assert_eq!(before.since(after), -30);
    }

    #[test]
    fn short_spans_are_exact_and_forever_is_none() {
        for micros in [0, 1, 999, 2047] {
            let span = Duration::from_micros(micros);
            assert_eq!(Span::floor(span).duration(), Some(span));
            assert_eq!(Span::ceil(span).duration(), Some(span));
        }
        assert_eq!(Span::FOREVER.duration(), None);
        assert_eq!(Span::of_life(None), Span::FOREVER);
    }

    proptest! {
        #[test]
        fn spans_bracket_the_duration(micros in 0u64..7_000_000_000) {
            let span = Duration::from_micros(micros);
            let low = Span::floor(span).duration().unwrap();
            let high = Span::ceil(span).duration().unwrap();
            prop_assert!(low <= span && span <= high);
            prop_assert!(high - low <= span / 900 + Duration::from_nanos(1));
        }

        #[test]
        fn every_code_is_a_duration(raw: u16) {
            let _ = Span::from_wire(raw).duration();
        }
    }
}
