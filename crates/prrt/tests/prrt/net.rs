//! One direction of an emulated path in virtual time: queue, rate, delay, jitter, loss, reordering, duplication, damage
//! and stalls, all from one seed. Outages are driven by time, not by packets.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How datagrams are lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    Never,
    /// Each with this probability.
    Iid(f64),
    /// All while the path is bad: a share of the time, in bursts of this mean length.
    Bursts {
        share: f64,
        mean: Duration,
    },
}

/// Properties of a direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) delay: Duration,
    /// Mean of the exponential part of the delay.
    pub(crate) jitter: Duration,
    pub(crate) loss: Loss,
    /// Share of datagrams held back by up to five times the delay.
    pub(crate) reorder: f64,
    pub(crate) duplicate: f64,
    pub(crate) corrupt: f64,
    /// Bits per second and bytes of queue.
    pub(crate) rate: Option<(f64, usize)>,
    /// Jitter keeps the order, as a queue does.
    pub(crate) fifo: bool,
    /// Datagrams that wait longer than this for the narrow link get a congestion mark.
    pub(crate) mark_above: Option<Duration>,
}

impl Conditions {
    /// The Wi-Fi of the published drone measurements: 3.25 ms each way, 0.4 ms jitter.
    pub(crate) const fn wifi(loss: Loss) -> Self {
        Self {
            delay: Duration::from_micros(3250),
            jitter: Duration::from_micros(400),
            loss,
            reorder: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            rate: None,
            fifo: true,
            mark_above: None,
        }
    }
}

/// A direction and its state.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) conditions: Conditions,
    rng: SmallRng,
    bad: bool,
    turns: Option<Instant>,
    free: Option<Instant>,
    last: Option<Instant>,
    stalled_until: Option<Instant>,
    pub(crate) offered: u64,
    pub(crate) offered_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) overflowed: u64,
    /// The datagram carried last got a mark.
    pub(crate) marked: bool,
    pub(crate) marks: u64,
}

impl Net {
    pub(crate) fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            rng: SmallRng::seed_from_u64(seed),
            bad: false,
            turns: None,
            free: None,
            last: None,
            stalled_until: None,
            offered: 0,
            offered_bytes: 0,
            lost: 0,
            overflowed: 0,
            marked: false,
            marks: 0,
        }
    }

    /// Nothing arrives before `until`; what is on the way arrives then.
    pub(crate) fn stall(&mut self, until: Instant) {
        self.stalled_until = Some(until);
    }

    /// Arrival times (none, one or two) of a datagram that enters at `now`, which may be damaged.
    pub(crate) fn carry(&mut self, now: Instant, bytes: &mut [u8]) -> Vec<Instant> {
        self.offered += 1;
        self.offered_bytes += bytes.len() as u64;
        let Some(out) = self.serialise(now, bytes.len()) else {
            self.overflowed += 1;
            return Vec::new();
        };
        if self.loses(now) {
            self.lost += 1;
            return Vec::new();
        }
        self.damage(bytes);
        let copies = if self.chance(self.conditions.duplicate) {
            2
        } else {
            1
        };
        (0..copies).map(|_| self.arrival(out)).collect()
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.random_bool(probability)
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        let uniform: f64 = self.rng.random();
        mean.mul_f64(-(1.0 - uniform).ln())
    }

    fn serialise(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let Some((rate, queue)) = self.conditions.rate else {
            return Some(now);
        };
        let start = self.free.map_or(now, |free| free.max(now));
        if (start - now).as_secs_f64() * rate / 8.0 > queue as f64 {
            return None;
        }
        self.marked = self
            .conditions
            .mark_above
            .is_some_and(|least| start - now > least);
        self.marks += u64::from(self.marked);
        let done = start + Duration::from_secs_f64((len + 28) as f64 * 8.0 / rate);
        self.free = Some(done);
        Some(done)
    }

    fn loses(&mut self, now: Instant) -> bool {
        match self.conditions.loss {
            Loss::Never => false,
            Loss::Iid(share) => self.chance(share),
            Loss::Bursts { share, mean } => self.is_bad(now, share, mean),
        }
    }

    fn is_bad(&mut self, now: Instant, share: f64, mean: Duration) -> bool {
        let good = mean.mul_f64((1.0 - share) / share);
        let mut turns = match self.turns {
            Some(at) => at,
            None => now + self.exponential(good),
        };
        while turns <= now {
            self.bad = !self.bad;
            turns += self.exponential(if self.bad { mean } else { good });
        }
        self.turns = Some(turns);
        self.bad
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        if self.chance(self.conditions.corrupt) && !bytes.is_empty() {
            let at = self.rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << self.rng.random_range(0..8);
        }
    }

    fn arrival(&mut self, out: Instant) -> Instant {
        let mut at = out + self.conditions.delay + self.exponential(self.conditions.jitter);
        if self.chance(self.conditions.reorder) {
            return at
                + self
                    .conditions
                    .delay
                    .mul_f64(self.rng.random_range(0.5..5.0));
        }
        if let Some(until) = self.stalled_until {
            at = at.max(until);
        }
        if self.conditions.fifo {
            at = self.last.map_or(at, |last| at.max(last));
            self.last = Some(at);
        }
        at
    }
}
