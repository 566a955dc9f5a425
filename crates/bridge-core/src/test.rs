//! What the tests of this crate share: packets from hex, and a link in memory whose far end is the test.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::Packet;
use link::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State, class_of,
};

/// The packet in these hex digits.
pub(crate) fn packet(hex: &str) -> Packet {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
    Packet::from_bytes(&bytes).unwrap()
}

/// A packet as a link delivers it.
pub(crate) fn received(hex: &str, at: Instant) -> Received {
    let packet = packet(hex);
    Received {
        packet,
        class: class_of(&packet),
        at,
        expires: None,
    }
}

/// A link whose far end is the test.
#[derive(Debug)]
pub(crate) struct MemoryLink {
    pub(crate) state: State,
    /// What to answer to the next packets instead of taking them.
    pub(crate) refusal: Option<Refusal>,
    /// Packets are written only when the test says so with [`MemoryLink::write_one`].
    pub(crate) slow: bool,
    pub(crate) pending: VecDeque<Outgoing>,
    pub(crate) written: Vec<String>,
    pub(crate) inbox: VecDeque<Received>,
    pub(crate) events: VecDeque<Event>,
    /// What it takes for a packet.
    pub(crate) pace: Option<Duration>,
    /// What it was told of the link behind it.
    pub(crate) behind: Option<Duration>,
}

impl MemoryLink {
    pub(crate) fn up() -> Self {
        Self {
            state: State::Up,
            refusal: None,
            slow: false,
            pending: VecDeque::new(),
            written: Vec::new(),
            inbox: VecDeque::new(),
            events: VecDeque::new(),
            pace: None,
            behind: None,
        }
    }

    pub(crate) fn write_one(&mut self) {
        self.written.extend(
            self.pending
                .pop_front()
                .map(|next| format!("{:?}", next.packet)),
        );
    }

    pub(crate) fn take_written(&mut self) -> Vec<String> {
        std::mem::take(&mut self.written)
    }
}

impl Link for MemoryLink {
    fn interests(&self, _out: &mut Vec<Interest>) {}
    fn handle_ready(&mut self, _now: Instant) {}
    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    fn pace(&self) -> Option<Duration> {
        self.pace
    }

    fn set_reader_pace(&mut self, pace: Option<Duration>) {
        self.behind = pace;
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        self.inbox.pop_front()
    }

    fn send(&mut self, _now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if let Some(refusal) = self.refusal {
            return SendOutcome::Refused(refusal);
        }
        self.pending.push_back(*outgoing);
        if !self.slow {
            self.write_one();
        }
        SendOutcome::Accepted
    }

    fn backlog(&self) -> usize {
        self.pending.len()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> State {
        self.state
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }

    fn close(&mut self, _now: Instant) {
        self.state = State::Closed;
    }
}
