//! One end of a CPX link: sync, credit of one frame, queues and timers.
//!
//! Owns who may send when. It does no I/O: feed it with [`Session::handle_bytes`] and
//! [`Session::handle_timeout`], then drain [`Session::recv`], [`Session::poll_event`] and
//! [`Session::poll_transmit`]. It never has two frames in flight, and never resends a frame.

mod config;
mod credit;
mod receive;
mod role;
mod service;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use crtp::Packet;

use crate::cpx::{self, Decoder, FrameBytes, MAX_FRAME, System};
use crate::outbox::{Outbox, SendError};
use credit::Credit;
use service::Service;

pub use config::Config;
pub use role::{Device, Host, Role};

/// Events that wait to be taken; the oldest goes when there are more.
const EVENTS: usize = 32;

/// How far the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was heard of the peer yet.
    Syncing,
    /// Packets flow.
    Up,
    /// Goodbye is on its way until this instant at the latest.
    Closing(Instant),
    /// Over.
    Closed,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer was heard: packets flow from now on.
    Up,
    /// Nothing was heard for so long; trying goes on.
    SyncTimeout(Duration),
    /// The peer has withheld clear-to-send for longer than [`Config::stall_after`].
    Stalled,
    /// Clear-to-send came after a stall.
    Resumed,
    /// Clear-to-send is taken for lost: one frame goes out without it.
    TokenPresumed,
    /// The peer offered clear-to-send that nobody awaited, as after a restart; the greeting is sent again.
    PeerRestarted,
    /// The host sent a SYSTEM message (device only).
    System(System),
}

/// Counters since the session was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// CRTP packets handed out for writing.
    pub sent: u64,
    /// CRTP packets received.
    pub received: u64,
    /// SYSTEM messages handed out for writing.
    pub system_sent: u64,
    /// Clear-to-send tokens handed out for writing.
    pub tokens_sent: u64,
    /// Tokens received while one was held already.
    pub surplus_tokens: u64,
    /// Tokens taken for lost after [`Config::presume_after`].
    pub presumed_tokens: u64,
    /// Times the peer withheld the token for longer than [`Config::stall_after`].
    pub stalls: u64,
    /// Packets replaced by a newer one of the same key before they could leave.
    pub superseded: u64,
    /// Packets that expired before they could leave.
    pub expired: u64,
    /// Packets that waited to be sent when the session was closed or restarted.
    pub discarded: u64,
    /// Frames dropped because the peer sent them without clear-to-send and the inbox was full.
    pub overruns: u64,
    /// Good frames that carry neither CRTP nor a SYSTEM message for this role.
    pub other_frames: u64,
    /// Good frames that should carry CRTP and have 0 or more than 31 bytes.
    pub bad_crtp: u64,
    /// Events lost because nobody took them.
    pub events_lost: u64,
    /// The decoder's counters.
    pub decode: cpx::DecodeStats,
}

/// When a packet passed the stages before it was handed out for writing, for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving<P> {
    /// The packet.
    pub packet: P,
    /// It was handed over.
    pub queued: Instant,
    /// No other packet was before it.
    pub head: Instant,
    /// Clear-to-send was there for it.
    pub clear: Instant,
}

/// A packet that came in, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The packet.
    pub packet: Packet,
    /// The first byte of its frame was read.
    pub began: Instant,
    /// Its frame was whole.
    pub whole: Instant,
}

/// One end of a CPX link, as [`Host`] or as [`Device`].
#[derive(Debug)]
pub struct Session<R: Role> {
    config: Config,
    phase: Phase,
    /// When the sync began.
    since: Instant,
    /// Host: when the present attempt to sync began.
    attempt: Instant,
    /// Host: offers and greetings of this attempt that nobody asked for.
    probes: u32,
    decoder: Decoder,
    credit: Credit,
    service: Service,
    outbox: Outbox<R::Outgoing>,
    inbox: VecDeque<Arrived>,
    /// When the frame that is being read began.
    began: Instant,
    /// When clear-to-send came last, and when a packet left last.
    granted: Instant,
    left: Instant,
    leaving: Option<Leaving<R::Outgoing>>,
    /// SYSTEM messages to send before any packet.
    system: ArrayVec<System, 4>,
    /// Clear-to-send is to be written.
    owed: bool,
    /// When bytes came last.
    heard: Instant,
    /// When a data frame came or a token was offered last.
    offered: Instant,
    /// Host: the peer was heard before, so it may be silent although it is there.
    known: bool,
    /// Host: when the greeting was queued last.
    greeted: Option<Instant>,
    /// When the next [`Event::SyncTimeout`] is due, counted from `since`.
    patience: Duration,
    events: VecDeque<Event>,
    stats: Stats,
    out: ArrayVec<u8, { MAX_FRAME + 2 }>,
}

impl Session<Host> {
    /// The host's end. It listens first; see [`Config::listen`].
    #[must_use]
    pub fn host(config: Config, now: Instant) -> Self {
        Self::new(config, now)
    }
}

impl Session<Device> {
    /// A drone's end, just switched on: it offers clear-to-send until the host answers.
    #[must_use]
    pub fn device(config: Config, now: Instant) -> Self {
        let mut session = Self::new(config, now);
        session.owed = true;
        session
    }
}

impl<R: Role> Session<R> {
    fn new(config: Config, now: Instant) -> Self {
        Self {
            phase: Phase::Syncing,
            since: now,
            attempt: now,
            probes: 0,
            decoder: Decoder::new(),
            credit: Credit::default(),
            service: Service::default(),
            outbox: Outbox::new(config.outbox),
            inbox: VecDeque::with_capacity(config.inbox + 1),
            began: now,
            granted: now,
            left: now,
            leaving: None,
            system: ArrayVec::new(),
            owed: false,
            heard: now,
            offered: now,
            known: false,
            greeted: None,
            patience: config.sync_timeout,
            events: VecDeque::with_capacity(EVENTS),
            stats: Stats::default(),
            out: ArrayVec::new(),
            config,
        }
    }

    /// Begins again from the sync, as after the port was opened anew or the drone was switched on. Waiting
    /// packets to send are dropped and counted as discarded; received packets and counters stay.
    pub fn restart(&mut self, now: Instant) {
        self.outbox.clear();
        self.system.clear();
        self.decoder.reset();
        self.credit = Credit::default();
        self.service = Service::default();
        self.owed = !R::IS_HOST;
        self.phase = Phase::Syncing;
        (self.since, self.attempt, self.probes) = (now, now, 0);
        (self.heard, self.offered) = (now, now);
        self.patience = self.config.sync_timeout;
    }

    /// Hands over a packet. With a `key` (0 to 15) it goes into that mailbox, where only the newest waits;
    /// without it goes into the queue of ordered packets. It is never sent after `expires`.
    ///
    /// # Errors
    /// [`SendError`]; the packet is dropped.
    pub fn send(
        &mut self,
        now: Instant,
        packet: R::Outgoing,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError> {
        if self.phase != Phase::Up {
            return Err(SendError::NotUp);
        }
        if expires.is_some_and(|at| at <= now) {
            return Err(SendError::Expired);
        }
        self.outbox.push(now, packet, key, expires)
    }

    /// Says goodbye: the host tells the drone that no client is connected and that CRTP is back on the radio.
    /// Waiting packets are dropped. Over when [`Session::phase`] says [`Phase::Closed`], at the latest after
    /// [`Config::linger`].
    pub fn close(&mut self, now: Instant) {
        self.outbox.clear();
        self.system.clear();
        let greets = R::IS_HOST && self.phase == Phase::Up;
        self.phase = if greets {
            Phase::Closing(now + self.config.linger)
        } else {
            Phase::Closed
        };
        if greets {
            self.system.push(System::ClientConnected(false));
            self.system.push(System::UseThisLink(false));
        }
    }

    /// Ends at once, without a goodbye.
    pub fn abort(&mut self) {
        self.outbox.clear();
        self.system.clear();
        self.phase = Phase::Closed;
    }

    /// The next packet that came in. Taking it may make clear-to-send due: call
    /// [`Session::poll_transmit`] afterwards.
    pub fn recv(&mut self) -> Option<Packet> {
        self.recv_stamped().map(|arrived| arrived.packet)
    }

    /// Like [`Session::recv`], with the times of its bytes.
    pub fn recv_stamped(&mut self) -> Option<Arrived> {
        let was_full = self.inbox.len() > self.config.inbox;
        let arrived = self.inbox.pop_front()?;
        self.owed |= was_full;
        Some(arrived)
    }

    /// The packet that the last [`Session::poll_transmit`] handed out, once.
    pub fn take_leaving(&mut self) -> Option<Leaving<R::Outgoing>> {
        self.leaving.take()
    }

    /// The next bytes to write: clear-to-send, a frame, or both at once. They count as written; the driver
    /// writes all of them in order before it asks again.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.out.clear();
        if std::mem::take(&mut self.owed) {
            self.out.extend(cpx::CLEAR_TO_SEND);
            self.stats.tokens_sent += 1;
            self.offered = now;
        }
        if let Some(frame) = self.next_frame(now) {
            self.out.extend(frame);
            self.credit.spend(now);
        }
        (!self.out.is_empty()).then_some(&self.out[..])
    }

    fn next_frame(&mut self, now: Instant) -> Option<FrameBytes> {
        if !self.credit.may_send() {
            return None;
        }
        if let Some(message) = self.system.pop_at(0) {
            self.stats.system_sent += 1;
            self.end_when_said();
            return Some(cpx::system(message));
        }
        if self.phase != Phase::Up {
            return None;
        }
        let (packet, queued) = self.outbox.pop(now)?;
        let head = queued.max(self.left);
        let clear = head.max(self.granted);
        self.leaving = Some(Leaving {
            packet,
            queued,
            head,
            clear,
        });
        self.left = now;
        self.stats.sent += 1;
        Some(R::encode(&packet))
    }

    fn end_when_said(&mut self) {
        if matches!(self.phase, Phase::Closing(_)) && self.system.is_empty() {
            self.phase = Phase::Closed;
        }
    }

    /// The next event for logs and policies.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
            self.stats.events_lost += 1;
        }
        self.events.push_back(event);
    }

    /// How far the session is.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Packets that were accepted and not handed out for writing.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// How long the peer takes for a frame lately, from its first byte to clear-to-send: one packet in this time is what the
    /// link carries. `None` before the first answer.
    #[must_use]
    pub const fn service_time(&self) -> Option<Duration> {
        self.service.time()
    }

    /// Whether a frame handed in now could leave at once.
    #[must_use]
    pub const fn may_send(&self) -> bool {
        self.credit.may_send()
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let drops = self.outbox.drops();
        Stats {
            superseded: drops.superseded,
            expired: drops.expired,
            discarded: drops.discarded,
            decode: self.decoder.stats(),
            ..self.stats
        }
    }
}
