//! The client's half of the handshake: asks until the peer answers, with growing pauses, and carries a cookie back. Never
//! gives up by itself and sends nothing else.

use std::time::{Duration, Instant};

use crate::time::{Epoch, Stamp};
use crate::wire::{COOKIE_LEN, ConnectionId, Cookie, Datagram, Protection, Writer};

/// A connection that is being asked for.
#[derive(Debug)]
pub(crate) struct Connecting {
    local: ConnectionId,
    epoch: Epoch,
    cookie: Cookie,
    next: Instant,
    pause: Duration,
    max_pause: Duration,
    /// When the last hello left and what it was stamped.
    asked: Option<(Instant, Stamp)>,
}

impl Connecting {
    pub(crate) const fn new(
        now: Instant,
        local: ConnectionId,
        epoch: Epoch,
        retry: (Duration, Duration),
    ) -> Self {
        let (pause, max_pause) = retry;
        Self {
            local,
            epoch,
            cookie: [0; COOKIE_LEN],
            next: now,
            pause,
            max_pause,
            asked: None,
        }
    }

    /// When the next hello leaves.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Clock of this end.
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The peer wants proof of our address: ask again at once.
    pub(crate) const fn on_cookie(&mut self, now: Instant, cookie: Cookie) {
        self.cookie = cookie;
        self.next = now;
    }

    /// Round trip, if `echo` answers the last hello.
    pub(crate) fn rtt(&self, now: Instant, echo: Stamp) -> Option<Duration> {
        let (at, stamp) = self.asked?;
        (stamp == echo).then(|| now.saturating_duration_since(at))
    }

    /// Writes a hello, if one is due; returns its length.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if now < self.next {
            return None;
        }
        let stamp = self.epoch.stamp(now);
        let mut writer = Writer::new(buffer);
        let hello = Datagram::Hello {
            protection: Protection::Plain,
            source: self.local,
            time: stamp,
            cookie: self.cookie,
            handshake: &[],
        };
        hello.emit(&mut writer)?;
        self.asked = Some((now, stamp));
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(self.max_pause);
        Some(writer.len())
    }
}
