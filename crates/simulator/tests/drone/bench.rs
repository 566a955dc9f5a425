//! A drone on the bench: packets as hexadecimal, time that jumps from one wake-up to the next.

use std::time::{Duration, Instant};

use crtp::Packet;
use simulator::{Config, Drone};

pub(crate) struct Bench {
    pub(crate) drone: Drone,
    pub(crate) now: Instant,
}

pub(crate) fn quiet() -> Config {
    Config {
        noise: false,
        ..Config::default()
    }
}

impl Bench {
    /// A drone that has come to rest, its greeting read.
    pub(crate) fn new(config: Config) -> Self {
        let now = Instant::now();
        let mut bench = Self {
            drone: Drone::new(config, now),
            now,
        };
        bench.run(100);
        bench.received();
        bench
    }

    pub(crate) fn ready() -> Self {
        Self::new(quiet())
    }

    /// Lets time pass, waking the drone whenever it wants.
    pub(crate) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some((due, _)) = self.drone.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = self.now.max(due);
            self.drone.handle_timeout(self.now);
        }
        self.now = end;
        self.drone.handle_timeout(end);
    }

    pub(crate) fn send(&mut self, hex: &str) {
        self.drone.handle_packet(self.now, &packet(hex));
    }

    /// Sends a packet and takes everything that comes back.
    pub(crate) fn ask(&mut self, hex: &str) -> Vec<String> {
        self.send(hex);
        self.received()
    }

    pub(crate) fn received(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.drone.poll_transmit())
            .map(|packet| text(packet.as_bytes()))
            .collect()
    }

    /// Sends the same packet every `period` ms for `ms`.
    pub(crate) fn stream(&mut self, hex: &str, period: u64, ms: u64) {
        for _ in 0..ms / period {
            self.send(hex);
            self.run(period);
            self.received();
        }
    }

    pub(crate) fn send_setpoint(&mut self, setpoint: &crtp::setpoint::Setpoint) {
        let packet = setpoint.encode(crtp::ProtocolVersion::NEWEST).unwrap();
        self.drone.handle_packet(self.now, &packet);
    }

    pub(crate) fn fly(&mut self, setpoint: &crtp::setpoint::Setpoint, ms: u64) {
        for _ in 0..ms / 10 {
            self.send_setpoint(setpoint);
            self.run(10);
            self.received();
        }
    }

    /// Status of a high-level command.
    pub(crate) fn command(&mut self, command: crtp::high_level::Command) -> u8 {
        let request = command.encode().unwrap();
        self.drone.handle_packet(self.now, &request);
        let replies: Vec<Packet> = std::iter::from_fn(|| self.drone.poll_transmit())
            .filter(|packet| packet.kind() == 0x80)
            .collect();
        assert_eq!(replies.len(), 1);
        crtp::high_level::Reply::parse(&replies[0])
            .unwrap()
            .status
            .0
    }

    pub(crate) fn position(&self) -> [f64; 3] {
        self.drone.snapshot().position_m
    }

    pub(crate) fn z(&self) -> f64 {
        self.position()[2]
    }

    pub(crate) fn info(&mut self) -> u16 {
        let reply = self.ask("9c0c").pop().unwrap();
        let bytes = bytes(&reply);
        assert_eq!(bytes[..2], [0x90, 0x8c]);
        u16::from_le_bytes([bytes[2], bytes[3]])
    }

    pub(crate) fn hazards(&self) -> u64 {
        self.drone.report().would_crash.count
    }

    /// Id of a log variable or parameter, by reading the table as a client does.
    pub(crate) fn id(&mut self, table: &str, group: &str, name: &str) -> u16 {
        let wanted = text(format!("{group}\0{name}\0").as_bytes());
        for id in 0..2000_u16 {
            let reply = self
                .ask(&format!("{table}02{}", text(&id.to_le_bytes())))
                .pop()
                .unwrap();
            if reply.len() == 4 {
                break;
            }
            if reply[10..] == wanted {
                return id;
            }
        }
        panic!("no {group}.{name}");
    }
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

pub(crate) fn packet(hex: &str) -> Packet {
    Packet::from_bytes(&bytes(hex)).unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
