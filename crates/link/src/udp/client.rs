//! The end that calls a drone.
//!
//! UDP has no handshake, so the scan byte `ff` stands in for one: the link is up once anything comes back, or
//! once the host has not refused for a while (not every drone answers the scan byte). A refusal only means
//! that the drone is not there yet.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use crtp::{Gate, Packet};

use super::{Core, Datagram, read};
use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::stamp;
use crate::tap::{LinkTap, Moment};

/// Time between two scan bytes while nobody answers.
const PROBE_PERIOD: Duration = Duration::from_millis(250);
/// Without a refusal for this long, somebody listens.
const QUIET_IS_UP: Duration = Duration::from_millis(300);

/// Talks to one drone.
#[derive(Debug)]
pub struct UdpClient {
    socket: UdpSocket,
    core: Core,
    gate: Gate,
    address: SocketAddr,
    state: State,
    next_probe: Option<Instant>,
    /// Since when the host has been asked without refusing.
    asked: Option<Instant>,
    /// A refusal has been told; the next one is no news.
    refusal_told: bool,
}

impl UdpClient {
    /// Calls `address`. Needs nobody there yet.
    ///
    /// # Errors
    /// What the system says, as when there is no route.
    pub fn connect(now: Instant, address: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            core: Core::new(),
            gate: Gate::new(),
            address,
            state: State::Connecting,
            next_probe: Some(now),
            asked: None,
            refusal_told: false,
        })
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.come_up("answers");
        if !packet.is_null() {
            self.gate.observe(&packet);
            self.core.keep(now, packet);
        }
    }

    fn come_up(&mut self, why: &str) {
        if self.state == State::Up {
            return;
        }
        self.core.stats.reopened += u64::from(self.state == State::Down);
        self.state = State::Up;
        (self.next_probe, self.asked) = (None, None);
        self.refusal_told = false;
        let text = format!("drone {} {why}", self.address);
        self.core.events.push_back(Event::Up(text));
    }

    fn handle_refusal(&mut self, now: Instant) {
        self.asked = None;
        let told = std::mem::replace(&mut self.refusal_told, true);
        let text = format!("nobody listens at {}; waiting for the drone", self.address);
        if self.state == State::Up {
            self.state = State::Down;
            self.next_probe = Some(now + PROBE_PERIOD);
            self.core.events.push_back(Event::Down(text));
        } else if !told {
            self.core.events.push_back(Event::Notice(text));
        }
    }

    fn probe(&mut self, now: Instant) {
        match self.socket.send(Packet::NULL.as_bytes()) {
            Ok(_) => self.asked = self.asked.or(Some(now)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.handle_refusal(now),
            Err(error) => self.core.notice(now, &error),
        }
        self.next_probe = Some(now + PROBE_PERIOD);
    }

    fn quiet_is_up(&self) -> Option<Instant> {
        self.asked.map(|asked| asked + QUIET_IS_UP)
    }

    /// Why `outgoing` must not be written now.
    fn objection(&mut self, now: Instant, outgoing: &Outgoing) -> Option<Refusal> {
        if self.state != State::Up {
            return Some(Refusal::NotConnected);
        }
        if outgoing.expires.is_some_and(|expires| expires <= now) {
            return Some(Refusal::Expired);
        }
        let admitted = self.gate.admit(&outgoing.packet);
        admitted
            .err()
            .map(|reject| Refusal::Unsafe(reject.reason()))
    }

    /// Writes; a refusal that the kernel reports belongs to an earlier datagram, so this one is tried again.
    fn write(&mut self, now: Instant, packet: &Packet) -> io::Result<usize> {
        match self.socket.send(packet.as_bytes()) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.handle_refusal(now);
                self.socket.send(packet.as_bytes())
            }
            other => other,
        }
    }
}

impl Link for UdpClient {
    fn interests(&self, out: &mut Vec<Interest>) {
        if self.state != State::Closed {
            out.push(Interest {
                fd: self.socket.as_raw_fd(),
                read: true,
                write: false,
            });
        }
    }

    fn handle_ready(&mut self, now: Instant) {
        while self.core.has_room() {
            match read(&self.socket, &mut self.core, now) {
                Datagram::Packet(packet, _) => self.handle_packet(now, packet),
                Datagram::Refused => self.handle_refusal(now),
                Datagram::Nothing => return,
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.quiet_is_up().is_some_and(|at| at <= now) {
            self.come_up("does not refuse");
        }
        if self.next_probe.is_some_and(|at| at <= now) {
            self.probe(now);
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let probe = self.next_probe.map(|at| (at, "scan for the drone"));
        let quiet = self.quiet_is_up().map(|at| (at, "drone does not refuse"));
        probe.into_iter().chain(quiet).min()
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        self.core.inbox.pop_front()
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if let Some(refusal) = self.objection(now, outgoing) {
            return self.core.refuse(now, &outgoing.packet, refusal);
        }
        if let Some(now) = self.core.tap.now() {
            self.core.tap.pass(Moment::Sending, now, &outgoing.packet);
        }
        let written = self.write(now, &outgoing.packet);
        self.core.outcome(now, &outgoing.packet, written)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    fn state(&self) -> State {
        self.state
    }

    fn stats(&self) -> LinkStats {
        self.core.stats
    }

    fn set_tap(&mut self, tap: LinkTap) {
        if tap.is_on() {
            stamp::enable(&self.socket);
        }
        self.core.tap = tap;
    }

    fn close(&mut self, _now: Instant) {
        self.state = State::Closed;
        (self.next_probe, self.asked) = (None, None);
    }
}
