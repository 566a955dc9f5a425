//! Age of information: how old the newest thing is that a receiver knows, averaged over time, and how old it has become
//! when something newer comes (the peaks). Definition after Kaul, Yates and Gruteser (INFOCOM 2012).

use std::collections::BTreeMap;

use super::clocks::Offset;
use super::{Packet, Trace};
use crate::histogram::Histogram;
use crate::record::{Direction, Hop, Stage};

/// Where information begins and where it is known, the outermost places first.
const UP: ([Stage; 5], [Stage; 4]) = (
    [Stage::G0, Stage::G1, Stage::G2, Stage::B0, Stage::B1],
    [Stage::D0, Stage::U2, Stage::U1, Stage::U0],
);
const DOWN: ([Stage; 4], [Stage; 4]) = (
    [Stage::D1, Stage::U3, Stage::U4, Stage::B3],
    [Stage::G7, Stage::G6, Stage::G5, Stage::B3],
);

/// The age of one stream: packets of one port and channel in one direction.
#[derive(Clone, Debug)]
pub struct Age {
    /// Which way.
    pub direction: Direction,
    /// CRTP port and channel.
    pub port: (u8, u8),
    /// Where the information begins and where its age is taken.
    pub stages: (Stage, Stage),
    /// Packets that made the receiver's knowledge newer.
    pub updates: u64,
    /// Packets that came after a newer one.
    pub stale: u64,
    /// Average over the time from the first update to the last, ns.
    pub average: f64,
    /// Age just before each update but the first, ns.
    pub peaks: Histogram,
    /// How far every age may be off, because it compares two clocks, ns; 0 on one clock.
    pub uncertainty: i64,
}

/// An update: when it was made and when it came, ns on the receiver's clock.
type Update = (i64, i64);

impl Age {
    /// Every stream with two updates or more whose beginning and end were recorded on one clock, or on two whose offset
    /// is known.
    #[must_use]
    pub fn of(trace: &Trace) -> Vec<Self> {
        let (packets, offset) = (trace.packets(), Offset::of(trace));
        let mut ages = Vec::new();
        for (direction, (from, to)) in [
            (Direction::Up, (&UP.0[..], &UP.1[..])),
            (Direction::Down, (&DOWN.0[..], &DOWN.1[..])),
        ] {
            let recorded = |list: &[Stage]| list.iter().copied().find(|stage| trace.has(*stage));
            let (Some(from), Some(to)) = (recorded(from), recorded(to)) else {
                continue;
            };
            let mut streams: BTreeMap<(u8, u8), (Vec<Update>, i64)> = BTreeMap::new();
            for packet in &packets {
                if let Some((port, update, doubt)) = update(packet, direction, (from, to), offset) {
                    let stream = streams.entry(port).or_default();
                    stream.0.push(update);
                    stream.1 = stream.1.max(doubt);
                }
            }
            let stages = (from, to);
            let found = streams
                .into_iter()
                .filter_map(|(port, stream)| Self::of_stream(direction, port, stages, stream));
            ages.extend(found);
        }
        ages
    }

    fn of_stream(
        direction: Direction,
        port: (u8, u8),
        stages: (Stage, Stage),
        (mut updates, uncertainty): (Vec<Update>, i64),
    ) -> Option<Self> {
        updates.sort_unstable_by_key(|&(_, came)| came);
        let (first, rest) = updates.split_first()?;
        let (mut newest, mut at) = *first;
        let (mut area, mut peaks, mut stale) = (0.0, Histogram::new(), 0);
        for &(made, came) in rest {
            if made <= newest {
                stale += 1;
                continue;
            }
            let (before, after) = ((at - newest) as f64, (came - newest) as f64);
            area += (after * after - before * before) / 2.0;
            peaks.record(u64::try_from(came - newest).unwrap_or(0));
            (newest, at) = (made, came);
        }
        let span = (at - first.1) as f64;
        (span > 0.0).then(|| Self {
            direction,
            port,
            stages,
            updates: peaks.len() + 1,
            stale,
            average: area / span,
            peaks,
            uncertainty,
        })
    }
}

fn update(
    packet: &Packet,
    direction: Direction,
    (from, to): (Stage, Stage),
    offset: Option<Offset>,
) -> Option<((u8, u8), Update, i64)> {
    let going = |(host, hop): (usize, Hop)| (hop.direction == direction).then_some((host, hop));
    let (start_host, start) = packet.at(from).and_then(going)?;
    let (end_host, end) = packet.at(to).and_then(going)?;
    let (made, came) = (start.at.0.cast_signed(), end.at.0.cast_signed());
    let port = (start.port(), start.channel());
    if packet.clock(start_host) == packet.clock(end_host) {
        return Some((port, (made, came), 0));
    }
    let offset = offset?;
    let ahead = match direction {
        Direction::Up => offset.middle(),
        Direction::Down => -offset.middle(),
    };
    Some((port, (made + ahead, came), offset.uncertainty()))
}
