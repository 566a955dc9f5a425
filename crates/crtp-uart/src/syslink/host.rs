//! The host's end: packets when there are any, null packets to ask for the downlink when there are none.
//!
//! Owns the pace: it never hands out more than the line carries, so that nothing goes stale in a port's buffer, and
//! asks at once after every packet that came, since more may wait behind it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::{Admitted, Gate, Packet};

use super::{Decoder, FrameBytes, to_drone};
use crate::cpx;
use crate::outbox::{Outbox, SendError};
use crate::session::{Event, Leaving, Phase, Stats};
use crate::wire::{HostSession, Wire};

/// How often to ask for the downlink while nothing comes. The drone takes the link for lost after 1 s.
const ASK_EVERY: Duration = Duration::from_millis(1);
/// How often to ask while nothing was heard of the drone: each time with an echo request, as a drone that has
/// nothing to say says nothing.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// Silence of a drone that was heard before, after which it is probed.
const QUIET: Duration = Duration::from_millis(400);
/// Silence that counts as a stall.
const STALLED: Duration = Duration::from_secs(1);
/// How much may be written ahead of the line: a timer that is a little late costs no throughput.
const AHEAD: Duration = Duration::from_millis(1);
/// Ordered packets that wait; further ones are refused.
const OUTBOX: usize = 64;
/// Packets that wait to be taken; the oldest goes when there are more, as nobody can be made to wait.
const INBOX: usize = 256;
/// Events that wait to be taken.
const EVENTS: usize = 32;

/// The host's end of a syslink line.
#[derive(Debug)]
pub struct Host {
    baud: u32,
    patience: Duration,
    phase: Phase,
    since: Instant,
    decoder: Decoder,
    outbox: Outbox<Admitted>,
    inbox: VecDeque<Packet>,
    events: VecDeque<Event>,
    /// When everything handed out will have left the line.
    line_free: Instant,
    /// Nothing more may be handed out until then.
    busy: Option<Instant>,
    /// When to ask for the downlink next; before the drone was heard, once after each probe, to fetch its answer.
    ask: Option<Instant>,
    /// Asking is due.
    owed: bool,
    heard: Instant,
    /// When to ask for a sign of life next.
    probe: Instant,
    /// Asking for one is due.
    probe_owed: bool,
    probes: u8,
    /// The number of the last probe that is not answered.
    unanswered: Option<u8>,
    stalled: bool,
    sync_timeout: Duration,
    stats: Stats,
    leaving: Option<Leaving<Admitted>>,
    out: FrameBytes,
}

impl Host {
    /// A host on a line of `baud` bit/s; `sync_timeout` of silence raises [`Event::SyncTimeout`].
    #[must_use]
    pub fn new(baud: u32, sync_timeout: Duration, now: Instant) -> Self {
        Self {
            baud: baud.max(1),
            patience: sync_timeout,
            phase: Phase::Syncing,
            since: now,
            decoder: Decoder::default(),
            outbox: Outbox::new(OUTBOX),
            inbox: VecDeque::with_capacity(INBOX),
            events: VecDeque::with_capacity(EVENTS),
            line_free: now,
            busy: None,
            ask: None,
            owed: false,
            heard: now,
            probe: now,
            probe_owed: false,
            probes: 0,
            unanswered: None,
            stalled: false,
            sync_timeout,
            stats: Stats::default(),
            leaving: None,
            out: FrameBytes::new(),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.heard = now;
        self.owed = true;
        (self.probe, self.probe_owed) = (now + QUIET, false);
        if self.phase == Phase::Syncing {
            self.phase = Phase::Up;
            self.raise(Event::Up);
        }
        if std::mem::take(&mut self.stalled) {
            // Nothing tells whether it has restarted.
            self.raise(Event::Resumed);
            self.raise(Event::PeerRestarted);
        }
        if packet.is_null() || self.is_answer(&packet) {
            return;
        }
        self.stats.received += 1;
        if self.inbox.len() == INBOX {
            self.inbox.pop_front();
            self.stats.overruns += 1;
        }
        self.inbox.push_back(packet);
    }

    /// Whether `packet` is the answer to a probe of ours, which nobody else has asked for.
    fn is_answer(&mut self, packet: &Packet) -> bool {
        let answer = |number| probe(number).is_some_and(|probe| *probe == *packet);
        self.unanswered.take_if(|number| answer(*number)).is_some()
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
            self.stats.events_lost += 1;
        }
        self.events.push_back(event);
    }

    /// What to write next: a packet, else a question.
    fn next_packet(&mut self, now: Instant) -> Option<Admitted> {
        if self.phase == Phase::Up
            && let Some((packet, queued)) = self.outbox.pop(now)
        {
            self.leaving = Some(Leaving {
                packet,
                queued,
                head: queued,
                clear: now,
            });
            self.stats.sent += 1;
            return Some(packet);
        }
        if std::mem::take(&mut self.probe_owed) {
            self.probes = self.probes.wrapping_add(1);
            self.unanswered = Some(self.probes);
            return probe(self.probes);
        }
        self.owed.then_some(Admitted::NULL)
    }

    /// How long the line needs for `bytes`, 10 bits each.
    fn line_time(&self, bytes: usize) -> Duration {
        Duration::from_secs(10 * bytes as u64) / self.baud
    }

    /// `bytes` go on the line.
    fn occupy(&mut self, now: Instant, bytes: usize) {
        self.line_free = self.line_free.max(now) + self.line_time(bytes);
        let ahead = self.line_free.checked_sub(AHEAD);
        self.busy = ahead.filter(|&until| now < until);
    }

    fn stall_at(&self) -> Option<Instant> {
        (self.phase == Phase::Up && !self.stalled).then(|| self.heard + STALLED)
    }

    fn patience_at(&self) -> Option<Instant> {
        (self.phase == Phase::Syncing).then(|| self.since + self.patience)
    }

    fn lose_patience(&mut self, now: Instant) {
        let waited = now.saturating_duration_since(self.since);
        self.patience = 2 * waited;
        self.raise(Event::SyncTimeout(waited));
    }
}

/// An echo request that no client makes.
fn probe(number: u8) -> Option<Admitted> {
    let packet = Packet::from_bytes(&[0xfc, b'?', b'o', b'l', number]).ok()?;
    Gate::new().admit(&packet).ok()
}

impl Wire for Host {
    fn handle_bytes(&mut self, now: Instant, mut bytes: &[u8]) {
        while let Some(packet) = self.decoder.next(&mut bytes) {
            if self.phase != Phase::Closed {
                self.handle_packet(now, packet);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        if self.phase == Phase::Closed || self.busy.is_some_and(|until| now < until) {
            return None;
        }
        let packet = self.next_packet(now)?;
        self.out = to_drone(&packet);
        self.owed = false;
        let goes_on = self.phase == Phase::Up || !packet.is_null();
        self.ask = goes_on.then(|| now + ASK_EVERY);
        self.occupy(now, self.out.len());
        Some(&self.out)
    }
}

impl HostSession for Host {
    fn restart(&mut self, now: Instant) {
        self.outbox.clear();
        self.decoder.reset();
        self.phase = Phase::Syncing;
        (self.since, self.heard, self.ask) = (now, now, None);
        (self.probe, self.probe_owed) = (now, false);
        (self.line_free, self.busy) = (now, None);
        (self.owed, self.stalled) = (false, false);
        self.patience = self.sync_timeout;
    }

    fn send(
        &mut self,
        now: Instant,
        packet: Admitted,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError> {
        if self.phase != Phase::Up {
            return Err(SendError::NotUp);
        }
        if expires.is_some_and(|at| at <= now) {
            return Err(SendError::Expired);
        }
        self.outbox.push(now, packet, key, expires)
    }

    fn recv(&mut self) -> Option<Packet> {
        self.inbox.pop_front()
    }

    fn take_leaving(&mut self) -> Option<Leaving<Admitted>> {
        self.leaving.take()
    }

    /// There is no word for it: the drone notices the silence.
    fn close(&mut self, _now: Instant) {
        self.abort();
    }

    fn abort(&mut self) {
        self.outbox.clear();
        self.phase = Phase::Closed;
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.phase == Phase::Closed {
            return None;
        }
        let timers = [
            self.busy.map(|at| (at, "line is free")),
            self.ask
                .filter(|_| !self.owed)
                .map(|at| (at, "ask for the downlink")),
            (!self.probe_owed).then_some((self.probe, "ask for a sign of life")),
            self.outbox.expires_at().map(|at| (at, "packet expires")),
            self.stall_at().map(|at| (at, "drone is silent")),
            self.patience_at().map(|at| (at, "no sign of the drone")),
        ];
        timers.into_iter().flatten().min_by_key(|&(at, _)| at)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.busy = self.busy.filter(|&until| now < until);
        self.owed |= self.ask.is_some_and(|at| at <= now);
        if self.probe <= now {
            (self.probe, self.probe_owed) = (now + PROBE_EVERY, true);
        }
        self.outbox.expire(now);
        if self.stall_at().is_some_and(|at| at <= now) {
            self.stalled = true;
            self.stats.stalls += 1;
            self.raise(Event::Stalled);
        }
        if self.patience_at().is_some_and(|at| at <= now) {
            self.lose_patience(now);
        }
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn backlog(&self) -> usize {
        self.outbox.len()
    }

    fn stats(&self) -> Stats {
        let (decode, drops) = (self.decoder.stats(), self.outbox.drops());
        Stats {
            superseded: drops.superseded,
            expired: drops.expired,
            discarded: drops.discarded,
            bad_crtp: decode.other,
            decode: cpx::DecodeStats {
                frames: decode.frames,
                bad_xor: decode.bad_checksum,
                oversize: decode.oversize,
                resync_bytes: decode.resync_bytes,
                ..cpx::DecodeStats::default()
            },
            ..self.stats
        }
    }
}
