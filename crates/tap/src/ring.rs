//! One lock-free ring for each tap, and the set of rings that a keeper empties.
//!
//! Owns the hand-over and its one drop rule: what finds the ring full is dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::hop::Hop;

/// Records a ring holds: emptied every 20 ms, it takes 400 000 a second.
pub const RING: usize = 1 << 13;

/// The rings of one log.
#[derive(Debug, Default)]
pub struct Rings {
    dropped: AtomicU64,
    // Locked when a tap is made and when the keeper looks for records, never for taking one.
    consumers: Mutex<Vec<Consumer<Hop>>>,
}

impl Rings {
    /// No ring yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A tap for one thread. Takes all the memory it needs.
    #[must_use]
    pub fn tap(self: &Arc<Self>) -> Tap {
        let (producer, consumer) = RingBuffer::new(RING);
        self.lock().push(consumer);
        Tap(Some((producer, Arc::clone(self))))
    }

    /// Hands every waiting record to `take`, until it fails.
    ///
    /// # Errors
    /// What `take` says; the record it failed on is counted as dropped.
    pub fn drain<E>(&self, mut take: impl FnMut(&Hop) -> Result<(), E>) -> Result<(), E> {
        let mut rings = self.lock();
        for ring in rings.iter_mut() {
            while let Ok(hop) = ring.pop() {
                take(&hop).inspect_err(|_| self.count_dropped(1))?;
            }
        }
        // In this order: a tap that is gone puts nothing into its ring any more.
        rings.retain(|ring| !ring.is_abandoned() || !ring.is_empty());
        Ok(())
    }

    /// Throws every waiting record away and counts it.
    pub fn discard(&self) {
        let mut rings = self.lock();
        let hops = rings
            .iter_mut()
            .flat_map(|ring| std::iter::from_fn(|| ring.pop().ok()));
        self.count_dropped(hops.count() as u64);
    }

    /// Records that were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// The lock is only ever held for a push or a drain, which leave nothing half done.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Consumer<Hop>>> {
        self.consumers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's way into a log.
#[derive(Debug, Default)]
pub struct Tap(Option<(Producer<Hop>, Arc<Rings>)>);

impl Tap {
    /// A tap that leads nowhere and costs one branch.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Whether records go anywhere: ask before making one that takes work.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Hands a record over. Never blocks; with the ring full the record is dropped and counted.
    pub fn record(&mut self, hop: &Hop) {
        if let Some((ring, rings)) = &mut self.0
            && ring.push(*hop).is_err()
        {
            rings.count_dropped(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_in_order_and_what_finds_no_room_is_counted() {
        let rings = Rings::new();
        let mut tap = rings.tap();
        for packet in 0..RING as u64 + 5 {
            tap.record(&Hop {
                packet,
                ..Hop::default()
            });
        }
        let mut seen = Vec::new();
        let kept: Result<(), ()> = rings.drain(|hop| {
            seen.push(hop.packet);
            Ok(())
        });
        assert!(kept.is_ok() && tap.is_on());
        assert_eq!(seen, (0..RING as u64).collect::<Vec<_>>());
        assert_eq!(rings.dropped(), 5);
    }

    #[test]
    fn a_keeper_that_fails_costs_its_record_and_the_rest_can_be_thrown_away() {
        let rings = Rings::new();
        let mut tap = rings.tap();
        (0..3).for_each(|_| tap.record(&Hop::default()));
        assert_eq!(rings.drain(|_| Err("full")), Err("full"));
        rings.discard();
        assert_eq!(rings.dropped(), 3);
    }

    #[test]
    fn the_ring_of_a_tap_that_is_gone_is_emptied_and_given_back() {
        let rings = Rings::new();
        let mut tap = rings.tap();
        tap.record(&Hop::default());
        drop(tap);
        let mut taken = 0;
        let drained: Result<(), ()> = rings.drain(|_| {
            taken += 1;
            Ok(())
        });
        assert!(drained.is_ok() && taken == 1 && rings.lock().is_empty());
    }

    #[test]
    fn a_tap_that_is_off_leads_nowhere() {
        let mut off = Tap::off();
        off.record(&Hop::default());
        assert!(!off.is_on());
    }
}
