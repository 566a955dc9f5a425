//! Two endpoints joined by two emulated directions in virtual time. Jumps from event to event; the same seed gives the
//! same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use prrt::{Config, Endpoint, Event, Message, Mode, PeerId, SendError, Stats, Stream};

use crate::net::{Conditions, Net};

/// One end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) endpoint: Endpoint,
    pub(crate) addr: SocketAddr,
    pub(crate) peer: Option<PeerId>,
    pub(crate) mode: Mode,
    pub(crate) events: Vec<Event>,
    pub(crate) received: Vec<(Instant, Message)>,
    /// When off, the application does not read.
    pub(crate) reads: bool,
}

/// A datagram under way: arrival, order of entry, receiving end, bytes, congestion mark.
type Flight = (Instant, u64, usize, Vec<u8>, bool);

/// Two ends and what is between them.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) start: Instant,
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    /// `nets[0]` leads from end 0 to end 1.
    pub(crate) nets: [Net; 2],
    wire: BinaryHeap<Reverse<Flight>>,
    count: u64,
    /// Copies of everything that left, per sending end, if wanted.
    pub(crate) capture: Option<Vec<(usize, Vec<u8>)>>,
    /// Every wake-up of an endpoint by its own timer.
    pub(crate) wakeups: u64,
    /// Steps since time last went on.
    standstill: u32,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

impl End {
    fn new(now: Instant, config: &Config, listening: bool, port: u16, seed: u64) -> Self {
        Self {
            endpoint: Endpoint::new(now, config.clone(), listening, seed).unwrap(),
            addr: SocketAddr::from(([127, 0, 0, 1], port)),
            peer: None,
            mode: Mode::Asap,
            events: Vec::new(),
            received: Vec::new(),
            reads: true,
        }
    }
}

impl Pair {
    /// Two ends with settings of their own that do not know each other yet.
    pub(crate) fn strangers(configs: &[Config; 2], conditions: [Conditions; 2], seed: u64) -> Self {
        let mut pair = Self::apart(&configs[CLIENT], conditions, seed);
        let config = &configs[SERVER];
        pair.ends[SERVER] = End::new(pair.start, config, true, 2000, seed * 4 + 2);
        pair
    }

    /// Two ends that do not know each other yet.
    pub(crate) fn apart(config: &Config, conditions: [Conditions; 2], seed: u64) -> Self {
        let start = Instant::now();
        Self {
            start,
            now: start,
            ends: [
                End::new(start, config, false, 1000, seed * 4 + 1),
                End::new(start, config, true, 2000, seed * 4 + 2),
            ],
            nets: [
                Net::new(conditions[0], seed * 4 + 3),
                Net::new(conditions[1], seed * 4 + 4),
            ],
            wire: BinaryHeap::new(),
            count: 0,
            capture: None,
            wakeups: 0,
            standstill: 0,
        }
    }

    /// Two connected ends.
    pub(crate) fn connected(config: &Config, conditions: [Conditions; 2], seed: u64) -> Self {
        let mut pair = Self::apart(config, conditions, seed);
        pair.join();
        pair
    }

    /// Connects the ends.
    pub(crate) fn join(&mut self) {
        let pair = self;
        pair.connect();
        let deadline = pair.now + Duration::from_secs(60);
        while !(pair.is_up(CLIENT) && pair.is_up(SERVER)) {
            assert!(pair.step(deadline), "no connection within a minute");
        }
    }

    pub(crate) fn connect(&mut self) {
        let to = self.ends[SERVER].addr;
        self.ends[CLIENT].peer = Some(self.ends[CLIENT].endpoint.connect(self.now, to));
        self.drain(CLIENT);
    }

    pub(crate) fn is_up(&self, end: usize) -> bool {
        self.ends[end]
            .peer
            .is_some_and(|peer| self.ends[end].endpoint.is_connected(peer))
    }

    pub(crate) fn stats(&self, end: usize) -> Stats {
        self.ends[end]
            .endpoint
            .stats(self.ends[end].peer.unwrap())
            .unwrap()
    }

    pub(crate) fn send(
        &mut self,
        end: usize,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<(), SendError> {
        let peer = self.ends[end].peer.unwrap();
        self.ends[end]
            .endpoint
            .send(self.now, peer, stream, life, data)?;
        self.drain(end);
        Ok(())
    }

    /// Carries out the next thing that happens before or at `until`; `false` if nothing does (then it is `until`).
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        let arrival = self.wire.peek().map(|Reverse((at, ..))| *at);
        let timers = [0, 1].map(|end| self.ends[end].endpoint.poll_timeout().map(|(at, _)| at));
        let next = arrival
            .into_iter()
            .chain(timers.into_iter().flatten())
            .min();
        let Some(next) = next.filter(|&at| at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.standstill = if next > self.now {
            0
        } else {
            self.standstill + 1
        };
        assert!(
            self.standstill < 10_000,
            "an end wants to be called again and again: {timers:?}"
        );
        self.now = self.now.max(next);
        if arrival.is_some_and(|at| at <= self.now) {
            self.arrive();
        }
        for end in [0, 1] {
            if timers[end].is_some_and(|at| at <= self.now) {
                self.wakeups += 1;
                self.ends[end].endpoint.handle_timeout(self.now);
                self.drain(end);
            }
        }
        true
    }

    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    fn arrive(&mut self) {
        if let Some(Reverse((_, _, end, bytes, marked))) = self.wire.pop() {
            let from = self.ends[1 - end].addr;
            let endpoint = &mut self.ends[end].endpoint;
            endpoint.handle_marked_datagram(self.now, from, &bytes, marked);
            self.drain(end);
        }
    }

    /// A datagram reaches an end, whoever sent it.
    pub(crate) fn inject(&mut self, end: usize, from: SocketAddr, bytes: &[u8]) {
        self.ends[end]
            .endpoint
            .handle_datagram(self.now, from, bytes);
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        let mut buffer = [0; 65_536];
        while let Some(transmit) = self.ends[end].endpoint.poll_transmit(self.now, &mut buffer) {
            self.carry(end, transmit.to, &buffer[..transmit.len]);
        }
        let now = self.now;
        let side = &mut self.ends[end];
        while let Some(event) = side.endpoint.poll_event() {
            if let Event::Connected { peer, .. } = event {
                side.peer = Some(peer);
            }
            side.events.push(event);
        }
        if let Some(peer) = side.peer.filter(|_| side.reads) {
            while let Some(message) = side.endpoint.recv(now, peer, side.mode) {
                side.received.push((now, message));
            }
        }
    }

    fn carry(&mut self, end: usize, to: SocketAddr, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if let Some(capture) = &mut self.capture {
            capture.push((end, bytes.clone()));
        }
        if to != self.ends[1 - end].addr {
            return;
        }
        let arrivals = self.nets[end].carry(self.now, &mut bytes);
        let marked = self.nets[end].marked;
        for at in arrivals {
            self.count += 1;
            self.wire
                .push(Reverse((at, self.count, 1 - end, bytes.clone(), marked)));
        }
    }
}
