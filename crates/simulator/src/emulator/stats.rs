//! Counters of one direction, and a form of them that another thread can read.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// What happened to the packets of one direction so far. Bytes include IP and UDP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DirectionStats {
    /// Packets that entered.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Packets that left at the other end, copies included.
    pub delivered: u64,
    /// Bytes in them.
    pub delivered_bytes: u64,
    /// Lost one by one.
    pub lost_iid: u64,
    /// Lost in bursts.
    pub lost_bursts: u64,
    /// Lost in outages.
    pub lost_outages: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Dropped because they were sent to a port that the NAT no longer maps.
    pub nat_stale: u64,
    /// Held back so that others overtook them.
    pub reordered: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delivered with one bit turned.
    pub corrupted: u64,
}

impl DirectionStats {
    fn values(&self) -> [u64; 12] {
        [
            self.packets,
            self.bytes,
            self.delivered,
            self.delivered_bytes,
            self.lost_iid,
            self.lost_bursts,
            self.lost_outages,
            self.overflowed,
            self.nat_stale,
            self.reordered,
            self.duplicated,
            self.corrupted,
        ]
    }

    const fn from_values(values: [u64; 12]) -> Self {
        let [
            packets,
            bytes,
            delivered,
            delivered_bytes,
            lost_iid,
            lost_bursts,
            lost_outages,
            overflowed,
            nat_stale,
            reordered,
            duplicated,
            corrupted,
        ] = values;
        Self {
            packets,
            bytes,
            delivered,
            delivered_bytes,
            lost_iid,
            lost_bursts,
            lost_outages,
            overflowed,
            nat_stale,
            reordered,
            duplicated,
            corrupted,
        }
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (self.values(), earlier.values());
        Self::from_values(std::array::from_fn(|at| now[at].saturating_sub(then[at])))
    }
}

/// Counters as the thread that counts publishes them; fields of one reading may be one packet apart.
#[derive(Debug, Default)]
pub(super) struct Published([AtomicU64; 12]);

impl Published {
    pub(super) fn write(&self, stats: &DirectionStats) {
        for (cell, value) in self.0.iter().zip(stats.values()) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> DirectionStats {
        DirectionStats::from_values(std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed)))
    }
}
