//! What the application hands over and gets back.

use std::time::{Duration, Instant};

use crate::payload::Payload;
use crate::seq::Seq;

/// Which stream a message belongs to, and with that how it is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Newest wins, per key: an older message is no longer repaired once a newer one of the same key is sent, and
    /// the receiver drops what is older than what it has.
    Latest(u8),
    /// In order until expiry, per number: a lost message holds back later ones of the same number only, and only
    /// until it expires. Without an expiry it is reliable for the life of the connection.
    Ordered(u8),
    /// Video, per number: in order until expiry, and what does not fit into one datagram is protected by a block code, so that
    /// any of its parts can stand in for those that were lost. Give it a life, about that of the picture on the screen.
    Frame(u8),
}

impl Stream {
    /// Whether messages have an order in which they are delivered.
    pub(crate) const fn is_ordered(self) -> bool {
        matches!(self, Self::Ordered(_) | Self::Frame(_))
    }
}

/// Names a message that was accepted for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// Its stream.
    pub stream: Stream,
    /// Its number within the stream.
    pub seq: Seq,
}

/// Whether a message has left for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It waits for its slot.
    Waiting,
    /// It has left (and may have arrived).
    Left,
    /// It expired or was superseded before it could leave. Known for the last 32 such messages.
    Dropped,
}

/// How [`recv`](crate::Endpoint::recv) picks among what has arrived. Applies to ordered streams; of `Latest`
/// streams there is never more than the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As soon as it is there, gaps or not; of several that are there, the oldest first.
    Asap,
    /// In order; a missing message is given up once it expires within `window` from now.
    Ordered {
        /// How much earlier than its expiry a missing message is given up.
        window: Duration,
    },
    /// The newest that is there; older ones are dropped.
    Latest,
}

impl Mode {
    /// In order, waiting for missing messages until the last moment.
    pub const IN_ORDER: Self = Self::Ordered {
        window: Duration::ZERO,
    };
}

/// Messages of an ordered stream that never came in time, in the place where they would have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Their stream.
    pub stream: Stream,
    /// Number of the first.
    pub from: Seq,
    /// Number of the last.
    pub to: Seq,
}

impl Gap {
    /// How many messages are missing, at least one.
    pub const fn count(&self) -> u32 {
        self.to.since(self.from).cast_unsigned().wrapping_add(1)
    }
}

/// What a reader gets that wants to see gaps, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "small messages are handed over without an allocation"
)]
pub enum Delivery {
    /// A message.
    Message(Message),
    /// Messages that were given up. Of `Latest` streams, where older ones are dropped by design, there are none.
    Gap(Gap),
}

/// A message that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its stream.
    pub stream: Stream,
    /// Its number within the stream.
    pub seq: Seq,
    /// Its bytes.
    pub data: Payload,
    /// When its last missing piece arrived here.
    pub at: Instant,
    /// Estimate of the time from `send` at the sender to delivery here: exact up to the asymmetry of the path.
    pub age: Duration,
    /// How far `age` may be off: half the smallest round trip, as if the path had all its delay in one direction; `None` before
    /// a round trip was measured. What the clocks drifted within the last 10 s comes on top.
    pub age_error: Option<Duration>,
    /// What is left of its life at delivery; `None` if it never expires.
    pub remaining: Option<Duration>,
    /// Which transmission arrived first, 0 for the original.
    pub attempt: u8,
    /// Messages of this stream that were never delivered between the previous delivered one and this one.
    pub gap_before: u32,
}

impl Message {
    /// Whether the original was lost and a repair arrived first.
    pub const fn repaired(&self) -> bool {
        self.attempt > 0
    }

    /// Local instant at which it expires.
    pub fn expires(&self, now: Instant) -> Option<Instant> {
        self.remaining.map(|left| now + left)
    }
}
