//! What became of packets, place by place: how many passed, for which reason, and how many were dropped and why.

use std::collections::BTreeMap;

use super::Trace;
use crate::record::{Direction, Reason, Stage, Verdict};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    /// Number of the host.
    pub host: usize,
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub stage: Stage,
    /// Why it was sent.
    pub reason: Reason,
    /// What became of it.
    pub verdict: Verdict,
}

/// How many records have each fate.
#[must_use]
pub fn fates(trace: &Trace) -> BTreeMap<Fate, u64> {
    let mut counts = BTreeMap::new();
    for (host, hop) in &trace.hops {
        let fate = Fate {
            host: *host,
            direction: hop.direction,
            stage: hop.stage,
            reason: hop.reason,
            verdict: hop.verdict,
        };
        *counts.entry(fate).or_default() += 1;
    }
    counts
}
