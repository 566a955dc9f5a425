//! What has left and what became of it: which parts travelled in which datagram, bytes in flight, round-trip samples,
//! early signs of loss for bulk data and the final verdict over each datagram. Holds no payload.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;

use crate::bandwidth::Snapshot;
use crate::seq::PacketNumber;
use crate::slab::Key;
use crate::wire::frame::Ack;

/// Most parts in one datagram.
pub(crate) const MAX_PARTS: usize = 8;
/// Most datagrams remembered; beyond it the oldest is forgotten without a verdict.
const MAX_RECORDS: usize = 1 << 14;

/// Without any acknowledgement for this long, datagrams count as lost.
const SILENCE: Duration = Duration::from_secs(2);

/// A part of a message in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRef {
    pub(crate) key: Key,
    /// Position of the fragment; 0 for a whole message.
    pub(crate) fragment: u16,
}

/// Parts in a datagram.
pub(crate) type Parts = ArrayVec<PartRef, MAX_PARTS>;

/// A datagram that left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) bytes: usize,
    pub(crate) parts: Parts,
    /// The peer will acknowledge it.
    pub(crate) eliciting: bool,
    pub(crate) snapshot: Snapshot,
    /// Traffic had paused before it.
    pub(crate) rested: bool,
    /// The peer takes its time to acknowledge it.
    pub(crate) sparse: bool,
    acked: bool,
    /// The peer knows of later ones but not of this one.
    absent: bool,
    in_flight: bool,
}

impl Sent {
    pub(crate) const fn new(
        at: Instant,
        bytes: usize,
        parts: Parts,
        eliciting: bool,
        snapshot: Snapshot,
    ) -> Self {
        Self {
            at,
            bytes,
            parts,
            eliciting,
            snapshot,
            rested: false,
            sparse: false,
            acked: false,
            absent: false,
            in_flight: eliciting,
        }
    }
}

/// What an acknowledgement told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckOutcome {
    /// Time from departure to now of the newest datagram, if this is the first news of it.
    pub(crate) elapsed: Option<Duration>,
    /// Traffic had paused before the newest datagram.
    pub(crate) rested: bool,
    /// The peer took its time to acknowledge it.
    pub(crate) sparse: bool,
    /// Bytes newly acknowledged.
    pub(crate) bytes: usize,
    /// Departure and snapshot of the newest newly acknowledged datagram.
    pub(crate) newest: Option<(Instant, Snapshot)>,
}

/// Log of one direction.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    /// Number of `records[0]`.
    first: u64,
    records: VecDeque<Sent>,
    largest_acked: Option<u64>,
    in_flight: usize,
    /// Everything before this number has been checked for early signs of loss.
    checked: u64,
}

impl SentLog {
    /// Number of the next datagram.
    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first + self.records.len() as u64)
    }

    /// Remembers a datagram under [`SentLog::next_number`].
    pub(crate) fn push(&mut self, sent: Sent) {
        self.in_flight += if sent.in_flight { sent.bytes } else { 0 };
        self.records.push_back(sent);
        if self.records.len() > MAX_RECORDS {
            self.pop();
        }
    }

    /// Bytes sent and neither acknowledged nor taken for lost.
    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn pop(&mut self) {
        if let Some(sent) = self.records.pop_front() {
            self.in_flight -= if sent.in_flight { sent.bytes } else { 0 };
            self.first += 1;
            self.checked = self.checked.max(self.first);
        }
    }

    /// Applies an acknowledgement; `None` if it speaks of datagrams that never left. Calls `acked` for every part that
    /// arrived, once per datagram it was in.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &Ack,
        mut acked: impl FnMut(PartRef),
    ) -> Option<AckOutcome> {
        let next = self.next_number();
        let largest = PacketNumber::expand(ack.largest, next);
        if largest >= next {
            return None;
        }
        let mut outcome = AckOutcome {
            elapsed: None,
            rested: false,
            sparse: false,
            bytes: 0,
            newest: None,
        };
        outcome.rested = self.get(largest.0).is_some_and(|sent| sent.rested);
        outcome.sparse = self.get(largest.0).is_some_and(|sent| sent.sparse);
        let left = self.mark(largest.0, &mut outcome, &mut acked);
        outcome.elapsed = left.map(|at| now.saturating_duration_since(at));
        for (index, byte) in ack.history.iter().enumerate() {
            for bit in 0..8 {
                let Some(number) = largest.0.checked_sub(index as u64 * 8 + bit + 1) else {
                    continue;
                };
                if byte >> bit & 1 == 1 {
                    self.mark(number, &mut outcome, &mut acked);
                } else {
                    self.mark_absent(number);
                }
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest.0));
        Some(outcome)
    }

    /// Whether a datagram with this low half of its number has left and is not acknowledged.
    pub(crate) fn awaits(&self, low: u32) -> bool {
        let number = PacketNumber::expand(low, self.next_number());
        self.get(number.0).is_some_and(|sent| !sent.acked)
    }

    fn get(&self, number: u64) -> Option<&Sent> {
        self.records.get(number.checked_sub(self.first)? as usize)
    }

    /// The peer has not seen the datagram so far.
    fn mark_absent(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        if let Some(sent) = index.and_then(|index| self.records.get_mut(index as usize)) {
            sent.absent = true;
        }
    }

    /// Returns the departure if this is the first news of the datagram.
    fn mark(
        &mut self,
        number: u64,
        outcome: &mut AckOutcome,
        acked: &mut impl FnMut(PartRef),
    ) -> Option<Instant> {
        let index = number.checked_sub(self.first)?;
        let sent = self
            .records
            .get_mut(index as usize)
            .filter(|sent| !sent.acked)?;
        sent.acked = true;
        self.in_flight -= if std::mem::take(&mut sent.in_flight) {
            sent.bytes
        } else {
            0
        };
        outcome.bytes += sent.bytes;
        if outcome.newest.is_none() && sent.eliciting {
            outcome.newest = Some((sent.at, sent.snapshot));
        }
        sent.parts.iter().copied().for_each(acked);
        Some(sent.at)
    }

    /// Takes datagrams that are unacknowledged after `timeout` out of flight and calls `lost` for their parts. This is a
    /// reason to repair bulk data, not a verdict.
    pub(crate) fn check_lost(
        &mut self,
        now: Instant,
        timeout: Duration,
        mut lost: impl FnMut(u64, PartRef),
    ) {
        while let Some(sent) = self.records.get_mut((self.checked - self.first) as usize) {
            if sent.in_flight {
                if now.saturating_duration_since(sent.at) < timeout {
                    return;
                }
                sent.in_flight = false;
                self.in_flight -= sent.bytes;
                sent.parts.iter().for_each(|&part| lost(self.checked, part));
            }
            self.checked += 1;
        }
    }

    /// When [`SentLog::check_lost`] finds something next.
    pub(crate) fn next_check(&self, timeout: Duration) -> Option<Instant> {
        let skip = (self.checked - self.first) as usize;
        self.records
            .iter()
            .skip(skip)
            .find(|sent| sent.in_flight)
            .map(|sent| sent.at + timeout)
    }

    /// Passes the final verdict (departure, lost) over datagrams in order. One is lost if the peer has told that it is
    /// absent and it is older than `horizon`, or if the peer should have spoken of it and has not for [`SILENCE`]. What
    /// the peer need not speak of gets no verdict then.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        horizon: Duration,
        mut verdict: impl FnMut(Instant, bool),
    ) {
        while let Some(sent) = self.records.front() {
            let age = now.saturating_duration_since(sent.at);
            let told = sent.acked || (sent.absent && age >= horizon);
            if !told && age < SILENCE.max(horizon) {
                return;
            }
            if told || sent.eliciting {
                verdict(sent.at, !sent.acked);
            }
            self.pop();
        }
    }
}
