//! What the link does by itself over time: bursts of loss, spikes, outages. Driven by time alone, so that every program
//! that runs over the same seed meets the same weather at the same offsets.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::conditions::{Bursts, Conditions, Outage, Spikes};

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From end a to end b.
    Up,
    /// From end b to end a.
    Down,
}

/// Independent random sequence number `index` of a seed and a side.
pub(super) fn random(seed: u64, side: Side, index: u64) -> SmallRng {
    SmallRng::seed_from_u64(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(index * 2 + u64::from(side == Side::Down)),
    )
}

pub(super) fn exponential(rng: &mut SmallRng, mean: Duration) -> Duration {
    let uniform: f64 = rng.random();
    mean.mul_f64(-(1.0 - uniform).ln())
}

/// A two-state process in continuous time.
#[derive(Debug)]
struct Gate {
    rng: SmallRng,
    good: Duration,
    bad: Duration,
    is_bad: bool,
    turns: Duration,
}

impl Gate {
    fn new(bursts: Bursts, mut rng: SmallRng) -> Self {
        let good = bursts.mean.mul_f64((1.0 - bursts.share) / bursts.share);
        let turns = exponential(&mut rng, good);
        Self {
            rng,
            good,
            bad: bursts.mean,
            is_bad: false,
            turns,
        }
    }

    fn is_bad(&mut self, at: Duration) -> bool {
        while self.turns <= at {
            self.turn();
        }
        self.is_bad
    }

    fn turn(&mut self) {
        self.is_bad = !self.is_bad;
        let mean = if self.is_bad { self.bad } else { self.good };
        self.turns += exponential(&mut self.rng, mean).max(Duration::from_nanos(1));
    }
}

/// Spikes one after the other.
#[derive(Debug)]
struct SpikeTrain {
    spikes: Spikes,
    rng: SmallRng,
    current: (Duration, Duration),
}

impl SpikeTrain {
    fn new(spikes: Spikes, rng: SmallRng) -> Self {
        let mut train = Self {
            spikes,
            rng,
            current: (Duration::ZERO, Duration::ZERO),
        };
        train.advance();
        train
    }

    fn advance(&mut self) {
        let mean = Duration::from_secs_f64(1.0 / self.spikes.per_s);
        let begin = self.current.1 + exponential(&mut self.rng, mean);
        let range = self.spikes.min.as_secs_f64()..=self.spikes.max.as_secs_f64();
        self.current = (
            begin,
            begin + Duration::from_secs_f64(self.rng.random_range(range)),
        );
    }

    /// When a packet that is ready at `at` goes on.
    fn release(&mut self, at: Duration) -> Duration {
        while self.current.1 <= at {
            self.advance();
        }
        if self.current.0 <= at {
            self.current.1
        } else {
            at
        }
    }
}

/// The weather of one direction. Asked for times that do not go back.
#[derive(Debug)]
pub(super) struct Weather {
    gate: Option<Gate>,
    spikes: Option<SpikeTrain>,
    outages: Vec<Outage>,
}

impl Weather {
    pub(super) fn new(conditions: &Conditions, seed: u64, side: Side) -> Self {
        Self {
            gate: conditions
                .loss
                .bursts
                .map(|bursts| Gate::new(bursts, random(seed, side, 0))),
            spikes: conditions
                .spikes
                .map(|spikes| SpikeTrain::new(spikes, random(seed, side, 1))),
            outages: conditions.outages.clone(),
        }
    }

    pub(super) fn is_bad(&mut self, at: Duration) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.is_bad(at))
    }

    pub(super) fn is_out(&self, at: Duration) -> bool {
        self.outages.iter().any(|outage| outage.covers(at))
    }

    pub(super) fn release(&mut self, at: Duration) -> Duration {
        self.spikes.as_mut().map_or(at, |spikes| spikes.release(at))
    }
}

/// The times until `end` in which nothing that is sent passes at once, ascending: bursts that lose everything, spikes,
/// outages. No program can do better than to send right at the end of one, so they give the floor of misses of a seed.
pub fn blocked(
    conditions: &Conditions,
    seed: u64,
    side: Side,
    end: Duration,
) -> Vec<(Duration, Duration)> {
    let mut found = bursts(conditions, seed, side, end);
    if let Some(spikes) = conditions.spikes {
        let mut train = SpikeTrain::new(spikes, random(seed, side, 1));
        while train.current.0 < end {
            found.push(train.current);
            train.advance();
        }
    }
    found.extend(conditions.outages.iter().flat_map(|o| o.until(end)));
    merge(found)
}

fn bursts(
    conditions: &Conditions,
    seed: u64,
    side: Side,
    end: Duration,
) -> Vec<(Duration, Duration)> {
    let Some(bursts) = conditions.loss.bursts.filter(|b| b.inside >= 1.0) else {
        return Vec::new();
    };
    let mut gate = Gate::new(bursts, random(seed, side, 0));
    let mut found = Vec::new();
    while gate.turns < end {
        let begin = gate.turns;
        gate.turn();
        found.push((begin, gate.turns));
        gate.turn();
    }
    found
}

fn merge(mut spans: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    spans.sort_unstable();
    let mut merged: Vec<(Duration, Duration)> = Vec::with_capacity(spans.len());
    for (begin, end) in spans {
        match merged.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            Some(_) | None => merged.push((begin, end)),
        }
    }
    merged
}
