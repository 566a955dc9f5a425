//! What came in: tokens, packets, SYSTEM messages. Owns what each of them does to the session.

use std::time::{Duration, Instant};

use crtp::Packet;

use super::credit::Token;
use super::{Arrived, Event, Phase, Role, Session};
use crate::cpx::{Frame, Function, Item, System};

/// A greeting is not repeated before this time: tokens that come in a row make one.
const GREETING_PERIOD: Duration = Duration::from_secs(1);

/// An item without its borrow of the decoder.
enum Inbound {
    Token,
    Crtp(Packet),
    System(Option<System>),
    Other,
    BadCrtp,
}

impl From<Item<'_>> for Inbound {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::ClearToSend => Self::Token,
            Item::Frame(frame) => Self::of(&frame),
        }
    }
}

impl Inbound {
    fn of(frame: &Frame<'_>) -> Self {
        match frame.header.function {
            Function::CRTP => Packet::from_bytes(frame.data).map_or(Self::BadCrtp, Self::Crtp),
            Function::SYSTEM => Self::System(System::parse(frame.data)),
            _ => Self::Other,
        }
    }
}

impl<R: Role> Session<R> {
    /// Bytes from the port, in order, in pieces of any size.
    pub fn handle_bytes(&mut self, now: Instant, mut bytes: &[u8]) {
        if !bytes.is_empty() {
            self.heard = now;
        }
        if !self.decoder.is_partial() {
            self.began = now;
        }
        while let Some(item) = self.decoder.next(&mut bytes) {
            let inbound = Inbound::from(item);
            self.handle(now, inbound);
            self.began = now;
        }
    }

    fn handle(&mut self, now: Instant, inbound: Inbound) {
        if self.phase == Phase::Closed {
            return;
        }
        match inbound {
            Inbound::Token => self.handle_token(now),
            data => self.handle_data(now, data),
        }
    }

    fn handle_token(&mut self, now: Instant) {
        if let Some(since) = self.credit.answer_since() {
            self.service.note(now.saturating_duration_since(since));
        }
        let token = self.credit.grant();
        self.granted = now;
        self.stats.surplus_tokens += u64::from(token == Token::Surplus);
        if self.phase == Phase::Syncing {
            self.owed |= R::IS_HOST;
            self.come_up(now);
        } else if R::IS_HOST && token == Token::Surplus {
            self.greet_again(now);
        } else if token == Token::Late {
            self.raise(Event::Resumed);
            if R::IS_HOST {
                self.greet_again(now);
            }
        }
    }

    /// A data frame came: it is answered with a token as soon as it is queued.
    fn handle_data(&mut self, now: Instant, data: Inbound) {
        self.offered = now;
        if R::IS_HOST && self.phase == Phase::Syncing {
            self.come_up(now);
            self.credit.unknown(now);
        }
        match data {
            Inbound::Crtp(packet) => return self.queue(now, packet),
            Inbound::System(Some(message)) if !R::IS_HOST => self.raise(Event::System(message)),
            Inbound::BadCrtp => self.stats.bad_crtp += 1,
            Inbound::Token | Inbound::System(_) | Inbound::Other => self.stats.other_frames += 1,
        }
        self.owed = true;
    }

    /// The frame beyond the inbox's size is kept in hand, as firmware does, and its token withheld.
    fn queue(&mut self, now: Instant, packet: Packet) {
        let waiting = self.inbox.len();
        if waiting > self.config.inbox {
            self.stats.overruns += 1;
            return;
        }
        self.stats.received += 1;
        self.inbox.push_back(Arrived {
            packet,
            began: self.began,
            whole: now,
        });
        self.owed |= waiting < self.config.inbox;
    }

    fn come_up(&mut self, now: Instant) {
        self.phase = Phase::Up;
        self.known = true;
        self.raise(Event::Up);
        if R::IS_HOST {
            self.greet(now);
        }
    }

    /// Asks the drone to take CRTP from here and tells it that a client is connected.
    pub(super) fn greet(&mut self, now: Instant) {
        self.greeted = Some(now);
        self.system.clear();
        self.system.push(System::UseThisLink(true));
        self.system.push(System::ClientConnected(true));
    }

    /// A drone that has restarted has forgotten the greeting and waits for an offer. Nothing else tells.
    fn greet_again(&mut self, now: Instant) {
        let recent = |at: Instant| now.saturating_duration_since(at) < GREETING_PERIOD;
        if self.phase == Phase::Up && !self.greeted.is_some_and(recent) {
            self.raise(Event::PeerRestarted);
            self.greet(now);
            self.owed = true;
        }
    }
}
