//! Receiving end of one key of which only the newest message counts.

use std::time::Instant;

use super::held::Held;
use super::{Books, Verdict};
use crate::message::{Message, Stream};
use crate::seq::Seq;

/// The newest message of one key.
#[derive(Debug)]
pub(crate) struct LatestRx {
    pub(crate) id: u8,
    /// The newest number that arrived, or the one before the first.
    newest: Seq,
    delivered: Seq,
    slot: Option<Held>,
}

impl LatestRx {
    pub(crate) const fn new(id: u8, first: Seq) -> Self {
        Self {
            id,
            newest: first.minus(1),
            delivered: first.minus(1),
            slot: None,
        }
    }

    /// Whether a message with this number would be news.
    pub(crate) fn wants(&self, seq: Seq) -> Verdict {
        match seq.since(self.newest) {
            0 => Verdict::Duplicate,
            1.. => Verdict::Wanted,
            _ => Verdict::Stale,
        }
    }

    /// Takes a message that is wanted.
    pub(crate) fn put(&mut self, seq: Seq, held: Held, books: &mut Books) {
        self.newest = seq;
        if let Some(old) = self.slot.replace(held) {
            books.stats.stale += 1;
            books.release(&old);
        }
    }

    /// Notes a wanted message that came too late to be of use.
    pub(crate) fn skip(&mut self, seq: Seq) {
        self.newest = seq;
    }

    pub(crate) fn pop(&mut self, now: Instant, books: &mut Books) -> Option<Message> {
        let held = self.slot.take()?;
        books.release(&held);
        if held.expired(now) {
            books.stats.expired += 1;
            return None;
        }
        let gap = (self.newest.since(self.delivered) - 1)
            .max(0)
            .cast_unsigned();
        self.delivered = self.newest;
        Some(held.deliver(now, Stream::Latest(self.id), self.newest, gap))
    }
}
