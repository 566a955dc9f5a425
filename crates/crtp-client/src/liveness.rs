//! Whether the drone is there: sends echoes, measures their round trips, and notices silence.

use std::time::{Duration, Instant};

use crtp::{Packet, link_service};

/// Echoes whose sending time is remembered.
const REMEMBERED: usize = 64;
/// What our echoes start with; others pass by.
const MARK: [u8; 4] = *b"olnk";

/// Echoes of one connection.
pub(crate) struct Liveness {
    period: Option<Duration>,
    patience: Duration,
    next: Instant,
    heard: Instant,
    number: u32,
    sent: [Option<(u32, Instant)>; REMEMBERED],
}

impl Liveness {
    pub(crate) const fn new(period: Option<Duration>, patience: Duration, now: Instant) -> Self {
        Self {
            period,
            patience,
            next: now,
            heard: now,
            number: 0,
            sent: [None; REMEMBERED],
        }
    }

    /// Something came from the drone.
    pub(crate) const fn on_heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The echo that is due, if one is. Those that should have been sent meanwhile are left out.
    pub(crate) fn ping_due(&mut self, now: Instant) -> Option<Packet> {
        let period = self.period?;
        if now < self.next {
            return None;
        }
        self.next = now + period;
        self.number = self.number.wrapping_add(1);
        if let Some(slot) = self.sent.get_mut(self.number as usize % REMEMBERED) {
            *slot = Some((self.number, now));
        }
        let mut data = [0; 8];
        data[..4].copy_from_slice(&MARK);
        data[4..].copy_from_slice(&self.number.to_le_bytes());
        link_service::echo(&data).ok()
    }

    /// The round trip of an echo of ours; each counts once.
    pub(crate) fn on_echo(&mut self, now: Instant, packet: &Packet) -> Option<Duration> {
        let number = packet.data().strip_prefix(&MARK)?;
        let number = u32::from_le_bytes(number.try_into().ok()?);
        let slot = self.sent.get_mut(number as usize % REMEMBERED)?;
        let (_, sent) = slot.take_if(|(sent, _)| *sent == number)?;
        Some(now.saturating_duration_since(sent))
    }

    /// How long it has been silent, if that is too long.
    pub(crate) fn silence(&self, now: Instant) -> Option<Duration> {
        let silence = now.saturating_duration_since(self.heard);
        (self.period.is_some() && silence >= self.patience).then_some(silence)
    }

    pub(crate) fn deadlines(&self) -> impl Iterator<Item = (Instant, &'static str)> {
        let pings = self.period.is_some();
        let due = [
            (self.next, "echo due"),
            (self.heard + self.patience, "link silent"),
        ];
        due.into_iter().filter(move |_| pings)
    }
}
