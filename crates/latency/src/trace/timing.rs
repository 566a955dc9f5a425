//! Inter-packet times and round trips, defined as in the crazybridge paper.

use std::collections::BTreeMap;

use super::Trace;
use crate::histogram::Histogram;
use crate::record::{Direction, Hop, Stage, Verdict};
use crate::time::MonoNs;

/// Where packets leave, the best place first.
const SEND: [Stage; 7] = [
    Stage::G2,
    Stage::G1,
    Stage::G0,
    Stage::B2,
    Stage::U0,
    Stage::U1,
    Stage::D0,
];
/// Where requests leave and answers come back, the best pair first.
const ROUND: [(Stage, Stage); 5] = [
    (Stage::G2, Stage::G6),
    (Stage::G0, Stage::G7),
    (Stage::B1, Stage::B3),
    (Stage::U0, Stage::U4),
    (Stage::U1, Stage::U4),
];

/// Why there is no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// No record at all.
    #[error("the logs hold no record")]
    Empty,
    /// Nothing of the wanted kind.
    #[error("no packet to the drone was recorded at a place where packets leave")]
    NothingSent,
    /// No place where both requests and answers were recorded.
    #[error("the logs hold no pair of stages where a request leaves and its answer comes back")]
    NoPair,
}

/// Times between packets to the drone that leave one after the other on the same link: all of them, whatever they
/// carry, resends included.
#[derive(Clone, Debug)]
pub struct Ipt {
    /// Where they were stamped.
    pub stage: Stage,
    /// Packets.
    pub packets: u64,
    /// Gaps, ns.
    pub gaps: Histogram,
    /// The same gaps in order of time.
    pub samples: Vec<u64>,
    /// Gaps by the reason of the packet that ends them.
    pub by_reason: BTreeMap<&'static str, Histogram>,
}

impl Ipt {
    /// Computes them at `stage`, or where packets leave first.
    ///
    /// # Errors
    /// Nothing left there.
    pub fn of(trace: &Trace, stage: Option<Stage>) -> Result<Self, TimingError> {
        if trace.hops.is_empty() {
            return Err(TimingError::Empty);
        }
        let sent = |stage: Stage| trace.hops.iter().any(|(_, hop)| leaves(hop, stage));
        let stage = stage
            .into_iter()
            .chain(SEND)
            .find(|&stage| sent(stage))
            .ok_or(TimingError::NothingSent)?;
        let mut ipt = Self {
            stage,
            packets: 0,
            gaps: Histogram::new(),
            samples: Vec::new(),
            by_reason: BTreeMap::new(),
        };
        let mut last: BTreeMap<(usize, u8), MonoNs> = BTreeMap::new();
        for (host, hop) in trace.hops.iter().filter(|(_, hop)| leaves(hop, stage)) {
            ipt.packets += 1;
            if let Some(before) = last.insert((*host, hop.link), hop.at) {
                ipt.gap(hop, hop.at.since(before));
            }
        }
        Ok(ipt)
    }

    fn gap(&mut self, hop: &Hop, ns: u64) {
        self.gaps.record(ns);
        self.samples.push(ns);
        self.by_reason
            .entry(hop.reason.name())
            .or_default()
            .record(ns);
    }
}

fn leaves(hop: &Hop, stage: Stage) -> bool {
    hop.stage == stage && hop.direction == Direction::Up && hop.verdict.goes_on()
}

/// Round trips. Requests without an answer are in no round trip; packets to which there is no answer (setpoints,
/// empty and keep-alive packets) are left out altogether.
#[derive(Clone, Debug)]
pub struct Rtt {
    /// Where requests left and answers came back.
    pub stages: (Stage, Stage),
    /// Requests that want an answer.
    pub requests: u64,
    /// With an answer.
    pub answered: u64,
    /// Packets to which there is no answer.
    pub one_way: u64,
    /// Further sendings of requests.
    pub resends: u64,
    /// Further copies of answers.
    pub duplicates: u64,
    /// Answers overtaken by the answer of a later request.
    pub reordered: u64,
    /// From the first sending to the first answer, ns: the paper's round trip.
    pub first: Histogram,
    /// The same round trips, in order of the packets' identities.
    pub samples: Vec<u64>,
    /// From the last sending before the first answer, ns: what the link itself took.
    pub last: Histogram,
    /// Round trips from the first sending, by CRTP port and channel.
    pub by_port: BTreeMap<(u8, u8), Histogram>,
}

impl Rtt {
    /// Computes them.
    ///
    /// # Errors
    /// No record, or no pair of stages to compute from.
    pub fn of(trace: &Trace) -> Result<Self, TimingError> {
        if trace.hops.is_empty() {
            return Err(TimingError::Empty);
        }
        let pair = ROUND.into_iter().find(|(send, _)| trace.has(*send));
        let stages = ROUND
            .into_iter()
            .find(|(send, receive)| trace.has(*send) && trace.has(*receive))
            .or(pair)
            .ok_or(TimingError::NoPair)?;
        let mut rtt = Self::empty(stages);
        let mut arrivals = Vec::new();
        for packet in trace.packets() {
            rtt.take(&packet.hops, &mut arrivals);
        }
        rtt.reordered = overtaken(&mut arrivals);
        Ok(rtt)
    }

    fn empty(stages: (Stage, Stage)) -> Self {
        Self {
            stages,
            requests: 0,
            answered: 0,
            one_way: 0,
            resends: 0,
            duplicates: 0,
            reordered: 0,
            first: Histogram::new(),
            samples: Vec::new(),
            last: Histogram::new(),
            by_port: BTreeMap::new(),
        }
    }

    fn take(&mut self, hops: &[(usize, Hop)], arrivals: &mut Vec<(MonoNs, MonoNs)>) {
        let sent: Vec<&Hop> = hops
            .iter()
            .map(|(_, hop)| hop)
            .filter(|hop| leaves(hop, self.stages.0))
            .collect();
        let Some(first) = sent.first() else { return };
        if !first.reason.wants_answer() {
            self.one_way += 1;
            return;
        }
        self.requests += 1;
        self.resends += sent.len() as u64 - 1;
        let came = |hop: &&Hop| hop.stage == self.stages.1 && hop.direction == Direction::Down;
        let mut answers = hops.iter().map(|(_, hop)| hop).filter(came);
        let Some(answer) = answers.find(|hop| hop.verdict.goes_on()) else {
            return;
        };
        self.duplicates += answers
            .filter(|hop| hop.verdict.goes_on() || hop.verdict == Verdict::Duplicate)
            .count() as u64;
        self.answered += 1;
        let last = sent
            .iter()
            .rev()
            .find(|hop| hop.at <= answer.at)
            .unwrap_or(first);
        self.first.record(answer.at.since(first.at));
        self.samples.push(answer.at.since(first.at));
        self.last.record(answer.at.since(last.at));
        let port = (first.port(), first.channel());
        self.by_port
            .entry(port)
            .or_default()
            .record(answer.at.since(first.at));
        arrivals.push((first.at, answer.at));
    }
}

/// How many answers came after the answer of a request that left later.
fn overtaken(arrivals: &mut [(MonoNs, MonoNs)]) -> u64 {
    arrivals.sort_unstable();
    let mut earliest_later = MonoNs(u64::MAX);
    let mut count = 0;
    for (_, came) in arrivals.iter().rev() {
        count += u64::from(*came > earliest_later);
        earliest_later = earliest_later.min(*came);
    }
    count
}
