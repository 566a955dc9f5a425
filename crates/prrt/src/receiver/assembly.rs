//! Puts large messages together from fragments, within a bound on memory. Gives room to newer data by forgetting what has
//! expired; never touches complete messages.

use std::time::Instant;

use crate::message::Stream;
use crate::seq::Seq;
use crate::wire::frame::{Fragment, Part};

/// Most messages in assembly at once.
const MAX_OPEN: usize = 64;

/// A message of which fragments are missing.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) stream: Stream,
    pub(crate) seq: Seq,
    pub(crate) expires: Option<Instant>,
    pub(crate) attempt: u8,
    buffer: Vec<u8>,
    size: u16,
    have: Vec<u64>,
    missing: usize,
    /// Parity symbols of a video frame, with their position.
    parity: Vec<(usize, Vec<u8>)>,
    total: usize,
}

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Taken, others are missing.
    Partial,
    /// It was there already, or contradicts the ones before.
    Duplicate,
    /// There is no room for another large message.
    NoRoom,
    /// The message is complete: its bytes and the highest attempt among its fragments.
    Complete(Vec<u8>, u8),
}

impl Assembly {
    fn new(part: &Part<'_>, fragment: Fragment, expires: Option<Instant>) -> Self {
        let count = fragment.count();
        Self {
            stream: part.stream,
            seq: part.seq,
            expires,
            attempt: 0,
            buffer: vec![0; room(part.stream, fragment)],
            size: fragment.size,
            have: vec![0; count.div_ceil(64)],
            missing: count,
            parity: Vec::new(),
            total: fragment.total as usize,
        }
    }

    /// Bytes set aside for it.
    fn bytes(&self) -> usize {
        self.buffer.len() + self.parity.len() * usize::from(self.size)
    }

    /// Whether the fragment was news.
    fn add(&mut self, part: &Part<'_>, fragment: Fragment) -> bool {
        if fragment.size != self.size || fragment.total as usize != self.total {
            return false;
        }
        if let Some(position) = usize::from(fragment.index).checked_sub(fragment.count()) {
            return self.add_parity(part, position);
        }
        let bit = 1u64 << (fragment.index % 64);
        let Some(word) = self
            .have
            .get_mut(usize::from(fragment.index / 64))
            .filter(|word| **word & bit == 0)
        else {
            return false;
        };
        let start = usize::from(fragment.index) * usize::from(self.size);
        let Some(target) = self.buffer.get_mut(start..start + part.data.len()) else {
            return false;
        };
        target.copy_from_slice(part.data);
        *word |= bit;
        self.missing -= 1;
        self.attempt = self.attempt.max(part.attempt);
        true
    }

    fn add_parity(&mut self, part: &Part<'_>, position: usize) -> bool {
        if self.parity.iter().any(|(other, _)| *other == position) {
            return false;
        }
        self.parity.push((position, part.data.to_vec()));
        self.missing -= 1;
        self.attempt = self.attempt.max(part.attempt);
        true
    }

    /// The message, once nothing more is needed. `None` if the parity contradicts it.
    fn finish(mut self) -> Option<(Vec<u8>, u8)> {
        let has = |index: usize| {
            let word = self.have.get(index / 64).copied().unwrap_or_default();
            word >> (index % 64) & 1 == 1
        };
        if !self.parity.is_empty() {
            let size = usize::from(self.size);
            crate::code::decode(&mut self.buffer, size, has, &self.parity)?;
        }
        self.buffer.truncate(self.total);
        Some((self.buffer, self.attempt))
    }
}

/// Bytes that a message takes while it is put together: video frames are padded to whole symbols.
fn room(stream: Stream, fragment: Fragment) -> usize {
    match stream {
        Stream::Latest(_) | Stream::Ordered(_) => fragment.total as usize,
        Stream::Frame(_) => fragment.count() * usize::from(fragment.size),
    }
}

/// All messages in assembly of one connection.
#[derive(Debug, Default)]
pub(crate) struct Assemblies {
    open: Vec<Assembly>,
    bytes: usize,
}

impl Assemblies {
    /// Adds a fragment; `limit` bounds the bytes of all messages in assembly.
    pub(crate) fn add(
        &mut self,
        part: &Part<'_>,
        fragment: Fragment,
        expires: Option<Instant>,
        limit: usize,
    ) -> Outcome {
        let found = self
            .open
            .iter()
            .position(|a| a.stream == part.stream && a.seq == part.seq);
        let Some(at) = found.or_else(|| self.start(part, fragment, expires, limit)) else {
            return Outcome::NoRoom;
        };
        let Some(assembly) = self.open.get_mut(at) else {
            return Outcome::NoRoom;
        };
        let parity = usize::from(fragment.index) >= fragment.count();
        if parity && self.bytes + part.data.len() > limit {
            return Outcome::NoRoom;
        }
        let before = assembly.bytes();
        if !assembly.add(part, fragment) {
            return Outcome::Duplicate;
        }
        self.bytes += assembly.bytes() - before;
        if assembly.missing > 0 {
            return Outcome::Partial;
        }
        let done = self.open.swap_remove(at);
        self.bytes -= done.bytes();
        match done.finish() {
            Some((bytes, attempt)) => Outcome::Complete(bytes, attempt),
            None => Outcome::NoRoom,
        }
    }

    fn start(
        &mut self,
        part: &Part<'_>,
        fragment: Fragment,
        expires: Option<Instant>,
        limit: usize,
    ) -> Option<usize> {
        let total = room(part.stream, fragment);
        if self.open.len() >= MAX_OPEN || self.bytes + total > limit {
            return None;
        }
        self.bytes += total;
        self.open.push(Assembly::new(part, fragment, expires));
        Some(self.open.len() - 1)
    }

    /// Forgets every message for which `keep` is false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Assembly) -> bool) {
        self.open.retain(|assembly| keep(assembly));
        self.bytes = self.open.iter().map(Assembly::bytes).sum();
    }

    /// Bytes set aside.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The earliest expiry.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.open
            .iter()
            .filter_map(|assembly| assembly.expires)
            .min()
    }

    /// Whether nothing is in assembly.
    pub(crate) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
