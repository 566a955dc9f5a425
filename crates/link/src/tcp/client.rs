//! The end that calls a drone's Wi-Fi deck, and calls again whenever the connection is lost.
//!
//! Tells the drone to take CRTP from here, and at the end to go back to its radio.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crtp::Gate;
use crtp_uart::Host;
use crtp_uart::cpx::System;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::{Connection, prepare};
use crate::interface::{
    Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::tap::LinkTap;

/// First pause before the next call; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A call that is neither taken nor refused for this long is given up.
const UNTAKEN: Duration = Duration::from_secs(3);

/// How far the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waiting to call, from this instant on.
    Pause(Instant),
    /// Calling, until this instant at the latest.
    Calling(Instant),
    Up,
    Closed,
}

/// Talks to one drone.
#[derive(Debug)]
pub struct TcpClient {
    address: SocketAddr,
    connection: Connection<Host>,
    gate: Gate,
    phase: Phase,
    pause: Duration,
    /// It was up, and is lost.
    lost: bool,
    /// The present trouble has been told.
    told: bool,
}

impl TcpClient {
    /// Calls `address`. Needs nobody there yet.
    #[must_use]
    pub fn connect(now: Instant, address: SocketAddr) -> Self {
        Self {
            address,
            connection: Connection::none(now),
            gate: Gate::new(),
            phase: Phase::Pause(now),
            pause: FIRST_PAUSE,
            lost: false,
            told: false,
        }
    }

    fn call(&mut self, now: Instant) {
        match call(self.address) {
            Ok(socket) => {
                self.connection.start(now, socket);
                self.phase = Phase::Calling(now + UNTAKEN);
            }
            Err(error) => self.fail(now, &error.to_string()),
        }
    }

    /// The socket of a call is ready: it was taken, or refused.
    fn handle_call(&mut self, now: Instant) {
        let Some(socket) = &self.connection.socket else {
            return;
        };
        match (socket.take_error(), socket.peer_addr()) {
            (Ok(None), Ok(_)) => self.come_up(now),
            (Ok(None), Err(_)) => {}
            (Ok(Some(error)) | Err(error), _) => self.fail(now, &error.to_string()),
        }
    }

    fn come_up(&mut self, now: Instant) {
        self.connection.stats.reopened += u64::from(std::mem::take(&mut self.lost));
        (self.phase, self.pause, self.told) = (Phase::Up, FIRST_PAUSE, false);
        self.connection.stream.say(System::UseThisLink(true));
        let text = format!("drone {} takes the call", self.address);
        self.connection.raise(Event::Up(text));
        self.transmit(now);
    }

    /// Tells of the trouble once, and plans the next call.
    fn fail(&mut self, now: Instant, why: &str) {
        let was_up = self.phase == Phase::Up;
        self.connection.end();
        self.gate.forget();
        self.phase = Phase::Pause(now + self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        self.lost |= was_up;
        let told = std::mem::replace(&mut self.told, true);
        let text = format!("drone {}: {why}; calling again", self.address);
        if was_up {
            self.connection.raise(Event::Down(text));
        } else if !told {
            self.connection.raise(Event::Notice(text));
        }
    }

    fn transmit(&mut self, now: Instant) {
        if let Err(why) = self.connection.transmit(now) {
            self.fail(now, &why);
        }
    }
}

/// A socket that is connecting.
fn call(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    let in_progress =
        |error: &io::Error| error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error());
    match socket.connect(&address.into()) {
        Err(error) if !in_progress(&error) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let stream = TcpStream::from(socket);
    prepare(&stream)?;
    Ok(stream)
}

impl Link for TcpClient {
    fn interests(&self, out: &mut Vec<Interest>) {
        let interest = self.connection.interest();
        out.extend(interest.map(|interest| Interest {
            write: interest.write || matches!(self.phase, Phase::Calling(_)),
            ..interest
        }));
    }

    fn handle_ready(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Calling(_)) {
            self.handle_call(now);
        }
        if self.phase == Phase::Up
            && let Err(why) = self.connection.receive(now)
        {
            self.fail(now, &why);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Pause(until) if until <= now => self.call(now),
            Phase::Calling(until) if until <= now => self.fail(now, "nobody answers"),
            Phase::Up => {
                self.connection.stream.handle_timeout(now);
                self.transmit(now);
            }
            Phase::Pause(_) | Phase::Calling(_) | Phase::Closed => {}
        }
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        match self.phase {
            Phase::Pause(until) => Some((until, "call the drone")),
            Phase::Calling(until) => Some((until, "nobody answers")),
            Phase::Up => self.connection.stream.poll_timeout(),
            Phase::Closed => None,
        }
    }

    fn recv(&mut self, _now: Instant) -> Option<Received> {
        let packet = self.connection.recv()?;
        self.gate.observe(&packet);
        Some(self.connection.received(packet))
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        if self.phase != Phase::Up {
            return self
                .connection
                .refuse(now, &outgoing.packet, Refusal::NotConnected);
        }
        let admitted = match self.gate.admit(&outgoing.packet) {
            Ok(packet) => packet,
            Err(reject) => {
                return self.connection.refuse(
                    now,
                    &outgoing.packet,
                    Refusal::Unsafe(reject.reason()),
                );
            }
        };
        match self.connection.queue(now, admitted, outgoing) {
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
        match self.phase {
            Phase::Up => State::Up,
            Phase::Closed => State::Closed,
            Phase::Pause(_) | Phase::Calling(_) if self.lost => State::Down,
            Phase::Pause(_) | Phase::Calling(_) => State::Connecting,
        }
    }

    fn stats(&self) -> LinkStats {
        self.connection.stats()
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.connection.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        if self.phase == Phase::Up {
            self.connection.stream.say(System::UseThisLink(false));
            self.transmit(now);
        }
        self.connection.end();
        self.phase = Phase::Closed;
    }
}
