//! `udp://` in cflib's framing: one datagram is one CRTP packet, nothing else.
//!
//! [`UdpServer`] waits for clients, [`UdpClient`] calls a drone. What both share lives here: reading without
//! blocking, the bounded inbox and the counters.

mod client;
mod seat;
mod server;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use crtp::Packet;

use crate::interface::{Event, LinkStats, Received, Refusal, SendOutcome};
use crate::stamp;
use crate::tap::{LinkTap, Moment, verdict};
use crate::throttle::Throttle;

pub use client::UdpClient;
pub use server::UdpServer;

/// Packets that wait to be taken; further ones stay in the kernel's buffer.
const INBOX: usize = 256;

/// Inbox, events and counters of one end.
#[derive(Debug)]
struct Core {
    inbox: VecDeque<Received>,
    events: VecDeque<Event>,
    stats: LinkStats,
    notices: Throttle,
    tap: LinkTap,
    /// When the kernel received what was read last.
    arrived: Option<Instant>,
}

/// What came out of the socket.
enum Datagram {
    /// A packet, and who sent it.
    Packet(Packet, SocketAddr),
    /// The peer's host says that nobody listens there.
    Refused,
    /// Nothing is left to read.
    Nothing,
}

/// The next good datagram of `socket`; damaged ones are counted and passed over.
fn read(socket: &UdpSocket, core: &mut Core, now: Instant) -> Datagram {
    let mut bytes = [0; 64];
    loop {
        match socket.recv_from(&mut bytes) {
            Ok((length, from)) => match Packet::from_bytes(&bytes[..length]) {
                Ok(packet) => {
                    if core.tap.is_on() {
                        core.arrived = stamp::last(socket);
                    }
                    return Datagram::Packet(packet, from);
                }
                Err(_) => core.stats.bad_frames += 1,
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Datagram::Nothing,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Datagram::Refused;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                core.notice(now, &error);
                return Datagram::Nothing;
            }
        }
    }
}

impl Core {
    fn new() -> Self {
        Self {
            inbox: VecDeque::with_capacity(INBOX),
            events: VecDeque::new(),
            stats: LinkStats::default(),
            notices: Throttle::default(),
            tap: LinkTap::off(),
            arrived: None,
        }
    }

    fn has_room(&self) -> bool {
        self.inbox.len() < INBOX
    }

    /// Records a packet that was just read.
    fn note_received(&mut self, packet: &Packet) {
        if let Some(now) = self.tap.now() {
            if let Some(at) = self.arrived {
                self.tap.pass(Moment::Arrived, at, packet);
            }
            self.tap.pass(Moment::Received, now, packet);
        }
    }

    fn keep(&mut self, now: Instant, packet: Packet) {
        self.note_received(&packet);
        self.stats.received += 1;
        self.inbox.push_back(Received {
            packet,
            class: crate::class_of(&packet),
            at: now,
            expires: None,
        });
    }

    /// Counts what became of a write.
    fn outcome(
        &mut self,
        now: Instant,
        packet: &Packet,
        written: io::Result<usize>,
    ) -> SendOutcome {
        match written {
            Ok(_) => {
                self.stats.sent += 1;
                if let Some(now) = self.tap.now() {
                    self.tap.pass(Moment::Written, now, packet);
                }
                SendOutcome::Accepted
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.refuse(now, packet, Refusal::QueueFull)
            }
            Err(error) => {
                self.notice(now, &error);
                self.refuse(now, packet, Refusal::NotConnected)
            }
        }
    }

    fn refuse(&mut self, now: Instant, packet: &Packet, refusal: Refusal) -> SendOutcome {
        self.tap
            .note(Moment::Sending, now, packet, verdict(refusal));
        self.stats.count(refusal);
        SendOutcome::Refused(refusal)
    }

    fn notice(&mut self, now: Instant, error: &io::Error) {
        if self.notices.allows(now) {
            self.events.push_back(Event::Notice(error.to_string()));
        }
    }
}
