//! One robot as ROS sees it: SI commands in, SI telemetry out, packets to and from a link.
//!
//! It owns the client of the drone, the outgoing queue and, where its link leads straight to the drone, the
//! safety rules. It waits for nothing: call [`Drone::pump`] when its link has done something, when the timer is
//! due and after every command.

mod answers;
mod event;
mod incoming;
mod requests;
mod topics;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::{Packet, supervisor};
use crtp_client::{Client, TableCache};
use link::tap::LinkTap;
use link::{Link, Received, Role, State, class_of};

use crate::command::{Request, Setpoint};
use crate::drone_side::{self, Actions, DEFAULT_SETPOINT_LIFE, DroneSide};
use crate::fleet::{ParamSetting, Robot};
use crate::health::{self, Level, LinkHealth, Manoeuvre, Reaction, Report};
use crate::outbox::{Counters, Outbox, Pace};
use crate::policy;
use crate::units::{self, CommandError, Wire};

use answers::Answers;
use topics::Logs;

pub use event::{DroneEvent, Health, ParamInfo, Ticket};

/// A heading older than this is not good enough to steer by.
const HEADING_LIFE: Duration = Duration::from_millis(500);
/// Events that may wait; the oldest goes first.
const EVENTS: usize = 1024;

/// One robot.
pub struct Drone {
    client: Client,
    logs: Logs,
    answers: Answers,
    params: Vec<(String, ParamSetting)>,
    out: Outbox,
    drone_side: Option<DroneSide>,
    heading: Option<(Instant, f64)>,
    supervisor: Option<supervisor::Info>,
    raw: bool,
    stage: Stage,
    health: Health,
    link_health: LinkHealth,
    reaction: Reaction,
    manoeuvre: Option<Manoeuvre>,
    events: VecDeque<DroneEvent>,
}

/// How far the robot is in its life here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its link has never been up.
    New,
    /// It is to be connected whenever its link is up.
    Wanted,
    /// It is being left.
    Leaving,
}

impl Drone {
    /// A robot that is not connected yet. `cache` keeps the drone's tables between connections.
    #[must_use]
    pub fn new(robot: &Robot, cache: Box<dyn TableCache>) -> Self {
        let guarded = robot.uri.faces_drone(Role::To);
        // The client repeats what gets lost, so nothing has to wait for the link.
        let pace = Pace {
            one_at_a_time: guarded,
            wait_for_link: false,
        };
        let config = crtp_client::Config {
            split_blocks: robot.split_blocks,
            read_all_params: robot.query_params,
            ..crtp_client::Config::default()
        };
        Self {
            client: Client::new(config, cache),
            logs: Logs::new(&robot.topics),
            answers: Answers::default(),
            params: robot
                .params
                .iter()
                .map(|(name, value)| (name.clone(), *value))
                .collect(),
            out: Outbox::new(pace),
            drone_side: guarded.then(|| DroneSide::new(robot.safety)),
            heading: None,
            supervisor: None,
            raw: false,
            stage: Stage::New,
            health: Health::default(),
            link_health: LinkHealth::new(robot.thresholds),
            reaction: robot.reaction,
            manoeuvre: None,
            events: VecDeque::with_capacity(EVENTS),
        }
    }

    /// Whether every packet from the drone is reported as [`DroneEvent::Raw`].
    pub fn set_raw(&mut self, on: bool) {
        self.raw = on;
    }

    /// Queues a setpoint; a newer one of its kind replaces it, and it is worthless after 100 ms.
    ///
    /// # Errors
    /// [`CommandError`]; nothing is sent then.
    pub fn setpoint(&mut self, now: Instant, setpoint: &Setpoint) -> Result<(), CommandError> {
        let version = self.client.version().ok_or(CommandError::NotConnected)?;
        if let Some(manoeuvre) = self.manoeuvre.filter(|_| health::setpoint_undoes(setpoint)) {
            return Err(CommandError::LinkFailing(manoeuvre));
        }
        let setpoint = self.reaction.temper(self.link_health.level(), *setpoint);
        let packet = units::setpoint(&setpoint, version, self.heading(now))?;
        self.queue(now, packet, Some(now + DEFAULT_SETPOINT_LIFE));
        Ok(())
    }

    /// Queues a request. What became of it comes as [`DroneEvent::Reply`] with this ticket.
    ///
    /// # Errors
    /// [`CommandError`]; nothing is sent then.
    pub fn request(&mut self, now: Instant, request: &Request) -> Result<Ticket, CommandError> {
        if !self.client.is_connected() {
            if *request == Request::Emergency {
                return self.stop_unconnected(now);
            }
            return Err(CommandError::NotConnected);
        }
        if let Some(manoeuvre) = self.manoeuvre.filter(|_| health::request_undoes(request)) {
            return Err(CommandError::LinkFailing(manoeuvre));
        }
        match units::request(request)? {
            Wire::Asked(asked) => {
                let id = self.client.request(now, asked)?;
                Ok(self.answers.expect(id))
            }
            Wire::Sent(packet) => {
                self.queue(now, packet, None);
                let ticket = self.answers.ticket();
                self.report(DroneEvent::Reply {
                    ticket,
                    outcome: Ok(()),
                });
                Ok(ticket)
            }
        }
    }

    /// Records from now on what becomes of the packets to the drone before its link.
    pub fn set_tap(&mut self, tap: LinkTap) {
        self.out.set_tap(tap);
    }

    /// Moves everything that can move between the drone's link and this.
    pub fn pump(&mut self, now: Instant, link: &mut dyn Link) {
        self.out.set_now(now);
        self.take_link_events(now, link);
        while let Some(received) = link.recv(now) {
            self.handle_downlink(now, &received);
        }
        self.handle_timeout(now);
        self.take_client_output(now);
        let sent = self.out.counters().sent;
        self.out.flush(now, link);
        if self.out.counters().sent != sent {
            self.link_health.handle_sent(now);
        }
        self.take_link_events(now, link);
        self.note_link_health(now);
    }

    /// When [`Drone::pump`] is due without any input, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let safety = self.drone_side.as_ref().and_then(DroneSide::poll_timeout);
        let others = [
            self.client.poll_timeout(),
            self.out.poll_timeout(),
            self.link_health.poll_timeout(),
        ];
        others.into_iter().flatten().chain(safety).min()
    }

    /// The next thing the robot's user should know.
    pub fn poll_event(&mut self) -> Option<DroneEvent> {
        self.events.pop_front()
    }

    /// The supervisor's state, as last reported.
    #[must_use]
    pub fn supervisor(&self) -> Option<supervisor::Info> {
        self.supervisor
    }

    /// How well the link does.
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            connected: self.client.is_connected(),
            client: self.client.stats(),
            ..self.health
        }
    }

    /// How well the exchanges with the drone go, and the rung of the ladder.
    #[must_use]
    pub fn link_health(&self, now: Instant) -> Report {
        self.link_health.report(now)
    }

    /// What became of the packets to the drone.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.out.counters()
    }

    /// What the safety rules did; none where a further bridge is nearer to the drone.
    #[must_use]
    pub fn actions(&self) -> Option<Actions> {
        self.drone_side.as_ref().map(DroneSide::actions)
    }

    /// The bridge ends: deals with a drone in flight where this is the bridge nearest to it, and leaves the
    /// drone. Pump until [`Drone::is_drained`].
    pub fn finish(&mut self, now: Instant) {
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.finish(now, &mut self.out);
        }
        self.note_safety();
        self.stage = Stage::Leaving;
        self.client.disconnect(now);
        self.take_client_output(now);
    }

    /// Whether everything for the drone has been handed to its link.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.out.is_empty()
    }

    fn heading(&self, now: Instant) -> Option<f64> {
        let (at, heading) = self.heading?;
        (now < at + HEADING_LIFE).then_some(heading)
    }

    fn queue(&mut self, now: Instant, packet: Packet, expires: Option<Instant>) {
        let received = Received {
            packet,
            class: class_of(&packet),
            at: now,
            expires,
        };
        match &mut self.drone_side {
            Some(drone_side) => drone_side.handle_uplink(now, &received, &mut self.out),
            None => drone_side::queue(&received, &mut self.out),
        }
        self.note_safety();
    }

    fn report(&mut self, event: DroneEvent) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
            self.health.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    fn note_safety(&mut self) {
        let reason = self.drone_side.as_mut().and_then(DroneSide::poll_event);
        if let Some(reason) = reason {
            self.report(DroneEvent::Safety(reason));
        }
    }

    fn note_link_health(&mut self, now: Instant) {
        while let Some(change) = self.link_health.poll_change() {
            self.report(DroneEvent::LinkHealth(change));
            if let Some(manoeuvre) = self.reaction.manoeuvre(change.to) {
                self.begin(now, manoeuvre);
            }
        }
        self.end_manoeuvre();
    }

    /// A drone that stands is left alone; of one whose state is not known the worst is assumed.
    fn begin(&mut self, now: Instant, manoeuvre: Manoeuvre) {
        if self.manoeuvre.is_some() || !self.may_fly() {
            return;
        }
        let made = match manoeuvre {
            Manoeuvre::Hover => policy::hold(),
            Manoeuvre::Land => policy::land(),
        };
        match made {
            Ok(packet) => {
                self.queue(now, packet, None);
                self.manoeuvre = Some(manoeuvre);
                self.report(DroneEvent::Manoeuvre(manoeuvre));
            }
            Err(error) => self.report(DroneEvent::Notice(error.to_string())),
        }
    }

    fn end_manoeuvre(&mut self) {
        let better = self.link_health.level() < Level::Failing;
        let ends = match self.manoeuvre {
            None => false,
            Some(Manoeuvre::Hover) => better,
            Some(Manoeuvre::Land) => better && !self.may_fly(),
        };
        if let Some(ended) = self.manoeuvre.take_if(|_| ends) {
            self.report(DroneEvent::ManoeuvreEnds(ended));
        }
    }

    fn may_fly(&self) -> bool {
        self.supervisor
            .is_none_or(|info| info.has(supervisor::Info::FLYING))
    }

    fn take_link_events(&mut self, now: Instant, link: &mut dyn Link) {
        while let Some(event) = link.poll_event() {
            match &event {
                link::Event::Up(_) => self.handle_link_up(now),
                link::Event::Down(_) => {
                    self.client.disconnect(now);
                    self.link_health.handle_disconnected(now);
                }
                link::Event::Notice(_) => {}
            }
            self.report(DroneEvent::Link(event));
        }
        // A link may have come up before it was given to this robot.
        if self.stage == Stage::New && link.state() == State::Up {
            self.handle_link_up(now);
        }
    }

    fn handle_link_up(&mut self, now: Instant) {
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_drone_up();
        }
        if self.stage != Stage::Leaving {
            self.stage = Stage::Wanted;
            self.client.connect(now);
        }
    }

    fn handle_downlink(&mut self, now: Instant, received: &Received) {
        if received.packet.is_null() {
            return;
        }
        self.link_health.handle_heard(now);
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_downlink(&received.packet);
        }
        if self.raw {
            self.report(DroneEvent::Raw(received.packet));
        }
        self.client.handle_packet(now, &received.packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let pings = self.client.stats().pings;
        self.client.handle_timeout(now);
        if self.client.stats().pings != pings {
            self.link_health.handle_asked(now);
        }
        self.link_health.handle_timeout(now);
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_timeout(now, &mut self.out);
        }
        self.note_safety();
    }

    /// Events may ask for more packets and the other way round, so both are taken until nothing is left.
    fn take_client_output(&mut self, now: Instant) {
        loop {
            while let Some(packet) = self.client.poll_transmit() {
                self.queue(now, packet, None);
            }
            self.take_samples(now);
            let Some(event) = self.client.poll_event() else {
                return;
            };
            self.handle_client_event(now, event);
        }
    }

    fn take_samples(&mut self, now: Instant) {
        while let Some(sample) = self.client.poll_sample() {
            let Some(telemetry) = self.logs.telemetry(&sample) else {
                continue;
            };
            if let Some(heading) = telemetry.heading() {
                self.heading = Some((now, heading));
            }
            if let DroneEvent::Status(status) = &telemetry {
                let info = status.supervisor;
                self.note_supervisor(info);
            }
            self.health.samples += 1;
            self.report(telemetry);
        }
    }

    fn note_supervisor(&mut self, info: supervisor::Info) {
        self.supervisor = Some(info);
        if let Some(drone_side) = &mut self.drone_side {
            drone_side.handle_supervisor(info);
        }
    }
}

#[cfg(test)]
mod tests;
