//! `uart://`: a drone on a serial port.
//!
//! Owns the port, its session and the gate every packet to the drone goes through. Opens the port again by
//! itself when it was unplugged; never writes a byte that the session does not give.

mod errors;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crtp::{Gate, Packet};
use crtp_uart::cpx::OVERHEAD;
use crtp_uart::pump::PumpStats;
use crtp_uart::session::{self, Phase};
use crtp_uart::{
    Arrived, Config, Gone, HostSession, Pump, SendError, Serial, SerialError, Session, syslink,
};

use crate::interface::{
    Class, Event, Interest, Link, LinkStats, Outgoing, Received, Refusal, SendOutcome, State,
};
use crate::tap::{LinkTap, Moment, verdict};
use crate::throttle::Throttle;
use crate::uri::{DEFAULT_BAUD, Framing, UartUri};

pub use errors::UartError;

/// First pause before a port that is gone is tried again; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Start, 8 data, stop.
const BITS_PER_BYTE: usize = 10;
/// Events that wait to be taken; a log that nobody reads keeps the oldest.
const EVENTS: usize = 64;

/// What to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UartConfig {
    /// The port.
    pub path: PathBuf,
    /// Speed, bit/s.
    pub baud: u32,
    /// Framing.
    pub framing: Framing,
    /// The session's figures; syslink takes its patience from them.
    pub session: Config,
}

impl UartConfig {
    /// CPX at 576000 bit/s.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::from(&UartUri {
            path: path.into(),
            baud: DEFAULT_BAUD,
            framing: Framing::Cpx,
        })
    }
}

impl From<&UartUri> for UartConfig {
    fn from(uri: &UartUri) -> Self {
        Self {
            path: uri.path.clone(),
            baud: uri.baud,
            framing: uri.framing,
            session: Config::host(uri.baud),
        }
    }
}

impl UartConfig {
    fn host(&self, now: Instant) -> Box<dyn HostSession> {
        match self.framing {
            Framing::Cpx => Box::new(Session::host(self.session, now)),
            Framing::Syslink => Box::new(syslink::Host::new(
                self.baud,
                self.session.sync_timeout,
                now,
            )),
        }
    }
}

/// A drone on a serial port.
#[derive(Debug)]
pub struct UartLink {
    config: UartConfig,
    session: Box<dyn HostSession>,
    serial: Option<Serial>,
    pump: Pump,
    gate: Gate,
    /// When to try the port again, and the pause after that.
    reopen: Option<Instant>,
    pause: Duration,
    /// The loss has been reported; it is once.
    mourned: bool,
    received_at: Instant,
    events: VecDeque<Event>,
    notices: Throttle,
    stats: LinkStats,
    tap: LinkTap,
}

impl UartLink {
    /// Opens the port. One that is not there (yet) is waited for.
    ///
    /// # Errors
    /// [`UartError`] if waiting does not help: the port is in use, forbidden or no serial port.
    pub fn open(config: UartConfig, now: Instant) -> Result<Self, UartError> {
        let mut link = Self {
            session: config.host(now),
            serial: None,
            pump: Pump::new(),
            gate: Gate::new(),
            reopen: None,
            pause: FIRST_PAUSE,
            mourned: false,
            received_at: now,
            events: VecDeque::with_capacity(EVENTS),
            notices: Throttle::default(),
            stats: LinkStats::default(),
            tap: LinkTap::off(),
            config,
        };
        match Serial::open(&link.config.path, link.config.baud) {
            Ok(serial) => link.start(now, serial),
            Err(error @ SerialError::Missing(..)) => link.wait_for_port(now, &error.to_string()),
            Err(error) => return Err(error.into()),
        }
        Ok(link)
    }

    /// The session's counters: tokens, stalls, damage on the line.
    #[must_use]
    pub fn session_stats(&self) -> session::Stats {
        self.session.stats()
    }

    /// Reads and writes, and their sizes.
    #[must_use]
    pub fn pump_stats(&self) -> PumpStats {
        self.pump.stats()
    }

    fn start(&mut self, now: Instant, serial: Serial) {
        self.serial = Some(serial);
        self.reopen = None;
        self.pause = FIRST_PAUSE;
        self.pump.discard();
        self.session.restart(now);
        self.transmit(now);
    }

    fn lose(&mut self, now: Instant, why: Gone) {
        self.serial = None;
        if matches!(self.session.phase(), Phase::Closing(_) | Phase::Closed) {
            // Nobody is left to say goodbye to.
            self.session.abort();
            return;
        }
        self.gate.forget();
        self.session.restart(now);
        self.wait_for_port(now, &format!("{}: {why}", self.config.path.display()));
    }

    /// Reports the loss once and plans the next attempt.
    fn wait_for_port(&mut self, now: Instant, why: &str) {
        if !std::mem::replace(&mut self.mourned, true) {
            self.raise(Event::Down(format!("{why}; waiting for it")));
        }
        self.reopen = Some(now + self.pause);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    fn try_port(&mut self, now: Instant) {
        match Serial::open(&self.config.path, self.config.baud) {
            Ok(serial) => {
                self.stats.reopened += 1;
                self.start(now, serial);
            }
            Err(error) => self.wait_for_port(now, &error.to_string()),
        }
    }

    fn receive(&mut self, now: Instant) {
        let Some(serial) = &self.serial else { return };
        self.received_at = now;
        if let Err(why) = self.pump.receive(now, serial, self.session.as_mut()) {
            self.lose(now, why);
        }
        self.translate_events(now);
    }

    fn transmit(&mut self, now: Instant) {
        let Some(serial) = &self.serial else { return };
        if let Err(why) = self.pump.transmit(now, serial, self.session.as_mut()) {
            self.lose(now, why);
        }
        self.note_left();
        self.end_when_closed();
    }

    /// Records the packet that has just been written, if it was.
    fn note_left(&mut self) {
        let Some(now) = self.tap.now().filter(|_| !self.pump.wants_write()) else {
            return;
        };
        let Some(leaving) = self.session.take_leaving() else {
            return;
        };
        let stamps = [
            (Moment::Queued, leaving.queued),
            (Moment::Head, leaving.head),
            (Moment::Clear, leaving.clear),
            (Moment::Written, now),
        ];
        for (moment, at) in stamps {
            self.tap.pass(moment, at, &leaving.packet);
        }
        if let Some(serial) = self.serial.as_ref().filter(|serial| serial.is_paced()) {
            let bits = (leaving.packet.as_bytes().len() + OVERHEAD) * BITS_PER_BYTE;
            let wire = Duration::from_secs_f64(bits as f64 / f64::from(serial.speed().max(1)));
            self.tap.pass(Moment::LastBit, now + wire, &leaving.packet);
        }
    }

    fn note_arrived(&mut self, arrived: &Arrived) {
        if let Some(now) = self.tap.now() {
            self.tap
                .pass(Moment::FirstByte, arrived.began, &arrived.packet);
            self.tap
                .pass(Moment::Received, arrived.whole, &arrived.packet);
            self.tap.pass(Moment::Parsed, now, &arrived.packet);
        }
    }

    /// The last words are written: the port is free for others.
    fn end_when_closed(&mut self) {
        if self.session.phase() == Phase::Closed && !self.pump.wants_write() {
            self.serial = None;
        }
    }

    fn translate_events(&mut self, now: Instant) {
        while let Some(event) = self.session.poll_event() {
            match event {
                session::Event::Up => self.come_up(),
                session::Event::SyncTimeout(waited) => {
                    let text = errors::no_sign(&self.config, waited);
                    self.raise(Event::Notice(text));
                }
                session::Event::PeerRestarted => {
                    self.gate.forget();
                    self.notice(now, "the drone may have restarted: greeted it again");
                }
                session::Event::Stalled => self.notice(now, errors::stalled(self.config.framing)),
                // The counters tell.
                session::Event::Resumed
                | session::Event::TokenPresumed
                | session::Event::System(_) => {}
            }
        }
    }

    fn come_up(&mut self) {
        self.mourned = false;
        let Some(serial) = &self.serial else { return };
        let text = format!(
            "{} at {} bit/s, {}, low latency: {}",
            self.config.path.display(),
            serial.speed(),
            self.config.framing,
            serial.low_latency()
        );
        self.raise(Event::Up(text));
    }

    /// At most one a second: a line that flickers fills no disk.
    fn notice(&mut self, now: Instant, text: &str) {
        if self.notices.allows(now) {
            let text = format!("{}: {text}", self.config.path.display());
            self.raise(Event::Notice(text));
        }
    }

    fn raise(&mut self, event: Event) {
        if self.events.len() < EVENTS {
            self.events.push_back(event);
        }
    }

    fn refuse(&mut self, now: Instant, packet: &Packet, refusal: Refusal) -> SendOutcome {
        self.tap.note(Moment::Queued, now, packet, verdict(refusal));
        self.stats.count(refusal);
        SendOutcome::Refused(refusal)
    }

    /// Waits for the tokens that goodbye needs, no longer than the session does.
    fn finish(&mut self) {
        while let (Phase::Closing(_), Some(serial)) = (self.session.phase(), &self.serial) {
            let Some((until, _)) = self.session.poll_timeout() else {
                return;
            };
            if errors::wait(serial, self.pump.wants_write(), until).is_err() {
                return;
            }
            let now = Instant::now();
            self.handle_ready(now);
            self.handle_timeout(now);
            self.flush(now);
        }
    }
}

impl Link for UartLink {
    fn interests(&self, out: &mut Vec<Interest>) {
        out.extend(self.serial.as_ref().map(|serial| Interest {
            fd: serial.as_raw_fd(),
            read: true,
            write: self.pump.wants_write(),
        }));
    }

    fn handle_ready(&mut self, now: Instant) {
        self.receive(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.reopen.is_some_and(|at| at <= now) {
            self.try_port(now);
        }
        if self.serial.is_some() {
            self.session.handle_timeout(now);
            self.transmit(now);
        }
        self.translate_events(now);
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        match &self.serial {
            Some(_) => self.session.poll_timeout(),
            None => self.reopen.map(|at| (at, "open the port again")),
        }
    }

    fn recv(&mut self, now: Instant) -> Option<Received> {
        let arrived = self.session.recv_stamped(now)?;
        let packet = arrived.packet;
        self.note_arrived(&arrived);
        self.gate.observe(&packet);
        Some(Received {
            packet,
            class: Class::Ordered,
            at: self.received_at,
            expires: None,
        })
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        let packet = match self.gate.admit(&outgoing.packet) {
            Ok(packet) => packet,
            Err(reject) => {
                let refusal = Refusal::Unsafe(reject.reason());
                return self.refuse(now, &outgoing.packet, refusal);
            }
        };
        let key = match outgoing.class {
            Class::Latest { key } => Some(key),
            Class::Ordered => None,
        };
        match self.session.send(now, packet, key, outgoing.expires) {
            Ok(()) => {
                self.transmit(now);
                SendOutcome::Accepted
            }
            Err(error) => self.refuse(now, &outgoing.packet, refusal(error)),
        }
    }

    fn flush(&mut self, now: Instant) {
        self.transmit(now);
        self.translate_events(now);
    }

    fn backlog(&self) -> usize {
        self.session.backlog()
    }

    fn pace(&self) -> Option<Duration> {
        self.session.service_time()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> State {
        match (self.session.phase(), &self.serial) {
            (Phase::Closed, None) => State::Closed,
            (Phase::Closed | Phase::Closing(_), Some(_)) | (Phase::Closing(_), None) => State::Down,
            (Phase::Up, _) => State::Up,
            (Phase::Syncing, _) if self.mourned => State::Down,
            (Phase::Syncing, _) => State::Connecting,
        }
    }

    fn stats(&self) -> LinkStats {
        with_session(self.stats, &self.session.stats())
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        self.reopen = None;
        self.session.close(now);
        self.transmit(now);
        self.translate_events(now);
    }
}

impl Drop for UartLink {
    /// A link that was told to close and is dropped before the drone has granted its tokens waits for them,
    /// some milliseconds as a rule.
    fn drop(&mut self) {
        self.finish();
    }
}

/// A link's own counters and those of its CPX session.
pub(crate) fn with_session(own: LinkStats, session: &session::Stats) -> LinkStats {
    LinkStats {
        sent: session.sent,
        received: session.received,
        dropped_expired: own.dropped_expired + session.expired,
        dropped_down: own.dropped_down + session.discarded,
        superseded: session.superseded,
        bad_frames: session.decode.damaged() + session.bad_crtp + session.overruns,
        stalls: session.stalls,
        ..own
    }
}

pub(crate) fn refusal(error: SendError) -> Refusal {
    match error {
        SendError::NotUp => Refusal::NotConnected,
        SendError::Full(_) => Refusal::QueueFull,
        SendError::Expired => Refusal::Expired,
        SendError::Key(_) => Refusal::Unsafe("mailbox key above 15"),
    }
}
