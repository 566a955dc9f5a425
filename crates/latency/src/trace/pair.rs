//! Which records belong to one packet, and which answer to which request.
//!
//! Taps know bytes and places, not identities: CRTP numbers nothing. On each host records of the same bytes are strung
//! together in the order of the way; an answer belongs to the oldest open request that it repeats the beginning of;
//! packets are joined across hosts by bytes and time. Records that carry an identity of their own keep it.

mod join;
mod rules;

use std::collections::{BTreeMap, VecDeque};

use crate::record::{DATA_LEN, Direction, Hop, HostInfo, Reason, Stage};
use crate::time::MonoNs;

pub(super) use rules::wants_answer;

/// Identities made here begin above those that programs give.
const FIRST: u64 = 1 << 48;
/// A packet that was not seen for so long is over, ns.
const OVER: u64 = 10_000_000_000;
/// A request is answered within this time or not at all, ns.
const PATIENCE: u64 = 2_000_000_000;
/// Packets with the same bytes that may be under way.
const ABREAST: usize = 64;

/// Stages in the order in which a packet passes them, up and down.
const UP: [Stage; 14] = [
    Stage::G0,
    Stage::G1,
    Stage::G2,
    Stage::G3,
    Stage::G4,
    Stage::B0,
    Stage::B1,
    Stage::B2,
    Stage::UQ,
    Stage::U0,
    Stage::UC,
    Stage::U1,
    Stage::U2,
    Stage::D0,
];
const DOWN: [Stage; 9] = [
    Stage::D1,
    Stage::U3,
    Stage::U4,
    Stage::U5,
    Stage::B3,
    Stage::B4,
    Stage::G5,
    Stage::G6,
    Stage::G7,
];

/// Place of a stage on the way.
fn order(hop: &Hop) -> usize {
    let way: &[Stage] = match hop.direction {
        Direction::Up => &UP,
        Direction::Down => &DOWN,
    };
    way.iter()
        .position(|stage| *stage == hop.stage)
        .unwrap_or(0)
}

type Bytes = (Direction, u16, [u8; DATA_LEN]);

fn bytes(hop: &Hop) -> Bytes {
    (hop.direction, hop.size, hop.data)
}

/// A packet on its way along one host.
#[derive(Clone, Copy, Debug)]
struct Journey {
    id: u64,
    reached: usize,
    seen: MonoNs,
}

/// A request that was seen on one host.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u64,
    hop: Hop,
    answered: bool,
}

/// One host's packets.
#[derive(Debug, Default)]
struct HostPackets {
    journeys: BTreeMap<Bytes, VecDeque<Journey>>,
    /// By port and channel, oldest first.
    asked: BTreeMap<u8, VecDeque<Asked>>,
}

/// Gives every record without an identity one. `hops` are in time order within each host.
pub(super) fn identify(hosts: &[HostInfo], clocks: &[usize], hops: &mut [(usize, Hop)]) {
    let mut next = FIRST;
    let mut packets: Vec<HostPackets> = hosts.iter().map(|_| HostPackets::default()).collect();
    for (host, hop) in hops.iter_mut().filter(|(_, hop)| hop.packet == 0) {
        if hop.reason == Reason::New && !wants_answer(hop) && hop.direction == Direction::Up {
            hop.reason = rules::reason(hop);
        }
        hop.packet = packets[*host].take(hop, &mut next);
    }
    join::join(hosts, clocks, hops);
}

impl HostPackets {
    fn take(&mut self, hop: &Hop, next: &mut u64) -> u64 {
        let place = order(hop);
        let journeys = self.journeys.entry(bytes(hop)).or_default();
        while journeys
            .front()
            .is_some_and(|one| hop.at.since(one.seen) > OVER || journeys.len() >= ABREAST)
        {
            journeys.pop_front();
        }
        if hop.reason == Reason::Repair
            && let Some(journey) = journeys.back()
        {
            return journey.id;
        }
        let over = !hop.verdict.goes_on();
        let open = |one: &&mut Journey| one.reached < place || (over && one.reached == place);
        if let Some(journey) = journeys.iter_mut().find(open) {
            journey.reached = if over { usize::MAX } else { place };
            journey.seen = hop.at;
            return journey.id;
        }
        let id = self.begin(hop, next);
        let journey = Journey {
            id,
            reached: place,
            seen: hop.at,
        };
        self.journeys
            .entry(bytes(hop))
            .or_default()
            .push_back(journey);
        id
    }

    /// The identity of a packet that is seen for the first time on this host.
    fn begin(&mut self, hop: &Hop, next: &mut u64) -> u64 {
        match hop.direction {
            Direction::Up => self.ask(hop, next),
            Direction::Down => self.answer(hop).unwrap_or_else(|| fresh(next)),
        }
    }

    /// A request; the same bytes again while it is unanswered are the same request.
    fn ask(&mut self, hop: &Hop, next: &mut u64) -> u64 {
        if !wants_answer(hop) {
            return fresh(next);
        }
        let asked = self.asked.entry(rules::kind(hop)).or_default();
        while asked
            .front()
            .is_some_and(|one| hop.at.since(one.hop.at) > OVER || asked.len() >= ABREAST)
        {
            asked.pop_front();
        }
        let open = asked
            .iter()
            .rev()
            .find(|one| !one.answered && one.hop.bytes() == hop.bytes());
        if let Some(one) = open.filter(|_| hop.reason == Reason::Resend) {
            return one.id;
        }
        let id = fresh(next);
        asked.push_back(Asked {
            id,
            hop: *hop,
            answered: false,
        });
        id
    }

    /// The request that a packet from the drone answers: the oldest that is open (of several with the same bytes the
    /// last, as the others were lost), or one that was answered already.
    fn answer(&mut self, hop: &Hop) -> Option<u64> {
        let asked = self.asked.get_mut(&rules::kind(hop))?;
        let fits =
            |one: &Asked| hop.at.since(one.hop.at) < PATIENCE && rules::answers(&one.hop, hop);
        let Some(oldest) = asked.iter().find(|one| !one.answered && fits(one)) else {
            return asked.iter().rev().find(|one| fits(one)).map(|one| one.id);
        };
        let request = oldest.hop;
        let same = asked
            .iter_mut()
            .filter(|one| !one.answered && one.hop.bytes() == request.bytes());
        let mut id = None;
        for one in same {
            one.answered = true;
            id = Some(one.id);
        }
        id
    }
}

fn fresh(next: &mut u64) -> u64 {
    *next += 1;
    *next
}

#[cfg(test)]
mod tests;
