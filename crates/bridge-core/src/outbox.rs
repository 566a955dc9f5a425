//! What waits to leave in one direction: urgent packets, ordered packets, setpoints.
//!
//! It decides the order and the drops, and never holds a packet past its time. Urgent packets go first; then
//! a setpoint; but between two setpoints one ordered packet gets through, so neither starves the other.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crtp::Packet;
use link::tap::{LinkTap, Moment, verdict};
use link::{Class, Link, Outgoing, Refusal, SendOutcome, State};
use serde::Serialize;
use tap::Verdict;

use crate::mailbox::{Mailboxes, Setpoint};

/// Ordered packets that may wait; further ones are refused and counted.
const ORDERED: usize = 256;
/// Urgent packets that may wait: the longest sequence that is ever injected is far shorter.
const URGENT: usize = 16;
/// After the link said that it is full, and nothing else wakes the loop.
const RETRY: Duration = Duration::from_millis(1);

/// How one direction treats its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Hand over the next packet only when the link has written all before it. The order is then decided here,
    /// and an injected packet cannot be overtaken.
    pub one_at_a_time: bool,
    /// Keep ordered packets while the link is not up; otherwise drop them.
    pub wait_for_link: bool,
}

/// What became of the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Handed to the link.
    pub sent: u64,
    /// Of these, made here and not by a client.
    pub injected: u64,
    /// Replaced by a newer setpoint, or by what was decided here.
    pub superseded: u64,
    /// Too old.
    pub expired: u64,
    /// Too many waited.
    pub full: u64,
    /// The link was not up.
    pub not_connected: u64,
    /// Could have crashed the drone.
    pub refused: u64,
    /// Null packets, which carry nothing.
    pub null: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    packet: Packet,
    expires: Option<Instant>,
}

impl Waiting {
    fn is_dead(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Urgent(Waiting),
    Ordered(Waiting),
    Latest(Setpoint),
}

/// The queues of one direction.
#[derive(Debug)]
pub struct Outbox {
    pace: Pace,
    urgent: VecDeque<Waiting>,
    ordered: VecDeque<Waiting>,
    latest: Mailboxes,
    setpoint_went_last: bool,
    retry: Option<Instant>,
    counters: Counters,
    unsafe_by_rule: BTreeMap<&'static str, u64>,
    tap: LinkTap,
    /// The present, for records.
    now: Option<Instant>,
}

impl Outbox {
    /// Empty queues.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            urgent: VecDeque::with_capacity(URGENT),
            ordered: VecDeque::with_capacity(ORDERED),
            latest: Mailboxes::default(),
            setpoint_went_last: false,
            retry: None,
            counters: Counters::default(),
            unsafe_by_rule: BTreeMap::new(),
            tap: LinkTap::off(),
            now: None,
        }
    }

    /// Records from now on what is queued and what is dropped.
    pub fn set_tap(&mut self, tap: LinkTap) {
        self.tap = tap;
    }

    /// Tells the time that records of the next packets carry.
    pub fn set_now(&mut self, now: Instant) {
        self.now = Some(now);
    }

    fn note(&mut self, packet: &Packet, verdict: Verdict) {
        if let Some(now) = self.now {
            self.tap.note(Moment::Routed, now, packet, verdict);
        }
    }

    /// Queues a packet that must leave in order, until `expires`.
    pub fn offer_ordered(&mut self, packet: Packet, expires: Option<Instant>) {
        if self.ordered.len() < ORDERED {
            self.ordered.push_back(Waiting { packet, expires });
            self.note(&packet, Verdict::Passed);
        } else {
            self.counters.full += 1;
            self.note(&packet, Verdict::QueueFull);
        }
    }

    /// Queues a setpoint.
    pub fn offer_latest(&mut self, setpoint: Setpoint) {
        if let Some(older) = self.latest.offer(setpoint) {
            self.note(&older.packet, Verdict::Superseded);
        }
        self.note(&setpoint.packet, Verdict::Passed);
    }

    /// Queues a packet before everything else that waits; several keep their order.
    pub fn offer_urgent(&mut self, packet: Packet, expires: Option<Instant>) {
        if self.urgent.len() < URGENT {
            self.urgent.push_back(Waiting { packet, expires });
            self.note(&packet, Verdict::Passed);
        } else {
            self.counters.full += 1;
            self.note(&packet, Verdict::QueueFull);
        }
    }

    /// Like [`Outbox::offer_urgent`], for a packet that was made here.
    pub fn inject(&mut self, packet: Packet, expires: Option<Instant>) {
        self.counters.injected += 1;
        self.offer_urgent(packet, expires);
    }

    /// Counts a packet that breaks this rule of the gate, which goes no further.
    pub fn refuse(&mut self, rule: &'static str) {
        self.counters.refused += 1;
        *self.unsafe_by_rule.entry(rule).or_default() += 1;
    }

    /// Like [`Outbox::refuse`], for a packet that is at hand.
    pub fn refuse_packet(&mut self, packet: &Packet, rule: &'static str) {
        self.note(packet, Verdict::Unsafe);
        self.refuse(rule);
    }

    /// Counts a command that a decision made here has replaced already.
    pub fn supersede(&mut self, packet: &Packet) {
        self.note(packet, Verdict::Superseded);
        self.counters.superseded += 1;
    }

    /// Counts a null packet, which goes no further.
    pub fn skip_null(&mut self) {
        self.counters.null += 1;
    }

    /// Drops all waiting setpoints: a later decision replaces them.
    pub fn drop_setpoints(&mut self) {
        let (tap, now) = (&mut self.tap, self.now);
        self.latest.clear_each(|setpoint| {
            if let Some(now) = now {
                tap.note(Moment::Routed, now, &setpoint.packet, Verdict::Superseded);
            }
        });
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.ordered.is_empty() && self.latest.is_empty()
    }

    /// Counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            superseded: self.counters.superseded + self.latest.superseded(),
            expired: self.counters.expired + self.latest.expired(),
            ..self.counters
        }
    }

    /// How many packets each rule of the gate has refused.
    #[must_use]
    pub fn unsafe_by_rule(&self) -> &BTreeMap<&'static str, u64> {
        &self.unsafe_by_rule
    }

    /// When [`Outbox::flush`] is due without any input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let retry = self.retry.map(|at| (at, "link was full"));
        let expiry = self
            .latest
            .poll_timeout()
            .map(|at| (at, "setpoint expires"));
        retry.into_iter().chain(expiry).min()
    }

    /// Hands over what may leave now.
    pub fn flush(&mut self, now: Instant, link: &mut dyn Link) {
        self.retry = None;
        self.now = Some(now);
        let tap = &mut self.tap;
        self.latest.expire_each(now, |setpoint| {
            tap.note(Moment::Routed, now, &setpoint.packet, Verdict::Expired);
        });
        if link.state() != State::Up && !self.pace.wait_for_link {
            self.drop_all();
        }
        while link.state() == State::Up && (!self.pace.one_at_a_time || link.backlog() == 0) {
            let Some(next) = self.next(now) else { return };
            if !self.hand_over(now, link, next) {
                return;
            }
        }
    }

    fn next(&mut self, now: Instant) -> Option<Next> {
        self.drop_dead(now);
        if let Some(waiting) = self.urgent.pop_front() {
            return Some(Next::Urgent(waiting));
        }
        let turn = self.setpoint_went_last && !self.ordered.is_empty();
        if !turn && let Some(setpoint) = self.latest.take(now) {
            return Some(Next::Latest(setpoint));
        }
        let ordered = self.ordered.pop_front();
        ordered
            .map(Next::Ordered)
            .or_else(|| self.latest.take(now).map(Next::Latest))
    }

    /// Whether the link may take more.
    fn hand_over(&mut self, now: Instant, link: &mut dyn Link, next: Next) -> bool {
        let outgoing = outgoing(next);
        let outcome = link.send(now, &outgoing);
        if let SendOutcome::Refused(refusal) = outcome
            && refusal != Refusal::QueueFull
        {
            self.note(&outgoing.packet, verdict(refusal));
        }
        match outcome {
            SendOutcome::Accepted => {
                self.counters.sent += 1;
                self.setpoint_went_last = matches!(next, Next::Latest(_));
            }
            SendOutcome::Refused(Refusal::QueueFull) => {
                self.put_back(next);
                self.retry = Some(now + RETRY);
                return false;
            }
            SendOutcome::Refused(Refusal::NotConnected) => self.counters.not_connected += 1,
            SendOutcome::Refused(Refusal::Expired) => self.counters.expired += 1,
            SendOutcome::Refused(Refusal::Unsafe(rule)) => self.refuse(rule),
        }
        true
    }

    fn put_back(&mut self, next: Next) {
        match next {
            Next::Urgent(waiting) => self.urgent.push_front(waiting),
            Next::Ordered(waiting) => self.ordered.push_front(waiting),
            Next::Latest(setpoint) => self.latest.put_back(setpoint),
        }
    }

    /// Drops packets that are too old from the heads of the queues.
    fn drop_dead(&mut self, now: Instant) {
        for queue in [&mut self.urgent, &mut self.ordered] {
            while let Some(&dead) = queue.front().filter(|waiting| waiting.is_dead(now)) {
                queue.pop_front();
                self.counters.expired += 1;
                self.tap
                    .note(Moment::Routed, now, &dead.packet, Verdict::Expired);
            }
        }
    }

    fn drop_all(&mut self) {
        if let Some(now) = self.now {
            for waiting in self.urgent.iter().chain(&self.ordered) {
                self.tap
                    .note(Moment::Routed, now, &waiting.packet, Verdict::LinkDown);
            }
        }
        self.counters.not_connected += (self.urgent.len() + self.ordered.len()) as u64;
        self.urgent.clear();
        self.ordered.clear();
        self.latest.clear();
    }
}

fn outgoing(next: Next) -> Outgoing {
    match next {
        Next::Urgent(Waiting { packet, expires }) | Next::Ordered(Waiting { packet, expires }) => {
            Outgoing {
                packet,
                class: Class::Ordered,
                expires,
            }
        }
        Next::Latest(Setpoint {
            key,
            packet,
            expires,
        }) => Outgoing {
            packet,
            class: Class::Latest { key },
            expires: Some(expires),
        },
    }
}

#[cfg(test)]
mod tests;
