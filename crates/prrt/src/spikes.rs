//! Notices the mark of a sleeping Wi-Fi radio: after a pause in traffic a datagram takes 60 to 600 ms longer than usual,
//! again and again. Only raises the suspicion; what to do about it (a shorter keep-alive, power save off) is for people.

use std::time::{Duration, Instant};

/// Beacons come every 102 ms and radios may sleep through several.
const LEAST: Duration = Duration::from_millis(60);
const MOST: Duration = Duration::from_millis(600);
/// So many within [`MEMORY`] are no accident.
const MANY: u32 = 3;
const MEMORY: Duration = Duration::from_secs(30);
/// The suspicion is raised again only after this long.
const SILENCE: Duration = Duration::from_secs(60);
/// Traffic has paused if nothing was sent for this long.
pub(crate) const PAUSE: Duration = Duration::from_millis(40);

/// Detector of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spikes {
    total: u64,
    recent: u32,
    first: Option<Instant>,
    raised: Option<Instant>,
}

impl Spikes {
    /// Takes how much longer than the shortest one a round trip after a pause was; returns whether to raise the suspicion.
    pub(crate) fn observe(&mut self, now: Instant, excess: Duration) -> bool {
        if !(LEAST..=MOST).contains(&excess) {
            return false;
        }
        self.total += 1;
        let first = *self.first.get_or_insert(now);
        if now.saturating_duration_since(first) > MEMORY {
            self.first = Some(now);
            self.recent = 0;
        }
        self.recent += 1;
        let quiet = self
            .raised
            .is_none_or(|at| now.saturating_duration_since(at) >= SILENCE);
        if self.recent < MANY || !quiet {
            return false;
        }
        self.raised = Some(now);
        true
    }

    /// Spikes seen.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spikes_in_half_a_minute_raise_the_suspicion_once() {
        let start = Instant::now();
        let mut spikes = Spikes::default();
        let raised: Vec<bool> = (0..10u32)
            .map(|n| {
                spikes.observe(
                    start + Duration::from_secs(2) * n,
                    Duration::from_millis(150),
                )
            })
            .collect();
        assert_eq!(raised.iter().filter(|raised| **raised).count(), 1);
        assert!(raised[2]);
        assert!(!spikes.observe(start, Duration::from_millis(20)));
        assert_eq!(spikes.total(), 10);
    }
}
