//! A message on its way out: its bytes, its deadline, how often it has been sent, and for large ones which fragments have
//! arrived. Knows nothing of other messages.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::coded::Code;
use crate::code;
use crate::message::{MessageId, Stream};
use crate::payload::Payload;
use crate::seq::PacketNumber;

/// Where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing of it has left.
    Queued,
    /// Sent at least in part, repaired while it lives.
    Flying,
    /// No longer sent; a late acknowledgement may still tell that it arrived.
    Dying,
}

/// Which queue a message waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Small: leaves at once.
    Control,
    /// Large: leaves when the path has room.
    Bulk,
}

/// A message that leaves within this time is sent in any case.
const PATIENCE: Duration = Duration::from_millis(2);
/// Messages up to this size are control, bytes.
const CONTROL_MAX: usize = 200;

/// A message that was accepted and is not finished.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: MessageId,
    pub(crate) payload: Payload,
    pub(crate) birth: Instant,
    pub(crate) expires: Option<Instant>,
    pub(crate) state: State,
    /// Transmissions so far, ridden along or planned.
    pub(crate) attempts: u32,
    /// Transmissions so far that were planned.
    pub(crate) planned: u32,
    pub(crate) first_sent: Option<Instant>,
    pub(crate) last_sent: Option<Instant>,
    /// The one instant at which something is due for this message.
    pub(crate) timer: Option<Instant>,
    /// Stands in the queue of due repairs.
    pub(crate) repair_due: bool,
    pub(crate) superseded: bool,
    /// Time to the next message of its stream, if that has a rhythm.
    pub(crate) period: Option<Duration>,
    /// The receiver asks for it if it is overdue, and does not acknowledge it by itself.
    pub(crate) sparse: bool,
    /// Travels in fragments; stays true when the fragments are forgotten.
    pub(crate) large: bool,
    pub(crate) bulk: Option<Box<Bulk>>,
}

impl Outgoing {
    pub(crate) fn new(
        id: MessageId,
        payload: Payload,
        birth: Instant,
        life: Option<Duration>,
        fragment: usize,
    ) -> Self {
        let coded = matches!(id.stream, Stream::Frame(_));
        let large = payload.len() > fragment;
        let bulk = large.then(|| Box::new(Bulk::new(payload.len(), fragment, coded)));
        let expires = life.map(|life| birth + life);
        Self {
            id,
            payload,
            birth,
            expires,
            state: State::Queued,
            attempts: 0,
            planned: 0,
            first_sent: None,
            last_sent: None,
            timer: expires,
            repair_due: false,
            superseded: false,
            period: None,
            sparse: false,
            large: bulk.is_some(),
            bulk,
        }
    }

    pub(crate) fn lane(&self) -> Lane {
        if self.payload.len() <= CONTROL_MAX {
            Lane::Control
        } else {
            Lane::Bulk
        }
    }

    pub(crate) fn life(&self) -> Option<Duration> {
        self.expires
            .map(|at| at.saturating_duration_since(self.birth))
    }

    pub(crate) fn expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Whether it has waited for its slot, in whole or in part.
    pub(crate) fn waits(&self, now: Instant) -> bool {
        let unsent = match &self.bulk {
            Some(bulk) => self.alive() && bulk.unsent(),
            None => self.state == State::Queued,
        };
        unsent && now > self.birth + PATIENCE
    }

    /// Bytes that have not left yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.bulk
            .as_ref()
            .map_or(self.payload.len(), |bulk| bulk.unsent_bytes())
    }

    /// Whether the sender still works on it.
    pub(crate) fn alive(&self) -> bool {
        self.state != State::Dying
    }
}

/// Fragments of a large message.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) size: u16,
    count: u16,
    next: u16,
    remaining: u16,
    acked: Vec<u64>,
    /// Low half of the number of the last datagram each fragment was in.
    carrier: Vec<u32>,
    lost: VecDeque<u16>,
    /// Present if it is a video frame.
    code: Option<Code>,
}

impl Bulk {
    fn new(len: usize, room: usize, coded: bool) -> Self {
        let size = if coded {
            code::symbol_size(len, code::largest_symbol(room))
        } else {
            room.max(1)
        };
        let count = len.div_ceil(size);
        let code = coded.then(|| Code::new(count as u16));
        let parts = code.as_ref().map_or(count, Code::symbols);
        Self {
            size: size as u16,
            count: count as u16,
            next: 0,
            remaining: count as u16,
            acked: vec![0; parts.div_ceil(64)],
            carrier: vec![0; parts],
            lost: VecDeque::new(),
            code,
        }
    }

    /// Parts of the message itself.
    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    /// Keeps to a vector of parity symbols set by hand; nothing for what is not coded.
    pub(super) fn set_vector(&mut self, vector: &[u8]) {
        if let Some(code) = &mut self.code {
            code.set_vector(vector);
        }
    }

    /// Sends parity behind the message without waiting for a loss; nothing for what is not coded.
    pub(super) fn send_ahead(&mut self, symbols: u16) {
        if let Some(code) = &mut self.code {
            code.ahead(symbols);
        }
    }

    /// The bytes of a part of `payload`.
    pub(super) fn bytes<'p>(
        &'p self,
        payload: &'p [u8],
        index: u16,
        len: usize,
    ) -> Option<&'p [u8]> {
        if index >= self.count {
            return self.code.as_ref()?.bytes(index, self.size);
        }
        let start = usize::from(index) * usize::from(self.size);
        payload.get(start..start + len)
    }

    fn is_acked(&self, fragment: u16) -> bool {
        self.acked
            .get(usize::from(fragment / 64))
            .is_none_or(|word| word >> (fragment % 64) & 1 == 1)
    }

    /// Whether some fragment has never been sent.
    pub(crate) const fn unsent(&self) -> bool {
        self.next < self.count
    }

    fn unsent_bytes(&self) -> usize {
        usize::from(self.count - self.next) * usize::from(self.size)
    }

    /// The fragment to send next and whether it is a repair: lost ones first, since they hold the message up; of a video
    /// frame parity last, and lost ones again only where no parity is left.
    pub(crate) fn peek(&mut self, payload: &[u8]) -> Option<(u16, bool)> {
        while let Some(&fragment) = self.lost.front() {
            if !self.is_acked(fragment) {
                return Some((fragment, true));
            }
            self.lost.pop_front();
        }
        if self.unsent() {
            return Some((self.next, false));
        }
        let code = self.code.as_mut()?;
        let symbol = code.peek()?;
        code.make(payload, self.size);
        Some((symbol, true))
    }

    /// The fragment that [`Bulk::peek`] named left in datagram `number`.
    pub(crate) fn sent(&mut self, fragment: u16, repair: bool, number: PacketNumber) {
        if self.lost.front() == Some(&fragment) {
            self.lost.pop_front();
        } else if !repair {
            self.next += 1;
        }
        if let Some(code) = &mut self.code {
            code.sent(fragment);
        }
        if let Some(carrier) = self.carrier.get_mut(usize::from(fragment)) {
            *carrier = number.low();
        }
    }

    /// The fragment arrived; returns whether that completes the message.
    pub(crate) fn ack(&mut self, fragment: u16) -> bool {
        if !self.is_acked(fragment)
            && let Some(word) = self.acked.get_mut(usize::from(fragment / 64))
        {
            *word |= 1 << (fragment % 64);
            self.remaining = self.remaining.saturating_sub(1);
            if let Some(code) = &mut self.code {
                code.acked();
            }
        }
        self.remaining == 0
    }

    /// Datagram `number` with the fragment seems lost; ignored if the fragment has left again since.
    pub(crate) fn lost(&mut self, fragment: u16, number: u64) {
        let carrier = self.carrier.get(usize::from(fragment)).copied();
        if carrier != Some(PacketNumber(number).low()) || self.is_acked(fragment) {
            return;
        }
        match &mut self.code {
            Some(code) if code.is_classic() || !code.is_used_up() => {
                code.lost(self.remaining, self.count - self.next)
            }
            Some(_) | None => self.lost.push_back(fragment),
        }
    }

    /// Whether there is something to send.
    pub(crate) fn has_work(&self) -> bool {
        let parity = self.code.as_ref().is_some_and(|code| code.peek().is_some());
        self.unsent() || !self.lost.is_empty() || parity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_fragments_go_first_and_only_once() {
        let mut bulk = Bulk::new(1000, 300, false);
        for number in 0..3 {
            let (fragment, repair) = bulk.peek(&[]).unwrap();
            assert_eq!((u64::from(fragment), repair), (number, false));
            bulk.sent(fragment, repair, PacketNumber(number));
        }
        bulk.lost(1, 1);
        bulk.lost(1, 7);
        assert_eq!(bulk.peek(&[]), Some((1, true)));
        bulk.sent(1, true, PacketNumber(3));
        assert_eq!(bulk.peek(&[]), Some((3, false)));
        bulk.sent(3, false, PacketNumber(4));
        assert!(!bulk.has_work());
        bulk.lost(1, 1);
        assert!(!bulk.has_work(), "the loss of an older copy is no news");
        assert!(!bulk.ack(0) && !bulk.ack(0) && !bulk.ack(2) && !bulk.ack(3));
        assert!(bulk.ack(1));
    }
}
