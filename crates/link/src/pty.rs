//! `pty://`: a client on a pseudo-terminal, which takes this end for a drone's UART.
//!
//! Programs that know serial ports only (cflib's `serial://`, a raw byte pump) reach a drone over any other link
//! this way. Owns the pseudo-terminal and the drone's part of the CPX session; decides nothing about packets.

use std::collections::VecDeque;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crtp_uart::pty::{Pty, PtyError};
use crtp_uart::session::{self, Phase};
use crtp_uart::{Config, Device, Pump, Session};

use crate::interface::{
    Class, Event, Interest, Link, LinkStats, Outgoing, Received, SendOutcome, State, class_of,
};
use crate::tap::{LinkTap, Moment, verdict};
use crate::uart::{refusal, with_session};

/// Packets that wait for a client's token; a client that does not read loses what comes after them.
const OUTBOX: usize = 256;
/// Packets that wait to be taken before the client's token is withheld.
const INBOX: usize = 16;
/// Events that wait to be taken.
const EVENTS: usize = 16;

/// A client on a pseudo-terminal.
#[derive(Debug)]
pub struct PtyLink {
    path: PathBuf,
    pty: Option<Pty>,
    session: Session<Device>,
    pump: Pump,
    received_at: Instant,
    events: VecDeque<Event>,
    stats: LinkStats,
    tap: LinkTap,
}

impl PtyLink {
    /// Makes a pseudo-terminal whose other end is linked to `path`.
    ///
    /// # Errors
    /// [`PtyError`].
    pub fn open(path: &Path, now: Instant) -> Result<Self, PtyError> {
        let config = Config {
            inbox: INBOX,
            outbox: OUTBOX,
            ..Config::device()
        };
        let mut link = Self {
            path: path.to_owned(),
            pty: Some(Pty::open(Some(path))?),
            session: Session::device(config, now),
            pump: Pump::new(),
            received_at: now,
            events: VecDeque::with_capacity(EVENTS),
            stats: LinkStats::default(),
            tap: LinkTap::off(),
        };
        link.transmit(now);
        Ok(link)
    }

    fn receive(&mut self, now: Instant) {
        let Some(pty) = &self.pty else { return };
        self.received_at = now;
        if let Err(why) = self.pump.receive(now, pty, &mut self.session) {
            self.fail(&why.to_string());
        }
        self.translate_events();
    }

    fn transmit(&mut self, now: Instant) {
        let Some(pty) = &self.pty else { return };
        if let Err(why) = self.pump.transmit(now, pty, &mut self.session) {
            self.fail(&why.to_string());
        }
        if let (Some(leaving), Some(now)) = (self.session.take_leaving(), self.tap.now()) {
            self.tap.pass(Moment::Sending, now, &leaving.packet);
        }
    }

    /// The slave is kept open here, so that only the system itself can take the pair away.
    fn fail(&mut self, why: &str) {
        self.pty = None;
        self.session.abort();
        self.raise(Event::Down(format!("{}: {why}", self.path.display())));
    }

    fn translate_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                session::Event::Up => {
                    self.raise(Event::Up(format!("client on {}", self.path.display())));
                }
                session::Event::SyncTimeout(_)
                | session::Event::Stalled
                | session::Event::Resumed
                | session::Event::TokenPresumed
                | session::Event::PeerRestarted
                | session::Event::System(_) => {}
            }
        }
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() < EVENTS {
            self.events.push_back(event);
        }
    }
}

impl Link for PtyLink {
    fn interests(&self, out: &mut Vec<Interest>) {
        out.extend(self.pty.as_ref().map(|pty| Interest {
            fd: pty.as_raw_fd(),
            read: true,
            write: self.pump.wants_write(),
        }));
    }

    fn handle_ready(&mut self, now: Instant) {
        self.receive(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        self.transmit(now);
        self.translate_events();
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.pty.as_ref().and_then(|_| self.session.poll_timeout())
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        let arrived = self.session.recv_stamped()?;
        let packet = arrived.packet;
        self.tap.pass(Moment::Received, arrived.whole, &packet);
        Some(Received {
            packet,
            class: class_of(&packet),
            at: self.received_at,
            expires: None,
        })
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        let key = match outgoing.class {
            Class::Latest { key } => Some(key),
            Class::Ordered => None,
        };
        match self
            .session
            .send(now, outgoing.packet, key, outgoing.expires)
        {
            Ok(()) => {
                self.transmit(now);
                SendOutcome::Accepted
            }
            Err(error) => {
                let refusal = refusal(error);
                self.tap
                    .note(Moment::Sending, now, &outgoing.packet, verdict(refusal));
                self.stats.count(refusal);
                SendOutcome::Refused(refusal)
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.transmit(now);
    }

    fn backlog(&self) -> usize {
        self.session.backlog()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> State {
        match (self.session.phase(), &self.pty) {
            (_, None) => State::Closed,
            (Phase::Up, _) => State::Up,
            (Phase::Syncing, _) => State::Connecting,
            (Phase::Closing(_) | Phase::Closed, _) => State::Down,
        }
    }

    fn stats(&self) -> LinkStats {
        with_session(self.stats, &self.session.stats())
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        self.session.close(now);
        self.pty = None;
    }
}
