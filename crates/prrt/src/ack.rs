//! The receiving half of acknowledgement: which datagrams have been seen (also the guard against duplicates and
//! replays), and when to tell the peer. Decides nothing about repairs.

use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::seq::PacketNumber;
use crate::time::Span;
use crate::wire::frame::{ACK_HISTORY, Ack};

const WORDS: usize = 16;
/// Datagrams remembered behind the largest one.
const REMEMBERED: u64 = WORDS as u64 * 64;
/// How long an acknowledgement may wait for data to ride on.
pub(crate) const MAX_HOLD: Duration = Duration::from_millis(1);
/// Bulk datagrams that may go unacknowledged within [`MAX_HOLD`].
const BULK_EVERY: u32 = 8;
/// Datagrams of steady streams that may go unacknowledged, and for how long.
const SPARSE_EVERY: u32 = 8;
const SPARSE_HOLD: Duration = Duration::from_millis(50);
const RIDE_GAIN: f64 = 1.0 / 8.0;

/// How soon a datagram wants an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// At once, or with data that leaves in a moment.
    Control,
    /// Every few of them.
    Bulk,
    /// Now and then: the sender will be asked for what is overdue.
    Sparse,
}

/// Whether a datagram is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    New,
    Before,
    /// So old that it cannot be told; treated as seen.
    TooOld,
}

/// State of one direction.
#[derive(Clone, Debug)]
pub(crate) struct AckState {
    largest: Option<PacketNumber>,
    largest_at: Option<Instant>,
    seen: [u64; WORDS],
    /// The largest number that has been acknowledged.
    told: Option<PacketNumber>,
    pending: u32,
    due: Option<Instant>,
    /// Arrival that could still be answered by data within the hold time.
    probe: Option<Instant>,
    /// How often data did leave in time lately, 0 to 1.
    rides: f64,
}

impl AckState {
    pub(crate) const fn new() -> Self {
        Self {
            largest: None,
            largest_at: None,
            seen: [0; WORDS],
            told: None,
            pending: 0,
            due: None,
            probe: None,
            rides: 0.0,
        }
    }

    /// The number that a datagram with the low half `low` has.
    pub(crate) fn expand(&self, low: u32) -> PacketNumber {
        PacketNumber::expand(low, self.largest.unwrap_or(PacketNumber(0)))
    }

    /// Whether `number` has been seen.
    pub(crate) fn check(&self, number: PacketNumber) -> Seen {
        let Some(largest) = self.largest else {
            return Seen::New;
        };
        if number > largest {
            return Seen::New;
        }
        let back = largest.0 - number.0;
        if back >= REMEMBERED {
            return Seen::TooOld;
        }
        if self.bit(back) {
            Seen::Before
        } else {
            Seen::New
        }
    }

    fn bit(&self, back: u64) -> bool {
        let word = self
            .seen
            .get((back / 64) as usize)
            .copied()
            .unwrap_or_default();
        word >> (back % 64) & 1 == 1
    }

    /// Remembers `number`; call only after [`AckState::check`] said [`Seen::New`]. Returns whether it is the newest.
    pub(crate) fn insert(&mut self, number: PacketNumber, at: Instant) -> bool {
        let Some(largest) = self.largest else {
            return self.start(number, at);
        };
        if number > largest {
            self.shift(number.0 - largest.0);
            self.largest = Some(number);
            self.largest_at = Some(at);
            self.set(0);
            return true;
        }
        self.set(largest.0 - number.0);
        false
    }

    fn start(&mut self, number: PacketNumber, at: Instant) -> bool {
        self.largest = Some(number);
        self.largest_at = Some(at);
        self.set(0);
        true
    }

    fn set(&mut self, back: u64) {
        if let Some(word) = self.seen.get_mut((back / 64) as usize) {
            *word |= 1 << (back % 64);
        }
    }

    fn shift(&mut self, by: u64) {
        let words = (by / 64).min(WORDS as u64) as usize;
        self.seen.rotate_right(words);
        self.seen.iter_mut().take(words).for_each(|word| *word = 0);
        let bits = by % 64;
        if bits == 0 {
            return;
        }
        let mut carry = 0;
        for word in &mut self.seen {
            let out = *word >> (64 - bits);
            *word = *word << bits | carry;
            carry = out;
        }
    }

    /// A datagram arrived that wants an answer.
    pub(crate) fn want(&mut self, now: Instant, haste: Haste) {
        self.pending += 1;
        self.learn_miss(now);
        let (waits, hold) = match haste {
            Haste::Control => (self.rides > 0.5, MAX_HOLD),
            Haste::Bulk => (self.pending < BULK_EVERY, MAX_HOLD),
            Haste::Sparse => (self.pending < SPARSE_EVERY, SPARSE_HOLD),
        };
        let due = if waits { now + hold } else { now };
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    fn learn_miss(&mut self, now: Instant) {
        let probe = *self.probe.get_or_insert(now);
        if now.saturating_duration_since(probe) > MAX_HOLD {
            self.rides -= self.rides * RIDE_GAIN;
            self.probe = Some(now);
        }
    }

    /// Data left for the peer.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        let Some(probe) = self.probe.take() else {
            return;
        };
        let hit = f64::from(u8::from(now.saturating_duration_since(probe) <= MAX_HOLD));
        self.rides += (hit - self.rides) * RIDE_GAIN;
    }

    /// When an acknowledgement must leave, with data or alone.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The acknowledgement to send now, if any is owed.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Ack> {
        if self.pending == 0 {
            return None;
        }
        let ack = self.build(now)?;
        self.pending = 0;
        self.due = None;
        self.told = self.largest;
        Some(ack)
    }

    fn build(&self, now: Instant) -> Option<Ack> {
        let largest = self.largest?;
        let held = now.saturating_duration_since(self.largest_at?);
        // Twice what is new since the last one, so that the loss of one acknowledgement loses no news.
        let news = largest.0 - self.told.map_or(0, |told| told.0);
        let bits = (news * 2).max(64).min(largest.0);
        let known = (bits.div_ceil(8) as usize).min(ACK_HISTORY);
        let history: ArrayVec<u8, ACK_HISTORY> =
            (0..known).map(|byte| self.history_byte(byte)).collect();
        Some(Ack {
            largest: largest.low(),
            hold: Span::floor(held),
            history,
        })
    }

    fn history_byte(&self, byte: usize) -> u8 {
        (0..8).fold(0, |bits, i| {
            bits | u8::from(self.bit(byte as u64 * 8 + i + 1)) << i
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert_all(state: &mut AckState, numbers: &[u64], at: Instant) {
        for &number in numbers {
            assert_eq!(state.check(PacketNumber(number)), Seen::New);
            state.insert(PacketNumber(number), at);
        }
    }

    #[test]
    fn history_shows_what_was_seen() {
        let now = Instant::now();
        let mut state = AckState::new();
        insert_all(&mut state, &[0, 1, 3, 6, 5], now);
        state.want(now, Haste::Control);
        let ack = state.take(now).unwrap();
        assert_eq!(ack.largest, 6);
        assert_eq!(ack.history[..], [0b11_0101]);
        assert_eq!(state.take(now), None);
    }

    #[test]
    fn duplicates_and_the_very_old_are_recognised() {
        let now = Instant::now();
        let mut state = AckState::new();
        insert_all(&mut state, &[5, 5000, 4990, 4000], now);
        for (number, seen) in [
            (5000, Seen::Before),
            (4000, Seen::Before),
            (4001, Seen::New),
            (5, Seen::TooOld),
        ] {
            assert_eq!(state.check(PacketNumber(number)), seen, "{number}");
        }
        insert_all(&mut state, &[5064, 5193], now);
        assert_eq!(state.check(PacketNumber(4990)), Seen::Before);
        assert_eq!(state.check(PacketNumber(4991)), Seen::New);
    }

    #[test]
    fn waits_for_data_only_where_data_tends_to_come() {
        let mut now = Instant::now();
        let mut state = AckState::new();
        let mut number = 0;
        let mut arrive = |state: &mut AckState, now| {
            state.insert(PacketNumber(number), now);
            number += 1;
            state.want(now, Haste::Control);
        };
        arrive(&mut state, now);
        assert_eq!(state.due(), Some(now));
        for _ in 0..20 {
            now += Duration::from_millis(10);
            arrive(&mut state, now);
            state.on_data_sent(now + MAX_HOLD / 2);
            state.take(now);
        }
        arrive(&mut state, now);
        assert_eq!(state.due(), Some(now + MAX_HOLD));
        for _ in 0..20 {
            state.take(now);
            now += Duration::from_millis(10);
            arrive(&mut state, now);
        }
        assert_eq!(state.due(), Some(now));
    }

    #[test]
    fn bulk_is_acknowledged_in_groups() {
        let now = Instant::now();
        let mut state = AckState::new();
        for number in 0..7 {
            state.insert(PacketNumber(number), now);
            state.want(now, Haste::Bulk);
            assert_eq!(state.due(), Some(now + MAX_HOLD));
        }
        state.insert(PacketNumber(7), now);
        state.want(now, Haste::Bulk);
        assert_eq!(state.due(), Some(now));
    }
}
