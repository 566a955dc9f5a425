//! Packets that wait to be written: one mailbox per setpoint key, newest wins, before one bounded queue in order.
//!
//! A setpoint goes first, but never two in a row while an ordered packet waits, so neither starves the other.
//! Several mailboxes take turns. It decides what leaves next, not when.

use std::collections::VecDeque;
use std::time::Instant;

/// Mailbox keys are below this.
const KEYS: usize = 16;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer was not heard yet, or the session is closed.
    #[error("link is not up")]
    NotUp,
    /// The queue of ordered packets is full.
    #[error("queue of {0} ordered packets is full")]
    Full(usize),
    /// It is too old already.
    #[error("packet has expired")]
    Expired,
    /// There is no such mailbox.
    #[error("mailbox key is {0}, allowed: 0 to 15")]
    Key(u8),
}

#[derive(Clone, Copy, Debug)]
struct Waiting<P> {
    packet: P,
    queued: Instant,
    expires: Option<Instant>,
}

impl<P> Waiting<P> {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// Packets that were accepted and never left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Replaced by a newer one of the same key.
    pub superseded: u64,
    /// Expired.
    pub expired: u64,
    /// Waited when everything was dropped.
    pub discarded: u64,
}

/// Packets of type `P` on their way out.
#[derive(Debug)]
pub struct Outbox<P> {
    latest: [Option<Waiting<P>>; KEYS],
    ordered: VecDeque<Waiting<P>>,
    capacity: usize,
    /// Mailbox to look at first.
    turn: usize,
    /// The last packet was a setpoint.
    setpoint_last: bool,
    drops: Drops,
}

impl<P: Copy> Outbox<P> {
    /// Room for `capacity` ordered packets beside the mailboxes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            latest: [None; KEYS],
            ordered: VecDeque::with_capacity(capacity),
            capacity,
            turn: 0,
            setpoint_last: false,
            drops: Drops::default(),
        }
    }

    /// Packets that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ordered.len() + self.latest.iter().flatten().count()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was dropped so far.
    #[must_use]
    pub const fn drops(&self) -> Drops {
        self.drops
    }

    /// Takes a packet for mailbox `key` (0 to 15), or for the queue.
    ///
    /// # Errors
    /// [`SendError::Full`] or [`SendError::Key`]; the packet is dropped and not counted here.
    pub fn push(
        &mut self,
        now: Instant,
        packet: P,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError> {
        let waiting = Waiting {
            packet,
            queued: now,
            expires,
        };
        if let Some(key) = key {
            let slot = self.latest.get_mut(usize::from(key));
            let slot = slot.ok_or(SendError::Key(key))?;
            self.drops.superseded += u64::from(slot.replace(waiting).is_some());
        } else if self.ordered.len() < self.capacity {
            self.ordered.push_back(waiting);
        } else {
            return Err(SendError::Full(self.capacity));
        }
        Ok(())
    }

    /// The packet whose turn it is, among those that are still worth sending, and since when it has waited.
    pub fn pop(&mut self, now: Instant) -> Option<(P, Instant)> {
        self.expire(now);
        let setpoint_first = !self.setpoint_last || self.ordered.is_empty();
        let setpoint = if setpoint_first {
            self.pop_latest()
        } else {
            None
        };
        self.setpoint_last = setpoint.is_some();
        let waiting = setpoint.or_else(|| self.ordered.pop_front())?;
        Some((waiting.packet, waiting.queued))
    }

    fn pop_latest(&mut self) -> Option<Waiting<P>> {
        let keys = (self.turn..KEYS).chain(0..self.turn);
        let key = { keys }.find(|&key| self.latest[key].is_some())?;
        self.turn = (key + 1) % KEYS;
        self.latest[key].take()
    }

    /// Drops what is no longer worth sending.
    pub fn expire(&mut self, now: Instant) {
        for slot in &mut self.latest {
            let expired = slot.take_if(|waiting| waiting.is_expired(now)).is_some();
            self.drops.expired += u64::from(expired);
        }
        let before = self.ordered.len();
        self.ordered.retain(|waiting| !waiting.is_expired(now));
        self.drops.expired += (before - self.ordered.len()) as u64;
    }

    /// When the next packet expires.
    #[must_use]
    pub fn expires_at(&self) -> Option<Instant> {
        let waiting = self.latest.iter().flatten().chain(&self.ordered);
        waiting.filter_map(|waiting| waiting.expires).min()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.drops.discarded += self.len() as u64;
        self.latest = [None; KEYS];
        self.ordered.clear();
    }
}
