//! One robot in the driver: its brain, its topics, who waits for what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bridge_core::command::{Request, Setpoint};
use bridge_core::drone::Ticket;
use bridge_core::health::Change;
use bridge_core::{Drone, DroneEvent};
use crtp::supervisor::Info;
use latency::record::Recording;
use link::Event as LinkEvent;
use rclrs::RclrsError;
use ros_env::std_msgs::msg::String as Text;

use super::input::{Input, Outcome, Reply};
use super::messages as convert;
use super::params::{Mirror, Update};
use super::preflight::Gate;
use super::topics::{CustomPublisher, Publishers};
use crate::ros::stand_in::Named;

/// One robot with everything that belongs to it.
pub(super) struct Robot {
    /// Never given twice.
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) frame: String,
    pub(super) uri: String,
    /// The pose topic is off, so that odometry feeds tf.
    pub(super) tf_from_odom: bool,
    pub(super) battery: bridge_core::fleet::Battery,
    pub(super) gate: Arc<Gate>,
    pub(super) drone: Drone,
    pub(super) publishers: Publishers,
    pub(super) custom: BTreeMap<String, CustomPublisher>,
    pub(super) mirror: Mirror,
    pub(super) notes: Notes,
    pub(super) waiting: BTreeMap<Ticket, Reply>,
    /// What becomes of the robot's packets, if that is recorded.
    pub(super) recording: Recording,
}

/// Ends a packet log and says how much is in it. Waits for the disk.
pub(super) fn end_recording(name: &str, recording: Recording) {
    match recording.finish() {
        Some(status) if status.dropped > 0 => tracing::warn!(robot = name, "{status}"),
        Some(status) => tracing::info!(robot = name, "{status}"),
        None => {}
    }
}

/// What a robot remembers for the log and the diagnostics.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) refused_setpoints: u64,
    /// The supervisor's bits, as last reported.
    pub(super) supervisor: u16,
    pub(super) voltage: Option<f64>,
    pub(super) link: String,
    /// Setpoints that a newer one had replaced before the link took them, at the last look.
    pub(super) superseded: u64,
    pub(super) sent: u64,
    /// Packets the link wrote and read.
    pub(super) link_stats: link::LinkStats,
    /// The rung of the link has changed since `link_health` was last published.
    pub(super) level_changed: bool,
    /// Wall clock of the newest setpoint that has not left, ns; for its age.
    pub(super) made_at: Option<i64>,
}

impl Robot {
    pub(super) fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Setpoint(setpoint, made_at) => self.setpoint(now, &setpoint, made_at),
            Input::Request(request, reply) => self.request(now, &request, reply),
            Input::Upload(trajectory, reply) => {
                let asked = self.drone.upload_trajectory(now, &trajectory);
                self.wait(asked.map_err(|error| error.to_string()), Some(reply));
            }
            Input::AddTopic {
                topic,
                log,
                publisher,
                reply,
            } => {
                let asked = self.drone.add_topic(now, &topic, log);
                if let (Ok(_), Some(publisher)) = (&asked, publisher) {
                    self.custom.insert(topic, publisher);
                }
                self.wait(asked.map_err(|error| error.to_string()), Some(reply));
            }
            Input::RemoveTopic(topic, reply) => {
                let outcome = self.drone.remove_topic(now, &topic);
                self.custom.remove(&topic);
                answer(Some(reply), outcome.map_err(|error| error.to_string()));
            }
            Input::Param(name, setting) => {
                if let Err(error) = self.drone.write_param(now, &name, setting) {
                    tracing::error!(robot = self.name, "{error}");
                    self.restore(name);
                }
            }
        }
    }

    pub(super) fn setpoint(&mut self, now: Instant, setpoint: &Setpoint, made_at: i64) {
        match self.drone.setpoint(now, setpoint) {
            Ok(()) => self.notes.made_at = (made_at > 0).then_some(made_at),
            Err(error) => self.refuse_setpoint(&error.to_string()),
        }
    }

    pub(super) fn request(&mut self, now: Instant, request: &Request, reply: Option<Reply>) {
        let flying = self.drone.supervisor();
        let flying = flying.is_some_and(|info| info.has(Info::FLYING));
        let link = || self.drone.link_health(now);
        if let Err(why) = self.gate.check(&self.name, request, flying, link) {
            return answer(reply, Err(why));
        }
        let asked = self.drone.request(now, request);
        self.wait(asked.map_err(|error| error.to_string()), reply);
    }

    fn wait(&mut self, asked: Result<Ticket, String>, reply: Option<Reply>) {
        match (asked, reply) {
            (Ok(ticket), Some(reply)) => drop(self.waiting.insert(ticket, reply)),
            (Ok(_), None) => {}
            (Err(why), reply) => answer(reply, Err(why)),
        }
    }

    /// ROS shows the value that the drone has.
    fn restore(&self, name: String) {
        if let Some(value) = self.drone.param(&name) {
            self.mirror
                .tell(Update::Value(self.name.clone(), name, value));
        }
    }

    /// Says so at the first one and then at every power of two: a stream of them fills no disk.
    fn refuse_setpoint(&mut self, why: &str) {
        self.notes.refused_setpoints += 1;
        let refused = self.notes.refused_setpoints;
        if refused.is_power_of_two() {
            tracing::warn!(robot = self.name, refused, "setpoint refused: {why}");
        }
    }

    /// Publishes `link_health`. `lateness`: how much later than its timers the thread woke at most.
    pub(super) fn publish_link_health(
        &mut self,
        now: Instant,
        link: &dyn link::Link,
        lateness: Duration,
    ) {
        self.notes.level_changed = false;
        let (report, side) = (self.drone.link_health(now), convert::LinkSide::of(link));
        let header = convert::header(wall_ns(), &self.name);
        let message = convert::link_health(header, &report, &side, lateness);
        if let Err(error) = self.publishers.link_health.publish(message) {
            tracing::warn!(robot = self.name, %error, "cannot publish");
        }
    }

    pub(super) fn publish_events(&mut self) {
        while let Some(event) = self.drone.poll_event() {
            if let Err(error) = self.handle_event(event) {
                tracing::warn!(robot = self.name, %error, "cannot publish");
            }
        }
    }

    fn handle_event(&mut self, event: DroneEvent) -> Result<(), RclrsError> {
        match event {
            DroneEvent::Reply { ticket, outcome } => answer(self.waiting.remove(&ticket), outcome),
            DroneEvent::Params(infos) => {
                self.mirror
                    .tell(Update::Table(self.name.clone(), self.id, infos));
            }
            DroneEvent::Param { name, value } => {
                self.mirror
                    .tell(Update::Value(self.name.clone(), name, value));
            }
            DroneEvent::ParamRefused { name, value, why } => {
                tracing::error!(robot = self.name, "{why}");
                if let Some(value) = value {
                    self.mirror
                        .tell(Update::Value(self.name.clone(), name, value));
                }
            }
            DroneEvent::Connected(_)
            | DroneEvent::Disconnected(_)
            | DroneEvent::TopicDisabled { .. }
            | DroneEvent::Safety(_)
            | DroneEvent::LinkHealth(_)
            | DroneEvent::Manoeuvre(_)
            | DroneEvent::ManoeuvreEnds(_)
            | DroneEvent::Link(_)
            | DroneEvent::Notice(_) => self.log(&event),
            telemetry => {
                self.note(&telemetry);
                self.publish(telemetry)?;
            }
        }
        Ok(())
    }

    fn publish(&self, event: DroneEvent) -> Result<(), RclrsError> {
        let stamp = wall_ns();
        let world = || convert::header(stamp, &self.frame);
        let body = || convert::header(stamp, &self.name);
        let out = &self.publishers;
        match event {
            DroneEvent::Pose(pose) => {
                self.transform(!self.tf_from_odom, world, &pose)?;
                out.pose.publish(convert::pose(world(), &pose))
            }
            DroneEvent::Odometry(odom) => {
                self.transform(self.tf_from_odom, world, &odom.pose)?;
                out.odom.publish(convert::odom(world(), &self.name, &odom))
            }
            DroneEvent::Imu(imu) => out.imu.publish(convert::imu(body(), &imu)),
            DroneEvent::Battery(battery) => out.battery.publish(convert::battery(body(), &battery)),
            DroneEvent::Status(status) => {
                let latency = self.drone.health().round_trip;
                let message = convert::status(body(), &status, latency, self.notes.link_stats);
                out.status.publish(Named(message))
            }
            DroneEvent::Scan(scan) => out.scan.publish(convert::scan(body(), &scan)),
            DroneEvent::Console(line) => out.console.publish(Text { data: line }),
            DroneEvent::Raw(packet) => out.raw.publish(convert::raw_message(body(), &packet)),
            DroneEvent::Custom {
                topic,
                drone_ms,
                values,
            } => match self.custom.get(&topic) {
                Some(publisher) => {
                    publisher.publish(Named(convert::custom(world(), drone_ms, &values)))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn transform(
        &self,
        wanted: bool,
        header: impl Fn() -> ros_env::std_msgs::msg::Header,
        pose: &bridge_core::telemetry::Pose,
    ) -> Result<(), RclrsError> {
        match &self.publishers.tf {
            Some(tf) if wanted => tf.publish(Named(convert::transform(header(), &self.name, pose))),
            Some(_) | None => Ok(()),
        }
    }

    fn note(&mut self, event: &DroneEvent) {
        match event {
            DroneEvent::Status(status) => {
                self.notes.voltage = Some(status.battery_voltage);
                self.note_trouble(status.supervisor.0);
            }
            DroneEvent::Battery(battery) => self.notes.voltage = Some(battery.voltage),
            _ => {}
        }
    }

    /// One line when the drone can no longer fly.
    fn note_trouble(&mut self, bits: u16) {
        const TROUBLE: [(u16, &str); 3] = [
            (1 << 5, "tumbled"),
            (1 << 6, "locked: restart it before the next flight"),
            (1 << 7, "crashed: it needs a recovery request"),
        ];
        for (bit, what) in TROUBLE {
            if bits & bit & !self.notes.supervisor != 0 {
                tracing::warn!(robot = self.name, "the drone is {what}");
            }
        }
        self.notes.supervisor = bits;
    }

    fn log(&mut self, event: &DroneEvent) {
        let robot = &*self.name;
        match event {
            DroneEvent::Connected(version) => {
                self.notes.link = format!("connected, protocol {version}");
                tracing::info!(robot, "connected, protocol {version}");
            }
            DroneEvent::Disconnected(why) => {
                self.notes.link = format!("disconnected: {why}");
                tracing::warn!(robot, "disconnected: {why}");
            }
            DroneEvent::TopicDisabled { topic, why } => {
                tracing::error!(robot, topic = &**topic, "topic disabled: {why}");
            }
            DroneEvent::Safety(reason) => tracing::warn!(robot, "{reason}"),
            DroneEvent::Manoeuvre(what) => {
                tracing::warn!(
                    robot,
                    "{what} because the link is failing; setpoints are refused"
                );
            }
            DroneEvent::ManoeuvreEnds(what) => {
                tracing::info!(robot, "{what} is over: setpoints are taken again");
            }
            DroneEvent::LinkHealth(change) => {
                self.notes.level_changed = true;
                note_level(robot, change);
            }
            DroneEvent::Link(LinkEvent::Up(text)) => tracing::info!(robot, "link up: {text}"),
            DroneEvent::Link(LinkEvent::Down(text)) => {
                self.notes.link = format!("link down: {text}");
                tracing::warn!(robot, "link down: {text}");
            }
            DroneEvent::Link(LinkEvent::Notice(text)) | DroneEvent::Notice(text) => {
                tracing::info!(robot, "{text}");
            }
            _ => {}
        }
    }
}

fn note_level(robot: &str, change: &Change) {
    let (from, to, why) = (change.from, change.to, change.why);
    if to > from {
        tracing::warn!(robot, "link {to}: {why}");
    } else {
        tracing::info!(robot, "link {to}: {why}");
    }
}

/// Tells who waits, or the log where nobody does.
pub(super) fn answer(reply: Option<Reply>, outcome: Outcome) {
    match (reply, outcome) {
        // A caller that has gone away needs no answer.
        (Some(reply), outcome) => drop(reply.send(outcome)),
        (None, Err(why)) => tracing::warn!("request refused: {why}"),
        (None, Ok(())) => {}
    }
}

/// The wall clock, ns since 1970: what ROS stamps are made of.
pub(super) fn wall_ns() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}
