//! Frames against those of the cflib of 2020, and both ends joined under a virtual clock.

use std::time::{Duration, Instant};

use crtp::Gate;
use proptest::prelude::*;

use super::*;
use crate::session::{Event, Phase};
use crate::wire::{HostSession as _, Wire as _};

const MS: Duration = Duration::from_millis(1);
const BAUD: u32 = 512_000;

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

fn packet(bytes: &[u8]) -> Packet {
    Packet::from_bytes(bytes).unwrap()
}

fn admitted(bytes: &[u8]) -> Admitted {
    Gate::new().admit(&packet(bytes)).unwrap()
}

fn decode(decoder: &mut Decoder, mut bytes: &[u8]) -> Vec<Packet> {
    std::iter::from_fn(|| decoder.next(&mut bytes)).collect()
}

#[test]
fn golden_frames() {
    assert_eq!(to_drone(&Admitted::NULL)[..], hex("bccf0001ff0001"));
    let rpyt = hex("3c000020410000a0400000a04130750000");
    let frame = hex("bccf000f3c000020410000a0400000a04130751297");
    assert_eq!(to_drone(&admitted(&rpyt[..15]))[..], frame);
    assert_eq!(
        decode(&mut Decoder::default(), &frame),
        [packet(&rpyt[..15])]
    );
}

#[test]
fn every_flipped_bit_is_noticed_and_the_next_frame_is_found() {
    let frame = to_host(&packet(&[0x52, 1, 0xbc, 0xcf, 0, 1, 2]));
    let next = to_host(&packet(&[0x50, 2]));
    for bit in 0..frame.len() * 8 {
        let mut bytes = frame.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes.extend(&next);
        // What a damaged length has swallowed comes out again once enough bytes are there.
        bytes.extend([0; MAX_LEN + OVERHEAD]);
        let found = decode(&mut Decoder::default(), &bytes);
        assert_eq!(found, [packet(&[0x50, 2])], "bit {bit}");
    }
}

#[test]
fn other_types_and_lengths_without_a_packet_are_no_packets() {
    let mut bytes = Vec::new();
    for body in [&[1, 1, 0xff][..], &[0, 0], &[0, 32], &[0, 65]] {
        let mut body = body.to_vec();
        body.resize(2 + usize::from(body[1]), 7);
        bytes.extend(START);
        bytes.extend(&body);
        bytes.extend(checksum(&body));
    }
    let mut decoder = Decoder::default();
    assert!(decode(&mut decoder, &bytes).is_empty());
    let stats = decoder.stats();
    assert_eq!((stats.other, stats.oversize, stats.bad_checksum), (3, 1, 0));
}

/// A host and a drone on a line that takes its time, with a queue of packets on board.
struct Pair {
    host: Host,
    drone: Device,
    queue: Vec<Packet>,
    received: Vec<Packet>,
    now: Instant,
    wired: bool,
    bytes: usize,
    nulls: usize,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            host: Host::new(BAUD, 3000 * MS, now),
            drone: Device::new(),
            queue: Vec::new(),
            received: Vec::new(),
            now,
            wired: true,
            bytes: 0,
            nulls: 0,
        }
    }

    fn up() -> Self {
        let mut pair = Self::new();
        pair.advance(10 * MS);
        assert_eq!(pair.events(), [Event::Up]);
        pair
    }

    fn settle(&mut self) {
        while let Some(bytes) = self.host.poll_transmit(self.now) {
            self.bytes += bytes.len();
            if self.wired {
                self.drone.handle_bytes(self.now, bytes);
            }
            while let Some(packet) = self.drone.recv() {
                // Whatever waits leaves; the answer to this packet waits for the next.
                if !self.queue.is_empty() {
                    self.drone.answer(&self.queue.remove(0));
                }
                self.nulls += usize::from(packet.is_null());
                if packet.port() == crtp::Port::LINK && !packet.is_null() {
                    self.queue.push(packet);
                } else if !packet.is_null() {
                    self.received.push(packet);
                }
                while let Some(bytes) = self.drone.poll_transmit(self.now) {
                    self.host.handle_bytes(self.now, bytes);
                }
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some((at, _)) = self.host.poll_timeout().filter(|&(at, _)| at <= end) {
            let before = (self.now, self.host.poll_timeout());
            self.now = at.max(self.now);
            self.host.handle_timeout(self.now);
            self.settle();
            assert_ne!(
                before,
                (self.now, self.host.poll_timeout()),
                "a timer that changes nothing would spin"
            );
        }
        self.now = end;
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.host.poll_event()).collect()
    }

    fn heard(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.host.recv()).collect()
    }
}

#[test]
fn a_silent_drone_is_found_by_its_echo_which_nobody_else_sees() {
    let mut pair = Pair::new();
    assert!(
        pair.host
            .send(pair.now, admitted(&[0xfd, 0]), None, None)
            .is_err()
    );
    pair.advance(250 * MS);
    assert_eq!(pair.host.phase(), Phase::Up);
    assert_eq!(pair.events(), [Event::Up]);
    assert!(pair.heard().is_empty());
    assert_eq!(pair.host.stats().received, 0);
}

#[test]
fn the_downlink_is_asked_for_a_thousand_times_a_second_and_drained_at_line_rate() {
    let mut pair = Pair::up();
    pair.nulls = 0;
    pair.advance(1000 * MS);
    assert!((900..=1100).contains(&pair.nulls), "{}", pair.nulls);
    pair.queue = (0..100).map(|number| packet(&[0x52, 1, number])).collect();
    pair.advance(30 * MS);
    let numbers: Vec<_> = pair.heard().iter().map(|packet| packet.data()[1]).collect();
    assert_eq!(
        numbers,
        (0..100).collect::<Vec<u8>>(),
        "well above one a millisecond"
    );
}

#[test]
fn no_more_is_written_than_the_line_carries_and_the_newest_setpoint_leaves() {
    let mut pair = Pair::up();
    let zero = |number| {
        let mut bytes = [0; 15];
        (bytes[0], bytes[13]) = (0x3c, number);
        admitted(&bytes)
    };
    pair.bytes = 0;
    let start = pair.now;
    for number in 0..250 {
        // Faster than the line: a frame of 21 bytes takes 0.41 ms.
        pair.host
            .send(pair.now, zero(number), Some(0), Some(pair.now + 100 * MS))
            .unwrap();
        pair.settle();
        pair.advance(MS / 10);
    }
    let carried = (pair.now - start + 2 * MS).as_secs_f64() * f64::from(BAUD) / 10.0;
    assert!(pair.bytes as f64 <= carried, "{} of {carried}", pair.bytes);
    pair.advance(10 * MS);
    assert_eq!(pair.received.last(), Some(&*zero(249)));
    let stats = pair.host.stats();
    assert!(
        stats.superseded > 150 && stats.sent + stats.superseded == 250,
        "{stats:?}"
    );
}

#[test]
fn a_drone_that_falls_silent_is_probed_told_once_and_taken_for_restarted_when_it_is_back() {
    let mut pair = Pair::up();
    pair.wired = false;
    pair.advance(5000 * MS);
    assert_eq!(pair.events(), [Event::Stalled]);
    assert_eq!(pair.host.stats().stalls, 1);
    pair.wired = true;
    pair.advance(500 * MS);
    assert_eq!(pair.events(), [Event::Resumed, Event::PeerRestarted]);
    assert!(pair.heard().is_empty());
}

#[test]
fn a_drone_that_never_answers_is_told_ever_more_rarely() {
    let mut pair = Pair::new();
    pair.wired = false;
    pair.advance(20_000 * MS);
    let waits: Vec<_> = [3, 6, 12]
        .map(|s| Event::SyncTimeout(Duration::from_secs(s)))
        .into();
    assert_eq!(pair.events(), waits);
}

#[test]
fn the_drone_takes_a_link_for_lost_after_a_second() {
    let mut pair = Pair::up();
    pair.advance(100 * MS);
    assert!(pair.drone.is_connected(pair.now));
    pair.host.close(pair.now);
    assert_eq!(
        (pair.host.phase(), pair.host.poll_timeout()),
        (Phase::Closed, None)
    );
    assert!(
        pair.drone.is_connected(pair.now + 998 * MS)
            && !pair.drone.is_connected(pair.now + 1001 * MS)
    );
}

proptest! {
    #[test]
    fn packets_survive_any_cut(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=31), 1..9), cut in 1_usize..40) {
        let bytes: Vec<u8> = packets.iter().flat_map(|bytes| to_host(&packet(bytes))).collect();
        let mut decoder = Decoder::default();
        let found: Vec<_> = bytes.chunks(cut).flat_map(|piece| decode(&mut decoder, piece)).collect();
        prop_assert_eq!(found, packets.iter().map(|bytes| packet(bytes)).collect::<Vec<_>>());
        prop_assert_eq!(decoder.stats().resync_bytes, 0);
    }

    #[test]
    fn noise_makes_no_panic_and_frames_behind_it_are_found(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut bytes = noise;
        bytes.extend([0; MAX_LEN + OVERHEAD]);
        bytes.extend(to_host(&packet(&[0x52, 9])));
        let found = decode(&mut Decoder::default(), &bytes);
        prop_assert_eq!(found.last(), Some(&packet(&[0x52, 9])));
    }
}
