//! Receiving end of one ordered stream: puts messages into order and gives up on a missing one when the sender has, or
//! when it can only arrive too late. Reads no clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::held::Held;
use super::{Books, Verdict};
use crate::message::{Gap, Message, Stream};
use crate::seq::Seq;

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "small messages are held without an allocation"
)]
enum Entry {
    Missing,
    Held(Held),
    /// Delivered out of turn.
    Taken,
    /// Arrived, but too late or too large to be of use.
    Useless,
}

/// One ordered stream.
#[derive(Debug)]
pub(crate) struct OrderedRx {
    pub(crate) stream: Stream,
    window: u32,
    /// Number of `entries[0]`: everything before it is settled.
    next: Seq,
    /// The sender has stopped work on everything before this number.
    floor: Seq,
    entries: VecDeque<Entry>,
    gap: u32,
}

impl OrderedRx {
    pub(crate) const fn new(stream: Stream, first: Seq, window: u32) -> Self {
        Self {
            stream,
            window,
            next: first,
            floor: first,
            entries: VecDeque::new(),
            gap: 0,
        }
    }

    /// Learns from any message that the sender has stopped work on everything before `floor`.
    pub(crate) fn raise_floor(&mut self, floor: Seq, books: &mut Books) {
        // A floor further ahead than any window is no honest statement.
        if floor.is_after(self.floor)
            && floor.since(self.next) < i32::from(u16::MAX) + self.window.cast_signed()
        {
            self.floor = floor;
        }
        self.settle(books);
    }

    /// Whether the next number is missing and will never come.
    fn front_is_gone(&self) -> bool {
        self.floor.is_after(self.next)
            && matches!(self.entries.front(), None | Some(Entry::Missing))
    }

    fn miss(&mut self, books: &mut Books) {
        books.stats.missed += 1;
        self.gap += 1;
        self.advance();
    }

    fn advance(&mut self) {
        self.entries.pop_front();
        self.next = self.next.next();
    }

    /// Whether a message with this number would be news.
    pub(crate) fn wants(&self, seq: Seq) -> Verdict {
        let offset = seq.since(self.next);
        if offset < 0 {
            return Verdict::Duplicate;
        }
        if offset.cast_unsigned() >= self.window {
            return Verdict::NoRoom;
        }
        match self.entries.get(offset as usize) {
            None | Some(Entry::Missing) => Verdict::Wanted,
            Some(_) => Verdict::Duplicate,
        }
    }

    /// Takes a message that is wanted.
    pub(crate) fn put(&mut self, seq: Seq, held: Held) {
        self.set(seq, Entry::Held(held));
    }

    /// Notes a wanted message that is of no use.
    pub(crate) fn skip(&mut self, seq: Seq) {
        self.set(seq, Entry::Useless);
    }

    fn set(&mut self, seq: Seq, entry: Entry) {
        let offset = seq.since(self.next).max(0) as usize;
        while self.entries.len() <= offset {
            self.entries.push_back(Entry::Missing);
        }
        if let Some(place) = self.entries.get_mut(offset) {
            *place = entry;
        }
    }

    /// When waiting for the missing message at the front ends; `None` if it is not waited for, or for ever.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !matches!(self.entries.front(), Some(Entry::Missing)) {
            return None;
        }
        self.first_held()?.1.wait_until
    }

    fn first_held(&self) -> Option<(usize, &Held)> {
        self.entries
            .iter()
            .enumerate()
            .find_map(|(at, entry)| match entry {
                Entry::Held(held) => Some((at, held)),
                Entry::Missing | Entry::Taken | Entry::Useless => None,
            })
    }

    /// The next message in order, if its turn has come.
    pub(crate) fn pop_ordered(
        &mut self,
        now: Instant,
        window: Duration,
        books: &mut Books,
    ) -> Option<Message> {
        self.give_up(now, window, books);
        let Entry::Held(_) = self.entries.front()? else {
            return None;
        };
        let message = self.take(0, now, self.gap, books);
        self.settle(books);
        message
    }

    /// What has been given up since the last delivery, once what follows is there or may still come.
    pub(crate) fn pop_gap(
        &mut self,
        now: Instant,
        window: Duration,
        books: &mut Books,
    ) -> Option<Gap> {
        self.give_up(now, window, books);
        let lost = std::mem::take(&mut self.gap);
        (lost > 0).then(|| Gap {
            stream: self.stream,
            from: self.next.minus(lost),
            to: self.next.minus(1),
        })
    }

    /// Moves up to the first message that can be delivered or is worth waiting for.
    fn give_up(&mut self, now: Instant, window: Duration, books: &mut Books) {
        loop {
            self.settle(books);
            let over = self.deadline().is_some_and(|at| at <= now + window);
            match self.entries.front() {
                Some(Entry::Missing) if over => self.miss(books),
                Some(Entry::Held(held)) if held.expired(now) => {
                    books.release(held);
                    books.stats.expired += 1;
                    self.pass();
                }
                _ => return,
            }
        }
    }

    fn pass(&mut self) {
        self.gap += 1;
        self.advance();
    }

    /// The message with the lowest number that is there, gaps or not.
    pub(crate) fn pop_asap(&mut self, now: Instant, books: &mut Books) -> Option<Message> {
        loop {
            let (at, _) = self.first_held()?;
            let gap = self.gap
                + self
                    .entries
                    .iter()
                    .take(at)
                    .filter(|e| !matches!(e, Entry::Taken))
                    .count() as u32;
            let message = self.take(at, now, gap, books);
            self.settle(books);
            if message.is_some() {
                return message;
            }
        }
    }

    /// The newest message that is there; what is before it is dropped.
    pub(crate) fn pop_latest(&mut self, now: Instant, books: &mut Books) -> Option<Message> {
        let at = self
            .entries
            .iter()
            .rposition(|entry| matches!(entry, Entry::Held(_)))?;
        let gap = self.gap + at as u32;
        for _ in 0..at {
            if let Some(Entry::Held(old)) = self.entries.front() {
                books.stats.stale += 1;
                books.release(old);
            }
            self.advance();
        }
        let message = self.take(0, now, gap, books);
        self.settle(books);
        message
    }

    fn take(&mut self, at: usize, now: Instant, gap: u32, books: &mut Books) -> Option<Message> {
        let seq = self.next.plus(at as u32);
        let Entry::Held(held) = std::mem::replace(self.entries.get_mut(at)?, Entry::Taken) else {
            return None;
        };
        books.release(&held);
        if held.expired(now) {
            books.stats.expired += 1;
            return None;
        }
        Some(held.deliver(now, self.stream, seq, gap))
    }

    /// Moves past everything at the front that needs no more attention.
    fn settle(&mut self, books: &mut Books) {
        loop {
            match self.entries.front() {
                Some(Entry::Taken) => {
                    self.gap = 0;
                    self.advance();
                }
                Some(Entry::Useless) => self.pass(),
                _ if self.front_is_gone() => self.miss(books),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
