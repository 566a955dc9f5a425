//! The client: takes packets and time, gives packets, events and samples. It joins the parts (connecting, logs,
//! parameters, requests, echoes) and decides nothing they can decide.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::memory::Details;
use crtp::{Packet, ProtocolVersion, Value, console, platform};

use crate::config::Config;
use crate::connect::{Connecting, Found};
use crate::console::Console;
use crate::core::{Core, Outcome, Purpose};
use crate::event::{DisconnectReason, Event, Events, RequestError, Stats};
use crate::lane::{Due, Lanes};
use crate::liveness::Liveness;
use crate::log::{LogSample, Logs, Samples};
use crate::param::{self, Params};
use crate::request::Requests;
use crate::table::Table;
use crate::table::cache::TableCache;

/// The parts that calls share, borrowed from the fields of a client.
macro_rules! core {
    ($client:expr, $now:expr) => {
        Core {
            now: $now,
            config: &$client.config,
            lanes: &mut $client.lanes,
            events: &mut $client.events,
            stats: &mut $client.stats,
            out: &mut $client.out,
        }
    };
}

mod calls;

enum State {
    Idle,
    Waiting { until: Instant },
    Connecting(Box<Connecting>),
    Connected(Box<Connected>),
}

struct Connected {
    found: Found,
    liveness: Liveness,
}

/// A client of one drone. It does no I/O: after every call that changes it, send what
/// [`Client::poll_transmit`] gives, take [`Client::poll_event`] and [`Client::poll_sample`], and call
/// [`Client::handle_timeout`] at [`Client::poll_timeout`].
pub struct Client {
    config: Config,
    cache: Box<dyn TableCache>,
    state: State,
    lanes: Lanes<Purpose>,
    events: Events,
    stats: Stats,
    out: VecDeque<Packet>,
    samples: Samples,
    console: Console,
    logs: Logs,
    params: Params,
    requests: Requests,
}

impl Client {
    /// A client that is not connected.
    #[must_use]
    pub fn new(config: Config, cache: Box<dyn TableCache>) -> Self {
        Self {
            lanes: Lanes::new(config.request_timeout, config.attempts),
            config,
            cache,
            state: State::Idle,
            events: Events::default(),
            stats: Stats::default(),
            out: VecDeque::new(),
            samples: Samples::default(),
            console: Console::default(),
            logs: Logs::default(),
            params: Params::default(),
            requests: Requests::default(),
        }
    }

    /// Starts to connect; does nothing if that is under way.
    pub fn connect(&mut self, now: Instant) {
        if matches!(self.state, State::Idle | State::Waiting { .. }) {
            self.state = State::Connecting(Box::new(Connecting::start(&mut core!(self, now))));
            self.flush(now);
        }
    }

    /// Ends the connection, or the attempts to connect, and stops the drone's log blocks. Logs and written
    /// parameters stay wanted.
    pub fn disconnect(&mut self, now: Instant) {
        if !matches!(self.state, State::Idle) {
            self.end(now, DisconnectReason::Closed);
        }
    }

    /// Takes a packet from the drone.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if packet.is_null() || matches!(self.state, State::Idle | State::Waiting { .. }) {
            return;
        }
        if let State::Connected(connected) = &mut self.state {
            connected.liveness.on_heard(now);
        }
        match (packet.kind(), packet.data()) {
            (0x00, _) => self.on_console(packet),
            (0x52, _) => self
                .logs
                .on_data(&mut core!(self, now), &mut self.samples, packet),
            (0xf0, _) => self.on_echo(now, packet),
            (0xd2, _) => self.on_app(packet),
            (0x23, [1, ..]) => self.on_param_updated(now, packet),
            _ => self.on_answer(now, packet),
        }
        self.flush(now);
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Waiting { until } if *until <= now => self.connect(now),
            State::Connected(connected) => {
                if let Some(silence) = connected.liveness.silence(now) {
                    self.end(now, DisconnectReason::Silent { silence });
                } else {
                    if let Some(ping) = connected.liveness.ping_due(now) {
                        self.out.push_back(ping);
                        self.stats.pings += 1;
                    }
                    self.logs.on_timeout(&mut core!(self, now));
                }
            }
            State::Idle | State::Waiting { .. } | State::Connecting(_) => {}
        }
        self.flush(now);
    }

    /// The next packet to the drone.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }

    /// The next thing the owner should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The next sample of a log.
    pub fn poll_sample(&mut self) -> Option<LogSample<'_>> {
        self.samples.pop()
    }

    /// When [`Client::handle_timeout`] is due, and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let answers = self.lanes.deadline().map(|at| (at, "answer due"));
        let more = match &self.state {
            State::Waiting { until } => Some((*until, "connect again")),
            State::Connected(connected) => {
                let logs = self.logs.deadline().map(|at| (at, "log silent"));
                connected.liveness.deadlines().chain(logs).min()
            }
            State::Idle | State::Connecting(_) => None,
        };
        answers.into_iter().chain(more).min()
    }

    /// Whether requests are taken.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected(_))
    }

    /// The drone's protocol version, while connected.
    #[must_use]
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.found().map(|found| found.version)
    }

    /// The drone's log table, while connected.
    #[must_use]
    pub fn log_table(&self) -> Option<&Table> {
        self.found().map(|found| &found.log)
    }

    /// The drone's parameter table, while connected.
    #[must_use]
    pub fn param_table(&self) -> Option<&Table> {
        self.found().map(|found| &found.param)
    }

    /// The drone's memories; none while not connected.
    #[must_use]
    pub fn memories(&self) -> &[Details] {
        self.found().map_or(&[], |found| &found.memories)
    }

    /// The last known value of a parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Value> {
        let (id, _) = self.param_table()?.find(name)?;
        self.params.value(id)
    }

    /// Counters since the client was made.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        let mut stats = self.stats;
        stats.repeats = self.lanes.repeats;
        stats.samples_dropped = self.samples.dropped;
        stats.events_dropped = self.events.dropped;
        stats
    }

    fn found(&self) -> Option<&Found> {
        match &self.state {
            State::Connected(connected) => Some(&connected.found),
            State::Idle | State::Waiting { .. } | State::Connecting(_) => None,
        }
    }

    fn on_console(&mut self, packet: &Packet) {
        if let Ok(console::Console { text }) = console::Console::parse(packet) {
            let events = &mut self.events;
            self.console
                .push(&text, |line| events.push(Event::Console(line)));
        }
    }

    fn on_app(&mut self, packet: &Packet) {
        if let Ok(platform::App(bytes)) = platform::App::parse(packet) {
            self.events.push(Event::App(bytes.to_vec()));
        }
    }

    fn on_echo(&mut self, now: Instant, packet: &Packet) {
        let State::Connected(connected) = &mut self.state else {
            return;
        };
        match connected.liveness.on_echo(now, packet) {
            Some(round_trip) => {
                self.stats.echoes += 1;
                self.events.push(Event::Latency(round_trip));
            }
            None => self.stats.unexpected += 1,
        }
    }

    fn on_param_updated(&mut self, now: Instant, packet: &Packet) {
        if let State::Connected(connected) = &self.state {
            let table = &connected.found.param;
            self.params.on_updated(&mut core!(self, now), table, packet);
        }
    }

    fn on_answer(&mut self, now: Instant, packet: &Packet) {
        match self
            .lanes
            .answered(packet, |purpose| purpose.accepts(packet))
        {
            Some(purpose) => self.on_outcome(now, purpose, Outcome::Answer(packet)),
            None => self.stats.unexpected += 1,
        }
    }

    fn on_outcome(&mut self, now: Instant, purpose: Purpose, outcome: Outcome<'_>) {
        let core = &mut core!(self, now);
        match purpose {
            Purpose::Connect(step) => match outcome {
                Outcome::Answer(packet) => self.on_connect_answer(now, step, packet),
                Outcome::Unanswered => {
                    let waited = self.config.request_timeout * self.config.attempts.max(1);
                    let what = step.name();
                    self.end(now, DisconnectReason::NoAnswer { what, waited });
                }
            },
            Purpose::Block {
                handle,
                index,
                step,
            } => self.logs.on_outcome(core, handle, index, step, outcome),
            Purpose::DeleteBlock => {}
            Purpose::Param(step) => {
                if let State::Connected(connected) = &self.state {
                    let table = &connected.found.param;
                    self.params.on_outcome(core, table, step, outcome);
                }
            }
            Purpose::User(id, step) => self.requests.on_outcome(core, id, step, outcome),
        }
    }

    fn on_connect_answer(
        &mut self,
        now: Instant,
        step: crate::connect::ConnectStep,
        packet: &Packet,
    ) {
        let State::Connecting(connecting) = &mut self.state else {
            return;
        };
        let core = &mut core!(self, now);
        match connecting.on_answer(core, self.cache.as_mut(), step, packet) {
            Ok(Some(found)) => self.on_connected(now, found),
            Ok(None) => {}
            Err(reason) => self.end(now, reason),
        }
    }

    fn on_connected(&mut self, now: Instant, found: Found) {
        self.events.push(Event::Connected {
            version: found.version,
            log_variables: found.log.len(),
            params: found.param.len(),
            from_cache: found.from_cache,
        });
        let core = &mut core!(self, now);
        self.params.on_connected(core, &found.param);
        self.logs.on_connected(core, &found.log);
        let liveness = Liveness::new(self.config.ping_period, self.config.link_lost_after, now);
        self.state = State::Connected(Box::new(Connected { found, liveness }));
    }

    /// Ends the connection or the attempt; whoever waits for an answer is told.
    fn end(&mut self, now: Instant, reason: DisconnectReason) {
        let purposes = self.lanes.clear();
        let state = std::mem::replace(&mut self.state, State::Idle);
        let table = match &state {
            State::Connected(connected) => Some(&connected.found.param),
            State::Idle | State::Waiting { .. } | State::Connecting(_) => None,
        };
        let core = &mut core!(self, now);
        for purpose in purposes {
            match purpose {
                Purpose::Param(step) => param::fail(core, table, step),
                Purpose::User(id, _) => {
                    self.requests
                        .finish(core, id, Err(RequestError::NotConnected));
                }
                Purpose::Connect(_) | Purpose::Block { .. } | Purpose::DeleteBlock => {}
            }
        }
        self.logs.on_disconnected();
        self.console.clear();
        self.out.clear();
        if let (State::Connected(_), DisconnectReason::Closed) = (&state, &reason) {
            self.out.push_back(crtp::log::Control::Reset.encode());
        }
        let retry_in = self.retry_after(&reason);
        if let Some(pause) = retry_in {
            let until = now + pause;
            self.state = State::Waiting { until };
        }
        self.events.push(Event::Disconnected { reason, retry_in });
    }

    fn retry_after(&self, reason: &DisconnectReason) -> Option<Duration> {
        self.config
            .reconnect
            .filter(|_| *reason != DisconnectReason::Closed)
    }

    /// Sends what may be sent now and gives up what is overdue.
    fn flush(&mut self, now: Instant) {
        while let Some(due) = self.lanes.next_due(now) {
            match due {
                Due::Send(packet) => self.out.push_back(packet),
                Due::Unanswered(purpose) => {
                    self.stats.unanswered += 1;
                    self.on_outcome(now, purpose, Outcome::Unanswered);
                }
            }
        }
    }
}
