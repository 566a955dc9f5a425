//! What the machine did while a row was measured: dropped datagrams, processor time, memory, context switches.
//!
//! A snapshot before and one after a run give the [`Causes`] that stand beside its figures. Everything is read
//! from `/proc`; what cannot be read is absent, and nothing here says which cause made a figure what it is.

mod process;
mod system;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use process::Process;
use system::System;

/// Datagrams that a middleware cuts a sample into are at most about this long, bytes.
const DATAGRAM: usize = 65_000;
/// Share of the expected traffic that proves a transport; the rest is left for counters that were read late.
const SEEN: f64 = 0.8;

/// A process whose use of the machine is to be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its role: `prober`, `relay`, `bridge`.
    pub name: String,
    /// Its id.
    pub pid: u32,
}

/// Counters at one instant.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    system: System,
    processes: BTreeMap<String, Process>,
}

/// What happened between two snapshots. Network counters are those of the whole network namespace, so they
/// include what other programs did; those of a [`Usage`] are of one process alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Causes {
    /// Datagrams the kernel dropped because a socket's receive buffer was full (`RcvbufErrors`, UDP of both IP
    /// versions).
    pub udp_receive_overflows: u64,
    /// Datagrams refused because a send buffer was full (`SndbufErrors`).
    pub udp_send_overflows: u64,
    /// Datagrams delivered to sockets (`InDatagrams`).
    pub udp_datagrams: u64,
    /// TCP segments received (`InSegs`).
    pub tcp_segments: u64,
    /// Datagrams given up because a fragment was missing (`ReasmFails`).
    pub ip_reassembly_failures: u64,
    /// Processor time that a hypervisor gave to others, percent.
    pub steal_percent: Option<f64>,
    /// Processor time that was not idle, percent of all CPUs.
    pub busy_percent: Option<f64>,
    /// Context switches of the whole machine.
    pub context_switches: u64,
    /// Maximum transmission unit of each interface that is up, bytes.
    pub mtu: BTreeMap<String, u64>,
    /// Probes that the relay never saw; absent where the relay keeps no count.
    pub lost_on_the_way_out: Option<u64>,
    /// Echoes that left the relay and never arrived.
    pub lost_on_the_way_back: Option<u64>,
    /// By role.
    pub processes: BTreeMap<String, Usage>,
}

/// What one process used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Processor time, user and system, seconds.
    pub cpu_s: f64,
    /// Resident memory at the end, MiB.
    pub rss_mib: f64,
    /// Threads at the end.
    pub threads: u64,
    /// Times its threads gave up a CPU by themselves.
    pub voluntary_switches: u64,
    /// Times they were taken off one.
    pub involuntary_switches: u64,
    /// Datagrams dropped at its own UDP sockets.
    pub socket_drops: u64,
    /// Receive buffers of its UDP sockets as the kernel counts them, bytes: each value once. A program that asks
    /// for n gets 2 n. Empty where another process' sockets may not be looked at.
    pub receive_buffers: Vec<u64>,
}

impl Snapshot {
    /// Reads this machine.
    #[must_use]
    pub fn read(watched: &[Watched]) -> Self {
        let mut snapshot = Self::read_below(Path::new("/"), watched);
        for one in watched {
            if let Some(process) = snapshot.processes.get_mut(&one.name) {
                process.receive_buffers = process::receive_buffers(one.pid);
            }
        }
        snapshot
    }

    /// Reads a machine whose root folder is `root`.
    pub(crate) fn read_below(root: &Path, watched: &[Watched]) -> Self {
        let processes = watched
            .iter()
            .filter_map(|one| Some((one.name.clone(), Process::read_below(root, one.pid)?)));
        Self {
            system: System::read_below(root),
            processes: processes.collect(),
        }
    }

    /// What happened since `earlier`. A process that ended in between is left out.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Causes {
        let mut causes = self.system.since(&earlier.system);
        causes.processes = self
            .processes
            .iter()
            .filter_map(|(name, now)| Some((name.clone(), now.since(earlier.processes.get(name)?))))
            .collect();
        causes
    }
}

impl Causes {
    /// The transport that the counters show for `probes` round trips of `bytes` each: `udp`, `tcp`, or
    /// `shared memory` when the network saw too little of them. Other programs' traffic can hide shared memory.
    #[must_use]
    pub fn transport_seen(&self, probes: u64, bytes: usize) -> &'static str {
        let datagrams = 2 * bytes.div_ceil(DATAGRAM).max(1);
        let enough = |seen: u64, each: usize| seen as f64 >= SEEN * (probes * each as u64) as f64;
        if enough(self.udp_datagrams, datagrams) {
            "udp"
        } else if enough(self.tcp_segments, 2) {
            "tcp"
        } else {
            "shared memory"
        }
    }

    /// Datagrams dropped at full receive buffers: at the watched processes' own sockets where those are known,
    /// else in the whole namespace.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        if self.processes.is_empty() {
            self.udp_receive_overflows
        } else {
            self.processes.values().map(|one| one.socket_drops).sum()
        }
    }

    /// Processor time of all watched processes, seconds.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.processes.values().map(|one| one.cpu_s).sum()
    }
}
