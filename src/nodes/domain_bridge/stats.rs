//! What a route has done: counters that its thread writes and anybody reads, without locks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets of the residence histogram: 8 in each power of two, of ns.
const BUCKETS: usize = 8 * 62;

/// Counters of a route, over all the times it was opened.
#[derive(Debug)]
pub(super) struct Counters {
    /// Messages forwarded.
    pub(super) forwarded: AtomicU64,
    /// Serialized bytes forwarded.
    pub(super) bytes: AtomicU64,
    /// Dropped: the message has been at the destination already.
    pub(super) circled: AtomicU64,
    /// Dropped: sooner than the rate limit allows.
    pub(super) limited: AtomicU64,
    /// Dropped: older than its lifespan.
    pub(super) expired: AtomicU64,
    /// Dropped: the source was not alive or its history not known in time.
    pub(super) held: AtomicU64,
    /// Dropped by the middleware before the bridge got them.
    pub(super) lost: AtomicU64,
    /// Dropped: could not be packed or unpacked.
    pub(super) unpackable: AtomicU64,
    /// Waits, takes and publishes that failed.
    pub(super) errors: AtomicU64,
    residence: Box<[AtomicU64]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            forwarded: AtomicU64::default(),
            bytes: AtomicU64::default(),
            circled: AtomicU64::default(),
            limited: AtomicU64::default(),
            expired: AtomicU64::default(),
            held: AtomicU64::default(),
            lost: AtomicU64::default(),
            unpackable: AtomicU64::default(),
            errors: AtomicU64::default(),
            residence: (0..BUCKETS).map(|_| AtomicU64::default()).collect(),
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Counters {
    /// Records how long a message was in the bridge, ns.
    pub(super) fn stayed(&self, ns: u64) {
        if let Some(counter) = self.residence.get(bucket(ns)) {
            add(counter, 1);
        }
    }

    /// The residence that this share of the messages did not exceed, ns, to 12.5 % above; `None` without messages.
    pub(super) fn residence(&self, share: f64) -> Option<u64> {
        let counts: Vec<u64> = self.residence.iter().map(load).collect();
        let total: u64 = counts.iter().sum();
        let wanted = (share * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        place.filter(|_| total > 0).map(upper_edge)
    }

    /// All counters by name.
    pub(super) fn by_name(&self) -> [(&'static str, u64); 9] {
        [
            ("forwarded", load(&self.forwarded)),
            ("bytes", load(&self.bytes)),
            ("dropped_circled", load(&self.circled)),
            ("dropped_limited", load(&self.limited)),
            ("dropped_expired", load(&self.expired)),
            ("dropped_held", load(&self.held)),
            ("dropped_lost", load(&self.lost)),
            ("dropped_unpackable", load(&self.unpackable)),
            ("errors", load(&self.errors)),
        ]
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Exact below 8 ns, then the power of two and the three bits below the highest.
const fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros() as usize;
    (power - 2) * 8 + ((ns >> (power - 3)) & 7) as usize
}

const fn upper_edge(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (power, eighth) = (bucket / 8 + 2, (bucket % 8) as u64);
    let width = 1_u64 << (power - 3);
    (8 + eighth) * width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_stay_within_an_eighth() {
        let mut last = 0;
        for ns in (0..100_000).chain((17..63).map(|power| 1 << power)) {
            let place = bucket(ns);
            assert!(place >= last && place < BUCKETS, "{ns}");
            let edge = upper_edge(place);
            assert!(edge >= ns && edge - ns <= ns / 8, "{ns} {edge}");
            last = place;
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_come_from_what_was_recorded() {
        let counters = Counters::default();
        assert_eq!(counters.residence(0.5), None);
        (1..=100).for_each(|us| counters.stayed(us * 1000));
        let median = counters.residence(0.5).unwrap();
        assert!((50_000..=56_250).contains(&median), "{median}");
        assert!(counters.residence(1.0).unwrap() >= 100_000);
    }
}
