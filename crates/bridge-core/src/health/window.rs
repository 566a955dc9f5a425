//! The last exchanges, one bit each.

/// Exchanges that the success rate looks back on.
pub const WINDOW: u32 = 100;

/// Verdicts of the last [`WINDOW`] exchanges, and the streaks.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Newest in bit 0; set: answered in time.
    bits: u128,
    len: u32,
    streak: u32,
    worst: u32,
    answered: u64,
    missed: u64,
}

impl Window {
    pub(super) fn record(&mut self, in_time: bool) {
        self.bits = (self.bits << 1 | u128::from(in_time)) & ((1 << WINDOW) - 1);
        self.len = (self.len + 1).min(WINDOW);
        if in_time {
            (self.streak, self.answered) = (0, self.answered + 1);
        } else {
            (self.streak, self.missed) = (self.streak.saturating_add(1), self.missed + 1);
        }
        self.worst = self.worst.max(self.streak);
    }

    /// Forgets the exchanges; the totals and the worst streak stay.
    pub(super) fn restart(&mut self) {
        (self.bits, self.len, self.streak) = (0, 0, 0);
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// 0 to 1.
    pub(super) fn success_rate(&self) -> Option<f64> {
        (self.len > 0).then(|| f64::from(self.bits.count_ones()) / f64::from(self.len))
    }

    pub(super) fn streak(&self) -> u32 {
        self.streak
    }

    pub(super) fn worst_streak(&self) -> u32 {
        self.worst
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed
    }
}
