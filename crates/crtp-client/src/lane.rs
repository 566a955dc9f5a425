//! One outstanding request per port: sends the next one only after the answer, sends again after a time-out,
//! and reports what stays unanswered. It does not know what the requests mean.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crtp::Packet;

/// What an answer looks like: the header (reserved bits clear) and its first data bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expect {
    kind: u8,
    prefix: [u8; Self::MAX],
    length: u8,
}

impl Expect {
    const MAX: usize = 6;

    /// An answer of this kind whose data starts with these (at most six) bytes.
    pub(crate) fn new(kind: u8, start: &[u8]) -> Self {
        let mut prefix = [0; Self::MAX];
        let length = start.len().min(Self::MAX);
        prefix[..length].copy_from_slice(&start[..length]);
        Self {
            kind,
            prefix,
            length: length as u8,
        }
    }

    /// The answer starts like the request: `bytes` data bytes of it.
    pub(crate) fn echo_of(request: &Packet, bytes: usize) -> Self {
        let data = request.data();
        Self::new(request.kind(), &data[..bytes.min(data.len())])
    }

    fn matches(&self, packet: &Packet) -> bool {
        let prefix = &self.prefix[..usize::from(self.length)];
        packet.kind() == self.kind && packet.data().starts_with(prefix)
    }
}

/// How often a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tries {
    /// Again after each time-out: sending it twice does the same as sending it once.
    Repeat,
    /// Once, and it counts as unanswered after one time-out.
    Once,
    /// Once, but it waits as long as all repetitions of another would.
    OncePatiently,
}

/// A request with the answer it waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange<P> {
    pub(crate) packet: Packet,
    pub(crate) expect: Expect,
    /// What to do with the outcome.
    pub(crate) purpose: P,
    pub(crate) tries: Tries,
}

struct InFlight<P> {
    exchange: Exchange<P>,
    deadline: Instant,
    attempts_left: u32,
}

struct Lane<P> {
    waiting: VecDeque<Exchange<P>>,
    current: Option<InFlight<P>>,
}

/// Requests of all ports.
pub(crate) struct Lanes<P> {
    lanes: [Lane<P>; 16],
    timeout: Duration,
    attempts: u32,
    /// Requests sent again.
    pub(crate) repeats: u64,
}

/// What came of requests at a point in time.
pub(crate) enum Due<P> {
    /// Send this now.
    Send(Packet),
    /// No answer, however often it was sent.
    Unanswered(P),
}

impl<P: Copy> Lanes<P> {
    pub(crate) fn new(timeout: Duration, attempts: u32) -> Self {
        Self {
            lanes: std::array::from_fn(|_| Lane {
                waiting: VecDeque::new(),
                current: None,
            }),
            timeout,
            attempts: attempts.max(1),
            repeats: 0,
        }
    }

    /// Queues a request on its port.
    pub(crate) fn push(&mut self, exchange: Exchange<P>) {
        let port = usize::from(exchange.packet.port().number());
        if let Some(lane) = self.lanes.get_mut(port) {
            lane.waiting.push_back(exchange);
        }
    }

    /// Requests waiting or unanswered on a port.
    pub(crate) fn backlog(&self, port: crtp::Port) -> usize {
        self.lanes
            .get(usize::from(port.number()))
            .map_or(0, |lane| {
                lane.waiting.len() + usize::from(lane.current.is_some())
            })
    }

    /// The request this packet answers and `accept` does not deny, which then is done.
    pub(crate) fn answered(
        &mut self,
        packet: &Packet,
        accept: impl FnOnce(&P) -> bool,
    ) -> Option<P> {
        let lane = self.lanes.get_mut(usize::from(packet.port().number()))?;
        let done = lane.current.take_if(|current| {
            current.exchange.expect.matches(packet) && accept(&current.exchange.purpose)
        })?;
        Some(done.exchange.purpose)
    }

    /// The next thing to do by now; call until there is none.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Due<P>> {
        let (timeout, attempts) = (self.timeout, self.attempts);
        for lane in &mut self.lanes {
            match &mut lane.current {
                Some(current) if current.deadline > now => {}
                Some(current) if current.attempts_left > 0 => {
                    current.attempts_left -= 1;
                    current.deadline = now + timeout;
                    self.repeats += 1;
                    return Some(Due::Send(current.exchange.packet));
                }
                Some(current) => {
                    let purpose = current.exchange.purpose;
                    lane.current = None;
                    return Some(Due::Unanswered(purpose));
                }
                None => {
                    let Some(exchange) = lane.waiting.pop_front() else {
                        continue;
                    };
                    lane.current = Some(InFlight::new(exchange, now, timeout, attempts));
                    return Some(Due::Send(exchange.packet));
                }
            }
        }
        None
    }

    /// When an unanswered request is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let current = self.lanes.iter().filter_map(|lane| lane.current.as_ref());
        current.map(|current| current.deadline).min()
    }

    /// Forgets everything; returns what will not be answered.
    pub(crate) fn clear(&mut self) -> Vec<P> {
        let mut purposes = Vec::new();
        for lane in &mut self.lanes {
            purposes.extend(lane.current.take().map(|current| current.exchange.purpose));
            purposes.extend(lane.waiting.drain(..).map(|exchange| exchange.purpose));
        }
        purposes
    }
}

impl<P> InFlight<P> {
    fn new(exchange: Exchange<P>, now: Instant, timeout: Duration, attempts: u32) -> Self {
        let (patience, attempts_left) = match exchange.tries {
            Tries::Repeat => (timeout, attempts - 1),
            Tries::Once => (timeout, 0),
            Tries::OncePatiently => (timeout * attempts, 0),
        };
        Self {
            exchange,
            deadline: now + patience,
            attempts_left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(port: u8, number: u8) -> Exchange<u8> {
        let packet = Packet::with_header(port << 4 | 0x0c, &[number]).unwrap();
        Exchange {
            packet,
            expect: Expect::echo_of(&packet, 1),
            purpose: number,
            tries: Tries::Repeat,
        }
    }

    fn sends(lanes: &mut Lanes<u8>, now: Instant) -> Vec<u8> {
        std::iter::from_fn(|| lanes.next_due(now))
            .filter_map(|due| match due {
                Due::Send(packet) => Some(packet.data()[0]),
                Due::Unanswered(_) => None,
            })
            .collect()
    }

    #[test]
    fn a_port_waits_for_its_answer_and_other_ports_do_not() {
        let now = Instant::now();
        let mut lanes = Lanes::new(Duration::from_millis(100), 3);
        for (port, number) in [(5, 1), (5, 2), (2, 3)] {
            lanes.push(exchange(port, number));
        }
        assert_eq!(sends(&mut lanes, now), [3, 1]);
        let other = Packet::with_header(0x50, &[2]).unwrap();
        assert!(lanes.answered(&other, |_| true).is_none());
        let answer = Packet::with_header(0x50, &[1, 9]).unwrap();
        assert!(lanes.answered(&answer, |_| true).is_some());
        assert_eq!(sends(&mut lanes, now), [2]);
    }

    #[test]
    fn an_unanswered_request_is_sent_thrice_and_then_given_up() {
        let start = Instant::now();
        let step = Duration::from_millis(100);
        let mut lanes = Lanes::new(step, 3);
        lanes.push(exchange(5, 1));
        for i in 0..3 {
            assert_eq!(sends(&mut lanes, start + step * i), [1]);
        }
        assert_eq!(lanes.deadline(), Some(start + step * 3));
        let due = lanes.next_due(start + step * 3);
        assert!(matches!(due, Some(Due::Unanswered(1))));
        assert_eq!((lanes.deadline(), lanes.repeats), (None, 2));
    }

    #[test]
    fn what_must_not_be_repeated_is_sent_once_and_waits_as_long() {
        let start = Instant::now();
        let step = Duration::from_millis(100);
        let mut lanes = Lanes::new(step, 3);
        lanes.push(Exchange {
            tries: Tries::OncePatiently,
            ..exchange(8, 7)
        });
        assert_eq!(sends(&mut lanes, start), [7]);
        assert_eq!(sends(&mut lanes, start + step * 2), [0_u8; 0]);
        let due = lanes.next_due(start + step * 3);
        assert!(matches!(due, Some(Due::Unanswered(7))));
    }
}
