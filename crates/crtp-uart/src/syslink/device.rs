//! A drone's end. Owns the frames and the time since something was heard; that it speaks only when it is spoken to,
//! one packet for one packet, is for its user to keep.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::Packet;

use super::{DecodeStats, Decoder, FrameBytes, to_host};
use crate::wire::Wire;

/// Without a packet for this long the firmware takes the link for lost.
const LOST: Duration = Duration::from_secs(1);
/// Packets that wait to be taken.
const INBOX: usize = 64;

/// A drone's end of a syslink line.
#[derive(Debug, Default)]
pub struct Device {
    decoder: Decoder,
    inbox: VecDeque<Packet>,
    answer: Option<FrameBytes>,
    out: FrameBytes,
    heard: Option<Instant>,
}

impl Device {
    /// A drone that has heard nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next packet that came in. It entitles to one [`Device::answer`].
    pub fn recv(&mut self) -> Option<Packet> {
        self.inbox.pop_front()
    }

    /// Sends a packet for one that came in; it replaces one that was not written yet.
    pub fn answer(&mut self, packet: &Packet) {
        self.answer = Some(to_host(packet));
    }

    /// Whether something was heard within the last second.
    #[must_use]
    pub fn is_connected(&self, now: Instant) -> bool {
        self.lost_at().is_some_and(|at| now < at)
    }

    /// When the link is lost unless something is heard.
    #[must_use]
    pub fn lost_at(&self) -> Option<Instant> {
        Some(self.heard? + LOST)
    }

    /// Forgets a host that has fallen silent.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.heard = self.heard.filter(|heard| now < *heard + LOST);
    }

    /// The decoder's counters.
    #[must_use]
    pub const fn stats(&self) -> DecodeStats {
        self.decoder.stats()
    }
}

impl Wire for Device {
    fn handle_bytes(&mut self, now: Instant, mut bytes: &[u8]) {
        while let Some(packet) = self.decoder.next(&mut bytes) {
            self.heard = Some(now);
            self.inbox.push_back(packet);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<&[u8]> {
        self.out = self.answer.take()?;
        Some(&self.out)
    }

    fn has_room(&self) -> bool {
        self.inbox.len() < INBOX
    }
}
