//! Records of what happens to the packets of one link.
//!
//! A link says what it does with a packet ([`Moment`]); where it stands on the way to the drone ([`Place`]) makes a
//! stage of that. Owns the reason of a packet, which follows from its bytes and from what went before. Off unless
//! asked for, and then one branch.

use std::time::Instant;

use crtp::{Packet, mailbox_key};
use tap::{Anchor, Direction, Hop, Reason, Stage, Tap, Verdict};

use crate::interface::Refusal;

/// Where on the way from the application to the drone a link, or a bridge behind it, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the ground: a client of the application calls here.
    Client,
    /// On the ground: leads towards the bridge at the drone.
    Network,
    /// At the drone: the ground calls here.
    Ground,
    /// Leads to the drone itself.
    Drone,
}

impl Place {
    /// The direction of what the link sends.
    const fn outward(self) -> Direction {
        match self {
            Self::Network | Self::Drone => Direction::Up,
            Self::Client | Self::Ground => Direction::Down,
        }
    }

    const fn inward(self) -> Direction {
        match self.outward() {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

/// What a link does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It knows where the packet goes and takes it over.
    Routed,
    /// The packet waits to be sent.
    Queued,
    /// No other packet is before it.
    Head,
    /// The peer is ready for it.
    Clear,
    /// The write call begins.
    Sending,
    /// The write call returned.
    Written,
    /// The last bit is out, as computed.
    LastBit,
    /// The kernel had received it.
    Arrived,
    /// Its first byte was read.
    FirstByte,
    /// It is here whole.
    Received,
    /// It is parsed.
    Parsed,
}

impl Moment {
    const fn is_inward(self) -> bool {
        matches!(
            self,
            Self::Arrived | Self::FirstByte | Self::Received | Self::Parsed
        )
    }
}

/// The stage that a moment is at a place, if it is one.
const fn stage(place: Place, moment: Moment) -> Option<Stage> {
    Some(match (place, moment) {
        (Place::Client, Moment::Received) => Stage::G0,
        (Place::Client, Moment::Routed) => Stage::G1,
        (Place::Client, Moment::Sending) => Stage::G7,
        (Place::Network, Moment::Sending) => Stage::G2,
        (Place::Network, Moment::Arrived) => Stage::G5,
        (Place::Network, Moment::Received) => Stage::G6,
        (Place::Ground, Moment::Arrived) => Stage::B0,
        (Place::Ground, Moment::Received) => Stage::B1,
        (Place::Ground, Moment::Routed) => Stage::B2,
        (Place::Ground, Moment::Sending) => Stage::B3,
        (Place::Drone, Moment::Queued) => Stage::UQ,
        (Place::Drone, Moment::Head | Moment::Sending) => Stage::U0,
        (Place::Drone, Moment::Clear) => Stage::UC,
        (Place::Drone, Moment::Written) => Stage::U1,
        (Place::Drone, Moment::LastBit) => Stage::U2,
        (Place::Drone, Moment::Arrived | Moment::FirstByte) => Stage::U3,
        (Place::Drone, Moment::Received) => Stage::U4,
        (Place::Drone, Moment::Parsed) => Stage::U5,
        _ => return None,
    })
}

/// What the verdict on a refused packet is.
#[must_use]
pub const fn verdict(refusal: Refusal) -> Verdict {
    match refusal {
        Refusal::Unsafe(_) => Verdict::Unsafe,
        Refusal::QueueFull => Verdict::QueueFull,
        Refusal::NotConnected => Verdict::LinkDown,
        Refusal::Expired => Verdict::Expired,
    }
}

/// One link's way into a log.
#[derive(Debug, Default)]
pub struct LinkTap(Option<Box<On>>);

#[derive(Debug)]
struct On {
    tap: Tap,
    anchor: Anchor,
    link: u8,
    place: Place,
    repeats: Repeats,
}

impl LinkTap {
    /// A tap that leads nowhere.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// A tap for link `link` of the log, at `place`. Off if `tap` is.
    #[must_use]
    pub fn new(tap: Tap, link: u8, place: Place) -> Self {
        let on = |tap| On {
            tap,
            anchor: Anchor::now(),
            link,
            place,
            repeats: Repeats::default(),
        };
        Self(tap.is_on().then(|| Box::new(on(tap))))
    }

    /// Whether records go anywhere: ask before reading a clock for one.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The time, if it is worth reading.
    #[must_use]
    pub fn now(&self) -> Option<Instant> {
        self.is_on().then(Instant::now)
    }

    /// A packet passed.
    pub fn pass(&mut self, moment: Moment, at: Instant, packet: &Packet) {
        self.note(moment, at, packet, Verdict::Passed);
    }

    /// Something became of a packet.
    pub fn note(&mut self, moment: Moment, at: Instant, packet: &Packet, verdict: Verdict) {
        let Some(on) = &mut self.0 else { return };
        let Some(mut hop) = on.hop(moment, at, packet.as_bytes()) else {
            return;
        };
        hop.verdict = verdict;
        (hop.reason, hop.attempt) = on.repeats.judge(packet, &hop);
        on.tap.record(&hop);
    }

    /// A transport sent the bytes of a packet once more, or gave them up.
    pub fn note_attempt(
        &mut self,
        moment: Moment,
        at: Instant,
        bytes: &[u8],
        attempt: u8,
        verdict: Verdict,
    ) {
        let Ok(packet) = Packet::from_bytes(bytes) else {
            return;
        };
        if attempt == 0 {
            return self.note(moment, at, &packet, verdict);
        }
        let Some(on) = &mut self.0 else { return };
        let Some(hop) = on.hop(moment, at, bytes) else {
            return;
        };
        on.tap.record(&Hop {
            reason: Reason::Repair,
            attempt,
            verdict,
            ..hop
        });
    }
}

impl On {
    fn hop(&self, moment: Moment, at: Instant, bytes: &[u8]) -> Option<Hop> {
        let direction = if moment.is_inward() || moment == Moment::Routed {
            self.place.inward()
        } else {
            self.place.outward()
        };
        let stage = stage(self.place, moment)?;
        let hop = Hop::new(self.anchor.mono(at), 0, stage, direction, bytes);
        Some(Hop {
            link: self.link,
            ..hop
        })
    }
}

/// The last unanswered request of each port and channel, so that the same bytes again are known for a repetition.
#[derive(Debug)]
struct Repeats {
    waiting: [Option<(Hop, u8)>; 64],
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            waiting: [None; 64],
        }
    }
}

impl Repeats {
    /// Why a packet is sent, and how often it was before.
    fn judge(&mut self, packet: &Packet, hop: &Hop) -> (Reason, u8) {
        let slot = usize::from(packet.port().number() << 2 | packet.channel().number());
        let Some(waiting) = self.waiting.get_mut(slot) else {
            return (Reason::New, 0);
        };
        match hop.direction {
            Direction::Down => {
                *waiting = None;
                (Reason::New, 0)
            }
            Direction::Up if packet.is_null() => (Reason::Null, 0),
            Direction::Up if mailbox_key(packet).is_some() => (Reason::Setpoint, 0),
            Direction::Up => repeat(waiting, hop),
        }
    }
}

/// The same packet at the stage where it was seen first begins another attempt; at later stages it is still that.
fn repeat(waiting: &mut Option<(Hop, u8)>, hop: &Hop) -> (Reason, u8) {
    let attempt = match waiting {
        Some((known, attempt)) if known.bytes() == hop.bytes() => {
            *attempt = attempt.saturating_add(u8::from(known.stage == hop.stage));
            *attempt
        }
        _ => {
            *waiting = Some((*hop, 0));
            0
        }
    };
    let reason = if attempt == 0 {
        Reason::New
    } else {
        Reason::Resend
    };
    (reason, attempt)
}

#[cfg(test)]
mod tests {
    use tap::Rings;

    use super::*;

    fn packet(bytes: &[u8]) -> Packet {
        Packet::from_bytes(bytes).unwrap()
    }

    fn taken(rings: &Rings) -> Vec<Hop> {
        let mut hops = Vec::new();
        let drained: Result<(), ()> = rings.drain(|hop| {
            hops.push(*hop);
            Ok(())
        });
        drained.unwrap();
        hops
    }

    #[test]
    fn stage_and_direction_follow_from_the_place() {
        let (rings, now) = (Rings::new(), Instant::now());
        let mut drone = LinkTap::new(rings.tap(), 1, Place::Drone);
        drone.pass(Moment::Queued, now, &packet(&[0x5d, 1]));
        drone.pass(Moment::Received, now, &packet(&[0x5d, 1]));
        let mut ground = LinkTap::new(rings.tap(), 0, Place::Ground);
        ground.pass(Moment::Received, now, &packet(&[0x5d, 1]));
        ground.pass(Moment::Routed, now, &packet(&[0x5d, 1]));
        ground.pass(Moment::Sending, now, &packet(&[0x5d, 1]));
        ground.pass(Moment::LastBit, now, &packet(&[0x5d, 1]));
        let seen: Vec<_> = taken(&rings)
            .iter()
            .map(|hop| (hop.stage, hop.direction, hop.link))
            .collect();
        assert_eq!(
            seen,
            [
                (Stage::UQ, Direction::Up, 1),
                (Stage::U4, Direction::Down, 1),
                (Stage::B1, Direction::Up, 0),
                (Stage::B2, Direction::Up, 0),
                (Stage::B3, Direction::Down, 0),
            ]
        );
    }

    #[test]
    fn reasons_tell_new_resend_setpoint_and_null_apart() {
        let (rings, now) = (Rings::new(), Instant::now());
        let mut tap = LinkTap::new(rings.tap(), 0, Place::Network);
        for bytes in [
            &[0x5d, 1, 2][..],
            &[0x3c; 15],
            &[0x5d, 1, 2],
            &[0x5d, 1, 2],
            &[0xff],
        ] {
            tap.pass(Moment::Sending, now, &packet(bytes));
        }
        tap.pass(Moment::Received, now, &packet(&[0x5d, 1, 2, 0]));
        tap.pass(Moment::Sending, now, &packet(&[0x5d, 1, 2]));
        tap.note_attempt(Moment::Sending, now, &[0x5d, 1, 2], 3, Verdict::Passed);
        let seen: Vec<_> = taken(&rings)
            .iter()
            .map(|hop| (hop.reason, hop.attempt))
            .collect();
        assert_eq!(
            seen,
            [
                (Reason::New, 0),
                (Reason::Setpoint, 0),
                (Reason::Resend, 1),
                (Reason::Resend, 2),
                (Reason::Null, 0),
                (Reason::New, 0),
                (Reason::New, 0),
                (Reason::Repair, 3),
            ]
        );
    }

    #[test]
    fn off_is_off() {
        let mut off = LinkTap::new(Tap::off(), 0, Place::Drone);
        off.pass(Moment::Queued, Instant::now(), &packet(&[0x5d, 1]));
        assert!(!off.is_on() && off.now().is_none());
    }
}
