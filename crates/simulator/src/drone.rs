//! The whole drone behind its link: packets in, packets out, a clock given from outside. It does no I/O; after
//! every `handle_*` call drain [`Drone::poll_transmit`] and ask [`Drone::poll_timeout`] again.

mod link;
mod log;
mod memory;
mod parameters;
mod ports;
mod table;
mod variables;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::toc::{Limits, Table as Which};
use crtp::{Channel, Packet, Port};

use crate::Config;
use crate::flight::{Flight, State};
use crate::record::{Hazard, ThrustLock, Traffic, WouldCrash};
use crate::report::{Commands, Report};
use link::Presence;
use log::Logger;
use memory::Memories;
use parameters::Parameters;
use table::{Name, Table};

/// Downlink packets the firmware queues; the newest are dropped beyond.
const QUEUE: usize = 200;
/// How often to look at a drone that moves, ms.
const LOOK_MS: u64 = 10;
/// How often to look at a drone at rest, ms.
const IDLE_LOOK_MS: u64 = 100;

/// A simulated Crazyflie, CRTP protocol version 12.
#[derive(Clone, Debug)]
pub struct Drone {
    config: Config,
    started: Instant,
    now_ms: u64,
    flight: Flight,
    log_table: Table,
    param_table: Table,
    logger: Logger,
    parameters: Parameters,
    memories: Memories,
    queue: VecDeque<Packet>,
    traffic: Traffic,
    commands: Commands,
    would_crash: WouldCrash,
    thrust_lock: ThrustLock,
    presence: Presence,
}

/// Where the drone is and what the supervisor says.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Snapshot {
    /// x, y, z in m, world frame.
    pub position_m: [f64; 3],
    /// m/s, world frame.
    pub velocity_m_s: [f64; 3],
    /// rad: roll and pitch right-handed (nose down positive), yaw counter-clockwise.
    pub attitude_rad: [f64; 3],
    /// Yaw rate, rad/s, counter-clockwise.
    pub yaw_rate_rad_s: f64,
    /// State of the supervisor.
    pub state: State,
    /// Information bits as in log variable `supervisor.info`.
    pub info: u16,
    /// V.
    pub battery_v: f64,
}

impl Drone {
    /// Switches a drone on. It counts as connected until [`Drone::set_connected`] says otherwise.
    #[must_use]
    pub fn new(config: Config, now: Instant) -> Self {
        let variables = variables::variables(config.log_variables);
        let names: Vec<Name> = variables
            .iter()
            .map(|variable| variable.name.clone())
            .collect();
        let limits = Limits {
            blocks: log::MAX_BLOCKS as u8,
            variables: log::MAX_VARIABLES as u8,
        };
        let parameters = Parameters::new(config.parameters);
        let mut drone = Self {
            config,
            started: now,
            now_ms: 0,
            flight: Flight::new(&config),
            log_table: Table::new(Which::Log, Some(limits), &names),
            param_table: Table::new(Which::Param, None, &parameters.names()),
            logger: Logger::new(variables),
            parameters,
            memories: Memories::new(),
            queue: VecDeque::with_capacity(QUEUE),
            traffic: Traffic::default(),
            commands: Commands::default(),
            would_crash: WouldCrash::default(),
            thrust_lock: ThrustLock::default(),
            presence: Presence::new(),
        };
        drone.say("SYS: Simulated Crazyflie is up and running!\n");
        drone
    }

    /// Takes a packet from the client.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        self.tick(now);
        self.presence.heard(self.now_ms);
        if packet.is_null() {
            self.traffic.nulls += 1;
            return;
        }
        self.traffic.port(packet.port()).received += 1;
        self.flight.packets += 1;
        // The link's own services depend on nothing: they are answered before the flight is brought up to date.
        if packet.port() == Port::LINK {
            self.link_service(packet);
            return;
        }
        self.flight.advance(self.now_ms);
        self.dispatch(packet);
    }

    /// Lets time pass: flies on and samples the log.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick(now);
        self.flight.advance(self.now_ms);
        while let Some(packet) = self.logger.poll(self.now_ms, &self.flight) {
            if !self.presence.connected() {
                self.drop_log();
                return;
            }
            self.send(packet);
        }
    }

    /// The next packet to the client.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.traffic.port(packet.port()).sent += 1;
        Some(packet)
    }

    /// When [`Drone::handle_timeout`] is due next, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let look = if self.flight.is_active() {
            LOOK_MS
        } else {
            IDLE_LOOK_MS
        };
        let flight = (self.flight.now_ms + look, "flight");
        let log = self.logger.next_ms().map(|due| (due, "log block"));
        let (due, why) = log
            .into_iter()
            .chain([flight])
            .min_by_key(|(due, _)| *due)?;
        Some((self.started + Duration::from_millis(due), why))
    }

    /// A client came or went, as far as the link can tell. A log block that is due while none is there deletes all
    /// blocks and empties the downlink queue, as on board.
    pub fn set_connected(&mut self, now: Instant, connected: bool) {
        self.tick(now);
        let setpoint_age = self.flight.commander.age_ms(self.now_ms);
        self.presence.set(self.now_ms, connected, setpoint_age);
    }

    /// Records bytes on the wire that never became a packet and would have crashed a real drone.
    pub fn record_hazard(&mut self, now: Instant, hazard: Hazard) {
        self.tick(now);
        self.would_crash.add(self.now_ms, hazard, None);
    }

    pub(crate) const fn count_bad_datagram(&mut self) {
        self.traffic.bad_datagrams += 1;
    }

    pub(crate) const fn count_unsent(&mut self) {
        self.traffic.unsent += 1;
    }

    /// Where the drone is.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let body = &self.flight.body;
        Snapshot {
            position_m: body.position.to_array(),
            velocity_m_s: body.velocity.to_array(),
            attitude_rad: [body.roll, body.pitch, body.yaw],
            yaw_rate_rad_s: body.rates.z,
            state: self.flight.supervisor.state(),
            info: self.flight.info().0,
            battery_v: self.flight.battery.volts(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut traffic = self.traffic.clone();
        traffic.log_missed = self.logger.missed;
        Report {
            schema: 1,
            seed: self.config.seed,
            auto_arm: self.config.auto_arm,
            uptime_s: crate::record::seconds(self.now_ms),
            now: self.snapshot(),
            flight: self.flight.record.clone(),
            commands: self.commands.clone(),
            would_crash: self.would_crash.clone(),
            thrust_lock: self.thrust_lock,
            link: self.presence.changes().to_vec(),
            traffic,
        }
    }

    /// Turns the drone upside down where it is, as a collision does.
    pub fn tip_over(&mut self) {
        self.flight.body.tip_over();
    }

    /// Puts the drone on its feet, as a person does.
    pub fn set_upright(&mut self) {
        self.flight.body.set_upright();
    }

    /// Sets a parameter on board, as an app in the firmware does: the client is told. `false` if there is no such
    /// parameter or the value is not of its type.
    pub fn set_parameter(&mut self, group: &str, name: &str, value: crtp::Value) -> bool {
        let Some(id) = self.parameters.find(group, name) else {
            return false;
        };
        match self.parameters.get_mut(id) {
            Some(parameter) if parameter.value.kind() == value.kind() => parameter.value = value,
            _ => return false,
        }
        self.announce(id, value);
        true
    }

    fn tick(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.started).as_millis();
        self.now_ms = self.now_ms.max(u64::try_from(elapsed).unwrap_or(u64::MAX));
    }

    fn send(&mut self, packet: Packet) {
        if self.queue.len() < QUEUE {
            self.queue.push_back(packet);
        } else {
            self.traffic.dropped_full += 1;
        }
    }

    /// Sends a packet that was built from bytes known to fit.
    fn reply(&mut self, port: Port, channel: Channel, data: &[u8]) {
        match Packet::reply(port, channel, data) {
            Ok(packet) => self.send(packet),
            Err(_) => self.traffic.ignored += 1,
        }
    }

    /// Console text, split into packets anywhere as the firmware does.
    fn say(&mut self, text: &str) {
        for part in text.as_bytes().chunks(crtp::MAX_DATA) {
            self.reply(Port::CONSOLE, Channel::C0, part);
        }
    }

    fn hazard(&mut self, hazard: Hazard, packet: &Packet) {
        self.would_crash.add(self.now_ms, hazard, Some(packet));
    }

    fn drop_log(&mut self) {
        self.logger.reset();
        self.traffic.flushed += self.queue.len() as u64;
        self.queue.clear();
    }
}
