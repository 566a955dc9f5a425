//! Two links joined: commands one way, telemetry the other.
//!
//! It moves packets between two [`Link`]s that somebody else drives, and applies the safety rules where one of
//! them leads to the drone. It does not wait, open or close anything.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use link::tap::LinkTap;
use link::{Event, Link, LinkStats, Received};
use serde::Serialize;

use crate::drone_side::{self, Actions, DroneSide, Reason};
use crate::outbox::{Counters, Outbox, Pace};
use crate::policy::Safety;

/// Towards the drone's link: keep requests until it is up.
const UPLINK: Pace = Pace {
    one_at_a_time: false,
    wait_for_link: true,
};
/// Towards the drone itself: also decide the order here.
const GUARDED_UPLINK: Pace = Pace {
    one_at_a_time: true,
    wait_for_link: true,
};
/// Towards clients: without one there is nobody to keep telemetry for.
const DOWNLINK: Pace = Pace {
    one_at_a_time: false,
    wait_for_link: false,
};

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// The link that commands come from.
    Client(Event),
    /// The link that leads to the drone.
    Drone(Event),
    /// A safety rule acted.
    Safety(Reason),
}

/// Moves packets between two links.
#[derive(Debug)]
pub struct Bridge {
    up: Outbox,
    down: Outbox,
    drone_side: Option<DroneSide>,
    events: VecDeque<BridgeEvent>,
}

/// What happened at one link, for the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Packets written.
    pub sent: u64,
    /// Packets read.
    pub received: u64,
    /// Damaged frames read.
    pub bad_frames: u64,
    /// Packets of somebody who is not the client.
    pub strangers: u64,
    /// Times the peer gave no clear-to-send for too long.
    pub stalls: u64,
    /// Times the link came back.
    pub reopened: u64,
    /// Setpoints that a newer one replaced inside the link.
    pub superseded: u64,
    /// Packets that expired inside the link before they could leave.
    pub expired: u64,
}

impl From<LinkStats> for LinkReport {
    fn from(stats: LinkStats) -> Self {
        Self {
            sent: stats.sent,
            received: stats.received,
            bad_frames: stats.bad_frames,
            strangers: stats.strangers,
            stalls: stats.stalls,
            reopened: stats.reopened,
            superseded: stats.superseded,
            expired: stats.dropped_expired,
        }
    }
}

/// What a bridge did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// From clients to the drone.
    pub uplink: Counters,
    /// From the drone to clients.
    pub downlink: Counters,
    /// The link that commands come from.
    pub client: LinkReport,
    /// The link that leads to the drone.
    pub drone: LinkReport,
    /// Packets to the drone that could have crashed it, by the rule that refused them.
    pub unsafe_by_rule: BTreeMap<&'static str, u64>,
    /// What the safety rules did; none where a further bridge is nearer to the drone.
    pub safety: Option<Actions>,
}

impl Bridge {
    /// A bridge; with `safety` it is the one nearest the drone.
    #[must_use]
    pub fn new(safety: Option<Safety>) -> Self {
        let pace = if safety.is_some() {
            GUARDED_UPLINK
        } else {
            UPLINK
        };
        Self {
            up: Outbox::new(pace),
            down: Outbox::new(DOWNLINK),
            drone_side: safety.map(DroneSide::new),
            events: VecDeque::new(),
        }
    }

    /// Records from now on what becomes of the packets to the drone between the two links.
    pub fn set_tap(&mut self, tap: LinkTap) {
        self.up.set_tap(tap);
    }

    /// Moves everything that can move. Call it whenever a link has done something or the timer is due.
    pub fn pump(&mut self, now: Instant, client: &mut dyn Link, drone: &mut dyn Link) {
        self.up.set_now(now);
        self.take_events(now, client, drone);
        while let Some(received) = client.recv(now) {
            self.handle_uplink(now, &received);
        }
        while let Some(received) = drone.recv(now) {
            self.handle_downlink(&received);
        }
        self.handle_timeout(now);
        self.up.flush(now, drone);
        self.down.flush(now, client);
        client.set_reader_pace(drone.pace());
        self.take_events(now, client, drone);
    }

    /// When [`Bridge::pump`] is due without any input, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let safety = self.drone_side.as_ref().and_then(DroneSide::poll_timeout);
        let queues = [self.up.poll_timeout(), self.down.poll_timeout()];
        queues.into_iter().flatten().chain(safety).min()
    }

    /// The next thing for the log.
    pub fn poll_event(&mut self) -> Option<BridgeEvent> {
        self.events.pop_front()
    }

    /// Applies the link-loss policy now if something may be flying, because the bridge is about to end.
    pub fn finish(&mut self, now: Instant) {
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.finish(now, &mut self.up);
        }
        self.note_safety();
    }

    /// Whether everything for the drone has been handed to its link.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.up.is_empty()
    }

    /// What happened so far.
    #[must_use]
    pub fn summary(&self, client: &dyn Link, drone: &dyn Link) -> Summary {
        Summary {
            uplink: self.up.counters(),
            downlink: self.down.counters(),
            client: client.stats().into(),
            drone: drone.stats().into(),
            unsafe_by_rule: self.up.unsafe_by_rule().clone(),
            safety: self.drone_side.as_ref().map(DroneSide::actions),
        }
    }

    fn handle_uplink(&mut self, now: Instant, received: &Received) {
        if received.packet.is_null() {
            return self.up.skip_null();
        }
        match &mut self.drone_side {
            Some(drone_side) => drone_side.handle_uplink(now, received, &mut self.up),
            None => drone_side::queue(received, &mut self.up),
        }
        self.note_safety();
    }

    fn handle_downlink(&mut self, received: &Received) {
        if received.packet.is_null() {
            return self.down.skip_null();
        }
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_downlink(&received.packet);
        }
        drone_side::queue(received, &mut self.down);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_timeout(now, &mut self.up);
        }
        self.note_safety();
    }

    fn note_safety(&mut self) {
        let reason = self.drone_side.as_mut().and_then(DroneSide::poll_event);
        self.events.extend(reason.map(BridgeEvent::Safety));
    }

    fn take_events(&mut self, now: Instant, client: &mut dyn Link, drone: &mut dyn Link) {
        while let Some(event) = client.poll_event() {
            self.handle_client_event(now, &event);
            self.events.push_back(BridgeEvent::Client(event));
        }
        while let Some(event) = drone.poll_event() {
            self.handle_drone_event(&event);
            self.events.push_back(BridgeEvent::Drone(event));
        }
    }

    fn handle_client_event(&mut self, now: Instant, event: &Event) {
        match (&mut self.drone_side, event) {
            (Some(drone_side), Event::Up(_)) => drone_side.handle_client_up(),
            (Some(drone_side), Event::Down(_)) => drone_side.handle_client_down(now),
            (Some(_), Event::Notice(_)) | (None, _) => {}
        }
    }

    fn handle_drone_event(&mut self, event: &Event) {
        if let (Some(drone_side), Event::Up(_)) = (&mut self.drone_side, event) {
            drone_side.handle_drone_up();
        }
    }
}

#[cfg(test)]
mod tests;
