//! Why the kernel said no: from the request, the errno and the thread's permissions to a cause and a remedy.
//!
//! Pure: it concludes and never asks the machine.

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::facts::Permissions;
use super::policy::Policy;
use crate::cpu_list::CpuList;

/// What was asked of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A scheduling policy for the calling thread.
    Schedule(Policy),
    /// An affinity for the calling thread, whose policy is given.
    Pin(CpuList, Policy),
    /// All memory of the process locked.
    LockMemory,
    /// Timer slack of the calling thread, nanoseconds.
    TimerSlack(u64),
    /// `/dev/cpu_dma_latency` held open at this many microseconds.
    WakeLatency(i32),
    /// Busy polling on a socket, microseconds.
    BusyPoll(u32),
    /// A virtual network between two namespaces.
    Namespace,
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A capability is missing.
    Capability,
    /// A resource limit is too low.
    ResourceLimit,
    /// The thread's cgroup has no real-time runtime.
    CgroupRuntime,
    /// Affinity and DEADLINE exclude each other without an exclusive cpuset.
    Cpuset,
    /// The CPU does not exist or is not allowed here.
    NoSuchCpu,
    /// DEADLINE bandwidth of the root domain is used up.
    Admission,
    /// The kernel or the machine does not offer it.
    Unavailable,
    /// None of the known causes fits.
    Unknown,
}

/// A request the kernel refused: an outcome to report, not a failure of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What was asked, in words.
    pub request: String,
    /// The error number of the system call.
    pub errno: i32,
    /// Its name, e.g. `EPERM`.
    pub errno_name: String,
    /// What stands in the way.
    pub cause: Cause,
    /// Why, in words.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} refused ({}): {}; {}",
            self.request, self.errno_name, self.why, self.remedy
        )
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Concludes from what was asked, what came back and what the thread may do.
    #[must_use]
    pub fn diagnose(request: &Request, errno: Errno, may: &Permissions) -> Self {
        let (cause, why, remedy) = match request {
            Request::Schedule(policy) => schedule(policy, errno, may),
            Request::Pin(cpus, policy) => pin(cpus, policy, errno, may),
            Request::LockMemory => lock_memory(errno, may),
            Request::WakeLatency(_) => wake_latency(errno),
            Request::Namespace => namespace(errno),
            Request::TimerSlack(_) | Request::BusyPoll(_) => plain(errno),
        };
        Self {
            request: request.to_string(),
            errno: errno.raw_os_error(),
            errno_name: errno_name(errno),
            cause,
            why,
            remedy,
        }
    }
}

type Conclusion = (Cause, String, String);

fn conclusion(cause: Cause, why: impl Into<String>, remedy: impl Into<String>) -> Conclusion {
    (cause, why.into(), remedy.into())
}

fn schedule(policy: &Policy, errno: Errno, may: &Permissions) -> Conclusion {
    let deadline = matches!(policy, Policy::Deadline { .. });
    match errno {
        Errno::PERM if deadline && may.sys_nice && may.is_pinned() => conclusion(
            Cause::Cpuset,
            format!(
                "the thread is pinned to cpu {} and SCHED_DEADLINE wants every cpu of its root domain",
                may.allowed
            ),
            "run without a pin, or make an exclusive cpuset of these cpus and start inside it",
        ),
        Errno::PERM if may.cgroup_rt_runtime_us == Some(0) => conclusion(
            Cause::CgroupRuntime,
            "the thread's cgroup has cpu.rt_runtime_us = 0 (group scheduling is compiled in)",
            "write a runtime below the parent's into cpu.rt_runtime_us (docker: --cpu-rt-runtime), or run in the root cgroup",
        ),
        Errno::PERM if !may.sys_nice && deadline => conclusion(
            Cause::Capability,
            "SCHED_DEADLINE needs CAP_SYS_NICE",
            "setcap cap_sys_nice=eip on the executable, AmbientCapabilities=CAP_SYS_NICE in the systemd unit, or docker --cap-add SYS_NICE",
        ),
        Errno::PERM if !may.sys_nice => rtprio(policy, may),
        Errno::BUSY => conclusion(
            Cause::Admission,
            "DEADLINE bandwidth of all cpus together may not exceed sched_rt_runtime_us / sched_rt_period_us",
            "ask for less runtime or end other DEADLINE threads",
        ),
        other => plain(other),
    }
}

fn rtprio(policy: &Policy, may: &Permissions) -> Conclusion {
    let limit = may
        .rtprio_limit
        .map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let wanted = policy.priority().unwrap_or(1);
    conclusion(
        Cause::ResourceLimit,
        format!("no CAP_SYS_NICE, and RLIMIT_RTPRIO is {limit} where {wanted} is needed"),
        format!(
            "add \"@realtime - rtprio {wanted}\" to /etc/security/limits.d/realtime.conf and log in again, LimitRTPRIO={wanted} in the systemd unit, or setcap cap_sys_nice=eip on the executable"
        ),
    )
}

fn pin(cpus: &CpuList, policy: &Policy, errno: Errno, may: &Permissions) -> Conclusion {
    match errno {
        Errno::BUSY if matches!(policy, Policy::Deadline { .. }) => conclusion(
            Cause::Cpuset,
            "a SCHED_DEADLINE thread may not be narrowed below its root domain",
            "make an exclusive cpuset of these cpus and start inside it",
        ),
        Errno::INVAL => conclusion(
            Cause::NoSuchCpu,
            format!(
                "none of cpu {cpus} is online and allowed here (online {}, allowed {})",
                may.online, may.allowed
            ),
            "choose an allowed cpu, or widen AllowedCPUs= / docker --cpuset-cpus",
        ),
        other => plain(other),
    }
}

fn lock_memory(errno: Errno, may: &Permissions) -> Conclusion {
    let limit = may
        .memlock_limit
        .map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
    match errno {
        Errno::NOMEM | Errno::PERM | Errno::AGAIN if !may.ipc_lock => conclusion(
            Cause::ResourceLimit,
            format!("no CAP_IPC_LOCK, and RLIMIT_MEMLOCK is {limit}"),
            "add \"@realtime - memlock unlimited\" to /etc/security/limits.d/realtime.conf, LimitMEMLOCK=infinity in the systemd unit, or docker --ulimit memlock=-1",
        ),
        other => plain(other),
    }
}

fn wake_latency(errno: Errno) -> Conclusion {
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => conclusion(
            Cause::Unavailable,
            "this machine has no /dev/cpu_dma_latency",
            "idle states cannot be limited from here; in a container pass the device in",
        ),
        Errno::ACCESS | Errno::PERM => conclusion(
            Cause::Capability,
            "/dev/cpu_dma_latency belongs to root",
            "a udev rule KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", MODE=\"0660\", or run as root",
        ),
        other => plain(other),
    }
}

fn namespace(errno: Errno) -> Conclusion {
    match errno {
        Errno::PERM | Errno::ACCESS => conclusion(
            Cause::Capability,
            "a network namespace needs CAP_SYS_ADMIN and a virtual link CAP_NET_ADMIN",
            "run as root, or use the loopback link",
        ),
        Errno::NOENT => conclusion(
            Cause::Unavailable,
            "the command ip is missing",
            "install iproute2",
        ),
        other => plain(other),
    }
}

fn plain(errno: Errno) -> Conclusion {
    let (cause, remedy) = match errno {
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOPROTOOPT | Errno::NOTTY => (
            Cause::Unavailable,
            "this kernel does not offer it; leave the setting out",
        ),
        Errno::PERM | Errno::ACCESS => (
            Cause::Capability,
            "run with the capability the call needs, or leave the setting out",
        ),
        _ => (
            Cause::Unknown,
            "see the system call's manual page for this error",
        ),
    };
    conclusion(cause, std::io::Error::from(errno).to_string(), remedy)
}

fn errno_name(errno: Errno) -> String {
    let name = match errno {
        Errno::PERM => "EPERM",
        Errno::NOENT => "ENOENT",
        Errno::AGAIN => "EAGAIN",
        Errno::NOMEM => "ENOMEM",
        Errno::ACCESS => "EACCES",
        Errno::BUSY => "EBUSY",
        Errno::NODEV => "ENODEV",
        Errno::INVAL => "EINVAL",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::NOSYS => "ENOSYS",
        Errno::NOPROTOOPT => "ENOPROTOOPT",
        other => return format!("errno {}", other.raw_os_error()),
    };
    name.to_owned()
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule(policy) => write!(f, "policy {policy}"),
            Self::Pin(cpus, _) => write!(f, "pin to cpu {cpus}"),
            Self::LockMemory => f.write_str("locked memory"),
            Self::TimerSlack(ns) => write!(f, "timer slack {ns} ns"),
            Self::WakeLatency(us) => write!(f, "cpu wake-up latency {us} us"),
            Self::BusyPoll(us) => write!(f, "busy poll {us} us"),
            Self::Namespace => f.write_str("virtual link between two network namespaces"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn root_on(allowed: &str) -> Permissions {
        Permissions {
            sys_nice: true,
            ipc_lock: true,
            allowed: allowed.parse().unwrap(),
            online: "0-1".parse().unwrap(),
            cgroup_rt_runtime_us: Some(950_000),
            ..Permissions::default()
        }
    }

    #[test]
    fn deadline_on_a_pinned_thread_names_the_cpuset() {
        let request = Request::Schedule(Policy::deadline_for(Duration::from_millis(4)));
        let refusal = Refusal::diagnose(&request, Errno::PERM, &root_on("1"));
        assert_eq!(
            (refusal.cause, refusal.errno_name.as_str()),
            (Cause::Cpuset, "EPERM")
        );
        assert!(
            refusal.to_string().contains("exclusive cpuset"),
            "{refusal}"
        );
        let pinning = Request::Pin(
            "1".parse().unwrap(),
            Policy::deadline_for(Duration::from_millis(4)),
        );
        let refusal = Refusal::diagnose(&pinning, Errno::BUSY, &root_on("0-1"));
        assert_eq!(refusal.cause, Cause::Cpuset);
    }

    #[test]
    fn root_in_a_container_with_zero_runtime_names_the_cgroup() {
        let may = Permissions {
            cgroup_rt_runtime_us: Some(0),
            ..root_on("0-1")
        };
        let refusal = Refusal::diagnose(&Request::Schedule(Policy::Fifo(80)), Errno::PERM, &may);
        assert_eq!(refusal.cause, Cause::CgroupRuntime);
        assert!(refusal.remedy.contains("rt_runtime_us"));
    }

    #[test]
    fn a_plain_user_is_told_the_limit_and_the_priority() {
        let may = Permissions {
            rtprio_limit: Some(0),
            memlock_limit: Some(8_388_608),
            ..Permissions::default()
        };
        let refusal = Refusal::diagnose(&Request::Schedule(Policy::Fifo(80)), Errno::PERM, &may);
        assert_eq!(refusal.cause, Cause::ResourceLimit);
        assert!(
            refusal.to_string().contains("RLIMIT_RTPRIO is 0 where 80"),
            "{refusal}"
        );
        let refusal = Refusal::diagnose(&Request::LockMemory, Errno::NOMEM, &may);
        assert!(refusal.why.contains("8388608 bytes"), "{refusal}");
    }

    #[test]
    fn a_missing_wake_latency_file_is_unavailable() {
        let refusal = Refusal::diagnose(
            &Request::WakeLatency(0),
            Errno::NOENT,
            &Permissions::default(),
        );
        assert_eq!(refusal.cause, Cause::Unavailable);
    }
}
