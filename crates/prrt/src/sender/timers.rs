//! What time does to messages: repairs fall due, messages expire, late acknowledgements are no longer waited for.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use super::Sender;
use super::outgoing::{Outgoing, State};
use crate::slab::Key;
use crate::trace::Fate;

/// Allowance for the rest of the way of a message that has waited.
const MARGIN: Duration = Duration::from_millis(1);

impl Sender {
    pub(super) fn set_timer(&mut self, key: Key, at: Instant) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        message.timer = Some(at);
        self.timers.push(Reverse((at, key)));
    }

    /// Lets due timers fire: expiry, repair, end of the wait for a late acknowledgement.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.prune();
        while let Some(&Reverse((at, key))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.on_timer(now, key);
            self.prune();
        }
    }

    fn on_timer(&mut self, now: Instant, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        message.timer = None;
        if !message.alive() {
            let (superseded, large) = (message.superseded, message.large);
            self.messages.remove(key);
            self.stats.unconfirmed += u64::from(!superseded);
            if !superseded && !large {
                let helpless = self.budget.is_empty();
                self.debt.on_fate(true, helpless);
            }
        } else if message.expired(now) {
            self.expire(now, key);
        } else {
            self.make_due(key);
        }
    }

    fn expire(&mut self, now: Instant, key: Key) {
        let unsent = self
            .messages
            .get(key)
            .is_some_and(|message| message.state == State::Queued);
        *(if unsent {
            &mut self.stats.expired_unsent
        } else {
            &mut self.stats.expired_unconfirmed
        }) += 1;
        if unsent {
            self.trace(now, key, Fate::Expired);
        }
        self.give_up(now, key);
    }

    /// Gives up on messages that have waited and could now only arrive too late, so that a path that carries too little
    /// carries what is still of use. `rate` is what the path carries, bytes per second, where that is known.
    pub(crate) fn drop_doomed(&mut self, now: Instant, one_way: Duration, rate: Option<f64>) {
        while let Some(key) = self.doomed(now, one_way, rate) {
            self.expire(now, key);
            self.tidy();
        }
    }

    fn doomed(&self, now: Instant, one_way: Duration, rate: Option<f64>) -> Option<Key> {
        let late = |message: &Outgoing| {
            let takes = rate.map_or(Duration::ZERO, |rate| transmission(message, rate));
            message
                .expires
                .is_some_and(|at| at <= now + one_way + takes + MARGIN)
        };
        let heads = self
            .ordered
            .iter()
            .filter_map(|tx| tx.queue.front())
            .map(|&(_, key)| key);
        let heads = heads.chain(self.latest.iter().filter_map(|tx| tx.current));
        let mut candidates = heads.chain(self.bulk.front().copied());
        candidates.find(|&key| {
            self.messages
                .get(key)
                .is_some_and(|m| m.waits(now) && late(m))
        })
    }

    fn tidy(&mut self) {
        let messages = &self.messages;
        for tx in &mut self.ordered {
            tx.tidy(|key| messages.get(key).is_some_and(Outgoing::alive));
        }
    }

    pub(super) fn make_due(&mut self, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        if message.bulk.is_some() || message.repair_due || message.state != State::Flying {
            return;
        }
        message.repair_due = true;
        self.due.push_back(key);
        if let Some(at) = self.messages.get(key).and_then(|message| message.expires) {
            self.set_timer(key, at);
        }
    }

    /// The path is back after a silence: reliable messages need not wait for their back-off.
    pub(crate) fn revive(&mut self) {
        let keys: Vec<Key> = self
            .messages
            .iter()
            .filter(|(_, m)| m.expires.is_none())
            .map(|(key, _)| key)
            .collect();
        keys.into_iter().for_each(|key| self.make_due(key));
    }

    /// Forgets timers that no longer mean anything.
    pub(crate) fn prune(&mut self) {
        while let Some(&Reverse((at, key))) = self.timers.peek() {
            if self
                .messages
                .get(key)
                .is_some_and(|message| message.timer == Some(at))
            {
                return;
            }
            self.timers.pop();
        }
    }

    /// When [`Sender::handle_timeout`] is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }
}

/// How long what is left of a message takes to leave, if the path carries somewhat more than it seems to. A message under
/// way gets a larger benefit of the doubt, since only sending shows what the path carries.
fn transmission(message: &Outgoing, rate: f64) -> Duration {
    let benefit = if message.state == State::Queued {
        1.25
    } else {
        2.0
    };
    let rate = (rate * benefit).max(1.0);
    Duration::from_secs_f64((message.unsent_bytes() as f64 / rate).min(1e6))
}
