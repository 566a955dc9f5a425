//! `sim://`: a simulated drone inside this process.
//!
//! It stands where a real link would and keeps its rules: packets pass the gate, and nothing comes back
//! before the loop asks.

use std::collections::VecDeque;
use std::time::Instant;

use crtp::{Gate, Packet};
use simulator::{Config, Drone};

use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::tap::{LinkTap, Moment, verdict};

/// A link that ends in a simulated drone.
#[derive(Debug)]
pub struct SimLink {
    drone: Drone,
    gate: Gate,
    inbox: VecDeque<Received>,
    event: Option<Event>,
    closed: bool,
    stats: LinkStats,
    tap: LinkTap,
}

impl SimLink {
    /// Switches a drone on.
    #[must_use]
    pub fn new(now: Instant, config: Config) -> Self {
        let mut link = Self {
            drone: Drone::new(config, now),
            gate: Gate::new(),
            inbox: VecDeque::new(),
            event: Some(Event::Up("simulated drone".to_owned())),
            closed: false,
            stats: LinkStats::default(),
            tap: LinkTap::off(),
        };
        link.take_downlink(now);
        link
    }

    /// The drone, for those who want to see what it makes of the packets.
    #[must_use]
    pub fn drone(&self) -> &Drone {
        &self.drone
    }

    /// The drone, for those who handle it as a person or an app on board does.
    pub fn drone_mut(&mut self) -> &mut Drone {
        &mut self.drone
    }

    fn take_downlink(&mut self, now: Instant) {
        while let Some(packet) = self.drone.poll_transmit() {
            self.gate.observe(&packet);
            self.tap.pass(Moment::Received, now, &packet);
            self.stats.received += 1;
            let class = crate::class_of(&packet);
            self.inbox.push_back(Received {
                packet,
                class,
                at: now,
                expires: None,
            });
        }
    }

    fn refuse(&mut self, now: Instant, packet: &Packet, refusal: Refusal) -> SendOutcome {
        self.tap
            .note(Moment::Sending, now, packet, verdict(refusal));
        self.stats.count(refusal);
        SendOutcome::Refused(refusal)
    }
}

impl Link for SimLink {
    fn interests(&self, _out: &mut Vec<Interest>) {}

    fn handle_ready(&mut self, _now: Instant) {}

    fn handle_timeout(&mut self, now: Instant) {
        self.drone.handle_timeout(now);
        self.take_downlink(now);
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let waiting = self
            .inbox
            .front()
            .map(|received| (received.at, "downlink waits"));
        waiting
            .or_else(|| self.drone.poll_timeout())
            .filter(|_| !self.closed)
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        self.inbox.pop_front()
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if self.closed {
            return self.refuse(now, &outgoing.packet, Refusal::NotConnected);
        }
        if outgoing.expires.is_some_and(|expires| expires <= now) {
            return self.refuse(now, &outgoing.packet, Refusal::Expired);
        }
        if let Err(reject) = self.gate.admit(&outgoing.packet) {
            let refusal = Refusal::Unsafe(reject.reason());
            return self.refuse(now, &outgoing.packet, refusal);
        }
        self.tap.pass(Moment::Sending, now, &outgoing.packet);
        self.drone.handle_packet(now, &outgoing.packet);
        self.stats.sent += 1;
        self.take_downlink(now);
        SendOutcome::Accepted
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.event.take()
    }

    fn state(&self) -> State {
        if self.closed {
            State::Closed
        } else {
            State::Up
        }
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        self.drone.set_connected(now, false);
        self.closed = true;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interface::Class;

    fn outgoing(bytes: &[u8]) -> Outgoing {
        let packet = Packet::from_bytes(bytes).unwrap();
        Outgoing {
            packet,
            class: Class::Ordered,
            expires: None,
        }
    }

    fn link(now: Instant) -> SimLink {
        let mut link = SimLink::new(now, Config::default());
        while link.recv(now).is_some() {}
        link
    }

    #[test]
    fn the_drone_answers_at_once_and_the_loop_is_told() {
        let now = Instant::now();
        let mut link = link(now);
        let (flight, _) = link.poll_timeout().unwrap();
        assert!(flight > now);
        assert_eq!(link.send(now, &outgoing(&[0xdd, 0])), SendOutcome::Accepted);
        assert_eq!(link.poll_timeout(), Some((now, "downlink waits")));
        let answer = link.recv(now).unwrap();
        assert_eq!(answer.packet.as_bytes(), [0xdd, 0, 12, 0, 0, 0]);
    }

    #[test]
    fn the_gate_stands_before_it() {
        let now = Instant::now();
        let mut link = link(now);
        let refused = link.send(now, &outgoing(&[0x7c]));
        assert!(
            matches!(refused, SendOutcome::Refused(Refusal::Unsafe(_))),
            "{refused:?}"
        );
        assert_eq!(link.stats().dropped_unsafe, 1);
    }

    #[test]
    fn a_closed_link_is_silent() {
        let now = Instant::now();
        let mut link = link(now);
        link.close(now);
        assert_eq!((link.state(), link.poll_timeout()), (State::Closed, None));
        let late = link.send(now + Duration::from_secs(1), &outgoing(&[0xdd, 0]));
        assert_eq!(late, SendOutcome::Refused(Refusal::NotConnected));
    }
}
