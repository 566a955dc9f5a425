//! `tcp://`: CPX over TCP, as the AI deck has it and cflib's `tcp://` speaks it.
//!
//! [`TcpServer`] stands where a drone's Wi-Fi deck would and waits for a client, [`TcpClient`] calls a deck. What both
//! share lives here: one connection and the rule that it never holds more than a few packets in the kernel.

mod client;
mod server;

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::{Duration, Instant};

use crtp::Packet;
use crtp_uart::cpx::stream::{Stream, StreamStats};
use crtp_uart::session::Role;
use crtp_uart::{Gone, Pump, Wire as _};
use rustix::net::sockopt;

use crate::interface::{
    Class, Event, Interest, LinkStats, Outgoing, Received, Refusal, SendOutcome, class_of,
};
use crate::tap::{LinkTap, Moment, verdict};

pub use client::TcpClient;
pub use server::TcpServer;

/// Bytes the kernel may hold for a peer that does not read: what waits behind them stays here, where the newest
/// setpoint replaces older ones.
const SEND_BUFFER: usize = 8 << 10;
/// A peer that acknowledges nothing for this long is gone.
const UNANSWERED: Duration = Duration::from_secs(5);
/// Time between two questions whether a silent peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// Events that wait to be taken.
const EVENTS: usize = 64;

/// Prepares a socket for control traffic.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER)?;
    sockopt::set_tcp_user_timeout(stream, UNANSWERED.as_millis() as u32)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE)?;
    Ok(sockopt::set_tcp_keepcnt(stream, 2)?)
}

/// A connection, if there is one, and what survives it: queues and counters.
#[derive(Debug)]
struct Connection<R: Role> {
    socket: Option<TcpStream>,
    pump: Pump,
    stream: Stream<R>,
    received_at: Instant,
    /// The peer has said something in CPX.
    spoke: bool,
    events: VecDeque<Event>,
    stats: LinkStats,
    tap: LinkTap,
}

impl<R: Role> Connection<R> {
    fn none(now: Instant) -> Self {
        Self {
            socket: None,
            pump: Pump::new(),
            stream: Stream::default(),
            received_at: now,
            spoke: false,
            events: VecDeque::with_capacity(EVENTS),
            stats: LinkStats::default(),
            tap: LinkTap::off(),
        }
    }

    fn start(&mut self, now: Instant, socket: TcpStream) {
        self.pump.discard();
        self.stream.restart();
        (self.received_at, self.spoke) = (now, false);
        self.socket = Some(socket);
    }

    fn end(&mut self) {
        self.pump.discard();
        self.stream.restart();
        (self.socket, self.spoke) = (None, false);
    }

    fn interest(&self) -> Option<Interest> {
        let fd: RawFd = self.socket.as_ref()?.as_raw_fd();
        Some(Interest {
            fd,
            read: self.stream.has_room(),
            write: self.pump.wants_write(),
        })
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// Why the connection is over, in words.
    fn receive(&mut self, now: Instant) -> Result<(), String> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let before = understood(&self.stream.stats());
        let read = self.pump.receive(now, socket, &mut self.stream);
        if understood(&self.stream.stats()) > before {
            (self.received_at, self.spoke) = (now, true);
        }
        if self.stream.is_broken() {
            self.stats.bad_frames += 1;
            return Err("does not speak CPX".to_owned());
        }
        read.map_err(words)?;
        self.transmit(now)
    }

    /// Writes what waits, as far as the socket takes it.
    ///
    /// # Errors
    /// Why the connection is over, in words.
    fn transmit(&mut self, now: Instant) -> Result<(), String> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        self.pump
            .transmit(now, socket, &mut self.stream)
            .map_err(words)
    }

    /// The next packet that came in, of any kind.
    fn recv(&mut self) -> Option<Packet> {
        let packet = self.stream.recv()?;
        self.tap.pass(Moment::Received, self.received_at, &packet);
        Some(packet)
    }

    fn received(&self, packet: Packet) -> Received {
        Received {
            packet,
            class: class_of(&packet),
            at: self.received_at,
            expires: None,
        }
    }

    /// Queues a packet.
    fn queue(
        &mut self,
        now: Instant,
        packet: R::Outgoing,
        outgoing: &Outgoing,
    ) -> Result<(), Refusal> {
        let key = match outgoing.class {
            Class::Latest { key } => Some(key),
            Class::Ordered => None,
        };
        if let Some(now) = self.tap.now() {
            self.tap.pass(Moment::Sending, now, &outgoing.packet);
        }
        let queued = self.stream.send(now, packet, key, outgoing.expires);
        queued.map_err(crate::uart::refusal)
    }

    fn refuse(&mut self, now: Instant, packet: &Packet, refusal: Refusal) -> SendOutcome {
        self.tap
            .note(Moment::Sending, now, packet, verdict(refusal));
        self.stats.count(refusal);
        SendOutcome::Refused(refusal)
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() < EVENTS {
            self.events.push_back(event);
        }
    }

    fn stats(&self) -> LinkStats {
        let StreamStats {
            sent,
            received,
            bad_frames,
            drops,
            ..
        } = self.stream.stats();
        LinkStats {
            sent,
            received,
            bad_frames: self.stats.bad_frames + bad_frames,
            dropped_expired: self.stats.dropped_expired + drops.expired,
            dropped_down: self.stats.dropped_down + drops.discarded,
            superseded: drops.superseded,
            ..self.stats
        }
    }
}

/// Frames that made sense.
const fn understood(stats: &StreamStats) -> u64 {
    stats.received + stats.system_received + stats.other_frames
}

fn words(gone: Gone) -> String {
    match gone {
        Gone::HungUp => "closed the connection".to_owned(),
        Gone::Failed(error) => error.to_string(),
    }
}
