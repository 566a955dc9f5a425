//! `prrt://`: CRTP over the paced transport.
//!
//! Setpoints travel on the transport's newest-wins stream of their mailbox, with what is left of their life;
//! everything else on one ordered stream per CRTP port, so that no port holds up another. A listener sends
//! what comes from the drone to all its peers and takes commands from each.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use ::tap::Verdict;
use crtp::Packet;
use prrt::udp::Driver;
use prrt::{Config, Fate, Message, Mode, PeerId, SendError, Stream, Trace};

use crate::interface::{
    Class, Event, Interest, Link, LinkStats, Outgoing, Path, Received, Refusal, SendOutcome, State,
};
use crate::stamp;
use crate::tap::{LinkTap, Moment, verdict};

/// Bytes of packets that may wait, per direction and peer.
const QUEUE_BYTES: usize = 1 << 20;
/// Longest message accepted; a CRTP packet has at most 31 bytes.
const MAX_MESSAGE: usize = 1024;

/// One end of the paced transport.
#[derive(Debug)]
pub struct PrrtLink {
    driver: Driver,
    /// Longest life of a setpoint.
    target_delay: Duration,
    peers: Vec<PeerId>,
    /// What our reader, or what lies behind it, needs for each message.
    reader_pace: Option<Duration>,
    /// Whose turn it is to be read first.
    turn: usize,
    events: VecDeque<Event>,
    state: State,
    stats: LinkStats,
    tap: LinkTap,
    /// When the kernel received what this wake-up brought, and which messages that is good for.
    arrived: Option<(Instant, Instant)>,
}

/// A peer that is silent for so long is called anew. Well before the firmware locks at 2 s, so that a bridge that was
/// restarted in flight is there again in time; well above the pauses of a Wi-Fi that saves power.
const SILENCE: Duration = Duration::from_secs(1);

/// What of the transport's settings a link chooses.
#[derive(Clone, Debug)]
pub struct PrrtOptions {
    /// Longest life of a setpoint.
    pub target_delay: Duration,
    /// Allow plain text beyond this host.
    pub insecure: bool,
    /// Encrypt with these.
    pub keys: Option<prrt::Keys>,
    /// A sign of life at least this often; the transport's own choice if `None`.
    pub keep_alive: Option<Duration>,
}

impl PrrtOptions {
    fn config(&self) -> Config {
        Config {
            max_message: MAX_MESSAGE,
            send_bytes: QUEUE_BYTES,
            receive_bytes: QUEUE_BYTES,
            idle_timeout: SILENCE,
            insecure: self.insecure,
            keys: self.keys.clone(),
            keep_alive: self
                .keep_alive
                .unwrap_or_else(|| Config::default().keep_alive),
            ..Config::default()
        }
    }
}

impl PrrtLink {
    /// Waits for peers on `address`.
    ///
    /// # Errors
    /// What the driver says: no socket, or plain text is not allowed there.
    pub fn listen(
        now: Instant,
        address: SocketAddr,
        options: PrrtOptions,
    ) -> Result<Self, prrt::Error> {
        let driver = Driver::listen(now, address, options.config())?;
        Ok(Self::around(driver, options))
    }

    /// Calls the peer at `address`, and calls again whenever it is lost.
    ///
    /// # Errors
    /// What the driver says: no socket, or plain text is not allowed there.
    pub fn connect(
        now: Instant,
        address: SocketAddr,
        options: PrrtOptions,
    ) -> Result<Self, prrt::Error> {
        let (driver, _peer) = Driver::connect(now, address, options.config())?;
        Ok(Self::around(driver, options))
    }

    fn around(driver: Driver, options: PrrtOptions) -> Self {
        Self {
            driver,
            target_delay: options.target_delay,
            peers: Vec::new(),
            reader_pace: None,
            turn: 0,
            events: VecDeque::new(),
            state: State::Connecting,
            stats: LinkStats::default(),
            tap: LinkTap::off(),
            arrived: None,
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.driver.local_addr()
    }

    /// Records what the transport did with packets since `began`, which is later than the loop's time.
    fn note_sent(&mut self, began: Option<Instant>) {
        if !self.tap.is_on() {
            return;
        }
        while let Some(trace) = self.driver.poll_trace() {
            let verdict = match trace.fate {
                Fate::Sent => Verdict::Passed,
                Fate::Superseded => Verdict::Superseded,
                Fate::Expired => Verdict::Expired,
            };
            let Trace {
                at, attempt, data, ..
            } = trace;
            let at = began.map_or(at, |began| began.max(at));
            self.tap
                .note_attempt(Moment::Sending, at, &data, attempt, verdict);
        }
    }

    /// Looks when the kernel received the datagram of this wake-up. With several, it is the last one's stamp and says
    /// nothing about the others.
    fn note_arrival(&mut self, now: Instant, before: u64) {
        let one = self.tap.is_on() && self.datagrams() == before + 1;
        self.arrived = one
            .then(|| stamp::last(&self.driver))
            .flatten()
            .map(|at| (at, now));
    }

    fn datagrams(&self) -> u64 {
        let peers = self.peers.iter();
        peers
            .filter_map(|peer| self.driver.stats(*peer))
            .map(|stats| stats.datagrams_received)
            .sum()
    }

    fn note_received(&mut self, message: &Message, packet: &Packet) {
        if !self.tap.is_on() {
            return;
        }
        let verdict = if message.repaired() {
            Verdict::Recovered
        } else {
            Verdict::Passed
        };
        if let Some((at, _)) = self.arrived.filter(|(_, since)| message.at >= *since) {
            self.tap.note(Moment::Arrived, at, packet, verdict);
        }
        self.tap.note(Moment::Received, message.at, packet, verdict);
    }

    /// Takes what the driver has to say; the list of peers follows from it.
    fn take_events(&mut self) {
        while let Some(event) = self.driver.poll_event() {
            match event {
                prrt::Event::Connected { peer, addr } => self.meet(peer, addr),
                prrt::Event::Disconnected { peer, reason, .. } => self.part(peer, reason.text()),
                prrt::Event::Moved { addr, .. } => {
                    self.events
                        .push_back(Event::Notice(format!("peer moved to {addr}")));
                }
            }
        }
        let notices = std::iter::from_fn(|| self.driver.poll_notice());
        self.events.extend(notices.map(Event::Notice));
    }

    fn meet(&mut self, peer: PeerId, addr: SocketAddr) {
        self.stats.reopened += u64::from(self.state == State::Down);
        self.state = State::Up;
        self.peers.push(peer);
        self.driver.set_reader_pace(peer, self.reader_pace);
        self.events.push_back(Event::Up(format!("peer {addr}")));
    }

    /// What the transport dropped on the way to a peer, since it came.
    fn count_dropped(&self, peer: PeerId, stats: &mut LinkStats) {
        if let Some(sent) = self.driver.stats(peer).map(|stats| stats.send) {
            stats.superseded += sent.superseded_unsent;
            stats.dropped_expired += sent.expired_unsent;
        }
    }

    fn part(&mut self, peer: PeerId, reason: &str) {
        let mut stats = self.stats;
        self.count_dropped(peer, &mut stats);
        self.stats = stats;
        self.peers.retain(|other| *other != peer);
        let text = format!("peer lost: {reason}");
        if self.peers.is_empty() {
            self.state = State::Down;
            self.events.push_back(Event::Down(text));
        } else {
            let left = self.peers.len();
            self.events
                .push_back(Event::Notice(format!("{text}; {left} left")));
        }
    }

    /// For how long `outgoing` is worth sending; `None`: until it has arrived.
    fn life(&self, now: Instant, outgoing: &Outgoing) -> Option<Duration> {
        let left = outgoing.expires.map(|at| at.saturating_duration_since(now));
        match outgoing.class {
            Class::Ordered => left,
            Class::Latest { .. } => {
                Some(left.map_or(self.target_delay, |left| left.min(self.target_delay)))
            }
        }
    }

    /// Sends to every peer; good if one of them takes it.
    fn send_to_all(&mut self, now: Instant, outgoing: &Outgoing) -> Result<(), Refusal> {
        let (stream, life) = (stream(outgoing), self.life(now, outgoing));
        let mut outcome = Err(Refusal::NotConnected);
        for &peer in &self.peers {
            let sent = self
                .driver
                .send(now, peer, stream, life, outgoing.packet.as_bytes());
            outcome = outcome.or_else(|_| sent.map(drop).map_err(refusal));
        }
        outcome
    }

    fn take(&mut self, now: Instant, message: &Message) -> Option<Received> {
        let Ok(packet) = Packet::from_bytes(&message.data) else {
            self.stats.bad_frames += 1;
            return None;
        };
        self.stats.received += 1;
        self.note_received(message, &packet);
        let class = match message.stream {
            Stream::Latest(key) => Class::Latest { key },
            Stream::Ordered(_) | Stream::Frame(_) => Class::Ordered,
        };
        Some(Received {
            packet,
            class,
            at: message.at,
            expires: message.expires(now),
        })
    }
}

fn stream(outgoing: &Outgoing) -> Stream {
    match outgoing.class {
        Class::Latest { key } => Stream::Latest(key),
        Class::Ordered => Stream::Ordered(outgoing.packet.port().number()),
    }
}

fn refusal(error: SendError) -> Refusal {
    match error {
        SendError::Full { .. } => Refusal::QueueFull,
        SendError::Closed | SendError::NotConnected => Refusal::NotConnected,
        SendError::Life(_) | SendError::Expired => Refusal::Expired,
        SendError::TooLarge { .. } => {
            Refusal::Unsafe("longer than the transport's largest message")
        }
    }
}

impl Link for PrrtLink {
    fn interests(&self, out: &mut Vec<Interest>) {
        if self.state != State::Closed {
            out.push(Interest {
                fd: self.driver.as_raw_fd(),
                read: true,
                write: self.driver.wants_write(),
            });
        }
    }

    fn handle_ready(&mut self, now: Instant) {
        let before = if self.tap.is_on() {
            self.datagrams()
        } else {
            0
        };
        self.driver.handle_readable(now);
        self.note_arrival(now, before);
        self.take_events();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.driver.handle_due(now);
        self.take_events();
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.driver
            .poll_timeout()
            .filter(|_| self.state != State::Closed)
    }

    fn recv(&mut self, now: Instant) -> Option<Received> {
        for step in 0..self.peers.len() {
            let at = (self.turn + step) % self.peers.len();
            while let Some(message) = self.driver.recv(now, self.peers[at], Mode::IN_ORDER) {
                if let Some(received) = self.take(now, &message) {
                    self.turn = at + 1;
                    return Some(received);
                }
            }
        }
        None
    }

    fn send(&mut self, now: Instant, outgoing: &Outgoing) -> SendOutcome {
        let began = self.tap.now();
        let sent = self.send_to_all(now, outgoing);
        self.note_sent(began);
        match sent {
            Ok(()) => {
                self.stats.sent += 1;
                SendOutcome::Accepted
            }
            Err(refusal) => {
                self.tap
                    .note(Moment::Sending, now, &outgoing.packet, verdict(refusal));
                self.stats.count(refusal);
                SendOutcome::Refused(refusal)
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        let began = self.tap.now();
        self.driver.flush(now);
        self.note_sent(began);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn state(&self) -> State {
        self.state
    }

    fn stats(&self) -> LinkStats {
        let mut stats = self.stats;
        for peer in &self.peers {
            self.count_dropped(*peer, &mut stats);
        }
        stats
    }

    /// Of the first peer: a caller has one.
    fn quality(&self) -> Option<f64> {
        let stats = self.driver.stats(*self.peers.first()?)?;
        stats.raw_loss.map(|loss| 1.0 - loss)
    }

    /// Of the first peer: a caller has one.
    fn path(&self) -> Option<Path> {
        let stats = self.driver.stats(*self.peers.first()?)?;
        let send = &stats.send;
        let again = send.repairs + send.riders + send.fragment_repairs;
        Some(Path {
            raw_loss: stats.raw_loss,
            residual_loss: stats.residual_loss(),
            redundancy: (send.messages > 0).then(|| again as f64 / send.messages as f64),
        })
    }

    /// Of the first peer: what it tells of its reader.
    fn pace(&self) -> Option<Duration> {
        self.driver.peer_pace(*self.peers.first()?)
    }

    fn set_reader_pace(&mut self, pace: Option<Duration>) {
        if self.reader_pace == pace {
            return;
        }
        self.reader_pace = pace;
        for peer in &self.peers {
            self.driver.set_reader_pace(*peer, pace);
        }
    }

    fn set_tap(&mut self, tap: LinkTap) {
        self.driver.set_trace(tap.is_on());
        if tap.is_on() {
            stamp::enable(&self.driver);
        }
        self.tap = tap;
    }

    fn close(&mut self, now: Instant) {
        self.stats = self.stats();
        for peer in std::mem::take(&mut self.peers) {
            self.driver.close(now, peer);
        }
        self.state = State::Closed;
    }
}
