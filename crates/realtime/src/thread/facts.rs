//! What the calling thread is allowed to do: capabilities, resource limits, cgroup runtime, affinity.
//!
//! It reads the live process only; the doctor has its own reader for recorded machines.

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use serde::{Deserialize, Serialize};

use crate::cpu_list::CpuList;

/// The facts from which the cause of a refusal is concluded; `None` = could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// `CAP_SYS_NICE` is effective: real-time classes at any priority.
    pub sys_nice: bool,
    /// `CAP_IPC_LOCK` is effective: locked memory without limit.
    pub ipc_lock: bool,
    /// `RLIMIT_RTPRIO`: highest real-time priority without `CAP_SYS_NICE`; `None` = unlimited.
    pub rtprio_limit: Option<u64>,
    /// `RLIMIT_MEMLOCK`, bytes; `None` = unlimited.
    pub memlock_limit: Option<u64>,
    /// Real-time microseconds per period of the thread's own cgroup; present only with group scheduling.
    pub cgroup_rt_runtime_us: Option<i64>,
    /// `kernel.sched_rt_runtime_us`; −1 = no limit.
    pub rt_runtime_us: Option<i64>,
    /// `kernel.sched_rt_period_us`.
    pub rt_period_us: Option<i64>,
    /// CPUs the thread may use.
    pub allowed: CpuList,
    /// CPUs that are online.
    pub online: CpuList,
}

impl Permissions {
    /// Reads the calling thread's permissions; what cannot be read stays `None` or false.
    #[must_use]
    pub fn read() -> Self {
        let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        Self {
            sys_nice: effective.contains(CapabilitySet::SYS_NICE),
            ipc_lock: effective.contains(CapabilitySet::IPC_LOCK),
            rtprio_limit: getrlimit(Resource::Rtprio).current,
            memlock_limit: getrlimit(Resource::Memlock).current,
            cgroup_rt_runtime_us: cgroup_rt_runtime(),
            rt_runtime_us: number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: number("/proc/sys/kernel/sched_rt_period_us"),
            allowed: status_list("Cpus_allowed_list"),
            online: text("/sys/devices/system/cpu/online")
                .parse()
                .unwrap_or_default(),
        }
    }

    /// Whether the thread is confined to fewer CPUs than are online.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        !self.online.without(&self.allowed).is_empty()
    }
}

fn cgroup_rt_runtime() -> Option<i64> {
    let groups = text("/proc/self/cgroup");
    let path = cpu_controller_path(&groups)?;
    ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .iter()
        .find_map(|mount| number(&format!("{mount}{path}/cpu.rt_runtime_us")))
}

/// The cgroup v1 path of the `cpu` controller in the text of `/proc/self/cgroup`.
pub(crate) fn cpu_controller_path(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let path = fields.next()?;
        controllers
            .split(',')
            .any(|name| name == "cpu")
            .then_some(path)
    })
}

fn status_list(key: &str) -> CpuList {
    let status = text("/proc/thread-self/status");
    status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .and_then(|list| list.trim().parse().ok())
        .unwrap_or_default()
}

fn number(path: &str) -> Option<i64> {
    text(path).trim().parse().ok()
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_controller_is_found_among_others() {
        let groups = "9:name=systemd:/\n3:cpuset:/a\n4:cpu,cpuacct:/docker/1:2\n0::/x\n";
        assert_eq!(cpu_controller_path(groups), Some("/docker/1:2"));
        assert_eq!(cpu_controller_path("0::/user.slice\n"), None);
    }
}
