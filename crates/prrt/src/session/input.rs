//! What a datagram does to a session. A datagram is acknowledged only if everything in it was taken.

use std::time::{Duration, Instant};

use super::Session;
use crate::ack::{Haste, Seen};
use crate::error::WireError;
use crate::receiver::{Acceptance, Arrival};
use crate::seq::PacketNumber;
use crate::time::Stamp;
use crate::wire::Reader;
use crate::wire::frame::{Ack, Frame, Nack, Part, next_frame};

/// What the frames of a datagram add up to.
#[derive(Debug)]
struct Tally {
    eliciting: bool,
    /// Holds messages, and every one of them is a fragment.
    bulk: bool,
    /// Holds messages, all of steady streams, and no news but originals.
    sparse: bool,
    refused: bool,
}

impl Tally {
    fn haste(&self) -> Haste {
        match (self.bulk, self.sparse) {
            (true, _) => Haste::Bulk,
            (false, true) => Haste::Sparse,
            (false, false) => Haste::Control,
        }
    }
}

impl Session {
    /// The full number of a datagram, given the part that travels.
    pub(crate) fn expand(&self, low: u32) -> PacketNumber {
        self.acks.expand(low)
    }

    /// Whether the datagram has been seen.
    pub(crate) fn is_repeat(&self, number: PacketNumber) -> bool {
        self.acks.check(number) != Seen::New
    }

    /// Counts a datagram that brings no news.
    pub(crate) const fn on_repeat(&mut self) {
        self.stats.duplicate_datagrams += 1;
    }

    /// Counts a datagram that cannot be read.
    pub(crate) const fn on_malformed(&mut self) {
        self.stats.malformed += 1;
    }

    /// Opens a sealed body in place; returns how much of it is plain text, or nothing if it is not genuine.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        phase: bool,
        number: PacketNumber,
        head: &[u8],
        body: &mut [u8],
    ) -> Option<usize> {
        let Some(seal) = &mut self.seal else {
            return Some(body.len());
        };
        seal.opener.open(now, phase, number, head, body)
    }

    /// Takes a datagram that arrived at `now`, opened and known to be new. Returns whether it is the newest so far, or
    /// nothing if it cannot be read.
    pub(crate) fn handle_body(
        &mut self,
        now: Instant,
        number: PacketNumber,
        len: usize,
        body: &[u8],
    ) -> Option<bool> {
        if self.closed.is_some() {
            return None;
        }
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += len as u64;
        if let Some(proof) = &mut self.proof {
            proof.on_received(len);
        }
        match self.apply(now, body) {
            Ok(tally) => Some(self.on_applied(now, number, &tally)),
            Err(_) => {
                self.on_malformed();
                None
            }
        }
    }

    fn on_applied(&mut self, now: Instant, number: PacketNumber, tally: &Tally) -> bool {
        self.on_heard(now);
        if tally.refused {
            return false;
        }
        let newest = self.acks.insert(number, now);
        if tally.eliciting {
            self.acks.want(now, tally.haste());
        }
        newest
    }

    fn on_heard(&mut self, now: Instant) {
        let silence = now.saturating_duration_since(self.last_heard);
        if silence > self.path.rtt.timeout() * 4 {
            self.sender.revive();
        }
        self.last_heard = self.last_heard.max(now);
    }

    fn apply(&mut self, now: Instant, body: &[u8]) -> Result<Tally, WireError> {
        let mut reader = Reader::new(body);
        let stamp = Stamp(reader.u32("time")?);
        self.path.clock.observe(stamp, now);
        let mut tally = Tally {
            eliciting: false,
            bulk: true,
            sparse: true,
            refused: false,
        };
        let mut parts = 0;
        while let Some(frame) = next_frame(&mut reader) {
            match frame? {
                Frame::Ack(ack) => self.on_ack(now, &ack)?,
                Frame::Nack(nack) => self.on_request(now, nack),
                Frame::Pace(pace) => self.sender.limit.on_told(now, pace),
                Frame::Marks(count) => self.on_marks(count),
                Frame::Challenge(token) => self.answer = Some(token),
                Frame::Answer(token) => self.proof = self.proof.filter(|p| !p.is_met_by(token)),
                Frame::Ping => {
                    tally.eliciting = true;
                    tally.sparse = false;
                }
                Frame::Close(reason) => self.end(reason),
                Frame::Part(part) => {
                    parts += 1;
                    self.on_part(now, stamp, &part, &mut tally);
                }
            }
        }
        tally.bulk &= parts > 0;
        tally.sparse &= parts > 0;
        Ok(tally)
    }

    fn on_part(&mut self, now: Instant, stamp: Stamp, part: &Part<'_>, tally: &mut Tally) {
        tally.eliciting = true;
        tally.bulk &= part.fragment.is_some();
        let age = part.age.duration().unwrap_or(Duration::ZERO);
        let arrival = Arrival {
            at: now,
            born: self.path.birth(stamp, age, now),
            doubt: self.path.doubt(),
        };
        let acceptance = self.receiver.accept(arrival, part);
        tally.refused |= acceptance == Acceptance::Refused;
        tally.sparse &=
            part.period.is_some() && (part.attempt == 0 || acceptance == Acceptance::Known);
        if part.fragment.is_none() {
            let nominal = self.path.nominal(stamp, age, now);
            self.expected.on_part(now, nominal, part);
        }
    }

    /// The peer tells how many of our datagrams came with a mark.
    fn on_marks(&mut self, count: u32) {
        let news = count.wrapping_sub(self.marks.ours).cast_signed();
        if news > 0 {
            self.marks.ours = count;
            self.stats.marked += u64::from(news.cast_unsigned());
            self.path.bandwidth.on_mark();
        }
    }

    fn on_request(&mut self, now: Instant, nack: Nack) {
        self.stats.requests_received += 1;
        let min_rtt = self.path.rtt.min().unwrap_or_default();
        for seq in nack.seqs() {
            self.sender.on_request(now, min_rtt, nack.stream, seq);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) -> Result<(), WireError> {
        let Self {
            sent, sender, path, ..
        } = self;
        let unknown = WireError::Unknown {
            field: "acknowledged number",
            value: ack.largest.into(),
        };
        let outcome = sent
            .on_ack(now, ack, |part| sender.on_acked(part))
            .ok_or(unknown)?;
        let hold = ack.hold.duration().unwrap_or_default();
        path.on_ack(now, &outcome, hold, sent.in_flight());
        sender.set_linger(path.rtt.timeout() * 2);
        sender.prune();
        self.heard_ack = true;
        self.review(now);
        Ok(())
    }
}
