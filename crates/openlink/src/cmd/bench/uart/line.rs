//! One direction of a serial line: bytes come out as late as their bits take.
//!
//! Pure: time comes in as an argument. A pseudo-terminal has no speed of its own, so this gives it one.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Start, 8 data, stop.
pub(super) const BITS_PER_BYTE: u32 = 10;

/// Bytes under way.
#[derive(Debug)]
pub(super) struct Line {
    byte: Duration,
    /// Before the first byte on an idle line: the time the sender takes to answer.
    lead: Duration,
    free: Option<Instant>,
    under_way: VecDeque<(Instant, u8)>,
}

impl Line {
    /// A line of this speed, bit/s.
    pub(super) fn new(baud: u32, lead: Duration) -> Self {
        Self {
            byte: Duration::from_secs(1) * BITS_PER_BYTE / baud.max(1),
            lead,
            free: None,
            under_way: VecDeque::new(),
        }
    }

    /// The sender gives bytes.
    pub(super) fn push(&mut self, now: Instant, bytes: &[u8]) {
        let mut at = match self.free {
            Some(free) if free > now => free,
            _ => now + self.lead,
        };
        for byte in bytes {
            at += self.byte;
            self.under_way.push_back((at, *byte));
        }
        self.free = Some(at);
    }

    /// The next byte whose last bit is out.
    pub(super) fn pop(&mut self, now: Instant) -> Option<u8> {
        self.due()
            .filter(|due| *due <= now)
            .and_then(|_| self.under_way.pop_front())
            .map(|(_, byte)| byte)
    }

    /// When that is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.under_way.front().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_one_after_the_other_at_the_speed() {
        let start = Instant::now();
        let us = |us| start + Duration::from_micros(us);
        let mut line = Line::new(500_000, Duration::from_micros(100));
        line.push(start, &[1, 2]);
        assert_eq!(line.due(), Some(us(120)));
        assert_eq!(line.pop(us(119)), None);
        line.push(us(119), &[3]);
        assert_eq!([line.pop(us(120)), line.pop(us(139))], [Some(1), None]);
        assert_eq!([line.pop(us(160)), line.pop(us(160))], [Some(2), Some(3)]);
        line.push(us(1000), &[4]);
        assert_eq!(line.due(), Some(us(1120)));
    }
}
