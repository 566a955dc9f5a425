//! What leaves next and how a datagram is put together: an acknowledgement if one is owed, then messages by priority.

use std::time::Instant;

use super::{STAMP_LEN, Session};
use crate::seal::TAG_LEN;
use crate::sender::{Lane, Moment};
use crate::sent::{PartRef, Parts, Sent};
use crate::seq::PacketNumber;
use crate::spikes::PAUSE;
use crate::wire::frame::{
    emit_answer, emit_challenge, emit_close, emit_marks, emit_pace, emit_ping,
};
use crate::wire::{DATA_HEAD, Datagram, Writer};

/// Why a datagram is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Close,
    Control,
    Repair,
    Bulk,
    Ack,
    Ping,
}

/// What was put into a datagram.
#[derive(Debug, Default)]
struct Contents {
    parts: Parts,
    fresh: bool,
    repairs: bool,
    ack: bool,
    ping: bool,
}

impl Session {
    /// Writes the next datagram into `buffer`, if one may leave now; returns its length.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if self.closed.is_some() {
            return None;
        }
        let work = self.next_work(now)?;
        let mut writer = Writer::new(buffer.get_mut(..self.room)?);
        let number = self.sent.next_number();
        let stamp = self.epoch.stamp(now).0.to_be_bytes();
        let phase = self
            .seal
            .as_mut()
            .is_some_and(|seal| seal.sealer.begin(now));
        Datagram::Data {
            phase,
            destination: self.remote,
            number: number.low(),
            body: &stamp,
        }
        .emit(&mut writer)?;
        let contents = self.fill(now, work, &mut writer);
        let len = writer.len();
        if len == DATA_HEAD + STAMP_LEN {
            return None;
        }
        let len = self.protect(number, buffer, len)?;
        self.on_sent(now, len, contents);
        Some(len)
    }

    /// Seals the body in place; returns the length with the tag.
    fn protect(&mut self, number: PacketNumber, buffer: &mut [u8], len: usize) -> Option<usize> {
        let Some(seal) = &mut self.seal else {
            return Some(len);
        };
        let (datagram, rest) = buffer.split_at_mut_checked(len)?;
        let (head, body) = datagram.split_at_mut_checked(DATA_HEAD)?;
        let tag = seal.sealer.seal(number, head, body)?;
        rest.get_mut(..TAG_LEN)?.copy_from_slice(&tag);
        Some(len + TAG_LEN)
    }

    fn next_work(&mut self, now: Instant) -> Option<Work> {
        self.blocked = None;
        if self.closing.is_some() {
            return Some(Work::Close);
        }
        self.path.bandwidth.set_app_limited(true);
        self.sender.limit.ease(now);
        let way = self.path.rtt.one_way_now() + self.path.rtt.variation().unwrap_or_default() * 2;
        let rate = self
            .path
            .bandwidth
            .estimate()
            .filter(|_| self.path.bandwidth.found());
        self.sender
            .drop_doomed(now, way + self.sender.limit.wait(), rate);
        if self.control_ready(now) {
            return Some(Work::Control);
        }
        if self.repair_ready(now) {
            return Some(Work::Repair);
        }
        if self.bulk_ready(now) {
            return Some(Work::Bulk);
        }
        if self.acks.due().is_some_and(|at| at <= now) || self.expected.is_due(now) {
            return Some(Work::Ack);
        }
        let pace = self.reader_pace(now);
        let challenge = self.proof.is_some_and(|proof| proof.next() <= now);
        if self.teller.poll(now, pace).is_some() || challenge || self.answer.is_some() {
            return Some(Work::Ack);
        }
        self.ping.then_some(Work::Ping)
    }

    /// Small messages wait only while the path is visibly congested, and then for their slot.
    fn slot_ready(&mut self, now: Instant) -> bool {
        let free = !self.path.is_congested() || self.path.pacer.ready(now);
        if !free {
            self.path.bandwidth.set_app_limited(false);
            self.block(self.path.pacer.next(now), "pacing");
        }
        free
    }

    /// New messages wait while the peer's reader is slower than they come.
    fn reader_ready(&mut self, now: Instant) -> bool {
        let ready = self.sender.limit.ready(now);
        if !ready {
            self.block(self.sender.limit.next(), "pace of the reader");
        }
        ready
    }

    fn control_ready(&mut self, now: Instant) -> bool {
        self.sender.has_fresh(Lane::Control) && self.reader_ready(now) && self.slot_ready(now)
    }

    fn repair_ready(&mut self, now: Instant) -> bool {
        let Some(from) = self.sender.repairs_from(now) else {
            return false;
        };
        if from > now {
            self.block(Some(from), "repair budget");
        }
        from <= now && self.slot_ready(now)
    }

    fn bulk_ready(&mut self, now: Instant) -> bool {
        let waiting =
            self.sender.has_bulk() || (self.sender.has_fresh(Lane::Bulk) && self.reader_ready(now));
        if !waiting {
            return false;
        }
        if self.proof.is_some_and(|proof| !proof.allows(self.room)) {
            return false;
        }
        self.path.bandwidth.set_app_limited(false);
        if self.sent.in_flight() >= self.path.window() {
            self.block(self.sent.next_check(self.path.rtt.timeout()), "full window");
            return false;
        }
        let ready = self.path.pacer.ready(now);
        if !ready {
            self.block(self.path.pacer.next(now), "pacing");
        }
        ready
    }

    fn block(&mut self, until: Option<Instant>, why: &'static str) {
        let Some(until) = until else { return };
        if self.blocked.is_none_or(|(at, _)| until < at) {
            self.blocked = Some((until, why));
        }
    }

    fn fill(&mut self, now: Instant, work: Work, out: &mut Writer<'_>) -> Contents {
        let mut path = self.path.plan();
        path.loss = self.sender.debt.inflate(path.loss);
        let moment = Moment {
            now,
            number: self.sent.next_number(),
            path: &path,
            sparse: self.path.sparse
                && !self.path.is_congested()
                && self.sender.limit.pace().is_none(),
        };
        let mut contents = Contents {
            ack: self.write_ack(now, out),
            ..Contents::default()
        };
        self.stats.requests_sent += self.expected.write(now, out);
        self.write_pace(now, out);
        self.write_marks(out);
        self.write_tokens(now, out);
        match work {
            Work::Close => self.write_close(out),
            Work::Control | Work::Repair => self.write_small(moment, out, &mut contents),
            Work::Bulk => self.write_bulk(moment, out, &mut contents),
            Work::Ack | Work::Ping => {}
        }
        let curious = self.ping || (contents.ack && self.path.rtt.is_stale(now));
        if curious && contents.parts.is_empty() {
            contents.ping = emit_ping(out).is_some();
        }
        contents
    }

    fn write_ack(&mut self, now: Instant, out: &mut Writer<'_>) -> bool {
        self.acks
            .take(now)
            .is_some_and(|ack| ack.emit(out).is_some())
    }

    /// Marks travel with acknowledgements until the count no longer grows.
    fn write_marks(&mut self, out: &mut Writer<'_>) {
        if self.marks.seen != self.marks.told && emit_marks(self.marks.seen, out).is_some() {
            self.marks.told = self.marks.seen;
        }
    }

    fn write_tokens(&mut self, now: Instant, out: &mut Writer<'_>) {
        let timeout = self.path.rtt.timeout();
        if let Some(token) = self
            .proof
            .as_mut()
            .and_then(|proof| proof.poll(now, timeout))
        {
            // Without room it goes with the next one.
            let _ = emit_challenge(token, out);
        }
        self.answer = self
            .answer
            .filter(|&token| emit_answer(token, out).is_none());
    }

    fn write_pace(&mut self, now: Instant, out: &mut Writer<'_>) {
        let pace = self.reader_pace(now);
        if let Some(pace) = self.teller.poll(now, pace)
            && emit_pace(pace, out).is_some()
        {
            self.teller.on_told(now, pace);
        }
    }

    fn write_close(&mut self, out: &mut Writer<'_>) {
        if let Some(reason) = self.closing.take() {
            emit_close(reason, out);
            self.closed = Some(reason);
        }
    }

    fn write_small(&mut self, moment: Moment<'_>, out: &mut Writer<'_>, contents: &mut Contents) {
        while !contents.parts.is_full()
            && let Some(part) = self.sender.write_fresh(moment, Lane::Control, out)
        {
            contents.parts.push(part);
            contents.fresh = true;
        }
        let affordable = contents.fresh
            || self
                .sender
                .repairs_from(moment.now)
                .is_some_and(|at| at <= moment.now);
        while affordable
            && !contents.parts.is_full()
            && let Some(part) = self.sender.write_repair(moment, out)
        {
            contents.parts.push(part);
            contents.repairs = true;
        }
        if !contents.parts.is_empty() {
            self.write_riders(moment, out, contents);
        }
    }

    fn write_riders(&mut self, moment: Moment<'_>, out: &mut Writer<'_>, contents: &mut Contents) {
        out.cap(self.piggyback_below);
        let parts = &mut contents.parts;
        self.sender.write_riders(moment, out, |part: PartRef| {
            // A part beyond the capacity travels without being booked; its acknowledgement is then simply no news.
            let _ = parts.try_push(part);
        });
    }

    fn write_bulk(&mut self, moment: Moment<'_>, out: &mut Writer<'_>, contents: &mut Contents) {
        let part = if self.sender.has_bulk() {
            self.sender.write_bulk(moment, out)
        } else {
            self.sender.write_fresh(moment, Lane::Bulk, out)
        };
        contents.fresh = part.is_some();
        contents.parts.extend(part);
    }

    fn on_sent(&mut self, now: Instant, len: usize, contents: Contents) {
        let data = !contents.parts.is_empty();
        if contents.repairs && !contents.fresh {
            self.sender.on_repair_datagram();
        }
        if data {
            self.acks.on_data_sent(now);
            self.departures.on_event(now);
        }
        self.ping &= !(data || contents.ping);
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += len as u64;
        if let Some(proof) = &mut self.proof {
            proof.on_sent(len);
        }
        self.stats.acks_sent += u64::from(contents.ack && !data && !contents.ping);
        let rested = now.saturating_duration_since(self.last_sent) >= PAUSE;
        self.last_sent = now;
        if data || contents.ping {
            self.last_asked = now;
        }
        let sparse = contents
            .parts
            .iter()
            .all(|part| self.sender.is_sparse(part.key));
        let snapshot = self.path.on_send(now, len, self.sent.in_flight());
        let mut sent = Sent::new(now, len, contents.parts, data || contents.ping, snapshot);
        sent.rested = rested;
        sent.sparse = data && sparse;
        self.sent.push(sent);
    }
}
