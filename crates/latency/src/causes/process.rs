//! Counters of one process: all its threads and its own sockets.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::Usage;
use super::system::field;

/// Clock ticks a second of `/proc`: fixed at 100 in the kernel's interface to programs.
const TICKS_PER_S: f64 = 100.0;
const KIB_PER_MIB: f64 = 1024.0;

/// As read at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    cpu_ticks: u64,
    rss_kib: u64,
    threads: u64,
    voluntary: u64,
    involuntary: u64,
    drops: u64,
    pub(super) receive_buffers: Vec<u64>,
}

impl Process {
    /// `None` when there is no such process.
    pub(super) fn read_below(root: &Path, pid: u32) -> Option<Self> {
        let folder = root.join(format!("proc/{pid}"));
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let mut process = Self {
            cpu_ticks: cpu_ticks(&std::fs::read_to_string(folder.join("stat")).ok()?)?,
            rss_kib: field(&status, "VmRSS:").unwrap_or(0),
            threads: field(&status, "Threads:").unwrap_or(0),
            drops: drops(root, &socket_inodes(&folder)),
            ..Self::default()
        };
        process.add_switches(&folder.join("task"));
        Some(process)
    }

    /// `/proc/PID/status` counts the first thread's switches only, so each thread is asked.
    fn add_switches(&mut self, tasks: &Path) {
        let folders = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        for status in
            folders.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok())
        {
            self.voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            self.involuntary += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
    }

    pub(super) fn since(&self, earlier: &Self) -> Usage {
        let ticks = self.cpu_ticks.saturating_sub(earlier.cpu_ticks);
        Usage {
            cpu_s: ticks as f64 / TICKS_PER_S,
            rss_mib: (self.rss_kib as f64 / KIB_PER_MIB * 10.0).round() / 10.0,
            threads: self.threads,
            voluntary_switches: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary_switches: self.involuntary.saturating_sub(earlier.involuntary),
            socket_drops: self.drops.saturating_sub(earlier.drops),
            receive_buffers: self.receive_buffers.clone(),
        }
    }
}

/// User and system time: fields 14 and 15 of `/proc/PID/stat`, counted after the name, which may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn descriptors(folder: &Path) -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let entries = std::fs::read_dir(folder.join("fd"));
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some((entry.path(), target))
    })
}

fn socket_inodes(folder: &Path) -> BTreeSet<u64> {
    let inodes = descriptors(folder).filter_map(|(_, target)| {
        let text = target.to_str()?;
        text.strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    });
    inodes.collect()
}

/// Drops at UDP sockets: columns 10 (inode) and 13 (drops) of `/proc/net/udp`.
fn drops(root: &Path, inodes: &BTreeSet<u64>) -> u64 {
    let tables = ["proc/net/udp", "proc/net/udp6"];
    let text: String = tables
        .iter()
        .filter_map(|path| std::fs::read_to_string(root.join(path)).ok())
        .collect();
    let drops = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let inode = fields.get(9)?.parse().ok()?;
        inodes
            .contains(&inode)
            .then(|| fields.get(12)?.parse::<u64>().ok())?
    });
    drops.sum()
}

/// Receive buffers of the UDP sockets of a process, each value once.
pub(super) fn receive_buffers(pid: u32) -> Vec<u64> {
    let Some(handle) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Vec::new();
    };
    let Ok(handle) = pidfd_open(handle, PidfdFlags::empty()) else {
        return Vec::new();
    };
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let sizes = descriptors(&folder).filter_map(|(path, target)| {
        target
            .to_str()?
            .starts_with("socket:")
            .then(|| receive_buffer(&handle, &path))?
    });
    let unique: BTreeSet<u64> = sizes.collect();
    unique.into_iter().collect()
}

fn receive_buffer(process: &OwnedFd, path: &Path) -> Option<u64> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let socket = pidfd_getfd(process, number, PidfdGetfdFlags::empty()).ok()?;
    let internet = matches!(
        sockopt::socket_domain(&socket).ok()?,
        AddressFamily::INET | AddressFamily::INET6
    );
    let datagrams = sockopt::socket_type(&socket).ok()? == SocketType::DGRAM;
    (internet && datagrams)
        .then(|| sockopt::socket_recv_buffer_size(&socket).ok())?
        .map(|size| size as u64)
}
