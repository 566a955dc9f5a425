//! A client and a drone on one virtual clock, with a link between them that delays and loses.

use std::time::{Duration, Instant};

use crtp::{Packet, Value};
use crtp_client::{Client, Config, Event, LogHandle, NoCache, TableCache};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::drone::Drone;
use crate::ms;

pub(crate) struct Sample {
    pub(crate) handle: LogHandle,
    pub(crate) drone_ms: u64,
    pub(crate) values: Vec<Option<Value>>,
}

pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) drone: Drone,
    pub(crate) now: Instant,
    pub(crate) start: Instant,
    /// Everything to and from the drone is lost.
    pub(crate) dead: bool,
    /// Share of packets lost, each way.
    pub(crate) loss: f64,
    pub(crate) delay: Duration,
    /// The drone takes this long for each request, and has room for one more of each port meanwhile.
    pub(crate) service: Duration,
    /// Requests that found no room.
    pub(crate) overflows: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) samples: Vec<Sample>,
    up: Vec<(Instant, Packet)>,
    down: Vec<(Instant, Packet)>,
    rng: SmallRng,
}

impl Pair {
    pub(crate) fn new(config: Config) -> Self {
        Self::with_cache(config, Box::new(NoCache))
    }

    pub(crate) fn with_cache(config: Config, cache: Box<dyn TableCache>) -> Self {
        let now = Instant::now();
        Self {
            client: Client::new(config, cache),
            drone: Drone::new(now),
            now,
            start: now,
            dead: false,
            loss: 0.0,
            delay: ms(2),
            service: Duration::ZERO,
            overflows: 0,
            events: Vec::new(),
            samples: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
            rng: SmallRng::seed_from_u64(1),
        }
    }

    /// Loses other packets.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.rng = SmallRng::seed_from_u64(seed);
    }

    /// A pair that is connected.
    pub(crate) fn connected(config: Config) -> Self {
        let mut pair = Self::new(config);
        pair.client.connect(pair.now);
        pair.run(ms(2000));
        assert!(pair.client.is_connected(), "{:?}", pair.events);
        pair.events.clear();
        pair.drone.taken.clear();
        pair
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// Lets that much time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.exchange();
            match self.next_instant() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
            self.client.handle_timeout(self.now);
        }
        self.now = end;
        self.exchange();
    }

    /// Lets time pass until an event is there, at most 10 s; takes it and those before it.
    pub(crate) fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        for _ in 0..10_000 {
            if let Some(at) = self.events.iter().position(&wanted) {
                return self.events.drain(..=at).next_back().unwrap();
            }
            self.run(ms(1));
        }
        panic!("no such event within 10 s, but {:?}", self.events);
    }

    fn next_instant(&self) -> Option<Instant> {
        let client = self.client.poll_timeout().map(|(at, _)| at);
        let arrivals = self.up.iter().chain(&self.down).map(|(at, _)| *at).min();
        let blocks = self.drone.next_due();
        [client, arrivals, blocks].into_iter().flatten().min()
    }

    fn exchange(&mut self) {
        loop {
            self.send_up();
            let data = self.drone.data(self.now);
            data.iter()
                .for_each(|packet| self.send_down(packet, Duration::ZERO));
            let (up, down) = (self.arrived_up(), self.arrived_down());
            if up.is_empty() && down.is_empty() {
                break;
            }
            for packet in up {
                if let Some(answer) = self.drone.handle(self.now, &packet) {
                    self.send_down(&answer, Duration::ZERO);
                }
            }
            for packet in down {
                self.client.handle_packet(self.now, &packet);
            }
        }
        self.collect();
    }

    fn send_up(&mut self) {
        while let Some(packet) = self.client.poll_transmit() {
            let waiting = self.up.iter().filter(|(_, p)| p.port() == packet.port());
            if !self.service.is_zero() && waiting.count() > 0 {
                self.overflows += 1;
            } else if !self.lost() {
                self.up.push((self.now + self.delay + self.service, packet));
            }
        }
    }

    /// Sends a packet of the drone.
    pub(crate) fn send_down(&mut self, packet: &Packet, after: Duration) {
        if !self.lost() {
            self.down.push((self.now + self.delay + after, *packet));
        }
    }

    fn lost(&mut self) -> bool {
        self.dead || (self.loss > 0.0 && self.rng.random_bool(self.loss))
    }

    fn arrived_up(&mut self) -> Vec<Packet> {
        let now = self.now;
        self.up
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, p)| p)
            .collect()
    }

    fn arrived_down(&mut self) -> Vec<Packet> {
        let now = self.now;
        self.down
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, p)| p)
            .collect()
    }

    fn collect(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
        while let Some(sample) = self.client.poll_sample() {
            self.samples.push(Sample {
                handle: sample.handle,
                drone_ms: sample.drone_ms,
                values: sample.values.to_vec(),
            });
        }
    }

    /// Requests the drone took on that port and channel.
    pub(crate) fn taken(&self, kind: u8) -> Vec<Packet> {
        let taken = self.drone.taken.iter().copied();
        taken.filter(|packet| packet.kind() == kind).collect()
    }
}
