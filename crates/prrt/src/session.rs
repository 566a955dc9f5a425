//! An established connection: ties the sending and receiving halves to one path and one sequence of datagrams. Knows
//! neither sockets nor how the connection came about. After every call that takes `&mut self`, drain
//! [`Session::poll_transmit`] before asking [`Session::poll_timeout`].

mod input;
mod transmit;

use std::time::{Duration, Instant};

use crate::ack::AckState;
use crate::config::Config;
use crate::error::SendError;
use crate::expect::Expectations;
use crate::message::{Delivery, Departure, Message, MessageId, Mode, Stream};
use crate::pace::{Beat, Teller};
use crate::path::PathState;
use crate::payload::Payload;
use crate::proof::Proof;
use crate::receiver::Receiver;
use crate::seal::{Seal, TAG_LEN};
use crate::sender::Sender;
use crate::sent::SentLog;
use crate::seq::Seq;
use crate::stats::{Paces, Stats};
use crate::time::Epoch;
use crate::trace::{Trace, Traces};
use crate::wire::frame::CloseReason;
use crate::wire::{ConnectionId, DATA_HEAD};

/// Bytes of a datagram kept free for a short acknowledgement next to a fragment.
const ACK_ROOM: usize = 16;
/// Bytes of the time stamp at the start of a body.
const STAMP_LEN: usize = 4;

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// What a session needs from the handshake.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) role: Role,
    pub(crate) local: ConnectionId,
    pub(crate) remote: ConnectionId,
    pub(crate) epoch: Epoch,
    /// Round trip of the handshake, where this end could measure it.
    pub(crate) rtt: Option<Duration>,
    /// Keys of both directions; `None` for plain text.
    pub(crate) seal: Option<Seal>,
}

/// Congestion marks of both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// On what we received, and how many of them the peer has been told.
    seen: u32,
    told: u32,
    /// On what we sent, as the peer tells.
    ours: u32,
}

/// State of an established connection.
#[derive(Debug)]
pub(crate) struct Session {
    role: Role,
    remote: ConnectionId,
    epoch: Epoch,
    /// Bytes of a datagram up to the tag.
    room: usize,
    seal: Option<Seal>,
    piggyback_below: usize,
    keep_alive: Duration,
    idle_timeout: Duration,
    path: PathState,
    acks: AckState,
    sent: SentLog,
    sender: Sender,
    receiver: Receiver,
    expected: Expectations,
    /// Datagrams with messages that left.
    departures: Beat,
    teller: Teller,
    marks: Marks,
    /// The peer has moved and not yet proven that it receives there.
    proof: Option<Proof>,
    /// A challenge of the peer that is to be answered.
    answer: Option<u64>,
    /// What the application says of what is behind it.
    behind: Option<Duration>,
    last_heard: Instant,
    last_sent: Instant,
    /// When something left that the peer has to answer.
    last_asked: Instant,
    ping: bool,
    /// Something of ours has been acknowledged.
    heard_ack: bool,
    /// What kept the last `poll_transmit` from sending more, until when.
    blocked: Option<(Instant, &'static str)>,
    closing: Option<CloseReason>,
    closed: Option<CloseReason>,
    stats: Stats,
}

impl Session {
    pub(crate) fn new(now: Instant, config: &Config, setup: Setup) -> Self {
        let room = config.max_datagram - if setup.seal.is_some() { TAG_LEN } else { 0 };
        let frames = room - DATA_HEAD - STAMP_LEN - ACK_ROOM;
        let mut path = PathState::new(now, config.max_datagram);
        if let Some(rtt) = setup.rtt {
            path.rtt.sample(now, rtt, Duration::ZERO);
        }
        Self {
            role: setup.role,
            remote: setup.remote,
            epoch: setup.epoch,
            room,
            seal: setup.seal,
            piggyback_below: config.piggyback_below,
            keep_alive: config.keep_alive,
            idle_timeout: config.idle_timeout,
            path,
            acks: AckState::new(),
            sent: SentLog::default(),
            sender: Sender::new(config, frames, Seq::new(setup.remote.0)),
            receiver: Receiver::new(config, Seq::new(setup.local.0)),
            expected: Expectations::default(),
            departures: Beat::default(),
            teller: Teller::default(),
            marks: Marks::default(),
            proof: None,
            answer: None,
            behind: None,
            last_heard: now,
            last_sent: now,
            last_asked: now,
            ping: true,
            heard_ack: false,
            blocked: None,
            closing: None,
            closed: None,
            stats: Stats::default(),
        }
    }

    /// The next thing that happened to a message, where that is collected.
    pub(crate) fn poll_trace(&mut self) -> Option<Trace> {
        self.sender.traces.pop()
    }

    /// Begins to collect what happens to messages, or stops.
    pub(crate) fn set_trace(&mut self, on: bool) {
        self.sender.traces = Traces::new(on);
    }

    /// Queues a message.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        stream: Stream,
        life: Option<Duration>,
        payload: Payload,
    ) -> Result<MessageId, SendError> {
        if self.closing.is_some() || self.closed.is_some() {
            return Err(SendError::Closed);
        }
        self.sender.push(now, stream, life, payload)
    }

    /// Whether a message has left yet.
    pub(crate) fn departure(&self, id: MessageId) -> Departure {
        self.sender.departure(id)
    }

    /// The next message for the reader.
    pub(crate) fn recv(&mut self, now: Instant, mode: Mode) -> Option<Message> {
        self.receiver.recv(now, mode)
    }

    /// The next message or gap for the reader.
    pub(crate) fn recv_with_gaps(&mut self, now: Instant, window: Duration) -> Option<Delivery> {
        self.receiver.recv_with_gaps(now, window)
    }

    /// Whether something waits for the reader.
    pub(crate) const fn has_unread(&self) -> bool {
        self.receiver.has_unread()
    }

    /// Says goodbye with the next datagram.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        if self.closed.is_none() {
            self.closing = Some(reason);
        }
    }

    /// Ends it without a goodbye.
    pub(crate) fn end(&mut self, reason: CloseReason) {
        self.closed.get_or_insert(reason);
    }

    /// Whether a datagram with this low half of its number is under way.
    pub(crate) fn awaits(&self, low: u32) -> bool {
        self.sent.awaits(low)
    }

    /// Why the connection has ended, once it has.
    pub(crate) const fn closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Lets everything happen that is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.receiver.forget_unwanted(now);
        self.receiver.announce(now);
        self.expected.handle_timeout(now);
        self.review(now);
        if now >= self.idle_at() && self.closed.is_none() {
            self.closed = Some(CloseReason::Silence);
        }
        self.ping |= now >= self.ping_at();
    }

    /// Early signs of loss and final verdicts.
    fn review(&mut self, now: Instant) {
        let Self {
            sent, sender, path, ..
        } = self;
        sent.check_lost(now, path.rtt.timeout(), |number, part| {
            sender.on_lost(number, part)
        });
        sent.judge(now, path.horizon(), |at, lost| path.loss.judge(at, lost));
    }

    /// When the peer counts as gone.
    pub(crate) fn idle_at(&self) -> Instant {
        self.last_heard + self.idle_timeout
    }

    /// The two ends take turns: the client speaks up first.
    fn ping_at(&self) -> Instant {
        if !self.heard_ack {
            return self.last_asked + self.path.rtt.timeout();
        }
        let patience = match self.role {
            Role::Client => self.keep_alive,
            Role::Server => self.keep_alive * 3 / 2,
        };
        self.last_sent.min(self.last_heard).max(self.last_asked) + patience
    }

    /// When [`Session::handle_timeout`] or [`Session::poll_transmit`] has something to do, and why.
    pub(crate) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.closed.is_some() {
            return None;
        }
        let losses = if self.sender.bulk_open() {
            self.sent.next_check(self.path.rtt.timeout())
        } else {
            None
        };
        let optional = [
            (self.sender.next_timer(), "repair or expiry"),
            (self.acks.due(), "acknowledgement"),
            (self.expected.next(), "overdue message"),
            (
                self.proof.as_ref().map(Proof::next),
                "proof of the peer's address",
            ),
            (
                self.receiver.next_deadline(),
                "end of waiting for a missing message",
            ),
            (losses, "sign of loss"),
        ];
        let fixed = [
            (self.idle_at(), "idle time-out"),
            (self.ping_at(), "keep-alive"),
        ];
        let optional = optional
            .into_iter()
            .filter_map(|(at, why)| at.map(|at| (at, why)));
        optional
            .chain(self.blocked)
            .chain(fixed)
            .min_by_key(|&(at, _)| at)
    }

    /// Whether a radio on the way seems to sleep, if that has not been told.
    pub(crate) const fn take_suspicion(&mut self) -> bool {
        std::mem::replace(&mut self.path.asleep, false)
    }

    /// The peer's newest datagram, of `len` bytes, came from another address than before; `token` is a random challenge.
    pub(crate) const fn on_moved(&mut self, now: Instant, token: u64, len: usize) {
        self.proof = Some(Proof::new(now, token, len));
    }

    /// A datagram arrived with a congestion mark.
    pub(crate) const fn on_mark(&mut self) {
        self.marks.seen = self.marks.seen.wrapping_add(1);
    }

    /// The application tells how long what is behind it takes for each message.
    pub(crate) const fn set_behind(&mut self, pace: Option<Duration>) {
        self.behind = pace;
    }

    /// Time per message that the peer's reader needs, if it is a limit.
    pub(crate) const fn peer_pace(&self) -> Option<Duration> {
        self.sender.limit.pace()
    }

    /// Time per message that our reader, or what is behind it, needs; `None` while it is no limit.
    fn reader_pace(&mut self, now: Instant) -> Option<Duration> {
        self.receiver.reader.pace(now).max(self.behind)
    }

    fn paces(&self, now: Instant) -> Paces {
        let mean = self.stats.bytes_sent.checked_div(self.stats.datagrams_sent);
        let rate = self.path.bandwidth.found_rate();
        let mut reader = self.receiver.reader;
        Paces {
            application: self.sender.births.mean(),
            transport: self.departures.mean(),
            network: mean.zip(rate).map(|(bytes, rate)| {
                Duration::from_secs_f64((bytes as f64 / rate.max(1.0)).min(1e3))
            }),
            receiver: self.sender.limit.pace(),
            reader: reader.pace(now).max(self.behind),
        }
    }

    /// Messages and bytes queued or in flight.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.sender.load()
    }

    /// Counters and figures.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            send: self.sender.stats,
            receive: self.receiver.stats(),
            rtt: self.path.rtt_stats(),
            debt: self.sender.debt.owed(),
            raw_loss: self.path.loss.total(),
            burst: self.path.loss.burst(),
            spikes: self.path.spikes.total(),
            paces: self.paces(self.last_heard.max(self.last_sent)),
            encoder_bps: self
                .path
                .bandwidth
                .found_rate()
                .map(|rate| (rate * 8.0 * 0.85) as u64),
            bottleneck_bps: self
                .path
                .bandwidth
                .estimate()
                .map(|rate| (rate * 8.0) as u64),
            ..self.stats
        }
    }
}
