//! So many at once and so many a second: bounds what strangers can make an endpoint do. Reads no clock.

use std::time::Instant;

/// A bucket that fills with time.
#[derive(Debug)]
pub(super) struct Allowance {
    per_second: f64,
    level: f64,
    filled: Option<Instant>,
}

impl Allowance {
    /// Full, with room for one second's worth.
    pub(super) const fn new(per_second: f64) -> Self {
        Self {
            per_second,
            level: per_second,
            filled: None,
        }
    }

    /// Takes one; `false` if there have been too many lately.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let filled = self.filled.replace(now).unwrap_or(now);
        let elapsed = now.saturating_duration_since(filled).as_secs_f64();
        self.level = (self.level + elapsed * self.per_second).min(self.per_second);
        if self.level < 1.0 {
            return false;
        }
        self.level -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_is_worth_its_rate_and_no_more() {
        let start = Instant::now();
        let mut allowance = Allowance::new(10.0);
        let taken = |allowance: &mut Allowance, at| (0..100).filter(|_| allowance.take(at)).count();
        assert_eq!(taken(&mut allowance, start), 10);
        assert_eq!(taken(&mut allowance, start + Duration::from_millis(350)), 3);
        assert_eq!(taken(&mut allowance, start + Duration::from_secs(60)), 10);
    }
}
