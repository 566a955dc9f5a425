//! The sending half: accepts messages into bounded queues, decides what leaves next, plans repairs, and lets messages die
//! at their own deadline. Writes frames, never datagrams, and reads no clock.

mod budget;
mod coded;
mod outgoing;
mod rhythm;
mod streams;
mod timers;
mod write;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use crate::code::MAX_SYMBOLS;
use crate::config::{Config, Repair};
use crate::debt::Debt;
use crate::error::SendError;
use crate::message::{Departure, MessageId, Stream};
use crate::pace::{Beat, Limit};
use crate::payload::Payload;
use crate::planner::Path;
use crate::sent::PartRef;
use crate::seq::{PacketNumber, Seq};
use crate::slab::{Key, Slab};
use crate::stats::SendStats;
use crate::time::MAX_LIFE;
use crate::trace::{Fate, Trace, Traces};
use crate::wire::frame::part_overhead;
use budget::Budget;
use outgoing::Outgoing;
pub(crate) use outgoing::{Lane, State};
use streams::{LatestTx, OrderedTx};

/// Messages that died before they left, remembered for whoever waits for their departure.
const MAX_DROPPED: usize = 32;
/// Small messages remembered for riding along.
const RECENT: usize = 8;

/// At most one repair on request in this time.
const REQUEST_SPACING: Duration = Duration::from_millis(2);
/// Least time a late acknowledgement is waited for.
const MIN_LINGER: Duration = Duration::from_millis(100);

/// What the sender needs to know at the moment of writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) now: Instant,
    pub(crate) number: PacketNumber,
    pub(crate) path: &'a Path,
    /// The path loses so little that steady streams need no acknowledgement each.
    pub(crate) sparse: bool,
}

/// Queues and plans of one connection.
#[derive(Debug)]
pub(crate) struct Sender {
    config: Config,
    fragment: usize,
    first_seq: Seq,
    messages: Slab<Outgoing>,
    /// Messages that are worked on, and their bytes.
    active: usize,
    bytes: usize,
    /// Messages of which fragments are under way.
    bulk_open: usize,
    /// How long a late acknowledgement is waited for.
    linger: Duration,
    latest: Vec<LatestTx>,
    ordered: Vec<OrderedTx>,
    turn: usize,
    timers: BinaryHeap<Reverse<(Instant, Key)>>,
    due: VecDeque<Key>,
    bulk: VecDeque<Key>,
    recent: VecDeque<Key>,
    budget: Budget,
    pub(crate) debt: Debt,
    /// What the peer's reader allows.
    pub(crate) limit: Limit,
    /// Messages handed over by the application.
    pub(crate) births: Beat,
    /// Messages that lately died before they left.
    dropped: VecDeque<MessageId>,
    pub(crate) traces: Traces,
    pub(crate) stats: SendStats,
}

impl Sender {
    /// `room` is what a datagram has left for frames; `first_seq` is where every stream begins.
    pub(crate) fn new(config: &Config, room: usize, first_seq: Seq) -> Self {
        Self {
            config: config.clone(),
            fragment: room.saturating_sub(part_overhead(true, true)).max(1),
            first_seq,
            messages: Slab::default(),
            active: 0,
            bytes: 0,
            bulk_open: 0,
            linger: MIN_LINGER,
            latest: Vec::new(),
            ordered: Vec::new(),
            turn: 0,
            timers: BinaryHeap::new(),
            due: VecDeque::new(),
            bulk: VecDeque::new(),
            recent: VecDeque::with_capacity(RECENT + 1),
            budget: Budget::new(config.max_redundancy),
            debt: Debt::default(),
            limit: Limit::default(),
            births: Beat::default(),
            dropped: VecDeque::with_capacity(MAX_DROPPED),
            traces: Traces::new(config.trace),
            stats: SendStats::default(),
        }
    }

    /// Queues a message.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        stream: Stream,
        life: Option<Duration>,
        payload: Payload,
    ) -> Result<MessageId, SendError> {
        self.check(stream, life, payload.len())?;
        let len = payload.len();
        self.births.on_event(now);
        let (seq, period) = self.take_seq(now, stream);
        let id = MessageId { stream, seq };
        let mut message = Outgoing::new(id, payload, now, life, self.fragment);
        message.period = period;
        if let Some(bulk) = message.bulk.as_mut().filter(|_| life.is_some()) {
            match &self.config.repair {
                Repair::Vector(vector) => bulk.set_vector(vector),
                Repair::Never => bulk.set_vector(&[]),
                Repair::Spread => {}
            }
        }
        let key = self.messages.insert(message);
        self.bytes += len;
        self.active += 1;
        self.stats.messages += 1;
        self.enqueue(now, stream, seq, key);
        if let Some(at) = self.messages.get(key).and_then(|message| message.timer) {
            self.timers.push(Reverse((at, key)));
        }
        Ok(id)
    }

    fn check(&self, stream: Stream, life: Option<Duration>, len: usize) -> Result<(), SendError> {
        let parts = match stream {
            Stream::Latest(_) | Stream::Ordered(_) => usize::from(u16::MAX),
            Stream::Frame(_) => MAX_SYMBOLS / 2,
        };
        let max = self.config.max_message.min(self.fragment * parts);
        if len > max {
            return Err(SendError::TooLarge { len, max });
        }
        if let Some(life) = life.filter(|&life| life.is_zero() || life > MAX_LIFE) {
            return Err(SendError::Life(life));
        }
        let messages = self.active;
        let full =
            messages >= self.config.send_messages || self.bytes + len > self.config.send_bytes;
        if full && !self.replaces(stream) {
            return Err(SendError::Full {
                messages,
                bytes: self.bytes,
            });
        }
        Ok(())
    }

    /// Whether a message on `stream` would take the place of one that is still queued.
    fn replaces(&self, stream: Stream) -> bool {
        let Stream::Latest(id) = stream else {
            return false;
        };
        let current = self
            .latest
            .iter()
            .find(|tx| tx.id == id)
            .and_then(|tx| tx.current);
        current
            .and_then(|key| self.messages.get(key))
            .is_some_and(|message| message.state == State::Queued)
    }

    /// The number of a message born now, and the rhythm of its stream.
    fn take_seq(&mut self, now: Instant, stream: Stream) -> (Seq, Option<Duration>) {
        let (next, rhythm) = match stream {
            Stream::Latest(id) => {
                let tx = self.latest_mut(id);
                (&mut tx.next, &mut tx.rhythm)
            }
            Stream::Ordered(_) | Stream::Frame(_) => {
                let tx = self.ordered_mut(stream);
                (&mut tx.next, &mut tx.rhythm)
            }
        };
        rhythm.on_birth(now);
        let seq = *next;
        *next = seq.next();
        (seq, rhythm.period())
    }

    fn latest_mut(&mut self, id: u8) -> &mut LatestTx {
        let at = self
            .latest
            .binary_search_by_key(&id, |tx| tx.id)
            .unwrap_or_else(|at| {
                self.latest.insert(at, LatestTx::new(id, self.first_seq));
                at
            });
        &mut self.latest[at]
    }

    fn ordered_mut(&mut self, stream: Stream) -> &mut OrderedTx {
        let at = self
            .ordered
            .binary_search_by_key(&stream, |tx| tx.stream)
            .unwrap_or_else(|at| {
                self.ordered
                    .insert(at, OrderedTx::new(stream, self.first_seq));
                at
            });
        &mut self.ordered[at]
    }

    fn enqueue(&mut self, now: Instant, stream: Stream, seq: Seq, key: Key) {
        match stream {
            Stream::Ordered(_) | Stream::Frame(_) => {
                self.ordered_mut(stream).queue.push_back((seq, key))
            }
            Stream::Latest(id) => {
                if let Some(old) = self.latest_mut(id).current.replace(key) {
                    self.supersede(now, old);
                }
            }
        }
    }

    fn supersede(&mut self, now: Instant, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        if message.alive() {
            message.superseded = true;
            let unsent = message.state == State::Queued;
            self.stats.superseded += 1;
            self.stats.superseded_unsent += u64::from(unsent);
            if unsent {
                self.trace(now, key, Fate::Superseded);
            }
            self.give_up(now, key);
        }
    }

    /// For a log that asked for it.
    fn trace(&mut self, now: Instant, key: Key, fate: Fate) {
        if !self.traces.is_on() {
            return;
        }
        if let Some(message) = self.messages.get(key) {
            self.traces.push(Trace {
                at: now,
                stream: message.id.stream,
                seq: message.id.seq,
                attempt: message.attempts.min(255) as u8,
                fate,
                data: message.payload.clone(),
            });
        }
    }

    /// Stops work on a message. One that was sent lingers to learn whether it arrived.
    fn give_up(&mut self, now: Instant, key: Key) {
        self.release(key);
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        if message.state == State::Queued {
            let id = message.id;
            self.messages.remove(key);
            self.note_dropped(id);
            return;
        }
        message.state = State::Dying;
        self.set_timer(key, now + self.linger);
    }

    fn note_dropped(&mut self, id: MessageId) {
        if self.dropped.len() >= MAX_DROPPED {
            self.dropped.pop_front();
        }
        self.dropped.push_back(id);
    }

    /// Gives back what an active message occupies.
    fn release(&mut self, key: Key) {
        let Some(message) = self.messages.get_mut(key).filter(|message| message.alive()) else {
            return;
        };
        self.active -= 1;
        self.bytes -= message.payload.len();
        message.payload = Payload::copy_of(&[]);
        let fragments = message.bulk.take().is_some() && message.state == State::Flying;
        self.bulk_open -= usize::from(fragments);
    }

    /// Tells how long acknowledgements take at most on this path.
    pub(crate) fn set_linger(&mut self, linger: Duration) {
        self.linger = linger.max(MIN_LINGER);
    }

    fn alive(&self, key: Key) -> bool {
        self.messages.get(key).is_some_and(Outgoing::alive)
    }

    /// A part arrived.
    pub(crate) fn on_acked(&mut self, part: PartRef) {
        let Some(message) = self.messages.get_mut(part.key) else {
            return;
        };
        if message
            .bulk
            .as_mut()
            .is_some_and(|bulk| !bulk.ack(part.fragment))
        {
            return;
        }
        if message.large && !message.alive() {
            return;
        }
        self.stats.confirmed += u64::from(!message.superseded);
        if !message.superseded && !message.large {
            self.debt.on_fate(false, false);
        }
        self.release(part.key);
        self.messages.remove(part.key);
    }

    /// The receiver misses a message. One that first left less than a round trip ago may have crossed the request, and
    /// requests in quick succession bring one repair.
    pub(crate) fn on_request(&mut self, now: Instant, min_rtt: Duration, stream: Stream, seq: Seq) {
        let Some(key) = self.find(stream, seq) else {
            return;
        };
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        let crossed = message
            .first_sent
            .is_none_or(|at| now.saturating_duration_since(at) < min_rtt);
        let repaired = message
            .last_sent
            .is_some_and(|at| now.saturating_duration_since(at) < REQUEST_SPACING);
        if message.sparse && !crossed && !repaired {
            self.make_due(key);
        }
    }

    fn find(&self, stream: Stream, seq: Seq) -> Option<Key> {
        let is_it = |key: &Key| self.messages.get(*key).is_some_and(|m| m.id.seq == seq);
        match stream {
            Stream::Latest(id) => {
                let tx = self.latest.iter().find(|tx| tx.id == id)?;
                tx.current.filter(is_it)
            }
            Stream::Ordered(_) | Stream::Frame(_) => {
                let tx = self.ordered.iter().find(|tx| tx.stream == stream)?;
                let found = tx.open.iter().find(|(other, _)| *other == seq)?;
                Some(found.1).filter(is_it)
            }
        }
    }

    /// Whether the receiver does not acknowledge a message by itself.
    pub(crate) fn is_sparse(&self, key: Key) -> bool {
        self.messages.get(key).is_some_and(|message| message.sparse)
    }

    /// A datagram with a part seems lost. Whole messages have their own plan.
    pub(crate) fn on_lost(&mut self, number: u64, part: PartRef) {
        let Some(bulk) = self
            .messages
            .get_mut(part.key)
            .and_then(|message| message.bulk.as_mut())
        else {
            return;
        };
        let idle = !bulk.has_work();
        bulk.lost(part.fragment, number);
        if idle && bulk.has_work() {
            self.bulk.push_back(part.key);
        }
    }

    /// Whether a message has left yet.
    pub(crate) fn departure(&self, id: MessageId) -> Departure {
        if self
            .messages
            .iter()
            .any(|(_, message)| message.id == id && message.state == State::Queued)
        {
            return Departure::Waiting;
        }
        if self.dropped.contains(&id) {
            Departure::Dropped
        } else {
            Departure::Left
        }
    }

    /// Messages and bytes queued or in flight.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.active, self.bytes)
    }
}
