//! CPX over a byte stream that loses nothing, as TCP: `LENGTH(2, little endian) CPX0 CPX1 DATA`, no checksum and no
//! clear-to-send. Owns the bytes and the queues of one end; the socket is somebody else's.
//! Layout: cflib `cpx/transports.py` (`SocketTransport`), AI deck ESP32 firmware.

use std::collections::VecDeque;
use std::time::Instant;

use arrayvec::ArrayVec;
use crtp::{Admitted, Packet};

use super::{FrameBytes, Function, Header, System};
use crate::outbox::{Outbox, SendError};
use crate::session::Role;
use crate::wire::Wire;

/// Packets that wait to be taken before the peer is made to wait.
const INBOX: usize = 256;
/// Ordered packets that wait to be written; further ones are refused.
const OUTBOX: usize = 64;
/// Bytes of a frame that are kept: length, route and a whole CRTP packet. Longer frames carry something else.
const KEPT: usize = 4 + crtp::MAX_PACKET;

/// The frame of a packet on its way to a drone; only the gate makes such a packet.
#[must_use]
pub fn to_drone(packet: &Admitted) -> FrameBytes {
    encode(Header::HOST_CRTP, packet.as_bytes())
}

/// The frame of a packet on its way from a drone to a host.
#[must_use]
pub fn to_host(packet: &Packet) -> FrameBytes {
    encode(Header::DRONE_CRTP, packet.as_bytes())
}

/// The frame of a SYSTEM message to a drone.
#[must_use]
pub fn system(message: System) -> FrameBytes {
    encode(Header::HOST_SYSTEM, &message.bytes())
}

fn encode(header: Header, data: &[u8]) -> FrameBytes {
    let data = &data[..data.len().min(super::MAX_DATA)];
    let mut frame = FrameBytes::new();
    frame.extend((data.len() as u16 + 2).to_le_bytes());
    frame.extend(header.bytes());
    frame.extend(data.iter().copied());
    frame
}

/// Counters since the stream was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// CRTP packets handed out for writing.
    pub sent: u64,
    /// CRTP packets received.
    pub received: u64,
    /// Frames that should carry CRTP and have 0 or more than 31 bytes, or are of another CPX version.
    pub bad_frames: u64,
    /// SYSTEM messages received.
    pub system_received: u64,
    /// Good frames that carry neither CRTP nor a SYSTEM message.
    pub other_frames: u64,
    /// What was accepted and never left.
    pub drops: crate::outbox::Drops,
}

/// One end of a stream.
#[derive(Debug)]
pub struct Stream<R: Role> {
    frame: ArrayVec<u8, KEPT>,
    /// Bytes of the present frame that are still to come, once its length is known.
    missing: usize,
    outbox: Outbox<R::Outgoing>,
    system: ArrayVec<System, 4>,
    inbox: VecDeque<Packet>,
    /// SYSTEM messages that came in, oldest first; the newest are dropped when nobody takes them.
    messages: ArrayVec<System, 8>,
    broken: bool,
    stats: StreamStats,
    out: FrameBytes,
}

impl<R: Role> Default for Stream<R> {
    fn default() -> Self {
        Self {
            frame: ArrayVec::new(),
            missing: 0,
            outbox: Outbox::new(OUTBOX),
            system: ArrayVec::new(),
            inbox: VecDeque::with_capacity(INBOX),
            messages: ArrayVec::new(),
            broken: false,
            stats: StreamStats::default(),
            out: FrameBytes::new(),
        }
    }
}

impl<R: Role> Stream<R> {
    /// Begins again on a new connection. What waits to be sent is dropped and counted; what came in stays.
    pub fn restart(&mut self) {
        self.frame.clear();
        self.missing = 0;
        self.outbox.clear();
        self.system.clear();
        self.broken = false;
    }

    /// Queues a SYSTEM message before any packet; one too many is dropped, which four in a row never are.
    pub fn say(&mut self, message: System) {
        let _one_too_many = self.system.try_push(message);
    }

    /// Hands over a packet, see [`crate::Session::send`].
    ///
    /// # Errors
    /// [`SendError`]; the packet is dropped.
    pub fn send(
        &mut self,
        now: Instant,
        packet: R::Outgoing,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError> {
        if expires.is_some_and(|at| at <= now) {
            return Err(SendError::Expired);
        }
        self.outbox.push(now, packet, key, expires)
    }

    /// The next packet that came in.
    pub fn recv(&mut self) -> Option<Packet> {
        self.inbox.pop_front()
    }

    /// The next SYSTEM message that came in.
    pub fn poll_message(&mut self) -> Option<System> {
        self.messages.pop_at(0)
    }

    /// Whether the stream has made no sense: a frame without room for its route. Nothing after it can be read.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Drops what is no longer worth sending.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.expire(now);
    }

    /// When a packet that waits expires, and why that matters.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.outbox.expires_at().map(|at| (at, "packet expires"))
    }

    /// Packets that were accepted and not handed out for writing.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.outbox.len() + self.system.len()
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> StreamStats {
        StreamStats {
            drops: self.outbox.drops(),
            ..self.stats
        }
    }

    /// Takes bytes from the front of `input` towards the present frame; whether it is whole.
    fn fill(&mut self, input: &mut &[u8]) -> bool {
        if self.frame.len() < 2 {
            let count = (2 - self.frame.len()).min(input.len());
            self.frame.extend(input[..count].iter().copied());
            *input = &input[count..];
            let [low, high] = self.frame[..] else {
                return false;
            };
            self.missing = usize::from(u16::from_le_bytes([low, high]));
            self.broken = self.missing < 2;
        }
        let count = self.missing.min(input.len());
        let kept = count.min(self.frame.remaining_capacity());
        self.frame.extend(input[..kept].iter().copied());
        *input = &input[count..];
        self.missing -= count;
        self.missing == 0
    }

    fn take_frame(&mut self) {
        let [low, high, route, function, ref data @ ..] = self.frame[..] else {
            return;
        };
        let whole = usize::from(u16::from_le_bytes([low, high])) == data.len() + 2;
        match Header::parse([route, function]).map(|header| header.function) {
            Some(Function::CRTP) if whole => match Packet::from_bytes(data) {
                Ok(packet) => {
                    self.stats.received += 1;
                    self.inbox.push_back(packet);
                }
                Err(_) => self.stats.bad_frames += 1,
            },
            Some(Function::CRTP) | None => self.stats.bad_frames += 1,
            Some(Function::SYSTEM) => match System::parse(data) {
                Some(message) => {
                    self.stats.system_received += 1;
                    let _nobody_takes_them = self.messages.try_push(message);
                }
                None => self.stats.other_frames += 1,
            },
            Some(_) => self.stats.other_frames += 1,
        }
    }

    fn next_frame(&mut self, now: Instant) -> Option<FrameBytes> {
        if let Some(message) = self.system.pop_at(0) {
            return Some(system(message));
        }
        let (packet, _) = self.outbox.pop(now)?;
        self.stats.sent += 1;
        Some(R::encode_on_stream(&packet))
    }
}

impl<R: Role> Wire for Stream<R> {
    fn handle_bytes(&mut self, _now: Instant, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.broken {
            if self.fill(&mut bytes) {
                self.take_frame();
                self.frame.clear();
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        self.out = self.next_frame(now)?;
        Some(&self.out)
    }

    fn has_room(&self) -> bool {
        self.inbox.len() < INBOX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Device, Host};

    fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    fn admitted(text: &str) -> Admitted {
        let packet = Packet::from_bytes(&hex(text)).unwrap();
        crtp::Gate::new().admit(&packet).unwrap()
    }

    fn received(stream: &mut Stream<impl Role>) -> Vec<Vec<u8>> {
        let packets = std::iter::from_fn(|| stream.recv());
        packets.map(|packet| packet.as_bytes().to_vec()).collect()
    }

    /// Bytes that cflib 0.1.34 wrote to a socket, and what firmware answered.
    #[test]
    fn golden_frames_of_both_sides() {
        assert_eq!(system(System::UseThisLink(true))[..], hex("040019012101"));
        assert_eq!(to_drone(&admitted("fd00"))[..], hex("04001903fd00"));
        assert_eq!(to_drone(&admitted("dd00"))[..], hex("04001903dd00"));
        let version = Packet::from_bytes(&hex("dd0007000000")).unwrap();
        assert_eq!(to_host(&version)[..], hex("08000b03dd0007000000"));
        let now = Instant::now();
        let mut drone = Stream::<Device>::default();
        drone.handle_bytes(now, &hex("04001901210104001903fd00"));
        assert_eq!(drone.poll_message(), Some(System::UseThisLink(true)));
        assert_eq!(received(&mut drone), [hex("fd00")]);
        let mut host = Stream::<Host>::default();
        let source = format!(
            "21000b03fd4269746372617a65204372617a79666c6965{}",
            "00".repeat(12)
        );
        host.handle_bytes(now, &hex(&source));
        assert_eq!(received(&mut host), [hex(&source[8..])]);
    }

    #[test]
    fn what_is_not_crtp_is_passed_over_whatever_its_length() {
        let now = Instant::now();
        let mut host = Stream::<Host>::default();
        let mut image = vec![0xff, 0x03, 0x23, 0x05];
        image.extend([7; 0x3fd]);
        image.extend(hex("04000b43dd00020003030400"));
        image.extend(hex("0b03dd01"));
        host.handle_bytes(now, &image);
        assert_eq!(received(&mut host), [hex("dd01")]);
        let stats = host.stats();
        assert_eq!(
            (stats.other_frames, stats.bad_frames),
            (1, 2),
            "another version, and CRTP without a header"
        );
    }

    #[test]
    fn a_length_without_room_for_the_route_breaks_the_stream() {
        for length in ["0000", "0100"] {
            let mut host = Stream::<Host>::default();
            host.handle_bytes(Instant::now(), &hex(&format!("{length}04000b03dd00")));
            assert!(host.is_broken() && host.recv().is_none());
            host.restart();
            host.handle_bytes(Instant::now(), &hex("04000b03dd00"));
            assert_eq!(received(&mut host), [hex("dd00")]);
        }
    }

    #[test]
    fn the_newest_setpoint_leaves_and_expired_ones_do_not() {
        let now = Instant::now();
        let later = now + std::time::Duration::from_millis(10);
        let mut host = Stream::<Host>::default();
        let zero = admitted(&format!("3c{}", "00".repeat(14)));
        host.send(now, zero, Some(0), Some(later)).unwrap();
        host.send(now, admitted("7c00"), Some(1), Some(later))
            .unwrap();
        host.send(now, zero, Some(0), None).unwrap();
        assert_eq!(host.poll_timeout(), Some((later, "packet expires")));
        host.say(System::UseThisLink(true));
        assert_eq!(host.poll_transmit(later), Some(&hex("040019012101")[..]));
        assert_eq!(host.poll_transmit(later).map(<[u8]>::len), Some(19));
        assert_eq!(host.poll_transmit(later), None);
        let drops = host.stats().drops;
        assert_eq!((drops.superseded, drops.expired), (1, 1));
    }

    proptest! {
        #[test]
        fn packets_survive_any_cut(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=31), 1..9), cut in 1_usize..40) {
            let frames = packets.iter().map(|bytes| to_host(&Packet::from_bytes(bytes).unwrap()));
            let bytes: Vec<u8> = frames.flatten().collect();
            let mut host = Stream::<Host>::default();
            for piece in bytes.chunks(cut) {
                host.handle_bytes(Instant::now(), piece);
            }
            prop_assert_eq!(received(&mut host), packets);
        }

        #[test]
        fn noise_makes_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut host = Stream::<Host>::default();
            host.handle_bytes(Instant::now(), &bytes);
            _ = received(&mut host);
        }
    }
}
