//! What happens when nothing comes: offers, stalls, tokens taken for lost, expiry, and the end of patience.
//! Owns every deadline of a session and the words for it.

use std::time::{Duration, Instant};

use super::credit::Credit;
use super::{Event, Phase, Role, Session};

/// Offers of a host that has heard nothing, per attempt to sync, before it takes the drone's token for lost.
const SILENT_OFFERS: u32 = 3;

/// A deadline and what it is for.
type Timer = (Instant, &'static str);

impl<R: Role> Session<R> {
    /// When [`Session::handle_timeout`] is due next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timer> {
        let timers = [
            self.offer_at().map(|at| (at, "offer clear-to-send")),
            self.cut_off_at().map(|at| (at, "frame cut off")),
            self.stall_at().map(|at| (at, "clear-to-send missing")),
            self.presume_at()
                .map(|at| (at, "clear-to-send taken for lost")),
            self.outbox.expires_at().map(|at| (at, "packet expires")),
            self.probe_at().map(|at| (at, "look for the peer")),
            self.retry_at().map(|at| (at, "no sign of the peer")),
            self.linger_at().map(|at| (at, "goodbye")),
        ];
        timers.into_iter().flatten().min_by_key(|&(at, _)| at)
    }

    /// Does what is due at `now`; then drain events and [`Session::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.cut_off_at()) {
            self.decoder.give_up();
            self.handle_bytes(now, &[]);
        }
        if due(self.stall_at()) {
            self.credit.stall();
            self.stats.stalls += 1;
            self.raise(Event::Stalled);
        }
        if due(self.presume_at()) {
            self.presume(now);
        }
        if due(self.offer_at()) {
            self.offer(now);
        }
        if due(self.outbox.expires_at()) {
            self.outbox.expire(now);
        }
        if due(self.probe_at()) {
            self.probe(now);
        }
        if due(self.retry_at()) {
            self.retry(now);
        }
        if due(self.linger_at()) {
            self.phase = Phase::Closed;
        }
    }

    fn cut_off_at(&self) -> Option<Instant> {
        let partial = self.decoder.is_partial();
        partial.then(|| self.heard + self.config.cut_off_after)
    }

    fn stall_at(&self) -> Option<Instant> {
        let up = self.phase == Phase::Up;
        self.credit.stall_at(self.config.stall_after).filter(|_| up)
    }

    fn presume_at(&self) -> Option<Instant> {
        let after = self
            .config
            .presume_after
            .filter(|_| self.phase == Phase::Up)?;
        self.credit.presume_at(after)
    }

    fn presume(&mut self, now: Instant) {
        self.credit.presume();
        self.granted = now;
        self.stats.presumed_tokens += 1;
        self.raise(Event::TokenPresumed);
    }

    /// A drone offers until it is answered, a host whenever the drone is silent: a lost token stops the drone
    /// for ever. Not while the host withholds one on purpose.
    fn offer_at(&self) -> Option<Instant> {
        let offers = match self.phase {
            Phase::Syncing => !R::IS_HOST,
            Phase::Up => R::IS_HOST && !self.withholds() && self.credit.can_offer(),
            Phase::Closing(_) | Phase::Closed => false,
        };
        offers.then(|| self.offered + self.config.offer_every)
    }

    fn offer(&mut self, now: Instant) {
        self.credit.count_offer();
        self.offered = now;
        self.owed = true;
    }

    fn withholds(&self) -> bool {
        self.inbox.len() > self.config.inbox
    }

    /// A drone that was in use before says nothing until it holds a token, and gives none until it gets a
    /// frame. So a host that hears nothing offers, then greets without having been given a token.
    fn probe_at(&self) -> Option<Instant> {
        let probing = R::IS_HOST && self.phase == Phase::Syncing && self.probes <= SILENT_OFFERS;
        let listen = if self.known {
            Duration::ZERO
        } else {
            self.config.listen
        };
        probing.then(|| self.attempt + listen + self.config.offer_every * self.probes)
    }

    fn probe(&mut self, now: Instant) {
        if self.probes < SILENT_OFFERS {
            self.offer(now);
        } else {
            self.credit.presume();
            self.stats.presumed_tokens += 1;
            self.greet(now);
        }
        self.probes += 1;
    }

    fn retry_at(&self) -> Option<Instant> {
        let waits = R::IS_HOST && self.phase == Phase::Syncing;
        waits.then(|| self.attempt + self.config.sync_timeout)
    }

    fn retry(&mut self, now: Instant) {
        self.attempt = now;
        self.probes = 0;
        self.credit = Credit::default();
        self.system.clear();
        let waited = now.saturating_duration_since(self.since);
        if waited >= self.patience {
            self.patience = 2 * waited;
            self.raise(Event::SyncTimeout(waited));
        }
    }

    fn linger_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closing(at) => Some(at),
            Phase::Syncing | Phase::Up | Phase::Closed => None,
        }
    }
}
