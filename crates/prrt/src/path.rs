//! Everything known about the way to one peer, gathered so that the rest asks one place: round trip, loss, clock,
//! bottleneck and departure times.

use std::time::{Duration, Instant};

use crate::bandwidth::{Bandwidth, Snapshot};
use crate::clock::PeerClock;
use crate::loss::Loss;
use crate::pacer::Pacer;
use crate::planner::Path;
use crate::rtt::Rtt;
use crate::sent::AckOutcome;
use crate::spikes::Spikes;
use crate::stats::RttStats;
use crate::time::Stamp;

/// Below this much queueing the path counts as free.
const QUEUEING_MIN: Duration = Duration::from_millis(5);

/// Below the first loss feedback becomes sparse, above the second no longer.
const SPARSE_LOSS: f64 = 0.015;
const SPARSE_LOSS_MAX: f64 = 0.03;

/// More than sparse feedback takes.
const VERDICT_MARGIN: Duration = Duration::from_millis(120);

/// Estimators of one path.
#[derive(Debug)]
pub(crate) struct PathState {
    pub(crate) rtt: Rtt,
    pub(crate) loss: Loss,
    pub(crate) clock: PeerClock,
    pub(crate) bandwidth: Bandwidth,
    pub(crate) pacer: Pacer,
    pub(crate) spikes: Spikes,
    /// A radio on the way seems to sleep; cleared when told.
    pub(crate) asleep: bool,
    /// Steady streams need no acknowledgement for each datagram.
    pub(crate) sparse: bool,
}

impl PathState {
    pub(crate) fn new(now: Instant, datagram: usize) -> Self {
        Self {
            rtt: Rtt::new(),
            loss: Loss::new(),
            clock: PeerClock::new(now),
            bandwidth: Bandwidth::new(datagram),
            pacer: Pacer::default(),
            spikes: Spikes::default(),
            asleep: false,
            sparse: false,
        }
    }

    /// What the planner needs.
    pub(crate) fn plan(&self) -> Path {
        let queueing = self.rtt.queueing();
        let congestion = if self.is_congested() {
            queueing / 4
        } else {
            Duration::ZERO
        };
        Path {
            timeout: self.rtt.timeout(),
            one_way: self.rtt.one_way_late(),
            one_way_typical: self.rtt.one_way_typical(),
            burst: self.loss.burst().unwrap_or_default(),
            loss: self.loss.recent(),
            congestion,
            period: None,
        }
    }

    /// Whether queues on the way make it clearly slower than it can be.
    pub(crate) fn is_congested(&self) -> bool {
        let min = self.rtt.min().unwrap_or_default();
        self.bandwidth.found() && self.rtt.queueing() > QUEUEING_MIN.max(min)
    }

    /// An acknowledgement came.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        outcome: &AckOutcome,
        hold: Duration,
        in_flight: usize,
    ) {
        if let Some(elapsed) = outcome.elapsed {
            self.rtt.sample(now, elapsed, hold);
            if !outcome.sparse {
                self.rtt.hold(hold);
            }
            let min = self.rtt.min().unwrap_or_default();
            if outcome.rested {
                self.asleep |= self.spikes.observe(now, elapsed.saturating_sub(hold + min));
            }
            self.bandwidth
                .on_queueing(elapsed.saturating_sub(hold + min));
        }
        if let Some((sent_at, snapshot)) = outcome.newest {
            // The hold says when the newest datagram arrived; without it, held acknowledgements would come in
            // bunches that look like a faster path.
            let arrived = now.checked_sub(hold).unwrap_or(now);
            self.bandwidth
                .on_ack(arrived, outcome.bytes, sent_at, &snapshot);
        }
        self.reconsider_feedback();
        self.bandwidth
            .advance(now, self.rtt.min().unwrap_or_default(), in_flight);
    }

    /// Sparse feedback reacts to bursts somewhat later than an acknowledgement for each datagram; it is for paths that
    /// lose little.
    fn reconsider_feedback(&mut self) {
        let loss = self.loss.recent();
        self.sparse = match self.sparse {
            true => loss < SPARSE_LOSS_MAX,
            false => loss < SPARSE_LOSS && self.loss.is_known(),
        };
    }

    /// A datagram leaves.
    pub(crate) fn on_send(&mut self, now: Instant, bytes: usize, in_flight: usize) -> Snapshot {
        let rate = self.bandwidth.pace(self.rtt.typical());
        self.pacer.charge(now, bytes, rate);
        self.bandwidth.on_send(now, in_flight)
    }

    /// Bytes that bulk data may have in flight.
    pub(crate) fn window(&self) -> usize {
        self.bandwidth.window(self.rtt.min().unwrap_or_default())
    }

    /// How long after departure a datagram that is not acknowledged is lost and not merely late.
    pub(crate) fn horizon(&self) -> Duration {
        self.rtt.timeout() * 2 + VERDICT_MARGIN
    }

    /// Birth on the local clock of something that was `age` old when a datagram stamped `stamp` left. Half the smallest
    /// round trip stands for the way, so that ages are true ages on a symmetric path.
    pub(crate) fn birth(&self, stamp: Stamp, age: Duration, at: Instant) -> Instant {
        let arrival = self.clock.local(stamp).unwrap_or(at).min(at);
        arrival
            .checked_sub(self.rtt.one_way_min() + age)
            .unwrap_or(at)
    }

    /// How far [`PathState::birth`] may be off: all of the smallest round trip may be in one direction.
    pub(crate) fn doubt(&self) -> Option<Duration> {
        self.rtt.min().map(|rtt| rtt / 2)
    }

    /// Local instant at which something born `age` before a datagram stamped `stamp` left would have arrived on the
    /// fastest way, had it left at its birth.
    pub(crate) fn nominal(&self, stamp: Stamp, age: Duration, at: Instant) -> Instant {
        let arrival = self.clock.local(stamp).unwrap_or(at).min(at);
        arrival.checked_sub(age).unwrap_or(arrival)
    }

    /// Round-trip figures, after the first sample.
    pub(crate) fn rtt_stats(&self) -> Option<RttStats> {
        Some(RttStats {
            smoothed: self.rtt.smoothed()?,
            variation: self.rtt.variation()?,
            min: self.rtt.min()?,
        })
    }
}
