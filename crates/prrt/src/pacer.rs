//! Spaces departures so that no queue builds behind us. Every datagram is charged; only those that may wait are held
//! back. Never sleeps: it names the instant at which the next may leave.

use std::time::{Duration, Instant};

/// Departures may catch up by this much after the loop woke up late.
const BURST: Duration = Duration::from_millis(1);
/// Datagrams that need not wait may run ahead of the pace by this much; later ones then wait longer.
const DEBT_MAX: Duration = Duration::from_millis(50);

/// Departure clock of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    next: Option<Instant>,
}

impl Pacer {
    /// Whether the next datagram may leave.
    pub(crate) fn ready(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    /// When the next datagram may leave, if that is in the future.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        self.next.filter(|&next| next > now)
    }

    /// Accounts for a departure of `bytes` at `rate` bytes per second.
    pub(crate) fn charge(&mut self, now: Instant, bytes: usize, rate: f64) {
        let cost = Duration::from_secs_f64((bytes as f64 / rate.max(1.0)).min(1.0));
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let base = self.next.map_or(earliest, |next| next.max(earliest));
        self.next = Some((base + cost).min(now + DEBT_MAX.max(cost)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_rate_is_the_pace() {
        let start = Instant::now();
        let mut pacer = Pacer::default();
        let mut now = start;
        let mut sent = 0;
        while now < start + Duration::from_secs(1) {
            while pacer.ready(now) {
                pacer.charge(now, 1000, 250_000.0);
                sent += 1;
            }
            now = pacer.next(now).unwrap();
        }
        assert!((250..=251).contains(&sent), "{sent} datagrams");
    }

    #[test]
    fn a_late_wake_up_catches_up_by_one_millisecond_only() {
        let start = Instant::now();
        let mut pacer = Pacer::default();
        pacer.charge(start, 100, 1e6);
        let late = start + Duration::from_secs(5);
        let mut sent = 0;
        while pacer.ready(late) {
            pacer.charge(late, 100, 1e6);
            sent += 1;
        }
        assert_eq!(sent, 11);
    }
}
