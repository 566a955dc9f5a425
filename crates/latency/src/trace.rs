//! What packet logs say about a run: inter-packet times, round trips, stages, and the same for other tools.
//!
//! Pure analysis of records that are already read. A figure whose stamps are missing is absent and counted, never
//! taken as zero.

mod age;
mod clocks;
mod compare;
pub mod export;
mod fates;
mod page;
mod pair;
mod stages;
#[cfg(test)]
mod tests;
mod timing;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

pub use age::Age;
pub use clocks::Offset;
pub use compare::{Difference, compare};
pub use fates::{Fate, fates};
pub use page::page;
pub use stages::{DEFAULT_STAGES, OneWay, StageError, StagePlan, StageRow, StageSummary, Stages};
pub use timing::{Ipt, Rtt, TimingError};

use crate::record::{Contents, Hop, HostInfo, LogError, Stage, read};

/// The records of one run, of all hosts that logged it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The hosts, one for each log.
    pub hosts: Vec<HostInfo>,
    /// Each record with the number of its host; in time order within a host.
    pub hops: Vec<(usize, Hop)>,
    /// Records that were dropped while logging.
    pub dropped: u64,
    /// Names of hosts whose log has no end mark.
    pub cut: Vec<String>,
    /// For each host the first one that has the same clock.
    pub clocks: Rc<[usize]>,
}

/// All records of one packet and its answer.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Identifies it.
    pub id: u64,
    /// Records with the number of their host.
    pub hops: Vec<(usize, Hop)>,
    clocks: Rc<[usize]>,
}

impl Packet {
    /// The first record at `stage`.
    #[must_use]
    pub fn at(&self, stage: Stage) -> Option<(usize, Hop)> {
        let mut here = self
            .hops
            .iter()
            .filter(|(_, hop)| hop.stage == stage && hop.verdict.goes_on());
        here.next().copied()
    }

    /// From one stage to another, ns, where both were recorded on one clock and in this order.
    #[must_use]
    pub fn between(&self, from: Stage, to: Stage) -> Option<u64> {
        let ((start_host, start), (end_host, end)) = (self.at(from)?, self.at(to)?);
        let same = self.clock(start_host) == self.clock(end_host);
        (same && end.at >= start.at).then(|| end.at.since(start.at))
    }

    fn clock(&self, host: usize) -> usize {
        self.clocks.get(host).copied().unwrap_or(host)
    }
}

impl Trace {
    /// Reads the logs of one run.
    ///
    /// # Errors
    /// The first file that is no packet log.
    pub fn read(paths: &[PathBuf]) -> Result<Self, LogError> {
        let logs: Result<Vec<Contents>, LogError> = paths.iter().map(|path| read(path)).collect();
        Ok(Self::of(logs?))
    }

    /// Joins logs.
    #[must_use]
    pub fn of(logs: Vec<Contents>) -> Self {
        let mut trace = Self::default();
        for (host, log) in logs.into_iter().enumerate() {
            trace
                .hops
                .extend(log.hops.into_iter().map(|hop| (host, hop)));
            trace.dropped += log.dropped;
            if log.cut {
                trace.cut.push(log.host.name.clone());
            }
            trace.hosts.push(log.host);
        }
        trace.clocks = clocks(&trace.hosts);
        pair::identify(&trace.hosts, &trace.clocks, &mut trace.hops);
        trace
    }

    /// The records by packet, in order of their ids.
    #[must_use]
    pub fn packets(&self) -> Vec<Packet> {
        let mut packets: BTreeMap<u64, Vec<(usize, Hop)>> = BTreeMap::new();
        for record in &self.hops {
            packets.entry(record.1.packet).or_default().push(*record);
        }
        let packet = |(id, hops)| Packet {
            id,
            hops,
            clocks: Rc::clone(&self.clocks),
        };
        packets.into_iter().map(packet).collect()
    }

    /// Whether any record is of this stage.
    #[must_use]
    pub fn has(&self, stage: Stage) -> bool {
        self.hops.iter().any(|(_, hop)| hop.stage == stage)
    }

    /// What a reader must know before believing a figure; one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        if self.dropped > 0 {
            warnings.push(format!(
                "{} records were dropped while logging",
                self.dropped
            ));
        }
        for host in &self.cut {
            warnings.push(format!(
                "the log of {host} has no end mark: cut off, or still being written"
            ));
        }
        warnings
    }
}

/// Logs of one machine's uptime share its clock.
fn clocks(hosts: &[HostInfo]) -> Rc<[usize]> {
    let first = |(own, host): (usize, &HostInfo)| {
        let same = |other: &HostInfo| !host.boot.is_empty() && other.boot == host.boot;
        hosts.iter().position(same).unwrap_or(own)
    };
    hosts.iter().enumerate().map(first).collect()
}
