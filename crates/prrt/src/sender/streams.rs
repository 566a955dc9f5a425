//! Per-stream order of what waits and what is under way. Holds keys, not messages.

use std::collections::VecDeque;

use super::rhythm::Rhythm;
use crate::message::Stream;
use crate::seq::Seq;
use crate::slab::Key;

/// A stream on which only the newest message counts.
#[derive(Debug)]
pub(crate) struct LatestTx {
    pub(crate) id: u8,
    pub(crate) next: Seq,
    pub(crate) current: Option<Key>,
    pub(crate) rhythm: Rhythm,
}

/// A stream in order.
#[derive(Debug)]
pub(crate) struct OrderedTx {
    pub(crate) stream: Stream,
    pub(crate) next: Seq,
    /// Not yet sent.
    pub(crate) queue: VecDeque<(Seq, Key)>,
    /// Sent, oldest first; finished ones leave when they reach the front.
    pub(crate) open: VecDeque<(Seq, Key)>,
    pub(crate) rhythm: Rhythm,
}

impl LatestTx {
    pub(crate) fn new(id: u8, first: Seq) -> Self {
        Self {
            id,
            next: first,
            current: None,
            rhythm: Rhythm::default(),
        }
    }
}

impl OrderedTx {
    pub(crate) fn new(stream: Stream, first: Seq) -> Self {
        Self {
            stream,
            next: first,
            queue: VecDeque::new(),
            open: VecDeque::new(),
            rhythm: Rhythm::default(),
        }
    }

    /// Drops finished messages from the front of both lists.
    pub(crate) fn tidy(&mut self, alive: impl Fn(Key) -> bool) {
        while self.open.front().is_some_and(|&(_, key)| !alive(key)) {
            self.open.pop_front();
        }
        while self.queue.front().is_some_and(|&(_, key)| !alive(key)) {
            self.queue.pop_front();
        }
    }

    /// The oldest number that is still worked on, given a tidy stream.
    pub(crate) fn base(&self) -> Seq {
        let oldest = self.open.front().or_else(|| self.queue.front());
        oldest.map_or(self.next, |&(seq, _)| seq)
    }
}
