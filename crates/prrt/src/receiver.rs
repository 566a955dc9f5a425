//! The receiving half: recognises repeats, puts fragments together, restores order, drops what is stale or expired, and
//! keeps what the reader has not taken, within a bound. Reads no clock and never answers.

mod assembly;
mod held;
mod latest;
mod ordered;

use std::time::{Duration, Instant};

use crate::config::Config;
use crate::message::{Delivery, Gap, Message, Mode, Stream};
use crate::pace::Reader;
use crate::payload::Payload;
use crate::seq::Seq;
use crate::stats::ReceiveStats;
use crate::wire::frame::{Fragment, Part};
use assembly::{Assemblies, Outcome};
use held::Held;
use latest::LatestRx;
use ordered::OrderedRx;

/// Whether a message is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Wanted,
    Duplicate,
    Stale,
    NoRoom,
}

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acceptance {
    News,
    Known,
    /// Not taken: it must not be acknowledged, because it has to come again.
    Refused,
}

/// Counters, and the bytes that wait for the reader.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) stats: ReceiveStats,
    held: usize,
    held_bytes: usize,
}

impl Books {
    /// A message is kept for the reader.
    fn hold(&mut self, held: &Held) {
        self.held += 1;
        self.held_bytes += held.data.len();
    }

    /// A message leaves, delivered or not.
    fn release(&mut self, held: &Held) {
        self.held -= 1;
        self.held_bytes -= held.data.len();
    }
}

/// When a part arrived and when its message was born, on the local clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) born: Instant,
    /// How far that may be off, if known.
    pub(crate) doubt: Option<Duration>,
}

/// What has arrived on one connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    max_message: usize,
    max_bytes: usize,
    window: u32,
    first_seq: Seq,
    latest: Vec<LatestRx>,
    ordered: Vec<OrderedRx>,
    assemblies: Assemblies,
    /// How early the reader gives up on missing messages.
    patience: Duration,
    turn: usize,
    /// Deadlines up to here have been announced; it is up to the reader to come.
    announced: Option<Instant>,
    books: Books,
    pub(crate) reader: Reader,
}

impl Receiver {
    /// `first_seq` is where every stream begins.
    pub(crate) fn new(config: &Config, first_seq: Seq) -> Self {
        Self {
            max_message: config.max_message,
            max_bytes: config.receive_bytes,
            window: config.window,
            first_seq,
            latest: Vec::new(),
            ordered: Vec::new(),
            assemblies: Assemblies::default(),
            patience: Duration::ZERO,
            turn: 0,
            announced: None,
            books: Books::default(),
            reader: Reader::default(),
        }
    }

    /// Takes a part.
    pub(crate) fn accept(&mut self, arrival: Arrival, part: &Part<'_>) -> Acceptance {
        match self.wants(part) {
            Verdict::Wanted if self.take(arrival, part) => Acceptance::News,
            Verdict::Wanted => Acceptance::Refused,
            Verdict::Duplicate => {
                self.books.stats.duplicates += 1;
                Acceptance::Known
            }
            Verdict::Stale => {
                self.books.stats.stale += 1;
                Acceptance::Known
            }
            Verdict::NoRoom => {
                self.books.stats.no_room += 1;
                Acceptance::Refused
            }
        }
    }

    fn wants(&mut self, part: &Part<'_>) -> Verdict {
        match part.stream {
            Stream::Latest(id) => self.latest_mut(id).wants(part.seq),
            Stream::Ordered(_) | Stream::Frame(_) => {
                let back = part.order.map_or(0, |order| order.back.into());
                let at = self.ordered_index(part.stream);
                let rx = &mut self.ordered[at];
                rx.raise_floor(part.seq.minus(back), &mut self.books);
                rx.wants(part.seq)
            }
        }
    }

    fn latest_mut(&mut self, id: u8) -> &mut LatestRx {
        let at = self
            .latest
            .binary_search_by_key(&id, |rx| rx.id)
            .unwrap_or_else(|at| {
                self.latest.insert(at, LatestRx::new(id, self.first_seq));
                at
            });
        &mut self.latest[at]
    }

    fn ordered_index(&mut self, stream: Stream) -> usize {
        self.ordered
            .binary_search_by_key(&stream, |rx| rx.stream)
            .unwrap_or_else(|at| {
                self.ordered
                    .insert(at, OrderedRx::new(stream, self.first_seq, self.window));
                at
            })
    }

    fn take(&mut self, arrival: Arrival, part: &Part<'_>) -> bool {
        let expires = part.life.duration().map(|life| arrival.born + life);
        let total = part
            .fragment
            .map_or(part.data.len(), |fragment| fragment.total as usize);
        if expires.is_some_and(|at| at <= arrival.at) {
            self.books.stats.expired += 1;
            self.skip(part);
            return true;
        }
        if total > self.max_message {
            self.books.stats.too_large += 1;
            self.skip(part);
            return true;
        }
        match part.fragment {
            None => self.take_whole(arrival, part, expires),
            Some(fragment) => self.take_fragment(arrival, part, fragment, expires),
        }
    }

    fn skip(&mut self, part: &Part<'_>) {
        match part.stream {
            Stream::Latest(id) => self.latest_mut(id).skip(part.seq),
            Stream::Ordered(_) | Stream::Frame(_) => {
                let at = self.ordered_index(part.stream);
                self.ordered[at].skip(part.seq);
            }
        }
    }

    fn take_whole(&mut self, arrival: Arrival, part: &Part<'_>, expires: Option<Instant>) -> bool {
        if self.bytes() + part.data.len() > self.max_bytes {
            self.books.stats.no_room += 1;
            return false;
        }
        self.put(
            arrival,
            part,
            Payload::copy_of(part.data),
            part.attempt,
            expires,
        );
        true
    }

    fn take_fragment(
        &mut self,
        arrival: Arrival,
        part: &Part<'_>,
        fragment: Fragment,
        expires: Option<Instant>,
    ) -> bool {
        let limit = self.max_bytes.saturating_sub(self.books.held_bytes);
        match self.assemblies.add(part, fragment, expires, limit) {
            Outcome::Partial => true,
            Outcome::Duplicate => {
                self.books.stats.duplicates += 1;
                true
            }
            Outcome::NoRoom => {
                self.books.stats.no_room += 1;
                false
            }
            Outcome::Complete(bytes, attempt) => {
                self.put(arrival, part, Payload::from(bytes), attempt, expires);
                true
            }
        }
    }

    fn put(
        &mut self,
        arrival: Arrival,
        part: &Part<'_>,
        data: Payload,
        attempt: u8,
        expires: Option<Instant>,
    ) {
        let wait = part.order.and_then(|order| order.wait.duration());
        let wait_until = wait.map(|wait| arrival.born + wait);
        let held = Held {
            data,
            at: arrival.at,
            born: arrival.born,
            doubt: arrival.doubt,
            expires,
            wait_until,
            attempt,
        };
        self.books.hold(&held);
        match part.stream {
            Stream::Ordered(_) | Stream::Frame(_) => {
                let at = self.ordered_index(part.stream);
                self.ordered[at].put(part.seq, held);
            }
            Stream::Latest(id) => {
                let at = self
                    .latest
                    .binary_search_by_key(&id, |rx| rx.id)
                    .unwrap_or_default();
                self.latest[at].put(part.seq, held, &mut self.books);
                self.forget_unwanted(arrival.at);
            }
        }
    }

    /// Every deadline up to `now` has been acted upon.
    pub(crate) fn announce(&mut self, now: Instant) {
        self.announced = self.announced.max(Some(now));
    }

    /// Drops unfinished messages that have expired or that nobody wants any more.
    pub(crate) fn forget_unwanted(&mut self, now: Instant) {
        if self.assemblies.is_empty() {
            return;
        }
        let (latest, ordered) = (&self.latest, &self.ordered);
        self.assemblies.retain(|assembly| {
            let wanted = match assembly.stream {
                Stream::Latest(id) => latest
                    .iter()
                    .any(|rx| rx.id == id && rx.wants(assembly.seq) == Verdict::Wanted),
                stream @ (Stream::Ordered(_) | Stream::Frame(_)) => ordered
                    .iter()
                    .any(|rx| rx.stream == stream && rx.wants(assembly.seq) == Verdict::Wanted),
            };
            wanted && assembly.expires.is_none_or(|at| at > now)
        });
    }

    /// Counters so far.
    pub(crate) const fn stats(&self) -> ReceiveStats {
        self.books.stats
    }

    /// Whether something waits for the reader.
    pub(crate) const fn has_unread(&self) -> bool {
        self.books.held > 0
    }

    fn bytes(&self) -> usize {
        self.books.held_bytes + self.assemblies.bytes()
    }

    /// The next message for the reader.
    pub(crate) fn recv(&mut self, now: Instant, mode: Mode) -> Option<Message> {
        if self.latest.is_empty() && self.ordered.is_empty() {
            return None;
        }
        self.patience = if let Mode::Ordered { window } = mode {
            window
        } else {
            Duration::ZERO
        };
        let found = self.recv_latest(now);
        let Some(message) = found.or_else(|| self.recv_ordered(now, mode)) else {
            self.reader.on_empty();
            return None;
        };
        self.reader.on_delivery(now, self.books.held > 0);
        self.books.stats.delivered += 1;
        self.books.stats.repaired += u64::from(message.repaired());
        Some(message)
    }

    /// The next message in order, or the gap in its place once missing messages expire within `window` from now.
    pub(crate) fn recv_with_gaps(&mut self, now: Instant, window: Duration) -> Option<Delivery> {
        self.patience = window;
        if let Some(gap) = self.next_gap(now, window) {
            return Some(Delivery::Gap(gap));
        }
        self.recv(now, Mode::Ordered { window })
            .map(Delivery::Message)
    }

    /// The first gap in front of any stream. Gaps are no work for the reader, so no stream can starve another with them.
    fn next_gap(&mut self, now: Instant, window: Duration) -> Option<Gap> {
        let books = &mut self.books;
        self.ordered
            .iter_mut()
            .find_map(|rx| rx.pop_gap(now, window, books))
    }

    fn recv_latest(&mut self, now: Instant) -> Option<Message> {
        let books = &mut self.books;
        self.latest.iter_mut().find_map(|rx| rx.pop(now, books))
    }

    fn recv_ordered(&mut self, now: Instant, mode: Mode) -> Option<Message> {
        let streams = self.ordered.len();
        for step in 0..streams {
            let at = (self.turn + step) % streams;
            let (rx, books) = (self.ordered.get_mut(at)?, &mut self.books);
            let message = match mode {
                Mode::Asap => rx.pop_asap(now, books),
                Mode::Ordered { window } => rx.pop_ordered(now, window, books),
                Mode::Latest => rx.pop_latest(now, books),
            };
            if message.is_some() {
                self.turn = (at + 1) % streams;
                return message;
            }
        }
        None
    }

    /// When a held message becomes readable or an unfinished one expires, whichever is first.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let ordered = self.ordered.iter().filter_map(OrderedRx::deadline);
        let ordered = ordered
            .map(|at| at.checked_sub(self.patience).unwrap_or(at))
            .filter(|at| self.announced.is_none_or(|until| *at > until))
            .min();
        ordered
            .into_iter()
            .chain(self.assemblies.next_expiry())
            .min()
    }
}
