//! The safety rules of the bridge nearest the drone.
//!
//! It watches what clients send, adds what they forget (thrust unlock, notify-stop) and acts when a stream
//! breaks off. It puts everything into an [`Outbox`] in the order in which it must leave, and never changes a
//! client's packet.

use std::fmt;
use std::time::{Duration, Instant};

use crtp::{Gate, Packet, supervisor};
use link::{Class, Received};
use serde::Serialize;

use crate::kind::{self, Kind};
use crate::mailbox::Setpoint;
use crate::outbox::Outbox;
use crate::policy::{self, LinkLoss, Made, Safety};

/// A setpoint is worthless after this long.
pub const DEFAULT_SETPOINT_LIFE: Duration = Duration::from_millis(100);

/// The emergency watchdog stops the motors 1000 ms after it was last fed.
const FEED_PERIOD: Duration = Duration::from_millis(300);

/// Why a packet was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Zero thrust before the first thrust.
    Unlock,
    /// Notify-stop before a high-level command.
    HighLevelNext,
    /// Notify-stop after a stream that ended properly, without which the firmware locks.
    HandBack,
    /// Low-level setpoints broke off.
    LinkLoss(LinkLoss),
    /// Holding came to its limit.
    HoldLimit,
    /// No client came back during high-level flight.
    ClientGone,
    /// The bridge ends.
    Ending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unlock => "zero thrust sent first: it unlocks the motors",
            Self::HighLevelNext => "notify-stop sent before a high-level command",
            Self::HandBack => "setpoints ended: handed back to the high-level commander",
            Self::LinkLoss(LinkLoss::Land) => "setpoints broke off in flight: landing",
            Self::LinkLoss(LinkLoss::Stop) => "setpoints broke off in flight: motors stopped",
            Self::LinkLoss(LinkLoss::Hold) => "setpoints broke off in flight: holding position",
            Self::LinkLoss(LinkLoss::Handover) => {
                "setpoints broke off in flight: left to the high-level commander"
            }
            Self::HoldLimit => "held position to the limit: landing",
            Self::ClientGone => "no client came back during high-level flight: landing",
            Self::Ending => "the bridge ends during flight: the link-loss policy is applied",
        })
    }
}

/// How often each rule acted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Actions {
    /// See [`Reason::Unlock`].
    pub unlock: u64,
    /// See [`Reason::HighLevelNext`].
    pub high_level_next: u64,
    /// See [`Reason::HandBack`].
    pub hand_back: u64,
    /// See [`Reason::LinkLoss`].
    pub link_loss: u64,
    /// See [`Reason::HoldLimit`].
    pub hold_limit: u64,
    /// See [`Reason::ClientGone`].
    pub client_gone: u64,
    /// See [`Reason::Ending`].
    pub ending: u64,
}

impl Actions {
    fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::Unlock => &mut self.unlock,
            Reason::HighLevelNext => &mut self.high_level_next,
            Reason::HandBack => &mut self.hand_back,
            Reason::LinkLoss(_) => &mut self.link_loss,
            Reason::HoldLimit => &mut self.hold_limit,
            Reason::ClientGone => &mut self.client_gone,
            Reason::Ending => &mut self.ending,
        } += 1;
    }
}

/// The low-level setpoints of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    /// None, or handed back.
    Idle,
    /// The drone may be flying by them.
    Live(Instant),
    /// The last one took the thrust away.
    Still(Instant),
}

/// Flight by the on-board high-level commander.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HighLevel {
    /// Not flying by it, as far as the commands tell.
    Idle,
    /// Flying, and a client is there.
    Flying,
    /// Flying, and it lands at this instant.
    LandsAt(Instant, Reason),
}

/// The rules, and what they remember of one drone.
#[derive(Debug)]
pub struct DroneSide {
    safety: Safety,
    /// What could crash the drone is refused here already: it must neither replace a good setpoint that waits
    /// nor count as one.
    gate: Gate,
    unlocked: bool,
    stream: Stream,
    high_level: HighLevel,
    /// The drone says that it does not move before it is restarted: there is nothing to land.
    locked: bool,
    /// The link to the drone has been up, so that the watchdog is to be fed.
    feeding: bool,
    fed: Option<Instant>,
    /// The bridge ends; what it has decided stands.
    ended: bool,
    actions: Actions,
    event: Option<Reason>,
}

impl DroneSide {
    /// Rules for a drone of which nothing is known yet.
    #[must_use]
    pub fn new(safety: Safety) -> Self {
        Self {
            safety,
            gate: Gate::new(),
            unlocked: false,
            stream: Stream::Idle,
            high_level: HighLevel::Idle,
            locked: false,
            feeding: false,
            fed: None,
            ended: false,
            actions: Actions::default(),
            event: None,
        }
    }

    /// The link to the drone has come up: it may have restarted.
    pub fn handle_drone_up(&mut self) {
        self.unlocked = false;
        self.locked = false;
        self.ground();
        self.feeding = self.safety.watchdog;
        self.fed = None;
    }

    /// What the drone's supervisor says about it.
    pub fn handle_supervisor(&mut self, info: supervisor::Info) {
        self.locked = info.has(supervisor::Info::LOCKED);
        if self.locked {
            self.ground();
        }
    }

    /// A client is there (again).
    pub fn handle_client_up(&mut self) {
        if let HighLevel::LandsAt(_, Reason::ClientGone) = self.high_level {
            self.high_level = HighLevel::Flying;
        }
    }

    /// No client is there.
    pub fn handle_client_down(&mut self, now: Instant) {
        let limit = self.safety.high_level_limit;
        if let (HighLevel::Flying, Some(limit)) = (self.high_level, limit) {
            self.high_level = HighLevel::LandsAt(now + limit, Reason::ClientGone);
        }
    }

    /// A packet from the drone: it may say which memories there are, or how its supervisor is.
    pub fn handle_downlink(&mut self, packet: &Packet) {
        self.gate.observe(packet);
        if let Ok(supervisor::InfoReply::BitField(info)) = supervisor::InfoReply::parse(packet) {
            self.handle_supervisor(info);
        }
    }

    /// A client's packet: queued behind what has to go before it, or refused.
    pub fn handle_uplink(&mut self, now: Instant, received: &Received, out: &mut Outbox) {
        match self.gate.admit(&received.packet) {
            // The setpoints that go on coming while the last packets leave would take the drone out of its landing.
            Ok(_) if self.ended && moves(&received.packet) => out.supersede(&received.packet),
            Ok(_) => {
                self.prepare(now, &received.packet, out);
                queue(received, out);
            }
            Err(reject) => out.refuse_packet(&received.packet, reject.reason()),
        }
    }

    /// Acts on what is due.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        self.feed(now, out);
        match self.stream {
            Stream::Live(last) if now >= last + self.safety.silence => self.lose(now, out),
            Stream::Still(last) if now >= last + self.safety.silence => self.hand_back(out),
            Stream::Live(_) | Stream::Still(_) | Stream::Idle => {}
        }
        match self.high_level {
            HighLevel::LandsAt(at, reason) if now >= at => self.land(reason, out),
            HighLevel::LandsAt(..) | HighLevel::Flying | HighLevel::Idle => {}
        }
    }

    /// When [`DroneSide::handle_timeout`] is due, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let stream = match self.stream {
            Stream::Idle => None,
            Stream::Live(last) => Some((last + self.safety.silence, "setpoints broke off")),
            Stream::Still(last) => Some((last + self.safety.silence, "hand back to the commander")),
        };
        let high_level = match self.high_level {
            HighLevel::LandsAt(at, _) => Some((at, "automatic landing")),
            HighLevel::Idle | HighLevel::Flying => None,
        };
        let feed = self.fed.filter(|_| self.feeding);
        let feed = feed.map(|at| (at + FEED_PERIOD, "feed the watchdog"));
        stream.into_iter().chain(high_level).chain(feed).min()
    }

    /// The bridge ends: nobody will be there to act later, so what may be flying is dealt with now. Of what clients still
    /// say about the flight only an emergency stop counts.
    pub fn finish(&mut self, now: Instant, out: &mut Outbox) {
        self.ended = true;
        match (self.stream, self.high_level) {
            (Stream::Live(_), _) => self.end_stream(now, out),
            (Stream::Still(_), _) => self.hand_back(out),
            (Stream::Idle, HighLevel::Idle) => {}
            (Stream::Idle, HighLevel::Flying | HighLevel::LandsAt(..)) => self.end_high_level(out),
        }
    }

    /// The last rule that acted, once.
    pub fn poll_event(&mut self) -> Option<Reason> {
        self.event.take()
    }

    /// How often each rule acted.
    #[must_use]
    pub fn actions(&self) -> Actions {
        self.actions
    }

    fn prepare(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) {
        match kind::kind(packet) {
            Kind::Live => {
                self.unlock(packet, out);
                self.stream = Stream::Live(now);
                self.high_level = HighLevel::Idle;
            }
            Kind::Still => {
                self.unlock(packet, out);
                self.stream = Stream::Still(now);
                self.high_level = HighLevel::Idle;
            }
            Kind::NotifyStop => {
                out.drop_setpoints();
                self.stream = Stream::Idle;
            }
            Kind::Fly => self.take_over(HighLevel::Flying, out),
            Kind::Land => self.take_over(HighLevel::Idle, out),
            Kind::Emergency => {
                out.drop_setpoints();
                self.ground();
            }
            Kind::NewClient if self.stream == Stream::Idle => {
                (self.unlocked, self.locked) = (false, false);
            }
            Kind::NewClient | Kind::Other => {}
        }
        if self.locked {
            self.ground();
        }
    }

    /// Nothing is flying, as far as is known here.
    fn ground(&mut self) {
        (self.stream, self.high_level) = (Stream::Idle, HighLevel::Idle);
    }

    fn feed(&mut self, now: Instant, out: &mut Outbox) {
        if self.feeding && self.fed.is_none_or(|at| now >= at + FEED_PERIOD) {
            inject(out, policy::feed());
            self.fed = Some(now);
        }
    }

    /// The firmware ignores thrust until it has seen a setpoint without any. A client's own first zero is
    /// injected as well, since a newer setpoint could replace it in its mailbox.
    fn unlock(&mut self, packet: &Packet, out: &mut Outbox) {
        let Some(thrust) = kind::rpyt_thrust(packet) else {
            return;
        };
        if self.unlocked {
            return;
        }
        self.unlocked = inject(out, policy::zero_thrust());
        if thrust > 0 {
            self.note(Reason::Unlock);
        }
    }

    /// A high-level command has no effect while setpoints have the higher priority.
    fn take_over(&mut self, next: HighLevel, out: &mut Outbox) {
        if self.stream != Stream::Idle {
            self.relax(out);
            self.note(Reason::HighLevelNext);
        }
        self.high_level = next;
    }

    /// From here on no setpoint that still waits may reach the drone.
    fn relax(&mut self, out: &mut Outbox) {
        out.drop_setpoints();
        inject(out, policy::notify_stop());
        self.stream = Stream::Idle;
    }

    fn hand_back(&mut self, out: &mut Outbox) {
        self.relax(out);
        self.note(Reason::HandBack);
    }

    fn lose(&mut self, now: Instant, out: &mut Outbox) {
        self.apply(now, self.safety.link_loss, out);
        self.note(Reason::LinkLoss(self.safety.link_loss));
    }

    fn apply(&mut self, now: Instant, link_loss: LinkLoss, out: &mut Outbox) {
        if link_loss == LinkLoss::Stop {
            out.drop_setpoints();
            inject(out, policy::stop_setpoint());
        }
        self.relax(out);
        match link_loss {
            LinkLoss::Land => self.descend(out),
            LinkLoss::Hold => {
                inject(out, policy::hold());
                self.high_level =
                    HighLevel::LandsAt(now + self.safety.hold_limit, Reason::HoldLimit);
            }
            LinkLoss::Stop => {}
            LinkLoss::Handover => {
                // The commander's planner is stopped until a command comes: without one the motors go off.
                inject(out, policy::hold());
                self.high_level = HighLevel::Flying;
            }
        }
    }

    fn end_stream(&mut self, now: Instant, out: &mut Outbox) {
        let link_loss = match self.safety.link_loss {
            LinkLoss::Hold => LinkLoss::Land,
            other @ (LinkLoss::Land | LinkLoss::Stop | LinkLoss::Handover) => other,
        };
        self.apply(now, link_loss, out);
        self.note(Reason::Ending);
    }

    fn end_high_level(&mut self, out: &mut Outbox) {
        if self.safety.high_level_limit.is_some() {
            self.land(Reason::Ending, out);
        }
    }

    fn land(&mut self, reason: Reason, out: &mut Outbox) {
        self.descend(out);
        self.note(reason);
    }

    fn descend(&mut self, out: &mut Outbox) {
        inject(out, policy::land());
        self.high_level = HighLevel::Idle;
    }

    fn note(&mut self, reason: Reason) {
        self.actions.count(reason);
        self.event = Some(reason);
    }
}

/// Whether it says how to fly on.
fn moves(packet: &Packet) -> bool {
    match kind::kind(packet) {
        Kind::Live | Kind::Still | Kind::NotifyStop | Kind::Fly | Kind::Land => true,
        Kind::Emergency | Kind::NewClient | Kind::Other => false,
    }
}

/// Whether the packet could be made; the layouts are constant, so it always can.
fn inject(out: &mut Outbox, made: Made) -> bool {
    made.map(|packet| out.inject(packet, None)).is_ok()
}

/// Queues a packet as it is to be carried, with an expiry where its kind has one.
pub(crate) fn queue(received: &Received, out: &mut Outbox) {
    let Received {
        packet,
        class,
        at,
        expires,
    } = *received;
    match class {
        Class::Latest { key } => {
            let expires = expires.unwrap_or(at + DEFAULT_SETPOINT_LIFE);
            out.offer_latest(Setpoint {
                key,
                packet,
                expires,
            });
        }
        Class::Ordered if kind::kind(&packet) == Kind::Emergency => {
            out.offer_urgent(packet, expires)
        }
        Class::Ordered => {
            let life = kind::life(&packet).map(|life| at + life);
            out.offer_ordered(packet, expires.or(life));
        }
    }
}

#[cfg(test)]
mod tests;
