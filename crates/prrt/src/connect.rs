//! The client's half of the handshake: asks until the peer answers, with growing pauses, and carries a cookie back. Never
//! gives up by itself and sends nothing else.

use std::time::{Duration, Instant};

use crate::keys::Keys;
use crate::noise::Initiator;
use crate::seal::Seal;
use crate::time::{Epoch, Stamp};
use crate::wire::{COOKIE_LEN, ConnectionId, Cookie, Datagram, Protection, ResetToken, Writer};

/// How the connection will be protected.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// Not at all: no keys are configured.
    Plain,
    /// Encrypted.
    Noise(Initiator),
    /// Encryption is wanted but there is no randomness for it. Asks nobody, and never in plain text.
    Unable,
}

impl Handshake {
    pub(crate) fn new(keys: Option<&Keys>, client: ConnectionId) -> Self {
        let Some(keys) = keys else { return Self::Plain };
        Initiator::new(keys, client).map_or(Self::Unable, Self::Noise)
    }
}

/// What the two ends have agreed on.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// Protection, if any.
    pub(crate) seal: Option<Seal>,
    /// What the server says if it loses its memory.
    pub(crate) reset: Option<ResetToken>,
}

/// A connection that is being asked for.
#[derive(Debug)]
pub(crate) struct Connecting {
    local: ConnectionId,
    epoch: Epoch,
    handshake: Handshake,
    cookie: Cookie,
    begun: Instant,
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
        handshake: Handshake,
        retry: (Duration, Duration),
    ) -> Self {
        let (pause, max_pause) = retry;
        let cookie = [0; COOKIE_LEN];
        Self {
            local,
            epoch,
            handshake,
            cookie,
            begun: now,
            next: now,
            pause,
            max_pause,
            asked: None,
        }
    }

    /// Takes the server's answer; `None` if it is not genuine.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        server: ConnectionId,
        handshake: &[u8],
    ) -> Option<Agreed> {
        match &mut self.handshake {
            Handshake::Noise(noise) => {
                let (seal, reset) = noise.finish(now, server, handshake)?;
                Some(Agreed {
                    seal: Some(seal),
                    reset: Some(reset),
                })
            }
            Handshake::Plain if handshake.is_empty() => Some(Agreed {
                seal: None,
                reset: None,
            }),
            Handshake::Plain | Handshake::Unable => None,
        }
    }

    /// When the next hello leaves.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// When the first hello was due.
    pub(crate) const fn begun(&self) -> Instant {
        self.begun
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
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(self.max_pause);
        let stamp = self.epoch.stamp(now);
        let (protection, handshake) = match &self.handshake {
            Handshake::Plain => (Protection::Plain, &[][..]),
            Handshake::Noise(noise) => (Protection::Noise, noise.hello()),
            Handshake::Unable => return None,
        };
        let mut writer = Writer::new(buffer);
        let (source, cookie) = (self.local, self.cookie);
        let hello = Datagram::Hello {
            protection,
            source,
            time: stamp,
            cookie,
            handshake,
        };
        hello.emit(&mut writer)?;
        self.asked = Some((now, stamp));
        Some(writer.len())
    }
}
