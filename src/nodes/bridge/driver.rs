//! The thread that drives every robot's link and brain: one loop, one `ppoll`, no lock.
//!
//! A robot that is silent costs nothing but its timers, so it disturbs no other. What a brain says is published
//! from this thread; what ROS asks for comes in through [`Inputs`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use bridge_core::drone::Ticket;
use bridge_core::{Drone, DroneEvent};
use link::{Event as LinkEvent, Link, Reactor, State};
use rclrs::Publisher;
use ros_env::crazyflie_openlink::msg::LogDataGeneric;
use ros_env::std_msgs::msg::String as Text;
use tokio::sync::oneshot;

use super::input::{Input, Inputs, Outcome};
use super::messages as convert;
use super::topics::Publishers;

/// Time for the last packets to leave, and again for the goodbyes.
const DRAIN: Duration = Duration::from_millis(400);
/// How often it is looked whether anybody listens to raw packets, and refusals are reported.
const LOOK: Duration = Duration::from_secs(1);

/// One robot with everything that belongs to it.
pub(super) struct Robot {
    pub(super) name: String,
    pub(super) frame: String,
    pub(super) drone: Drone,
    pub(super) publishers: Publishers,
    pub(super) custom: BTreeMap<String, Publisher<LogDataGeneric>>,
    pub(super) refused_setpoints: u64,
    /// The supervisor's bits, as last reported.
    pub(super) supervisor: u16,
    pub(super) waiting: BTreeMap<Ticket, oneshot::Sender<Outcome>>,
}

/// All robots and the loop around them. `links` and `robots` run in parallel.
pub(super) struct Driver {
    pub(super) reactor: Reactor,
    pub(super) links: Vec<Box<dyn Link>>,
    pub(super) robots: Vec<Robot>,
    pub(super) inputs: Inputs,
    pub(super) stop: Arc<AtomicBool>,
}

impl Driver {
    /// Runs until the stop flag is set and the waker called; then deals with drones in flight and says goodbye.
    ///
    /// # Errors
    /// The loop itself fails, for want of memory.
    pub(super) fn run(mut self) -> Result<()> {
        let mut look = Instant::now();
        while !self.stop.load(Ordering::Acquire) {
            let now = self.turn(look)?;
            if now >= look {
                look = now + LOOK;
                self.look_around();
            }
        }
        self.finish()
    }

    /// Waits for work, at most until `until`, and does it.
    fn turn(&mut self, until: Instant) -> std::io::Result<Instant> {
        let due = self
            .robots
            .iter()
            .filter_map(|robot| robot.drone.poll_timeout())
            .map(|(at, _)| at);
        let due = due.chain([until]).min();
        let now = self.reactor.turn(&mut self.links, due)?;
        while let Some((index, input)) = self.inputs.next() {
            if let Some(robot) = self.robots.get_mut(index) {
                robot.handle_input(now, input);
            }
        }
        for (robot, link) in self.robots.iter_mut().zip(&mut self.links) {
            robot.drone.pump(now, link.as_mut());
            robot.publish_events();
        }
        Ok(now)
    }

    fn look_around(&mut self) {
        for robot in &mut self.robots {
            let listened = robot
                .publishers
                .raw
                .get_subscription_count()
                .is_ok_and(|count| count > 0);
            robot.drone.set_raw(listened);
        }
        let refused = self.inputs.take_refused();
        if refused > 0 {
            tracing::warn!(
                refused,
                "commands were refused because the driver fell behind"
            );
        }
    }

    fn finish(&mut self) -> Result<()> {
        let now = Instant::now();
        self.robots
            .iter_mut()
            .for_each(|robot| robot.drone.finish(now));
        self.turn_until(now + DRAIN, |driver| {
            let idle = driver
                .links
                .iter()
                .all(|link| link.backlog() == 0 || link.state() != State::Up);
            idle && driver.robots.iter().all(|robot| robot.drone.is_drained())
        })?;
        let now = Instant::now();
        self.links.iter_mut().for_each(|link| link.close(now));
        self.turn_until(now + DRAIN, |driver| {
            driver
                .links
                .iter()
                .all(|link| link.state() == State::Closed)
        })?;
        for robot in &self.robots {
            let (counters, health) = (robot.drone.counters(), robot.drone.health());
            tracing::info!(
                robot = robot.name,
                samples = health.samples,
                ?counters,
                "robot ends"
            );
        }
        Ok(())
    }

    fn turn_until(&mut self, end: Instant, done: impl Fn(&Self) -> bool) -> std::io::Result<()> {
        while !done(self) && self.turn(end)? < end {}
        Ok(())
    }
}

impl Robot {
    fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Setpoint(setpoint) => {
                if let Err(error) = self.drone.setpoint(now, &setpoint) {
                    self.refuse_setpoint(&error.to_string());
                }
            }
            Input::Request(request, reply) => match self.drone.request(now, &request) {
                Ok(ticket) => {
                    if let Some(reply) = reply {
                        self.waiting.insert(ticket, reply);
                    }
                }
                Err(error) => answer(reply, Err(error.to_string())),
            },
        }
    }

    /// Says so at the first one and then at every power of two: a stream of them fills no disk.
    fn refuse_setpoint(&mut self, why: &str) {
        self.refused_setpoints += 1;
        if self.refused_setpoints.is_power_of_two() {
            tracing::warn!(
                robot = self.name,
                refused = self.refused_setpoints,
                "setpoint refused: {why}"
            );
        }
    }

    fn publish_events(&mut self) {
        while let Some(event) = self.drone.poll_event() {
            if let Err(error) = self.handle_event(event) {
                tracing::warn!(robot = self.name, %error, "cannot publish");
            }
        }
    }

    fn handle_event(&mut self, event: DroneEvent) -> Result<(), rclrs::RclrsError> {
        if let DroneEvent::Status(status) = &event {
            self.note_trouble(status.supervisor.0);
        }
        let world = || convert::header(wall_ns(), &self.frame);
        let body = || convert::header(wall_ns(), &self.name);
        let out = &self.publishers;
        match event {
            DroneEvent::Pose(pose) => out.pose.publish(convert::pose(world(), &pose))?,
            DroneEvent::Odometry(odom) => {
                out.odom
                    .publish(convert::odom(world(), &self.name, &odom))?
            }
            DroneEvent::Imu(imu) => out.imu.publish(convert::imu(body(), &imu))?,
            DroneEvent::Battery(battery) => {
                out.battery.publish(convert::battery(body(), &battery))?
            }
            DroneEvent::Status(status) => {
                let latency = self.drone.health().round_trip;
                out.status
                    .publish(convert::status(body(), &status, latency))?;
            }
            DroneEvent::Scan(scan) => out.scan.publish(convert::scan(body(), &scan))?,
            DroneEvent::Console(line) => out.console.publish(Text { data: line })?,
            DroneEvent::Raw(packet) => out.raw.publish(convert::raw_message(body(), &packet))?,
            DroneEvent::Custom {
                topic,
                drone_ms,
                values,
            } => {
                if let Some(publisher) = self.custom.get(&topic) {
                    publisher.publish(convert::custom(world(), drone_ms, &values))?;
                }
            }
            DroneEvent::Reply { ticket, outcome } => answer(self.waiting.remove(&ticket), outcome),
            // No ROS parameter mirrors them.
            DroneEvent::Params(_) | DroneEvent::Param { .. } => {}
            DroneEvent::Connected(_)
            | DroneEvent::ParamRefused { .. }
            | DroneEvent::Disconnected(_)
            | DroneEvent::TopicDisabled { .. }
            | DroneEvent::Safety(_)
            | DroneEvent::Link(_)
            | DroneEvent::Notice(_) => self.log(&event),
        }
        Ok(())
    }

    /// One line when the drone can no longer fly.
    fn note_trouble(&mut self, bits: u16) {
        const TROUBLE: [(u16, &str); 3] = [
            (1 << 5, "tumbled"),
            (1 << 6, "locked: restart it before the next flight"),
            (1 << 7, "crashed: it needs a recovery request"),
        ];
        for (bit, what) in TROUBLE {
            if bits & bit & !self.supervisor != 0 {
                tracing::warn!(robot = self.name, "the drone is {what}");
            }
        }
        self.supervisor = bits;
    }

    fn log(&self, event: &DroneEvent) {
        let robot = &*self.name;
        match event {
            DroneEvent::Connected(version) => {
                tracing::info!(robot, "connected, protocol {version}")
            }
            DroneEvent::Disconnected(why) => tracing::warn!(robot, "disconnected: {why}"),
            DroneEvent::TopicDisabled { topic, why } => {
                tracing::error!(robot, topic = &**topic, "topic disabled: {why}");
            }
            DroneEvent::ParamRefused { name, why, .. } => {
                tracing::warn!(robot, parameter = &**name, "parameter refused: {why}");
            }
            DroneEvent::Safety(reason) => tracing::warn!(robot, "{reason}"),
            DroneEvent::Link(LinkEvent::Up(text)) => tracing::info!(robot, "link up: {text}"),
            DroneEvent::Link(LinkEvent::Down(text)) => tracing::warn!(robot, "link down: {text}"),
            DroneEvent::Link(LinkEvent::Notice(text)) | DroneEvent::Notice(text) => {
                tracing::info!(robot, "{text}");
            }
            _ => {}
        }
    }
}

fn answer(reply: Option<oneshot::Sender<Outcome>>, outcome: Outcome) {
    match (reply, outcome) {
        // A caller that has gone away needs no answer.
        (Some(reply), outcome) => drop(reply.send(outcome)),
        (None, Err(why)) => tracing::warn!("request refused: {why}"),
        (None, Ok(())) => {}
    }
}

/// The wall clock, ns since 1970: what ROS stamps are made of.
fn wall_ns() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}
