//! Two sessions joined in memory under a virtual clock.

mod faults;
mod flow;
mod queues;
mod sync;

use std::time::{Duration, Instant};

use crtp::{Admitted, Gate, Packet};

use super::*;
use crate::cpx::{Item, START};

pub(super) const MS: Duration = Duration::from_millis(1);

pub(super) fn packet(bytes: &[u8]) -> Packet {
    Packet::from_bytes(bytes).unwrap()
}

pub(super) fn admitted(bytes: &[u8]) -> Admitted {
    Gate::new().admit(&packet(bytes)).unwrap()
}

/// Echo request with a number in it.
pub(super) fn echo(number: u8) -> Admitted {
    admitted(&[0xfc, number])
}

/// A host and a drone with a wire between them that can be cut in either direction.
pub(super) struct Pair {
    pub(super) host: Session<Host>,
    pub(super) device: Session<Device>,
    pub(super) now: Instant,
    /// Whether bytes of the host and of the device arrive.
    pub(super) wired: (bool, bool),
    /// Frames of the host that the device has not answered.
    in_flight: u32,
    pub(super) max_in_flight: u32,
    /// Frames the host has written.
    pub(super) frames: u32,
}

impl Pair {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            host: Session::host(Config::host(576_000), now),
            device: Session::device(Config::device(), now),
            now,
            wired: (true, true),
            in_flight: 0,
            max_in_flight: 0,
            frames: 0,
        }
    }

    /// A pair that has synced, greeted, and told its events.
    pub(super) fn up() -> Self {
        let mut pair = Self::new();
        pair.settle();
        assert_eq!(pair.host.phase(), Phase::Up);
        assert_eq!(pair.device.phase(), Phase::Up);
        pair.events();
        pair
    }

    /// Exchanges bytes until nobody has any.
    pub(super) fn settle(&mut self) {
        while self.host_writes() | self.device_writes() {}
    }

    pub(super) fn host_writes(&mut self) -> bool {
        let Some(bytes) = self.host.poll_transmit(self.now) else {
            return false;
        };
        let frames = count(bytes).0;
        self.frames += frames;
        self.in_flight += frames;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        if self.wired.0 {
            self.device.handle_bytes(self.now, bytes);
        }
        true
    }

    pub(super) fn device_writes(&mut self) -> bool {
        let Some(bytes) = self.device.poll_transmit(self.now) else {
            return false;
        };
        if self.wired.1 {
            self.in_flight = self.in_flight.saturating_sub(count(bytes).1);
            self.host.handle_bytes(self.now, bytes);
        }
        true
    }

    /// Lets time pass: fires timers in their order and exchanges bytes after each.
    pub(super) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        loop {
            let timers = [self.host.poll_timeout(), self.device.poll_timeout()];
            let next = timers.into_iter().flatten().map(|(at, _)| at).min();
            let Some(at) = next.filter(|&at| at <= end) else {
                break;
            };
            assert!(at >= self.now, "a timer must not stay behind");
            self.now = at;
            self.fire();
        }
        self.now = end;
    }

    fn fire(&mut self) {
        let before = (self.host.poll_timeout(), self.device.poll_timeout());
        self.host.handle_timeout(self.now);
        self.device.handle_timeout(self.now);
        self.settle();
        let after = (self.host.poll_timeout(), self.device.poll_timeout());
        assert_ne!(before, after, "a timer that changes nothing would spin");
    }

    /// Events of host and device since the last call.
    pub(super) fn events(&mut self) -> (Vec<Event>, Vec<Event>) {
        let host = std::iter::from_fn(|| self.host.poll_event()).collect();
        let device = std::iter::from_fn(|| self.device.poll_event()).collect();
        (host, device)
    }

    pub(super) fn device_received(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.device.recv()).collect()
    }
}

/// Frames and tokens in these bytes.
fn count(mut bytes: &[u8]) -> (u32, u32) {
    assert_eq!(bytes.first(), Some(&START));
    let mut decoder = cpx::Decoder::new();
    let mut counts = (0, 0);
    while let Some(item) = decoder.next(&mut bytes) {
        match item {
            Item::Frame(_) => counts.0 += 1,
            Item::ClearToSend => counts.1 += 1,
        }
    }
    assert_eq!(decoder.stats().damaged(), 0);
    counts
}
