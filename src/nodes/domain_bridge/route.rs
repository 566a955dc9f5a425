//! A running route: one thread that waits, takes the serialized message and publishes it in the other domain.
//!
//! The middleware's own history is the route's bounded queue: with keep last the oldest sample is dropped, with
//! keep all the publisher is held back. A route that is stuck in publishing delays no other route. Which publisher
//! a message leaves by is told by a plan that the bridge hands over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::rcl_raw::{Gid, Publisher, RawError, Subscription, Taken, Waker};

use super::Event;
use super::config::RouteRule;
use super::pack::Packer;
use super::policy::Choice;
use super::stats::{Counters, add};

/// How long a wait lasts at most; a stop does not wait for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to pause after rcl reported an error, so that a lasting one does not burn a core.
const AFTER_ERROR: Duration = Duration::from_millis(100);
/// How long a message of a publisher that the bridge does not know yet is held.
const HOLD: Duration = Duration::from_millis(500);
/// How long what has arrived is still forwarded after a stop.
const DRAIN: Duration = Duration::from_secs(1);
/// How often the middleware is asked for losses.
const LOSSES: Duration = Duration::from_secs(1);
/// Most publishers that are remembered as unknown to the graph.
const STRANGERS: usize = 64;

/// A publisher's fate, as a place in [`Plan::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By this lane.
    Lane(usize),
    /// Nowhere: it has been there.
    Circles,
}

/// What a route's thread goes by.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Publishers at the destination.
    pub(super) lanes: Vec<Arc<Publisher>>,
    /// Known publishers at the source, by identity.
    pub(super) ways: Vec<(Gid, Way)>,
    /// Where messages of publishers go that the graph never shows.
    pub(super) strangers: Option<usize>,
}

/// What the bridge and the thread share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// The source's publishers have lost their liveliness.
    lifeless: AtomicBool,
    generation: AtomicU64,
    plan: Mutex<Arc<Plan>>,
    changed: Condvar,
}

/// A route's thread; stops and is joined when dropped.
#[derive(Debug)]
pub(super) struct Running {
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What a route's thread needs beside its subscription.
#[derive(Debug)]
pub(super) struct Setup {
    /// What it says in logs.
    pub(super) label: String,
    /// QoS in use.
    pub(super) choice: Choice,
    /// Counters of the route.
    pub(super) counters: Arc<Counters>,
    /// Where events go.
    pub(super) events: mpsc::SyncSender<Event>,
}

impl Running {
    /// Starts the thread of an opened subscription.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub(super) fn start(
        subscription: Subscription,
        rule: &RouteRule,
        setup: Setup,
        plan: Plan,
    ) -> std::io::Result<Self> {
        let waker = subscription.waker();
        let shared = Arc::new(Shared {
            plan: Mutex::new(Arc::new(plan)),
            ..Shared::default()
        });
        let forwarder = Forwarder {
            plan: Arc::default(),
            generation: u64::MAX,
            strangers: Vec::new(),
            packer: Packer::new(rule.mode)?,
            spacing: rule.spacing,
            next: None,
            shared: Arc::clone(&shared),
            setup,
        };
        let mut pump = Pump {
            subscription,
            forwarder,
            asked: Instant::now(),
            alive: true,
        };
        let thread = std::thread::Builder::new()
            .name("route".into())
            .spawn(move || pump.run())?;
        Ok(Self {
            shared,
            waker,
            thread: Some(thread),
        })
    }

    /// Whether the source's publishers have lost their liveliness.
    pub(super) fn is_lifeless(&self) -> bool {
        self.shared.lifeless.load(Ordering::Acquire)
    }

    /// Hands a new plan over.
    pub(super) fn install(&self, plan: Plan) {
        let mut slot = self
            .shared
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *slot = Arc::new(plan);
        self.shared.generation.fetch_add(1, Ordering::Release);
        self.shared.changed.notify_all();
        drop(slot);
        // Publishers that the plan no longer has close when the thread lets go of the old one.
        self.waker.wake();
    }

    /// Asks the thread to end once what has arrived is forwarded.
    pub(super) fn ask_to_stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        self.waker.wake();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        let panicked = self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err());
        if panicked {
            tracing::error!("a route's thread panicked");
        }
    }
}

/// What the thread works on.
struct Pump {
    subscription: Subscription,
    forwarder: Forwarder,
    asked: Instant,
    alive: bool,
}

impl Pump {
    fn run(&mut self) {
        let patience = self.patience();
        while !self.forwarder.stopping() {
            if let Err(error) = self.turn(patience) {
                self.forwarder.failed(&error);
                std::thread::sleep(AFTER_ERROR);
            }
        }
        if let Err(error) = self.drain() {
            self.forwarder.failed(&error);
        }
    }

    /// Manual liveliness is asserted three times in each lease.
    fn patience(&self) -> Duration {
        let choice = &self.forwarder.setup.choice;
        let lease = u64::try_from(choice.publisher.lease_ns).unwrap_or(0);
        if choice.asserts_liveliness() && lease > 0 {
            PATIENCE.min(Duration::from_nanos(lease / 3))
        } else {
            PATIENCE
        }
    }

    /// Waits once and forwards all that is there.
    fn turn(&mut self, patience: Duration) -> Result<(), RawError> {
        self.subscription.wait(patience)?;
        self.forwarder.follow();
        self.watch();
        while let Some(taken) = self.subscription.take()? {
            self.forwarder.handle_message(&taken);
            if self.forwarder.stopping() {
                break;
            }
        }
        Ok(())
    }

    /// Looks at what else the middleware has to say.
    fn watch(&mut self) {
        let choice = &self.forwarder.setup.choice;
        if let Some(alive) = choice
            .watches_liveliness()
            .then(|| self.subscription.alive())
            .flatten()
        {
            self.alive = alive > 0;
            self.forwarder
                .shared
                .lifeless
                .store(!self.alive, Ordering::Release);
            // A full queue means that the bridge looks at its routes anyway.
            self.forwarder.setup.events.try_send(Event::Graph).ok();
        }
        if self.alive && choice.asserts_liveliness() {
            self.forwarder.assert_alive();
        }
        if self.asked.elapsed() > LOSSES {
            self.asked = Instant::now();
            add(
                &self.forwarder.setup.counters.lost,
                self.subscription.lost(),
            );
        }
    }

    /// Forwards what arrived before the stop.
    fn drain(&mut self) -> Result<(), RawError> {
        let end = Instant::now() + DRAIN;
        while let Some(taken) = self.subscription.take()? {
            self.forwarder.handle_message(&taken);
            if Instant::now() > end {
                break;
            }
        }
        Ok(())
    }
}

/// Decides about each message and publishes it.
struct Forwarder {
    plan: Arc<Plan>,
    generation: u64,
    /// Publishers that the graph did not show in time; forwarded by [`Plan::strangers`].
    strangers: Vec<Gid>,
    packer: Option<Packer>,
    spacing: Option<Duration>,
    next: Option<Instant>,
    shared: Arc<Shared>,
    setup: Setup,
}

/// Wall clock, ns since 1970.
fn wall_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Forwarder {
    fn stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    fn failed(&self, error: &dyn std::fmt::Display) {
        let counters = &self.setup.counters;
        let errors = counters.errors.fetch_add(1, Ordering::Relaxed) + 1;
        if errors.is_power_of_two() {
            tracing::warn!(route = self.setup.label, errors, %error, "cannot forward");
        }
    }

    fn assert_alive(&mut self) {
        self.follow();
        for lane in &self.plan.lanes {
            if let Err(error) = lane.assert_alive() {
                self.failed(&error);
            }
        }
    }

    fn handle_message(&mut self, taken: &Taken<'_>) {
        let counters = Arc::clone(&self.setup.counters);
        let lifespan = self.setup.choice.lifespan_ns;
        let arrived = if taken.received_ns > 0 {
            taken.received_ns
        } else {
            wall_ns()
        };
        if lifespan < i64::MAX && taken.source_ns > 0 && wall_ns() - taken.source_ns > lifespan {
            return add(&counters.expired, 1);
        }
        let lane = match self.way(&taken.gid) {
            None => return add(&counters.held, 1),
            Some(Way::Circles) => return add(&counters.circled, 1),
            Some(Way::Lane(lane)) => lane,
        };
        if !self.is_due(Instant::now()) {
            return add(&counters.limited, 1);
        }
        self.publish(lane, taken.data, &counters);
        counters.stayed(u64::try_from(wall_ns() - arrived).unwrap_or(0));
    }

    fn publish(&mut self, lane: usize, message: &[u8], counters: &Counters) {
        let Some(publisher) = self.plan.lanes.get(lane) else {
            return add(&counters.held, 1);
        };
        let message = match self
            .packer
            .as_mut()
            .map_or(Ok(message), |p| p.convert(message))
        {
            Ok(message) => message,
            Err(error) => {
                add(&counters.unpackable, 1);
                return self.failed(&error);
            }
        };
        match publisher.publish(message) {
            Ok(()) => {
                add(&counters.forwarded, 1);
                add(&counters.bytes, message.len() as u64);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Whether the rate limit lets a message pass now; keeps the limit on average where it can.
    fn is_due(&mut self, now: Instant) -> bool {
        let Some(spacing) = self.spacing else {
            return true;
        };
        let due = self.next.unwrap_or(now);
        if now < due {
            return false;
        }
        self.next = Some(if now - due < spacing {
            due + spacing
        } else {
            now + spacing
        });
        true
    }

    /// Takes over a newer plan.
    fn follow(&mut self) {
        let generation = self.shared.generation.load(Ordering::Acquire);
        if generation != self.generation {
            let slot = self
                .shared
                .plan
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.plan = Arc::clone(&slot);
            self.generation = generation;
        }
    }

    fn known(&mut self, gid: &Gid) -> Option<Way> {
        self.follow();
        let place = self
            .plan
            .ways
            .binary_search_by_key(gid, |(known, _)| *known);
        place.ok().map(|place| self.plan.ways[place].1)
    }

    /// The way of a publisher's messages. One that nobody knows yet is held until the bridge has found out, or is
    /// taken for an ordinary one that the graph does not show.
    fn way(&mut self, gid: &Gid) -> Option<Way> {
        if let Some(way) = self.known(gid) {
            return Some(way);
        }
        if !self.strangers.contains(gid) {
            if let Some(way) = self.wait_for_news(gid) {
                return Some(way);
            }
            if self.strangers.len() == STRANGERS {
                self.strangers.remove(0);
            }
            self.strangers.push(*gid);
        }
        self.plan.strangers.map(Way::Lane)
    }

    fn wait_for_news(&mut self, gid: &Gid) -> Option<Way> {
        let end = Instant::now() + HOLD;
        // A full queue means that a look at the graph is due anyway.
        self.setup.events.try_send(Event::Graph).ok();
        loop {
            if let Some(way) = self.known(gid) {
                return Some(way);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stopping() {
                return None;
            }
            self.sleep(left);
        }
    }

    /// Sleeps until the plan is another than the one in use, or for this long.
    fn sleep(&self, longest: Duration) {
        let slot = self
            .shared
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let same = |_: &mut Arc<Plan>| {
            self.shared.generation.load(Ordering::Acquire) == self.generation && !self.stopping()
        };
        drop(self.shared.changed.wait_timeout_while(slot, longest, same));
    }
}
