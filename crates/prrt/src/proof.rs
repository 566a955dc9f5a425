//! Proof that the peer receives at the address it seems to have moved to. Until it comes, large messages are limited to a few
//! times what has come from there, so that nobody can turn a flood on somebody else; small ones go on. Reads no clock.

use std::time::{Duration, Instant};

/// Bytes sent for each byte received before the address is proven.
const FACTOR: usize = 3;

/// A challenge under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof {
    token: u64,
    received: usize,
    sent: usize,
    next: Instant,
}

impl Proof {
    /// A datagram of `len` bytes came from a new address.
    pub(crate) const fn new(now: Instant, token: u64, len: usize) -> Self {
        Self {
            token,
            received: len,
            sent: 0,
            next: now,
        }
    }

    /// Whether `token` answers the challenge.
    pub(crate) const fn is_met_by(&self, token: u64) -> bool {
        self.token == token
    }

    pub(crate) const fn on_received(&mut self, len: usize) {
        self.received += len;
    }

    pub(crate) const fn on_sent(&mut self, len: usize) {
        self.sent += len;
    }

    /// Whether a large message may send another datagram of up to `len` bytes.
    pub(crate) const fn allows(&self, len: usize) -> bool {
        self.sent + len <= self.received * FACTOR
    }

    /// When to challenge (again).
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// The challenge to send now, if one is due; the next follows after `timeout`.
    pub(crate) fn poll(&mut self, now: Instant, timeout: Duration) -> Option<u64> {
        (self.next <= now).then(|| {
            self.next = now + timeout;
            self.token
        })
    }
}
