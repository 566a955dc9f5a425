//! How far two hosts' clocks are apart, from packets that went there and back.

use super::{Packet, Trace};
use crate::record::Stage;

/// Pairs of stages that a packet passes on the way to the bridge and back, closest to the wire first.
const OUT: [(Stage, Stage); 3] = [
    (Stage::G4, Stage::B0),
    (Stage::G2, Stage::B0),
    (Stage::G2, Stage::B1),
];
const BACK: [(Stage, Stage); 3] = [
    (Stage::B4, Stage::G5),
    (Stage::B3, Stage::G5),
    (Stage::B3, Stage::G6),
];

/// The bridge's clock minus the ground's, ns. No packet arrives before it left, so every packet out bounds it from
/// above and every packet back from below; the truth lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// At least this.
    pub low: i64,
    /// At most this.
    pub high: i64,
    /// Packets that bounded it.
    pub packets: u64,
}

impl Offset {
    /// Estimates it; `None` where no packet was seen on both hosts in both directions.
    #[must_use]
    pub fn of(trace: &Trace) -> Option<Self> {
        let packets = trace.packets();
        let (mut low, mut high, mut count) = (i64::MIN, i64::MAX, 0);
        for packet in &packets {
            let out = OUT.iter().find_map(|pair| difference(packet, *pair));
            let back = BACK.iter().find_map(|pair| difference(packet, *pair));
            if let (Some(out), Some(back)) = (out, back) {
                high = high.min(out);
                low = low.max(-back);
                count += 1;
            }
        }
        (count > 0).then_some(Self {
            low,
            high,
            packets: count,
        })
    }

    /// The middle, ns.
    #[must_use]
    pub const fn middle(&self) -> i64 {
        self.low + (self.high - self.low) / 2
    }

    /// How far the truth may be from the middle, ns.
    #[must_use]
    pub const fn uncertainty(&self) -> i64 {
        (self.high - self.low) / 2
    }
}

/// The later stage's stamp minus the earlier one's, each on its own host's clock; `None` on the same host.
fn difference(packet: &Packet, (from, to): (Stage, Stage)) -> Option<i64> {
    let ((start_host, start), (end_host, end)) = (packet.at(from)?, packet.at(to)?);
    (packet.clock(start_host) != packet.clock(end_host))
        .then(|| end.at.0.wrapping_sub(start.at.0).cast_signed())
}
