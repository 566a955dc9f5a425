//! Sequence numbers that wrap. They have no plain `<`: order only exists within half of the number space, so every
//! comparison names what it compares with.

/// Sequence number of a message within its stream (32 bits on the wire, wraps).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seq(u32);

impl Seq {
    /// Takes the number as it is on the wire.
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The number as it is on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number after this one.
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// The number `steps` after this one.
    pub const fn plus(self, steps: u32) -> Self {
        Self(self.0.wrapping_add(steps))
    }

    /// The number `steps` before this one.
    pub const fn minus(self, steps: u32) -> Self {
        Self(self.0.wrapping_sub(steps))
    }

    /// Steps from `earlier` to `self`; negative if `self` is the earlier one.
    pub const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// Whether this number comes after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }
}

/// Number of a datagram within its connection and direction. Counts from 0, never wraps and is never used twice;
/// the low 32 bits travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The part that travels.
    pub const fn low(self) -> u32 {
        (self.0 & 0xffff_ffff) as u32
    }

    /// The number nearest to `expected` whose low 32 bits are `low`.
    pub const fn expand(low: u32, expected: Self) -> Self {
        let step = low.wrapping_sub(expected.low()).cast_signed();
        Self(expected.0.saturating_add_signed(step as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let last = Seq::new(u32::MAX);
        assert!(last.next().is_after(last));
        assert!(!last.is_after(last.next()));
        assert_eq!(last.plus(5).since(last), 5);
        assert_eq!(last.since(last.plus(5)), -5);
        assert_eq!(Seq::new(3).minus(4), last);
    }

    proptest! {
        #[test]
        fn packet_number_survives_truncation(expected in 0u64..1 << 62, step in -1_000_000i64..1_000_000) {
            let number = PacketNumber(expected.saturating_add_signed(step));
            prop_assert_eq!(PacketNumber::expand(number.low(), PacketNumber(expected)), number);
        }
    }
}
