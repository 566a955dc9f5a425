//! A message that arrived and waits for its reader.

use std::time::{Duration, Instant};

use crate::message::{Message, Stream};
use crate::payload::Payload;
use crate::seq::Seq;

/// What is known of a message besides its place.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) data: Payload,
    pub(crate) at: Instant,
    /// Birth on the local clock.
    pub(crate) born: Instant,
    /// How far that may be off, if known.
    pub(crate) doubt: Option<Duration>,
    /// Expiry on the local clock.
    pub(crate) expires: Option<Instant>,
    /// After this nothing before it is worth waiting for; `None` is for ever.
    pub(crate) wait_until: Option<Instant>,
    pub(crate) attempt: u8,
}

impl Held {
    pub(crate) fn expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub(crate) fn deliver(
        self,
        now: Instant,
        stream: Stream,
        seq: Seq,
        gap_before: u32,
    ) -> Message {
        Message {
            stream,
            seq,
            data: self.data,
            at: self.at,
            age: now.saturating_duration_since(self.born),
            age_error: self.doubt,
            remaining: self.expires.map(|at| at.saturating_duration_since(now)),
            attempt: self.attempt,
            gap_before,
        }
    }
}
