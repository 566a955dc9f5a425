//! The end that waits for a client: it looks like a drone's Wi-Fi deck.
//!
//! One client at a time. It is one once it has said something in CPX; whoever comes while it is served waits,
//! connected, until it leaves or is silent for long.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use crtp_uart::Device;

use super::{Connection, prepare};
use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::tap::LinkTap;
use crate::throttle::Throttle;

/// A connection that is silent for this long gives way to one that waits; cflib sends an echo request every 100 ms.
const SILENCE: Duration = Duration::from_secs(5);

/// Listens for one client at a time.
#[derive(Debug)]
pub struct TcpServer {
    listener: Option<TcpListener>,
    connection: Connection<Device>,
    peer: Option<SocketAddr>,
    /// The peer has said something: it is a client.
    is_client: bool,
    waiting: Option<(TcpStream, SocketAddr)>,
    notices: Throttle,
}

impl TcpServer {
    /// Listens on `address`.
    ///
    /// # Errors
    /// What the system says, as when the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: Some(listener),
            connection: Connection::none(Instant::now()),
            peer: None,
            is_client: false,
            waiting: None,
            notices: Throttle::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says, or that it is closed.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let listener = self.listener.as_ref();
        listener.ok_or(io::ErrorKind::NotConnected)?.local_addr()
    }

    /// Takes whoever knocks, as long as there is a place to wait.
    fn accept(&mut self, now: Instant) {
        while self.waiting.is_none()
            && let Some(listener) = &self.listener
        {
            match listener.accept() {
                Ok((socket, peer)) => self.admit(now, socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.notice(now, error.to_string()),
            }
        }
    }

    fn admit(&mut self, now: Instant, socket: TcpStream, peer: SocketAddr) {
        if let Err(error) = prepare(&socket) {
            return self.notice(now, format!("{peer}: {error}"));
        }
        if let Some(holder) = self.peer {
            self.notice(now, format!("{peer} waits until {holder} leaves"));
            self.waiting = Some((socket, peer));
        } else {
            self.seat(now, socket, peer);
        }
    }

    fn seat(&mut self, now: Instant, socket: TcpStream, peer: SocketAddr) {
        self.connection.start(now, socket);
        (self.peer, self.is_client) = (Some(peer), false);
    }

    /// The connection is over; the next in line is served.
    fn part(&mut self, now: Instant, why: &str) {
        let Some(peer) = self.peer.take() else { return };
        self.connection.end();
        if std::mem::take(&mut self.is_client) {
            let text = format!("client {peer} {why}");
            self.connection.raise(Event::Down(text));
        }
        if let Some((socket, peer)) = self.waiting.take() {
            self.seat(now, socket, peer);
        }
    }

    fn receive(&mut self, now: Instant) {
        let received = self.connection.receive(now);
        if self.connection.spoke
            && !std::mem::replace(&mut self.is_client, true)
            && let Some(peer) = self.peer
        {
            self.connection.raise(Event::Up(format!("client {peer}")));
        }
        // What a client asks of a deck is what this end does anyway.
        while self.connection.stream.poll_message().is_some() {}
        if let Err(why) = received {
            self.part(now, &why);
        }
    }

    fn transmit(&mut self, now: Instant) {
        if let Err(why) = self.connection.transmit(now) {
            self.part(now, &why);
        }
    }

    fn silent_at(&self) -> Option<Instant> {
        let awaited = self.waiting.is_some();
        awaited.then(|| self.connection.received_at + SILENCE)
    }

    fn notice(&mut self, now: Instant, text: String) {
        if self.notices.allows(now) {
            self.connection.raise(Event::Notice(text));
        }
    }
}

impl Link for TcpServer {
    fn interests(&self, out: &mut Vec<Interest>) {
        out.extend(self.connection.interest());
        let listener = self.listener.as_ref().filter(|_| self.waiting.is_none());
        out.extend(listener.map(|listener| Interest {
            fd: listener.as_raw_fd(),
            read: true,
            write: false,
        }));
    }

    fn handle_ready(&mut self, now: Instant) {
        self.receive(now);
        self.accept(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.stream.handle_timeout(now);
        if self.silent_at().is_some_and(|at| at <= now) {
            self.part(now, "is silent and somebody waits");
        }
        self.transmit(now);
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let silent = self.silent_at().map(|at| (at, "client silent"));
        let expiry = self.connection.stream.poll_timeout();
        silent.into_iter().chain(expiry).min()
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        let packet = self.connection.recv()?;
        Some(self.connection.received(packet))
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if !self.is_client {
            return self
                .connection
                .refuse(now, &outgoing.packet, Refusal::NotConnected);
        }
        match self.connection.queue(now, outgoing.packet, outgoing) {
            Ok(()) => {
                self.transmit(now);
                SendOutcome::Accepted
            }
            Err(refusal) => self.connection.refuse(now, &outgoing.packet, refusal),
        }
    }

    fn backlog(&self) -> usize {
        self.connection.stream.backlog()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.connection.events.pop_front()
    }

    fn state(&self) -> State {
        match (&self.listener, self.is_client) {
            (None, _) => State::Closed,
            (Some(_), true) => State::Up,
            (Some(_), false) => State::Connecting,
        }
    }

    fn stats(&self) -> LinkStats {
        self.connection.stats()
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.connection.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        self.transmit(now);
        self.connection.end();
        (self.peer, self.is_client) = (None, false);
        (self.waiting, self.listener) = (None, None);
    }
}
