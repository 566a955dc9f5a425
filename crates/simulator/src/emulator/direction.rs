//! One direction of an emulated path: takes packets, gives them back when they are due. Pure: the time is an argument,
//! the chance comes from a seed, and the same packets at the same times have the same fate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use rand::Rng as _;
use rand::rngs::SmallRng;

use super::conditions::Conditions;
use super::stats::DirectionStats;
use super::weather::{Side, Weather, exponential, random};

/// Bytes of IPv4 and UDP headers, for users that carry UDP payloads only.
pub const UDP_IP_HEADERS: usize = 28;
/// Most packets on the way; beyond it new ones are dropped as by a full queue.
const MAX_ON_THE_WAY: usize = 65_536;

/// What the user says about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Comes back with the packet.
    pub tag: u32,
    /// Bytes at the front in which no bit is ever turned.
    pub protected: usize,
    /// Bytes on the link that are not in the packet.
    pub overhead: usize,
}

/// A packet that is due.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// The tag it came with.
    pub tag: u32,
    /// Whether a bit was turned.
    pub corrupted: bool,
    /// When it was due.
    pub due: Instant,
}

/// A packet on the way.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    meta: Meta,
    corrupted: bool,
}

/// The random sequences; each kind of chance has its own, so that one does not shift another.
#[derive(Debug)]
struct Chance {
    loss: SmallRng,
    jitter: SmallRng,
    reorder: SmallRng,
    duplicate: SmallRng,
    corrupt: SmallRng,
}

/// A direction and what is on its way.
#[derive(Debug)]
pub struct Direction {
    conditions: Conditions,
    start: Instant,
    weather: Weather,
    chance: Chance,
    /// When the last packet has left the queue.
    free: Duration,
    /// When the last packet that keeps the order arrives.
    last: Duration,
    order: u64,
    due: BinaryHeap<Reverse<(Duration, u64, usize)>>,
    slots: Vec<Held>,
    vacant: Vec<usize>,
    stats: DirectionStats,
}

impl Direction {
    /// A direction whose clock starts at `start`.
    pub fn new(start: Instant, conditions: Conditions, seed: u64, side: Side) -> Self {
        Self {
            weather: Weather::new(&conditions, seed, side),
            chance: Chance {
                loss: random(seed, side, 2),
                jitter: random(seed, side, 3),
                reorder: random(seed, side, 4),
                duplicate: random(seed, side, 5),
                corrupt: random(seed, side, 6),
            },
            conditions,
            start,
            free: Duration::ZERO,
            last: Duration::ZERO,
            order: 0,
            due: BinaryHeap::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            stats: DirectionStats::default(),
        }
    }

    /// What happened so far.
    pub const fn stats(&self) -> DirectionStats {
        self.stats
    }

    /// A packet was dropped by the user because the NAT maps its port no longer.
    pub const fn count_nat_stale(&mut self) {
        self.stats.nat_stale += 1;
    }

    /// A packet enters at `now`. It is copied.
    pub fn handle_packet(&mut self, now: Instant, bytes: &[u8], meta: Meta) {
        let len = (bytes.len() + meta.overhead) as u64;
        self.stats.packets += 1;
        self.stats.bytes += len;
        let coin: f64 = self.chance.loss.random();
        let Some(out) = self.serialise(now.saturating_duration_since(self.start), len) else {
            self.stats.overflowed += 1;
            return;
        };
        if self.loses(out, coin) {
            return;
        }
        let copies = 1 + usize::from(hits(&mut self.chance.duplicate, self.conditions.duplicate));
        self.stats.duplicated += copies as u64 - 1;
        for _ in 0..copies {
            let at = self.arrival(out);
            self.hold(at, bytes, meta);
        }
    }

    /// When the packet has left the queue; `None` if it finds no room.
    fn serialise(&mut self, at: Duration, len: u64) -> Option<Duration> {
        let rate = &self.conditions.rate;
        if rate.at(at).is_some() {
            let waiting = (rate.bits_between(at, self.free) / 8.0) as u64;
            if waiting + len > self.conditions.queue_bytes {
                return None;
            }
        }
        if self.due.len() >= MAX_ON_THE_WAY {
            return None;
        }
        self.free = rate.finish(self.free.max(at), len as f64 * 8.0);
        Some(self.conditions.slot.map_or(self.free, |slot| {
            let slots = self.free.as_nanos().div_ceil(slot.as_nanos());
            Duration::from_nanos((slots * slot.as_nanos()) as u64)
        }))
    }

    fn loses(&mut self, out: Duration, coin: f64) -> bool {
        let loss = self.conditions.loss;
        let inside = loss.bursts.map_or(0.0, |bursts| bursts.inside);
        let bad = self.weather.is_bad(out);
        if self.weather.is_out(out) {
            self.stats.lost_outages += 1;
        } else if coin < loss.iid {
            self.stats.lost_iid += 1;
        } else if bad && (coin - loss.iid) < inside * (1.0 - loss.iid) {
            self.stats.lost_bursts += 1;
        } else {
            return false;
        }
        true
    }

    fn arrival(&mut self, out: Duration) -> Duration {
        let jitter = exponential(&mut self.chance.jitter, self.conditions.jitter);
        let at = self.weather.release(out) + self.conditions.delay + jitter;
        if let Some(reorder) = self.conditions.reorder {
            let held = reorder.up_to.mul_f64(self.chance.reorder.random());
            if hits(&mut self.chance.reorder, reorder.share) {
                self.stats.reordered += 1;
                return at + held;
            }
        }
        self.last = self.last.max(at);
        self.last
    }

    fn hold(&mut self, at: Duration, bytes: &[u8], meta: Meta) {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Held::default());
            self.slots.len() - 1
        });
        let corrupted =
            bytes.len() > meta.protected && hits(&mut self.chance.corrupt, self.conditions.corrupt);
        let held = &mut self.slots[slot];
        held.bytes.clear();
        held.bytes.extend_from_slice(bytes);
        (held.meta, held.corrupted) = (meta, corrupted);
        if corrupted {
            self.stats.corrupted += 1;
            let at = self
                .chance
                .corrupt
                .random_range(meta.protected..bytes.len());
            held.bytes[at] ^= 1 << self.chance.corrupt.random_range(0..8);
        }
        self.order += 1;
        self.due.push(Reverse((at, self.order, slot)));
    }

    /// When [`Direction::poll_packet`] has something, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let Reverse((at, ..)) = self.due.peek()?;
        Some((self.start + *at, "a packet arrives"))
    }

    /// The next packet that is due at `now`.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Delivery<'_>> {
        let Reverse((at, _, slot)) = *self.due.peek()?;
        let due = self.start + at;
        if due > now {
            return None;
        }
        self.due.pop();
        self.vacant.push(slot);
        let held = &mut self.slots[slot];
        self.stats.delivered += 1;
        self.stats.delivered_bytes += (held.bytes.len() + held.meta.overhead) as u64;
        Some(Delivery {
            bytes: &mut held.bytes,
            tag: held.meta.tag,
            corrupted: held.corrupted,
            due,
        })
    }
}

fn hits(rng: &mut SmallRng, share: f64) -> bool {
    rng.random::<f64>() < share
}
