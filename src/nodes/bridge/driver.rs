//! The thread that drives every robot's link and brain: one loop, one `ppoll`, no lock.
//!
//! A robot that is silent costs nothing but its timers: only those with work are pumped. What a brain says is
//! published from this thread; what ROS asks for comes in through [`Inputs`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use link::{Link, Reactor, State};
use tokio::sync::oneshot;

use super::health::Health;
use super::input::{Command, Inputs, Outcomes, Reply};
use super::params::Update;
use super::robot::{Robot, answer, end_recording, wall_ns};

/// Time for the last packets to leave, and again for the goodbyes.
const DRAIN: Duration = Duration::from_millis(400);

/// Time between two messages of a robot's link health.
const LINK_HEALTH_PERIOD: Duration = Duration::from_secs(1);

/// A robot that is being taken away.
struct Leaving {
    id: u64,
    /// Its link was told to close.
    closing: bool,
    until: Instant,
    reply: Option<Reply>,
}

/// All robots and the loop around them. `links`, `robots` and `wake` run in parallel.
pub(super) struct Driver {
    reactor: Reactor,
    links: Vec<Box<dyn Link>>,
    robots: Vec<Robot>,
    /// Which robots have work in this turn.
    wake: Vec<bool>,
    leaving: Vec<Leaving>,
    inputs: Inputs,
    health: Health,
    /// How much later than its timers the loop woke at most since the last look.
    lateness: Duration,
    /// When every robot's link health is published next.
    link_health_due: Instant,
    stop: Arc<AtomicBool>,
}

impl Driver {
    pub(super) fn new(
        reactor: Reactor,
        inputs: Inputs,
        health: Health,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            reactor,
            links: Vec::new(),
            robots: Vec::new(),
            wake: Vec::new(),
            leaving: Vec::new(),
            inputs,
            health,
            lateness: Duration::ZERO,
            link_health_due: Instant::now() + LINK_HEALTH_PERIOD,
            stop,
        }
    }

    /// Takes a robot and its link.
    pub(super) fn add(&mut self, robot: Robot, link: Box<dyn Link>) {
        self.robots.push(robot);
        self.links.push(link);
        self.wake.push(true);
    }

    /// Runs until the stop flag is set and the waker called; then deals with drones in flight and says goodbye.
    ///
    /// # Errors
    /// The loop itself fails, for want of memory.
    pub(super) fn run(mut self) -> Result<()> {
        while !self.stop.load(Ordering::Acquire) {
            let now = self.turn(self.health.due().min(self.link_health_due))?;
            if now >= self.health.due() {
                self.look_around(now);
            }
            self.publish_link_health(now);
        }
        self.finish()
    }

    /// Waits for work, at most until `until`, and does it.
    fn turn(&mut self, until: Instant) -> std::io::Result<Instant> {
        let robots = self.robots.iter();
        let due = robots
            .filter_map(|robot| robot.drone.poll_timeout())
            .map(|(at, _)| at);
        let leaving = self.leaving.iter().map(|leaving| leaving.until);
        let until = if self.wake.contains(&true) {
            Instant::now()
        } else {
            until
        };
        let due = due.chain(leaving).chain([until]).min();
        let now = self.reactor.turn(&mut self.links, due)?;
        if let Some(due) = due {
            self.lateness = self.lateness.max(now.saturating_duration_since(due));
        }
        for &index in self.reactor.touched() {
            self.wake[index] = true;
        }
        while let Some(command) = self.inputs.next() {
            self.handle_command(now, command);
        }
        self.pump(now);
        self.take_leave(now);
        Ok(now)
    }

    /// Lets every robot that has work do it.
    fn pump(&mut self, now: Instant) {
        for (index, robot) in self.robots.iter_mut().enumerate() {
            let due = robot.drone.poll_timeout().is_some_and(|(at, _)| at <= now);
            if !std::mem::take(&mut self.wake[index]) && !due {
                continue;
            }
            robot.drone.pump(now, self.links[index].as_mut());
            robot.publish_events();
            if let Some(made_at) = robot.notes.made_at.take() {
                self.health.record_age(wall_ns() - made_at);
            }
        }
    }

    /// All robots' once a period, and one robot's whenever its rung has changed.
    fn publish_link_health(&mut self, now: Instant) {
        let due = now >= self.link_health_due;
        for (robot, link) in self.robots.iter_mut().zip(&self.links) {
            if due || robot.notes.level_changed {
                robot.publish_link_health(now, link.as_ref(), self.lateness);
            }
        }
        if due {
            self.lateness = Duration::ZERO;
            self.link_health_due = now + LINK_HEALTH_PERIOD;
        }
    }

    fn handle_command(&mut self, now: Instant, command: Command) {
        match command {
            Command::One(id, input) => {
                if let Some(index) = self.find(id) {
                    self.wake[index] = true;
                    self.robots[index].handle_input(now, input);
                }
            }
            Command::EachSetpoint(setpoint, made_at) => {
                self.wake.fill(true);
                self.robots
                    .iter_mut()
                    .for_each(|robot| robot.setpoint(now, &setpoint, made_at));
            }
            Command::EachRequest(request, reply) => {
                self.wake.fill(true);
                let outcomes: Outcomes = self
                    .robots
                    .iter_mut()
                    .map(|robot| {
                        let (sender, outcome) = oneshot::channel();
                        robot.request(now, &request, Some(sender));
                        (robot.name.clone(), outcome)
                    })
                    .collect();
                drop(reply.send(outcomes));
            }
            Command::EachParam(name, setting) => {
                self.wake.fill(true);
                for robot in &mut self.robots {
                    if let Err(error) = robot.drone.write_param(now, &name, setting) {
                        tracing::error!(robot = robot.name, "{error}");
                    }
                }
            }
            Command::Poses(poses) => self.handle_poses(now, poses),
            Command::Add(robot, link) => self.add(*robot, link),
            Command::Remove(id, reply) => self.remove(now, id, reply),
        }
    }

    fn handle_poses(&mut self, now: Instant, poses: Vec<(String, bridge_core::command::Setpoint)>) {
        self.health.poses += 1;
        for (name, setpoint) in poses {
            let at = self.robots.iter().position(|robot| robot.name == name);
            // A motion-capture system also sees what is no robot of ours.
            if let Some(index) = at {
                self.wake[index] = true;
                self.robots[index].setpoint(now, &setpoint, 0);
            }
        }
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.robots.iter().position(|robot| robot.id == id)
    }

    fn remove(&mut self, now: Instant, id: u64, reply: Reply) {
        let Some(index) = self.find(id) else {
            return answer(Some(reply), Err("it is gone already".into()));
        };
        self.wake[index] = true;
        self.robots[index].drone.finish(now);
        self.leaving.push(Leaving {
            id,
            closing: false,
            until: now + DRAIN,
            reply: Some(reply),
        });
    }

    /// Moves on those robots that are being taken away: drain, close, forget.
    fn take_leave(&mut self, now: Instant) {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.retain_mut(|one| !self.leave(now, one));
        self.leaving = leaving;
    }

    /// Whether it is gone.
    fn leave(&mut self, now: Instant, one: &mut Leaving) -> bool {
        let Some(index) = self.find(one.id) else {
            return true;
        };
        let late = now >= one.until;
        if !one.closing && (late || self.is_idle(index)) {
            self.links[index].close(now);
            (one.closing, one.until) = (true, now + DRAIN);
            return false;
        }
        if !one.closing || !(late || self.links[index].state() == State::Closed) {
            return false;
        }
        let robot = self.robots.swap_remove(index);
        self.links.swap_remove(index);
        self.wake.swap_remove(index);
        robot.mirror.tell(Update::Gone(robot.name.clone()));
        tracing::info!(robot = robot.name, "robot removed");
        // The other robots fly on while the disk takes its time.
        std::thread::spawn(move || end_recording(&robot.name, robot.recording));
        answer(one.reply.take(), Ok(()));
        true
    }

    fn is_idle(&self, index: usize) -> bool {
        let link = &self.links[index];
        let written = link.backlog() == 0 || link.state() != State::Up;
        written && self.robots[index].drone.is_drained()
    }

    fn look_around(&mut self, now: Instant) {
        for (robot, link) in self.robots.iter_mut().zip(&self.links) {
            let listened = robot.publishers.raw.get_subscription_count();
            robot.drone.set_raw(listened.is_ok_and(|count| count > 0));
            robot.notes.link_stats = link.stats();
        }
        self.health.look(now, &mut self.robots);
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
        self.wake.fill(true);
        self.turn_until(now + DRAIN, |driver| {
            (0..driver.robots.len()).all(|index| driver.is_idle(index))
        })?;
        let now = Instant::now();
        self.links.iter_mut().for_each(|link| link.close(now));
        self.turn_until(now + DRAIN, |driver| {
            let mut links = driver.links.iter();
            links.all(|link| link.state() == State::Closed)
        })?;
        for robot in self.robots.drain(..) {
            let (counters, health) = (robot.drone.counters(), robot.drone.health());
            tracing::info!(
                robot = robot.name,
                samples = health.samples,
                ?counters,
                "robot ends"
            );
            end_recording(&robot.name, robot.recording);
        }
        Ok(())
    }

    /// Turns at least once, so that what was just asked for is done.
    fn turn_until(&mut self, end: Instant, done: impl Fn(&Self) -> bool) -> std::io::Result<()> {
        while self.turn(end)? < end && !done(self) {}
        Ok(())
    }
}
