//! The end that waits for cflib clients, one on each of a row of ports.
//!
//! The scan byte `ff` is answered to whoever asks and makes nobody the client; who does become one is the
//! [`Seat`]'s business. What comes from the drone goes to every client, and each may command.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Instant;

use crtp::Packet;

use super::seat::{SILENCE, Seat, Standing};
use super::{Core, Datagram, read};
use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::stamp;
use crate::tap::{LinkTap, Moment};

/// A port and who speaks there.
#[derive(Debug)]
struct Desk {
    socket: UdpSocket,
    seat: Seat,
}

/// Listens on consecutive ports for one client on each.
#[derive(Debug)]
pub struct UdpServer {
    core: Core,
    desks: Vec<Desk>,
    closed: bool,
}

impl UdpServer {
    /// Listens on `address` for one client.
    ///
    /// # Errors
    /// What the system says, as when the port is taken.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::bind_row(address, 1)
    }

    /// Listens on `address` and the ports after it, for as many clients.
    ///
    /// # Errors
    /// What the system says, naming the port, as when one is taken.
    pub fn bind_row(address: SocketAddr, clients: u16) -> io::Result<Self> {
        let desks = (0..clients).map(|step| Desk::bind(address, step));
        Ok(Self {
            core: Core::new(),
            desks: desks.collect::<io::Result<_>>()?,
            closed: false,
        })
    }

    /// Where it listens; with several clients the first of the ports.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let first = self.desks.first().ok_or(ErrorKind::NotConnected)?;
        first.socket.local_addr()
    }

    fn clients(&self) -> usize {
        let seated = |desk: &&Desk| desk.seat.client().is_some();
        self.desks.iter().filter(seated).count()
    }

    fn handle_datagram(&mut self, now: Instant, at: usize, packet: Packet, from: SocketAddr) {
        let Desk { socket, seat } = &mut self.desks[at];
        if packet.is_null() {
            seat.handle_null(now, from);
            match socket.send_to(packet.as_bytes(), from) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => {
                    self.core.notice(now, &error)
                }
                Ok(_) | Err(_) => {}
            }
            return;
        }
        match seat.handle_packet(now, &packet, from) {
            Standing::Client => self.core.keep(now, packet),
            Standing::Newcomer => self.welcome(now, from, packet),
            Standing::Waits(holder) => {
                let text = format!("{from} waits until {holder} is silent");
                self.core.events.push_back(Event::Notice(text));
            }
            Standing::Stranger => self.core.stats.strangers += 1,
        }
    }

    fn welcome(&mut self, now: Instant, address: SocketAddr, opening: Packet) {
        let text = format!("client {address}");
        self.core.events.push_back(Event::Up(text));
        self.core.keep(now, opening);
    }

    /// Tells of a client that is gone: only with the last of them is the link down.
    fn part(&mut self, address: SocketAddr) {
        let text = format!("client {address} silent for {} s", SILENCE.as_secs());
        let left = self.clients();
        self.core.events.push_back(if left == 0 {
            Event::Down(text)
        } else {
            Event::Notice(format!("{text}; {left} left"))
        });
    }

    fn read_desk(&mut self, now: Instant, at: usize) {
        while self.core.has_room() {
            match read(&self.desks[at].socket, &mut self.core, now) {
                Datagram::Packet(packet, from) => self.handle_datagram(now, at, packet, from),
                // A reply to a client that left; its silence ends it.
                Datagram::Refused => {}
                Datagram::Nothing => return,
            }
        }
    }

    /// Writes to every client; good if one of them takes it.
    fn write(&mut self, now: Instant, packet: &Packet) -> SendOutcome {
        let mut written = Err(ErrorKind::NotConnected.into());
        for desk in &self.desks {
            if let Some(client) = desk.seat.client() {
                let sent = desk.socket.send_to(packet.as_bytes(), client);
                written = written.or(sent);
            }
        }
        self.core.outcome(now, packet, written)
    }
}

impl Desk {
    fn bind(first: SocketAddr, step: u16) -> io::Result<Self> {
        let port = match first.port() {
            // Any free one.
            0 => Some(0),
            port => port.checked_add(step),
        };
        let port = port.ok_or_else(|| io::Error::other("no port after 65535"))?;
        let address = SocketAddr::new(first.ip(), port);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("port {port}: {error}"));
        let socket = UdpSocket::bind(address).map_err(named)?;
        socket.set_nonblocking(true)?;
        let seat = Seat::default();
        Ok(Self { socket, seat })
    }
}

impl Link for UdpServer {
    fn interests(&self, out: &mut Vec<Interest>) {
        if self.closed {
            return;
        }
        out.extend(self.desks.iter().map(|desk| Interest {
            fd: desk.socket.as_raw_fd(),
            read: true,
            write: false,
        }));
    }

    fn handle_ready(&mut self, now: Instant) {
        for at in 0..self.desks.len() {
            self.read_desk(now, at);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.desks.len() {
            if let Some(gone) = self.desks[at].seat.handle_timeout(now) {
                self.part(gone);
            }
            if let Some((address, opening)) = self.desks[at].seat.seat_waiting(now) {
                self.welcome(now, address, opening);
            }
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let expiries = self.desks.iter().filter_map(|desk| desk.seat.expires_at());
        expiries.min().map(|at| (at, "client silent"))
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        self.core.inbox.pop_front()
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if self.clients() == 0 {
            return self
                .core
                .refuse(now, &outgoing.packet, Refusal::NotConnected);
        }
        if outgoing.expires.is_some_and(|expires| expires <= now) {
            return self.core.refuse(now, &outgoing.packet, Refusal::Expired);
        }
        if let Some(now) = self.core.tap.now() {
            self.core.tap.pass(Moment::Sending, now, &outgoing.packet);
        }
        self.write(now, &outgoing.packet)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    fn state(&self) -> State {
        match (self.closed, self.clients()) {
            (true, _) => State::Closed,
            (false, 0) => State::Connecting,
            (false, _) => State::Up,
        }
    }

    fn stats(&self) -> LinkStats {
        self.core.stats
    }

    fn set_tap(&mut self, tap: LinkTap) {
        if tap.is_on() {
            self.desks
                .iter()
                .for_each(|desk| stamp::enable(&desk.socket));
        }
        self.core.tap = tap;
    }

    fn close(&mut self, _now: Instant) {
        self.desks.iter_mut().for_each(|desk| desk.seat.clear());
        self.closed = true;
    }
}
