//! The end that waits for a cflib client.
//!
//! Whoever sent the last packet is the client; it is gone after a silence. The scan byte `ff` is answered to
//! whoever asks and makes nobody the client.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::{Core, Datagram};
use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};

/// A client that is silent for this long is gone; cflib sends an echo request every 100 ms.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Listens on one port for one client at a time.
#[derive(Debug)]
pub struct UdpServer {
    core: Core,
    client: Option<Client>,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Client {
    address: SocketAddr,
    heard: Instant,
}

impl UdpServer {
    /// Listens on `address`.
    ///
    /// # Errors
    /// What the system says, as when the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            core: Core::new(UdpSocket::bind(address)?)?,
            client: None,
            closed: false,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.core.socket.local_addr()
    }

    fn handle_packet(&mut self, now: Instant, packet: crtp::Packet, from: SocketAddr) {
        if packet.is_null() {
            let answered = self.core.socket.send_to(packet.as_bytes(), from);
            self.note_answer(now, answered);
            return;
        }
        self.meet(now, from);
        self.core.keep(now, packet);
    }

    fn note_answer(&mut self, now: Instant, answered: io::Result<usize>) {
        match answered {
            Err(error) if error.kind() != ErrorKind::WouldBlock => self.core.notice(now, &error),
            Ok(_) | Err(_) => {}
        }
    }

    fn meet(&mut self, now: Instant, address: SocketAddr) {
        let new = self.client.is_none_or(|client| client.address != address);
        // A change of state is always told; clients that take turns fill no log.
        if new && (self.client.is_none() || self.core.notices.allows(now)) {
            let text = format!("client {address}");
            self.core.events.push_back(Event::Up(text));
        }
        self.client = Some(Client {
            address,
            heard: now,
        });
    }
}

impl Link for UdpServer {
    fn interests(&self, out: &mut Vec<Interest>) {
        if !self.closed {
            self.core.interests(out);
        }
    }

    fn handle_ready(&mut self, now: Instant) {
        while self.core.has_room() {
            match self.core.read(now) {
                Datagram::Packet(packet, from) => self.handle_packet(now, packet, from),
                // A reply to a client that left; its silence ends it.
                Datagram::Refused => {}
                Datagram::Nothing => return,
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let gone = self.client.filter(|client| now >= client.heard + SILENCE);
        if let Some(Client { address, .. }) = gone {
            self.client = None;
            let text = format!("client {address} silent for {} s", SILENCE.as_secs());
            self.core.events.push_back(Event::Down(text));
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.client
            .map(|client| (client.heard + SILENCE, "client silent"))
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        self.core.inbox.pop_front()
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        let Some(client) = self.client else {
            return self.core.refuse(Refusal::NotConnected);
        };
        if outgoing.expires.is_some_and(|expires| expires <= now) {
            return self.core.refuse(Refusal::Expired);
        }
        let written = self
            .core
            .socket
            .send_to(outgoing.packet.as_bytes(), client.address);
        self.core.outcome(now, written)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    fn state(&self) -> State {
        match (self.closed, self.client) {
            (true, _) => State::Closed,
            (false, Some(_)) => State::Up,
            (false, None) => State::Connecting,
        }
    }

    fn stats(&self) -> LinkStats {
        self.core.stats
    }

    fn close(&mut self, _now: Instant) {
        self.client = None;
        self.closed = true;
    }
}
