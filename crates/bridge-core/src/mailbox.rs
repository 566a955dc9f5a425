//! One slot per kind of setpoint: the newest wins and dies at its expiry.
//!
//! A slot never holds two packets and never gives a stale one; what it drops is counted.

use std::time::Instant;

use crtp::Packet;

/// Number of mailboxes; keys are 0 to 15.
const SLOTS: usize = 16;

/// A setpoint that waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setpoint {
    /// Its mailbox.
    pub key: u8,
    /// The packet.
    pub packet: Packet,
    /// From this instant on it is worthless.
    pub expires: Instant,
}

/// The mailboxes of one direction.
#[derive(Clone, Debug, Default)]
pub struct Mailboxes {
    slots: [Option<Setpoint>; SLOTS],
    /// Where the search for the next setpoint starts, so that a busy kind does not starve the others.
    start: usize,
    superseded: u64,
    expired: u64,
}

impl Mailboxes {
    /// Puts a setpoint into its box, over an older one that still waits there and is returned. Keys above 15 share
    /// box 15.
    pub fn offer(&mut self, setpoint: Setpoint) -> Option<Setpoint> {
        let slot = &mut self.slots[usize::from(setpoint.key).min(SLOTS - 1)];
        let older = slot.replace(setpoint);
        self.superseded += u64::from(older.is_some());
        older
    }

    /// Takes the next setpoint that is still fresh.
    pub fn take(&mut self, now: Instant) -> Option<Setpoint> {
        self.expire(now);
        let at = (0..SLOTS)
            .map(|step| (self.start + step) % SLOTS)
            .find(|&at| self.slots[at].is_some())?;
        self.start = at + 1;
        self.slots[at].take()
    }

    /// Puts back a setpoint that could not leave, unless a newer one has come.
    pub fn put_back(&mut self, setpoint: Setpoint) {
        let slot = &mut self.slots[usize::from(setpoint.key).min(SLOTS - 1)];
        self.superseded += u64::from(slot.is_some());
        slot.get_or_insert(setpoint);
    }

    /// Drops what has expired.
    pub fn expire(&mut self, now: Instant) {
        self.expire_each(now, |_| {});
    }

    /// Like [`Mailboxes::expire`], and shows each setpoint that is dropped.
    pub fn expire_each(&mut self, now: Instant, mut dropped: impl FnMut(&Setpoint)) {
        for slot in &mut self.slots {
            if let Some(setpoint) = slot.take_if(|setpoint| setpoint.expires <= now) {
                self.expired += 1;
                dropped(&setpoint);
            }
        }
    }

    /// Drops everything, because something that was decided later must not be followed by an older setpoint.
    pub fn clear(&mut self) {
        self.clear_each(|_| {});
    }

    /// Like [`Mailboxes::clear`], and shows each setpoint that is dropped.
    pub fn clear_each(&mut self, mut dropped: impl FnMut(&Setpoint)) {
        for setpoint in self.slots.iter_mut().filter_map(Option::take) {
            self.superseded += 1;
            dropped(&setpoint);
        }
    }

    /// Whether no setpoint waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// When the next setpoint dies.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.slots
            .iter()
            .flatten()
            .map(|setpoint| setpoint.expires)
            .min()
    }

    /// Setpoints that a newer one or a later decision replaced.
    #[must_use]
    pub fn superseded(&self) -> u64 {
        self.superseded
    }

    /// Setpoints that died waiting.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.expired
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn setpoint(key: u8, mark: u8, expires: Instant) -> Setpoint {
        let packet = Packet::from_bytes(&[0x7c, mark]).unwrap();
        Setpoint {
            key,
            packet,
            expires,
        }
    }

    #[test]
    fn newest_wins_and_the_rest_is_counted() {
        let now = Instant::now();
        let late = now + Duration::from_millis(100);
        let mut boxes = Mailboxes::default();
        for mark in 0..5 {
            boxes.offer(setpoint(1, mark, late));
        }
        assert_eq!(boxes.take(now), Some(setpoint(1, 4, late)));
        assert_eq!((boxes.take(now), boxes.superseded()), (None, 4));
    }

    #[test]
    fn a_stale_setpoint_dies_by_the_clock() {
        let now = Instant::now();
        let late = now + Duration::from_millis(100);
        let mut boxes = Mailboxes::default();
        boxes.offer(setpoint(0, 1, late));
        assert_eq!(boxes.poll_timeout(), Some(late));
        assert_eq!(boxes.take(late), None);
        assert_eq!((boxes.expired(), boxes.poll_timeout()), (1, None));
    }

    #[test]
    fn kinds_take_turns() {
        let now = Instant::now();
        let late = now + Duration::from_millis(100);
        let mut boxes = Mailboxes::default();
        boxes.offer(setpoint(0, 1, late));
        boxes.offer(setpoint(2, 2, late));
        assert_eq!(boxes.take(now).map(|next| next.key), Some(0));
        boxes.offer(setpoint(0, 3, late));
        assert_eq!(boxes.take(now).map(|next| next.key), Some(2));
    }

    #[test]
    fn put_back_never_replaces_a_newer_one() {
        let now = Instant::now();
        let late = now + Duration::from_millis(100);
        let mut boxes = Mailboxes::default();
        boxes.offer(setpoint(0, 1, late));
        let first = boxes.take(now).unwrap();
        boxes.put_back(first);
        assert_eq!(boxes.take(now), Some(first));
        boxes.offer(setpoint(0, 2, late));
        boxes.put_back(first);
        assert_eq!(boxes.take(now), Some(setpoint(0, 2, late)));
    }
}
