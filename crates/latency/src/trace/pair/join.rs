//! The same packet on several hosts: same bytes, and where those were sent more than once, the times decide.

use std::collections::BTreeMap;

use super::{Bytes, FIRST, bytes, order};
use crate::record::{Direction, Hop, HostInfo};

/// A packet takes no longer from host to host, ns.
const LONGEST: i64 = 5_000_000_000;

/// One packet on one host: its identity there, and when it was seen first, ns.
#[derive(Clone, Copy, Debug)]
struct Passage {
    id: u64,
    first: i64,
}

type Passages = BTreeMap<Bytes, Vec<Passage>>;

/// Gives packets that several hosts saw the identity they have on the host nearest the application.
pub(super) fn join(hosts: &[HostInfo], clocks: &[usize], hops: &mut [(usize, Hop)]) {
    if hosts.len() < 2 {
        return;
    }
    let passages: Vec<Passages> = (0..hosts.len()).map(|host| passages(hops, host)).collect();
    let mut nearest: Vec<usize> = (0..hosts.len()).collect();
    nearest.sort_by_key(|&host| (nearness(hops, host), host));
    let mut names: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    for (position, &host) in nearest.iter().enumerate() {
        for &before in &nearest[..position] {
            let offset = if clocks[before] == clocks[host] {
                0
            } else {
                offset(
                    &hosts[before],
                    &hosts[host],
                    &passages[before],
                    &passages[host],
                )
            };
            for (own, theirs) in pairs(&passages[before], &passages[host], offset) {
                let theirs = names.get(&(before, theirs)).copied().unwrap_or(theirs);
                names.entry((host, own)).or_insert(theirs);
            }
        }
    }
    for (host, hop) in hops.iter_mut() {
        if let Some(name) = names.get(&(*host, hop.packet)) {
            hop.packet = *name;
        }
    }
}

/// How early on the way a host sees packets to the drone.
fn nearness(hops: &[(usize, Hop)], host: usize) -> usize {
    let own = hops
        .iter()
        .filter(|(of, hop)| *of == host && hop.direction == Direction::Up);
    own.map(|(_, hop)| order(hop)).min().unwrap_or(usize::MAX)
}

fn passages(hops: &[(usize, Hop)], host: usize) -> Passages {
    let mut found = Passages::new();
    let own = hops
        .iter()
        .filter(|(of, hop)| *of == host && hop.packet >= FIRST && hop.verdict.goes_on());
    for (_, hop) in own {
        let at = hop.at.0.cast_signed();
        let list = found.entry(bytes(hop)).or_default();
        let known = list.iter().rev().any(|one| one.id == hop.packet);
        if !known {
            list.push(Passage {
                id: hop.packet,
                first: at,
            });
        }
    }
    found
}

/// How far the later host's clock is ahead, ns: from packets whose bytes both saw exactly once, else from the wall
/// clocks.
fn offset(near: &HostInfo, far: &HostInfo, a: &Passages, b: &Passages) -> i64 {
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    for (bytes, own) in a {
        let (Some([theirs]), [own]) = (b.get(bytes).map(Vec::as_slice), own.as_slice()) else {
            continue;
        };
        match bytes.0 {
            Direction::Up => high = high.min(theirs.first - own.first),
            Direction::Down => low = low.max(theirs.first - own.first),
        }
    }
    match (low > i64::MIN, high < i64::MAX) {
        (true, true) => low.midpoint(high),
        (true, false) => low,
        (false, true) => high,
        (false, false) => wall_offset(near, far),
    }
}

fn wall_offset(near: &HostInfo, far: &HostInfo) -> i64 {
    let began = |host: &HostInfo| host.unix_ns.cast_signed() - host.mono.0.cast_signed();
    began(near) - began(far)
}

/// Identities on the far host, with those on the near one.
fn pairs(near: &Passages, far: &Passages, offset: i64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for (bytes, far) in far {
        let Some(near) = near.get(bytes) else {
            continue;
        };
        if let ([far], [near]) = (far.as_slice(), near.as_slice()) {
            found.push((far.id, near.id));
        } else {
            pair_in_time(bytes.0, near, far, offset, &mut found);
        }
    }
    found
}

/// Packets with the same bytes, in order: each belongs to the last one that had left by then.
fn pair_in_time(
    direction: Direction,
    near: &[Passage],
    far: &[Passage],
    offset: i64,
    found: &mut Vec<(u64, u64)>,
) {
    let (earlier, later, earlier_is_near) = match direction {
        Direction::Up => (near, far, true),
        Direction::Down => (far, near, false),
    };
    let shift = |time: i64, is_near: bool| if is_near { time } else { time - offset };
    let mut open = earlier.iter().peekable();
    let mut candidates: Vec<&Passage> = Vec::new();
    for one in later {
        let arrived = shift(one.first, !earlier_is_near);
        while let Some(left) = open.next_if(|left| shift(left.first, earlier_is_near) <= arrived) {
            candidates.push(left);
        }
        let left = candidates.pop();
        candidates.clear();
        if let Some(left) =
            left.filter(|left| arrived - shift(left.first, earlier_is_near) < LONGEST)
        {
            let (own, theirs) = if earlier_is_near {
                (one.id, left.id)
            } else {
                (left.id, one.id)
            };
            found.push((own, theirs));
        }
    }
}
