//! What leaves next, and how it is written: new messages, due repairs, riders, fragments.

use std::time::{Duration, Instant};

use super::outgoing::{Lane, Outgoing, State};
use super::{Moment, RECENT, Sender};
use crate::config::{Config, Repair};
use crate::planner::{self, Path};
use crate::sent::PartRef;
use crate::slab::Key;
use crate::time::Span;
use crate::trace::Fate;
use crate::wire::Writer;
use crate::wire::frame::{Fragment, Order, Part};

/// Which recent small messages ride along, newest first: spaced, so that one burst does not take all.
const RIDERS: [usize; 3] = [0, 2, 5];
/// Slowest rhythm of which the receiver notices an overdue message soon enough.
const SPARSE_PERIOD: Duration = Duration::from_millis(20);
/// The receiver acknowledges at least this often what it need not acknowledge by itself.
const SPARSE_PATIENCE: Duration = Duration::from_millis(60);
/// A message rests this long before it rides along again; on a path that does not lose, a whole time-out, and never
/// where no acknowledgement is due yet.
const SPACING_MIN: Duration = Duration::from_millis(1);

impl Sender {
    /// Whether repairs wait, and if so from when on the budget allows them.
    pub(crate) fn repairs_from(&mut self, now: Instant) -> Option<Instant> {
        while self.due.front().is_some_and(|&key| !self.alive(key)) {
            self.due.pop_front();
        }
        let expires = self.messages.get(*self.due.front()?)?.expires;
        if self.budget.ready(now, expires.is_none()) {
            return Some(now);
        }
        Some(expires.unwrap_or_else(|| self.budget.next(now)))
    }

    /// Whether a new message of `lane` may leave.
    pub(crate) fn has_fresh(&mut self, lane: Lane) -> bool {
        self.fresh(lane).is_some()
    }

    fn fresh(&mut self, lane: Lane) -> Option<Key> {
        let queued = |key: &Key| {
            self.messages
                .get(*key)
                .is_some_and(|m| m.state == State::Queued && m.lane() == lane)
        };
        if let Some(key) = self.latest.iter().filter_map(|tx| tx.current).find(queued) {
            return Some(key);
        }
        let streams = self.ordered.len();
        (0..streams).find_map(|step| self.fresh_ordered((self.turn + step) % streams, lane))
    }

    fn fresh_ordered(&mut self, at: usize, lane: Lane) -> Option<Key> {
        let messages = &self.messages;
        let tx = self.ordered.get_mut(at)?;
        tx.tidy(|key| messages.get(key).is_some_and(Outgoing::alive));
        let &(seq, key) = tx.queue.front()?;
        let open = seq.since(tx.base()) < self.config.window.cast_signed();
        (open && self.messages.get(key)?.lane() == lane).then_some(key)
    }

    /// Writes the next new message of `lane` that fits.
    pub(crate) fn write_fresh(
        &mut self,
        moment: Moment<'_>,
        lane: Lane,
        out: &mut Writer<'_>,
    ) -> Option<PartRef> {
        if !self.limit.ready(moment.now) {
            return None;
        }
        let key = self.fresh(lane)?;
        if self.messages.get(key)?.bulk.is_some() {
            self.limit.charge(moment.now);
            self.leave_queue(key);
            let message = self.messages.get_mut(key)?;
            message.state = State::Flying;
            let ahead = parity_ahead(message, moment);
            if let Some(bulk) = &mut message.bulk {
                bulk.send_ahead(ahead);
            }
            self.bulk_open += 1;
            self.bulk.push_back(key);
            self.budget.on_message();
            return self.write_bulk(moment, out);
        }
        self.write_whole(moment, key, out)?;
        self.limit.charge(moment.now);
        self.leave_queue(key);
        self.budget.on_message();
        self.replan(moment, key);
        self.remember(key);
        Some(PartRef { key, fragment: 0 })
    }

    fn leave_queue(&mut self, key: Key) {
        let stream = self.messages.get(key).map(|message| message.id.stream);
        let Some(stream) = stream.filter(|stream| stream.is_ordered()) else {
            return;
        };
        let tx = self.ordered_mut(stream);
        if let Some(entry) = tx.queue.pop_front() {
            tx.open.push_back(entry);
        }
        self.turn = self.turn.wrapping_add(1) % self.ordered.len().max(1);
    }

    fn remember(&mut self, key: Key) {
        if self
            .messages
            .get(key)
            .is_some_and(|message| message.payload.len() <= self.config.piggyback_below)
        {
            self.recent.push_front(key);
            self.recent.truncate(RECENT);
        }
    }

    /// Writes the next due repair that fits.
    pub(crate) fn write_repair(
        &mut self,
        moment: Moment<'_>,
        out: &mut Writer<'_>,
    ) -> Option<PartRef> {
        let key = *self.due.front()?;
        if !self.alive(key) {
            self.due.pop_front();
            return self.write_repair(moment, out);
        }
        self.write_whole(moment, key, out)?;
        self.due.pop_front();
        self.stats.repairs += 1;
        self.messages.get_mut(key)?.repair_due = false;
        self.replan(moment, key);
        Some(PartRef { key, fragment: 0 })
    }

    /// A datagram left that holds nothing but repairs.
    pub(crate) fn on_repair_datagram(&mut self) {
        self.stats.repair_datagrams += 1;
        self.budget.spend();
    }

    /// Writes unacknowledged small messages into what room is left, at most three.
    pub(crate) fn write_riders(
        &mut self,
        moment: Moment<'_>,
        out: &mut Writer<'_>,
        mut wrote: impl FnMut(PartRef),
    ) {
        for position in RIDERS {
            let Some(&key) = self.recent.get(position) else {
                return;
            };
            if self.may_ride(moment, key) && self.write_whole(moment, key, out).is_some() {
                self.stats.riders += 1;
                wrote(PartRef { key, fragment: 0 });
            }
        }
    }

    fn may_ride(&self, moment: Moment<'_>, key: Key) -> bool {
        let Some(message) = self.messages.get(key) else {
            return false;
        };
        let rest = if moment.path.is_lossy() {
            SPACING_MIN
        } else {
            moment.path.timeout
        };
        let rested = message
            .last_sent
            .is_some_and(|at| moment.now.saturating_duration_since(at) >= rest);
        let useful = message
            .expires
            .is_none_or(|at| moment.now + moment.path.one_way < at);
        let awaited = !message.sparse || moment.path.is_lossy();
        message.state == State::Flying && rested && useful && awaited
    }

    fn write_whole(&mut self, moment: Moment<'_>, key: Key, out: &mut Writer<'_>) -> Option<()> {
        let order = self.order(key);
        let allowed = moment.sparse && self.config.sparse_feedback;
        let message = self.messages.get_mut(key)?;
        if message.attempts == 0 {
            message.sparse =
                allowed && self.config.repair == Repair::Spread && may_be_sparse(message);
        }
        let part = part(message, moment.now, order, None, message.attempts > 0)?;
        part.emit(out)?;
        self.trace(moment.now, key, Fate::Sent);
        let message = self.messages.get_mut(key)?;
        message.attempts += 1;
        message.state = State::Flying;
        message.first_sent.get_or_insert(moment.now);
        message.last_sent = Some(moment.now);
        Some(())
    }

    /// Whether a fragment waits to leave.
    pub(crate) fn has_bulk(&mut self) -> bool {
        while let Some(&key) = self.bulk.front() {
            if self
                .messages
                .get(key)
                .and_then(|m| m.bulk.as_ref())
                .is_some_and(|bulk| bulk.has_work())
            {
                return true;
            }
            self.bulk.pop_front();
        }
        false
    }

    /// Whether fragments are under way, so that signs of their loss matter.
    pub(crate) const fn bulk_open(&self) -> bool {
        self.bulk_open > 0
    }

    /// Writes the next fragment.
    pub(crate) fn write_bulk(
        &mut self,
        moment: Moment<'_>,
        out: &mut Writer<'_>,
    ) -> Option<PartRef> {
        if !self.has_bulk() {
            return None;
        }
        let key = *self.bulk.front()?;
        let order = self.order(key);
        let message = self.messages.get_mut(key)?;
        let (index, repair) = message.bulk.as_mut()?.peek(&message.payload)?;
        let part = part(message, moment.now, order, Some(index), repair)?;
        part.emit(out)?;
        message.bulk.as_mut()?.sent(index, repair, moment.number);
        message.attempts = message.attempts.max(1 + u32::from(repair));
        message.first_sent.get_or_insert(moment.now);
        message.last_sent = Some(moment.now);
        self.stats.fragment_repairs += u64::from(repair);
        Some(PartRef {
            key,
            fragment: index,
        })
    }

    fn order(&mut self, key: Key) -> Option<Order> {
        let message = self.messages.get(key)?;
        let stream = message.id.stream;
        if !stream.is_ordered() {
            return None;
        }
        let (seq, birth) = (message.id.seq, message.birth);
        let messages = &self.messages;
        let at = self
            .ordered
            .binary_search_by_key(&stream, |tx| tx.stream)
            .ok()?;
        let tx = self.ordered.get_mut(at)?;
        tx.tidy(|key| messages.get(key).is_some_and(Outgoing::alive));
        let back = u16::try_from(seq.since(tx.base()).max(0)).unwrap_or(u16::MAX);
        let earlier = tx.open.iter().take_while(|(other, _)| seq.is_after(*other));
        let wait = earlier
            .filter_map(|(_, key)| messages.get(*key))
            .filter(|m| m.alive())
            .map(|m| wait_span(m, birth));
        Some(Order {
            back,
            wait: wait
                .max_by_key(|span| span.duration().unwrap_or(Duration::MAX))
                .unwrap_or(Span::ZERO),
        })
    }

    /// Sets the timer of a message that has just been sent as planned.
    fn replan(&mut self, moment: Moment<'_>, key: Key) {
        let Some(message) = self.messages.get_mut(key) else {
            return;
        };
        message.planned += 1;
        let next = next_send(message, moment, &self.config);
        if let Some(at) = next.or(message.expires) {
            self.set_timer(key, at);
        }
    }
}

/// Small messages with a life on a steady stream that is fast enough.
fn may_be_sparse(message: &Outgoing) -> bool {
    let fast = message.period.is_some_and(|period| period <= SPARSE_PERIOD);
    fast && message.lane() == Lane::Control && message.expires.is_some()
}

fn part<'m>(
    message: &'m Outgoing,
    now: Instant,
    order: Option<Order>,
    fragment: Option<u16>,
    repair: bool,
) -> Option<Part<'m>> {
    let fragment = match (fragment, &message.bulk) {
        (Some(index), Some(bulk)) => Some(Fragment {
            index,
            size: bulk.size,
            total: u32::try_from(message.payload.len()).ok()?,
        }),
        _ => None,
    };
    let data = match fragment {
        None => &message.payload[..],
        Some(f) => {
            let bulk = message.bulk.as_ref()?;
            bulk.bytes(&message.payload, f.index, f.expected_len())?
        }
    };
    let attempt = if fragment.is_some() {
        u32::from(repair)
    } else {
        message.attempts
    };
    Some(Part {
        stream: message.id.stream,
        seq: message.id.seq,
        order,
        age: Span::ceil(now.saturating_duration_since(message.birth)),
        life: Span::of_life(message.life()),
        attempt: attempt.min(255) as u8,
        period: message.period.filter(|_| message.sparse).map(Span::floor),
        fragment,
        data,
    })
}

/// Parity symbols of a frame to send without waiting for a loss: none, unless fewer than two rounds of repairs fit into
/// its life and the path does lose.
fn parity_ahead(message: &Outgoing, moment: Moment<'_>) -> u16 {
    let (Some(expires), Some(bulk)) = (message.expires, &message.bulk) else {
        return 0;
    };
    let path = moment.path;
    let rounds = moment.now + path.timeout * 2 + path.one_way;
    if rounds <= expires || !path.is_lossy() {
        return 0;
    }
    (f64::from(bulk.count()) * path.loss * 1.5).ceil() as u16 + 1
}

/// How long after `birth` the message `earlier` may still arrive.
fn wait_span(earlier: &Outgoing, birth: Instant) -> Span {
    earlier.expires.map_or(Span::FOREVER, |at| {
        Span::ceil(at.saturating_duration_since(birth))
    })
}

/// When a message that was just sent is sent again, if ever.
fn next_send(message: &Outgoing, moment: Moment<'_>, config: &Config) -> Option<Instant> {
    if message.bulk.is_some() {
        return None;
    }
    let Some(life) = message.life() else {
        return Some(moment.now + planner::reliable_pause(moment.path, message.planned));
    };
    let queued = message.first_sent?.saturating_duration_since(message.birth);
    let silence = if message.sparse {
        SPARSE_PATIENCE
    } else {
        Duration::ZERO
    };
    let path = Path {
        timeout: moment.path.timeout + queued + silence,
        period: message.period,
        ..*moment.path
    };
    let plan = if message.sparse {
        planner::on_request(&path, life)
    } else {
        planner::schedule(&config.repair, &path, life)
    };
    let elapsed = moment.now.saturating_duration_since(message.birth);
    let offset = planner::next_offset(&plan, message.planned as usize, elapsed)?;
    Some(message.birth + offset)
}
