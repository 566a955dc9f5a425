//! The contract between a link and the loop that drives it.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crtp::Packet;

use crate::tap::LinkTap;

/// How a packet is to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Newest wins: setpoints. A packet is dropped once a newer one of the same `key` is offered, and never
    /// sent after its expiry. `key` names the mailbox (see `bridge_core::mailbox`).
    Latest {
        /// Mailbox number, 0 to 15.
        key: u8,
    },
    /// Reliable and in order per CRTP port: everything else.
    Ordered,
}

/// A packet on its way out, with how and until when it is worth sending.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The packet.
    pub packet: Packet,
    /// How to carry it.
    pub class: Class,
    /// After this instant the packet must not be sent (nor delivered, where the link can tell). `None`: never
    /// expires.
    pub expires: Option<Instant>,
}

/// A packet that came in.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The packet.
    pub packet: Packet,
    /// How it was carried; links without classes derive it from the CRTP port.
    pub class: Class,
    /// When the bytes became readable here.
    pub at: Instant,
    /// Until when it is of use, on this host's clock, where the sender said so.
    pub expires: Option<Instant>,
}

/// Why a link did not take a packet. Each is counted in [`LinkStats`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The gate refused it: it could crash the drone. The text names the rule.
    Unsafe(&'static str),
    /// The bounded queue is full.
    QueueFull,
    /// The link is not up.
    NotConnected,
    /// It was already too old.
    Expired,
}

/// What became of a packet that was handed to [`Link::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It left or is queued; a `Latest` packet may have replaced an older one (counted as superseded).
    Accepted,
    /// It was dropped.
    Refused(Refusal),
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Opening, listening or shaking hands.
    Connecting,
    /// Packets flow.
    Up,
    /// Lost; the link tries again by itself.
    Down,
    /// Closed for good.
    Closed,
}

/// Something that happened to a link, for logs and policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Packets flow from now on. The text names the peer and what took effect (baud, low latency, …).
    Up(String),
    /// The link is lost. The text says why, for a person.
    Down(String),
    /// Worth one line in a log.
    Notice(String),
}

/// Counters of one link since it was opened. Every packet that is dropped is in exactly one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// CRTP packets written to the medium.
    pub sent: u64,
    /// CRTP packets received whole.
    pub received: u64,
    /// Dropped on sending: refused by the gate.
    pub dropped_unsafe: u64,
    /// Dropped on sending: queue full.
    pub dropped_full: u64,
    /// Dropped on sending: link not up.
    pub dropped_down: u64,
    /// Dropped on sending: expired before it could leave.
    pub dropped_expired: u64,
    /// Dropped on sending: replaced by a newer packet of the same key.
    pub superseded: u64,
    /// Received frames that were damaged or no CRTP.
    pub bad_frames: u64,
    /// Received packets of somebody who has not opened as a client does, or while another client is served.
    pub strangers: u64,
    /// Times the peer gave no clear-to-send for longer than the stall limit.
    pub stalls: u64,
    /// Times the link was opened again after a loss.
    pub reopened: u64,
}

/// What a transport knows of the path to its peer. A figure that nothing has been measured for is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Share of our datagrams lost on the way, before repair, 0 to 1.
    pub raw_loss: Option<f64>,
    /// Share of our messages lost for good, after repair, 0 to 1.
    pub residual_loss: Option<f64>,
    /// Copies and repairs sent for each message.
    pub redundancy: Option<f64>,
}

impl LinkStats {
    /// Counts a packet that was dropped on sending.
    pub fn count(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::Unsafe(_) => self.dropped_unsafe += 1,
            Refusal::QueueFull => self.dropped_full += 1,
            Refusal::NotConnected => self.dropped_down += 1,
            Refusal::Expired => self.dropped_expired += 1,
        }
    }
}

/// How a packet is to be carried by its kind alone: setpoints newest first, everything else in order.
#[must_use]
pub fn class_of(packet: &Packet) -> Class {
    crtp::mailbox_key(packet).map_or(Class::Ordered, |key| Class::Latest { key })
}

/// A file descriptor to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The descriptor; it stays open until the next call of a `&mut` method of the link.
    pub fd: RawFd,
    /// Wake when it can be read.
    pub read: bool,
    /// Wake when it can be written.
    pub write: bool,
}

/// One end of a CRTP path. After every call of a `&mut` method, drain [`Link::recv`] and [`Link::poll_event`]
/// and ask [`Link::poll_timeout`] again.
pub trait Link: Send {
    /// Appends the descriptors to wait for; none while the link is closed or waits to be opened again.
    fn interests(&self, out: &mut Vec<Interest>);

    /// Some descriptor of [`Link::interests`] is ready: reads and writes whatever is possible without blocking.
    fn handle_ready(&mut self, now: Instant);

    /// The instant of [`Link::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Instant);

    /// When [`Link::handle_timeout`] is due next, and why.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;

    /// The next packet that came in.
    fn recv(&mut self, now: Instant) -> Option<Received>;

    /// Hands over a packet. Links that lead to a drone put it through the gate first.
    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome;

    /// Writes what may leave after the packets of a turn: acknowledgements and clear-to-send. Forwarding comes
    /// first, because each of these wakes a peer that competes for the processor. The loop calls it before it waits.
    fn flush(&mut self, _now: Instant) {}

    /// Packets that were accepted and are not written yet. A sender that waits for 0 decides the order itself
    /// and leaves nothing stale in the link's own queue.
    fn backlog(&self) -> usize {
        0
    }

    /// The next event for logs and policies.
    fn poll_event(&mut self) -> Option<Event>;

    /// State now.
    fn state(&self) -> State;

    /// Counters since the link was opened.
    fn stats(&self) -> LinkStats;

    /// Share of what was sent lately that arrived at the first attempt, 0 to 1; `None` where the link cannot tell.
    fn quality(&self) -> Option<f64> {
        None
    }

    /// What the transport knows of its path; `None` where the link has none or nobody is there.
    fn path(&self) -> Option<Path> {
        None
    }

    /// Time this link takes for each packet lately, where it knows: more than one packet in this time waits or is
    /// superseded.
    fn pace(&self) -> Option<Duration> {
        None
    }

    /// Tells the senders at the other end what lies behind this one: one packet in `pace` is all that it takes. A link
    /// without a way to tell them does nothing.
    fn set_reader_pace(&mut self, _pace: Option<Duration>) {}

    /// Records from now on what happens to packets. A link that records nothing drops the tap.
    fn set_tap(&mut self, _tap: LinkTap) {}

    /// Says goodbye to the peer where the protocol has a way to, and closes. Does not block.
    fn close(&mut self, now: Instant);
}
