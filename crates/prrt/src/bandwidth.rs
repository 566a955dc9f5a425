//! Bottleneck estimate: windowed maximum of the delivery rate, as in BBR, and from it the pace and the amount of data
//! that bulk transfers may have in flight. Small control messages are never held back by it. Draws on the delivery rate
//! algorithm of draft-cheng-iccrg-delivery-rate-estimation.

use std::time::{Duration, Instant};

use crate::window::WindowedMax;

const RATE_WINDOW: Duration = Duration::from_secs(2);
const STARTUP_GAIN: f64 = 2.77;
/// One round above the estimate to find more, one below to drain what that queued, six just below it.
const CYCLE: [f64; 8] = [1.2, 0.8, 0.97, 0.97, 0.97, 0.97, 0.97, 0.97];
/// Pace relative to the estimate while a queue stands.
const CROWDED_GAIN: f64 = 0.85;
/// Queueing beyond one datagram and this much counts as a standing queue.
const CROWDED_MIN: Duration = Duration::from_millis(2);
/// So many acknowledgements in a row with a standing queue end the search for the rate.
const CROWDED_ACKS: u8 = 3;
/// A mark is heeded for this many acknowledgements.
const MARKED_ACKS: u8 = 8;
/// Nothing acknowledged for this long: what comes next says nothing about the time before, and the rate that was known is
/// the best guess.
const OUTAGE: Duration = Duration::from_millis(500);
const INITIAL_DATAGRAMS: usize = 4;
const MIN_DATAGRAMS: usize = 3;
/// The rate counts as found when it grew less than this over three rounds.
const GROWTH: f64 = 1.25;

/// What a datagram remembers of the moment it left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Cruise(usize),
}

/// Estimator and controller of one direction of a path.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    datagram: usize,
    delivered: u64,
    delivered_at: Option<Instant>,
    first_sent_at: Option<Instant>,
    app_limited: bool,
    rate: WindowedMax<f64>,
    phase: Phase,
    phase_at: Option<Instant>,
    plateau: f64,
    flat_rounds: u8,
    round_ends: u64,
    /// Acknowledgements in a row that told of a standing queue.
    crowded: u8,
    /// Acknowledgements for which a congestion mark counts like a standing queue.
    marked: u8,
}

impl Bandwidth {
    pub(crate) const fn new(datagram: usize) -> Self {
        Self {
            datagram,
            delivered: 0,
            delivered_at: None,
            first_sent_at: None,
            app_limited: true,
            rate: WindowedMax::new(RATE_WINDOW),
            phase: Phase::Startup,
            phase_at: None,
            plateau: 0.0,
            flat_rounds: 0,
            round_ends: 0,
            crowded: 0,
            marked: 0,
        }
    }

    /// A datagram leaves while `in_flight` bytes are unacknowledged.
    pub(crate) fn on_send(&mut self, now: Instant, in_flight: usize) -> Snapshot {
        let silent = self
            .delivered_at
            .is_some_and(|at| now.saturating_duration_since(at) > OUTAGE);
        if silent && let Some(rate) = self.estimate() {
            self.rate.observe(now, rate);
        }
        if in_flight == 0 || silent {
            self.delivered_at = Some(now);
            self.first_sent_at = Some(now);
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at.unwrap_or(now),
            first_sent_at: self.first_sent_at.unwrap_or(now),
            app_limited: self.app_limited,
        }
    }

    /// The application had nothing more to send (or has again).
    pub(crate) const fn set_app_limited(&mut self, limited: bool) {
        self.app_limited = limited;
    }

    /// `bytes` were acknowledged at once, the last having arrived about half a round trip before `at`; `newest` is the most recently sent datagram among them.
    pub(crate) fn on_ack(
        &mut self,
        at: Instant,
        bytes: usize,
        sent_at: Instant,
        newest: &Snapshot,
    ) {
        let now = self.delivered_at.map_or(at, |before| at.max(before));
        self.delivered += bytes as u64;
        self.delivered_at = Some(now);
        self.first_sent_at = Some(sent_at);
        let sending = sent_at.saturating_duration_since(newest.first_sent_at);
        let arriving = now.saturating_duration_since(newest.delivered_at);
        let elapsed = sending.max(arriving).as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        let rate = (self.delivered - newest.delivered) as f64 / elapsed;
        if !newest.app_limited || self.rate.get().is_none_or(|max| rate > max) {
            self.rate.observe(now, rate);
        }
        if newest.delivered >= self.round_ends {
            self.round_ends = self.delivered;
            self.end_round(newest.app_limited);
        }
    }

    fn end_round(&mut self, app_limited: bool) {
        if self.phase != Phase::Startup || app_limited {
            return;
        }
        let rate = self.rate.get().unwrap_or_default();
        if rate >= self.plateau * GROWTH {
            self.plateau = rate;
            self.flat_rounds = 0;
            return;
        }
        self.flat_rounds += 1;
        if self.flat_rounds >= 3 {
            self.phase = Phase::Drain;
        }
    }

    /// Takes how far a round trip was above the smallest one.
    pub(crate) fn on_queueing(&mut self, queueing: Duration) {
        let Some(rate) = self.estimate() else { return };
        let datagram = Duration::from_secs_f64((self.datagram as f64 / rate.max(1.0)).min(1.0));
        let crowded = queueing > datagram + CROWDED_MIN || self.marked > 0;
        self.marked = self.marked.saturating_sub(1);
        self.crowded = if crowded {
            self.crowded.saturating_add(1)
        } else {
            0
        };
        if self.phase == Phase::Startup && self.crowded >= CROWDED_ACKS {
            self.phase = Phase::Drain;
        }
    }

    /// A queue on the way has marked a datagram: as good as seeing it stand.
    pub(crate) fn on_mark(&mut self) {
        self.marked = MARKED_ACKS;
        self.crowded = self.crowded.max(CROWDED_ACKS);
        if self.phase == Phase::Startup && self.estimate().is_some() {
            self.phase = Phase::Drain;
        }
    }

    /// Moves on to the next phase when it is due.
    pub(crate) fn advance(&mut self, now: Instant, min_rtt: Duration, in_flight: usize) {
        let since = now.saturating_duration_since(*self.phase_at.get_or_insert(now));
        let next = match self.phase {
            Phase::Startup => return,
            Phase::Drain if in_flight <= self.bdp(min_rtt).max(MIN_DATAGRAMS * self.datagram) => {
                Phase::Cruise(2)
            }
            Phase::Cruise(step) if since >= min_rtt => Phase::Cruise((step + 1) % CYCLE.len()),
            Phase::Drain | Phase::Cruise(_) => return,
        };
        self.phase = next;
        self.phase_at = Some(now);
    }

    /// Bottleneck estimate, bytes per second, if anything was acknowledged.
    pub(crate) fn estimate(&self) -> Option<f64> {
        self.rate.get()
    }

    /// Whether the estimate has met a limit of the network rather than one of the application.
    pub(crate) fn found(&self) -> bool {
        self.phase != Phase::Startup
    }

    /// Bottleneck, bytes per second, if the estimate has met a limit of the network.
    pub(crate) fn found_rate(&self) -> Option<f64> {
        self.estimate().filter(|_| self.found())
    }

    /// Pace of bulk data, bytes per second.
    pub(crate) fn pace(&self, rtt: Duration) -> f64 {
        let initial = (INITIAL_DATAGRAMS * self.datagram) as f64 / rtt.as_secs_f64().max(1e-4);
        let rate = self.estimate().unwrap_or_default();
        match self.phase {
            Phase::Startup => STARTUP_GAIN * rate.max(initial / STARTUP_GAIN),
            Phase::Drain => rate / STARTUP_GAIN,
            Phase::Cruise(_) if self.crowded >= CROWDED_ACKS => rate * CROWDED_GAIN,
            Phase::Cruise(step) => rate * CYCLE.get(step).copied().unwrap_or(1.0),
        }
    }

    /// Bytes that bulk data may have in flight.
    pub(crate) fn window(&self, min_rtt: Duration) -> usize {
        let bdp = self.bdp(min_rtt);
        match self.phase {
            Phase::Startup => (bdp * 3).max(2 * INITIAL_DATAGRAMS * self.datagram),
            Phase::Drain | Phase::Cruise(_) => bdp * 3 / 2 + MIN_DATAGRAMS * self.datagram,
        }
    }

    fn bdp(&self, min_rtt: Duration) -> usize {
        // Below a quarter of a millisecond the hosts, not the path, set the round trip.
        let rtt = min_rtt.as_secs_f64().max(2.5e-4);
        (self.estimate().unwrap_or_default() * rtt) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// After two seconds of a datagram each millisecond on a path with a round trip of 10 ms.
    fn cruising() -> (Bandwidth, Instant) {
        let mut now = Instant::now();
        let mut bandwidth = Bandwidth::new(1000);
        bandwidth.set_app_limited(false);
        let mut under_way = std::collections::VecDeque::new();
        for _ in 0..2000 {
            now += MS;
            under_way.push_back((now, bandwidth.on_send(now, under_way.len() * 1000)));
            if under_way.len() > 10
                && let Some((at, snapshot)) = under_way.pop_front()
            {
                bandwidth.on_ack(now, 1000, at, &snapshot);
                bandwidth.advance(now, 10 * MS, under_way.len() * 1000);
            }
        }
        (bandwidth, now)
    }

    #[test]
    fn a_steady_flow_shows_its_rate() {
        let (bandwidth, _) = cruising();
        let rate = bandwidth.found_rate().unwrap();
        assert!((0.95e6..1.05e6).contains(&rate), "{rate}");
    }

    #[test]
    fn a_mark_ends_the_search_and_slows_the_pace_for_a_while() {
        let (mut bandwidth, _) = cruising();
        let rate = bandwidth.found_rate().unwrap();
        bandwidth.on_mark();
        for _ in 0..MARKED_ACKS {
            bandwidth.on_queueing(Duration::ZERO);
            assert!(bandwidth.pace(10 * MS) <= rate * CROWDED_GAIN + 1.0);
        }
        bandwidth.on_queueing(Duration::ZERO);
        assert!(bandwidth.pace(10 * MS) > rate * CROWDED_GAIN * 0.9);
        let mut young = Bandwidth::new(1000);
        young.on_mark();
        assert!(!young.found(), "there is no estimate to hold on to");
    }
}
