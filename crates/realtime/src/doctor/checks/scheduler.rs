//! What the scheduler allows and how it interferes: real-time share, cgroups, limits, balancing.

use super::isolation::isolated;
use crate::cpu_list::CpuList;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, sysctl};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;
use crate::periodic::spin::RtLimit;
use crate::thread::facts::cpu_controller_path;
use crate::thread::policy::DEFAULT_PRIORITY;

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;
const LIMITS_D: &str = "/etc/security/limits.d/realtime.conf";

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "sched.rt_runtime",
        why: "a real-time thread that never sleeps is held back for the rest of each period: 50 ms holes each second on stock settings, enough to trip a 20-miss stop",
        source: "measured: a spinning responder tripped the stop 13 times in 15 s; oslat saw 54 ms",
        remedy: Remedy::same(
            "use blocking waits; only for a spinning thread on an isolated core: sysctl kernel.sched_rt_runtime_us=-1",
            "with -1 a runaway real-time loop hangs the core until the power is cut",
        ),
        judge: rt_runtime,
    },
    Check {
        id: "sched.cgroup_runtime",
        why: "with group scheduling a new cgroup has no real-time runtime: root, and yet EPERM for SCHED_FIFO",
        source: "LinuxCNC/linuxcnc#2821, moby/moby#22380, opencontainers/runc#2431",
        remedy: Remedy::same(
            "docker run --cpu-rt-runtime=950000 --ulimit rtprio=99, or write cpu.rt_runtime_us of the group (parents first)",
            "other groups get less real-time share",
        ),
        judge: cgroup_runtime,
    },
    Check {
        id: "sched.real_time_allowed",
        why: "without CAP_SYS_NICE or a high enough rtprio limit the threads run as SCHED_OTHER or not at all",
        source: "guysoft/RealtimePi#31",
        remedy: Remedy::same(
            "groupadd -f realtime; usermod -aG realtime USER; put '@realtime - rtprio 95' into /etc/security/limits.d/realtime.conf and log in again; in a unit LimitRTPRIO=95",
            "members of the group can starve the machine",
        ),
        judge: real_time_allowed,
    },
    Check {
        id: "sched.memory_lock_allowed",
        why: "pages that are not locked can be taken away and come back by a page fault in the middle of a cycle",
        source: "mlockall(2); libfranka locks memory for the same reason",
        remedy: Remedy::same(
            "put '@realtime - memlock unlimited' into /etc/security/limits.d/realtime.conf and log in again; in a unit LimitMEMLOCK=infinity",
            "locked memory cannot be swapped",
        ),
        judge: memory_lock_allowed,
    },
    Check {
        id: "sched.rttime_limit",
        why: "a finite limit kills a real-time thread that computes that long without sleeping",
        source: "getrlimit(2), RLIMIT_RTTIME",
        remedy: Remedy::same(
            "remove the rttime line from the limits, or LimitRTTIME=infinity in the unit",
            "a runaway loop is not killed",
        ),
        judge: rttime,
    },
    Check {
        id: "sched.cgroup_quota",
        why: "a CPU quota stops every thread of the group for the rest of each 100 ms",
        source: "kernel documentation: cgroup v2, cpu.max",
        remedy: Remedy::same(
            "CPUQuota= (empty) in the unit, or docker run without --cpus",
            "none",
        ),
        judge: quota,
    },
    Check {
        id: "sched.cgroup_cpus",
        why: "a thread can only be pinned to CPUs that its group has",
        source: "scheduler-tools/rt-app#38",
        remedy: Remedy::same("AllowedCPUs= in the unit, or docker --cpuset-cpus=", "none"),
        judge: group_cpus,
    },
    Check {
        id: "sched.autogroup",
        why: "autogrouping makes the nice value of a thread count only within its session",
        source: "sched(7)",
        remedy: sysctl!(
            "kernel.sched_autogroup_enabled = 0",
            "builds in one terminal may slow down another"
        ),
        judge: autogroup,
    },
    Check {
        id: "sched.timer_migration",
        why: "timers of other cores may be moved onto the control core",
        source: "tuned profile realtime",
        remedy: sysctl!("kernel.timer_migration = 0", "slightly more power"),
        judge: timer_migration,
    },
    Check {
        id: "sched.watchdog",
        why: "the lock-up watchdog wakes on every core, isolated ones included unless masked",
        source: "kernel documentation: lockup watchdogs",
        remedy: Remedy::same(
            "echo a housekeeping list into /proc/sys/kernel/watchdog_cpumask",
            "lock-ups on the other cores are not reported",
        ),
        judge: watchdog,
    },
    Check {
        id: "sched.numa_balancing",
        why: "it unmaps pages on purpose to see who touches them; each is a page fault in the loop",
        source: "kernel documentation: numa_balancing",
        remedy: sysctl!(
            "kernel.numa_balancing = 0",
            "memory may stay on the far node"
        ),
        judge: numa,
    },
    Check {
        id: "sched.fair_server",
        why: "the fair server gives ordinary threads their share of a core even against real-time ones, and keeps a timer for it",
        source: "NVIDIA/NV-Kernels#400",
        remedy: Remedy::same(
            "on isolated cores write 0 into /sys/kernel/debug/sched/fair_server/cpuN/runtime",
            "ordinary threads on these cores may starve",
        ),
        judge: fair_server,
    },
];

fn rt_runtime(machine: &Machine, _: Profile) -> Judgement {
    let number = |name: &str| machine.number(&format!("/proc/sys/kernel/{name}"));
    let (Some(runtime_us), Some(period_us)) =
        (number("sched_rt_runtime_us"), number("sched_rt_period_us"))
    else {
        return Judgement::cannot_tell("kernel.sched_rt_runtime_us is not readable");
    };
    let read = format!(
        "kernel.sched_rt_runtime_us = {runtime_us}, kernel.sched_rt_period_us = {period_us}"
    );
    match (RtLimit {
        runtime_us,
        period_us,
    })
    .hole()
    {
        Some(hole) => Judgement::pass(format!(
            "{read}: a spinning real-time thread gets holes of {} ms, a sleeping one none",
            hole.as_millis()
        )),
        None => Judgement::warn(format!(
            "{read}: no limit, a runaway real-time loop hangs the core"
        )),
    }
}

fn cgroup_runtime(machine: &Machine, profile: Profile) -> Judgement {
    let groups = machine.text("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = cpu_controller_path(&groups) else {
        return Judgement::not_applicable(
            "no cgroup v1 cpu controller, so no real-time runtime of a group",
        );
    };
    let runtime = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .iter()
        .find_map(|mount| {
            let own = format!("{mount}{path}/cpu.rt_runtime_us");
            // Inside a container the group is mounted at the root of the hierarchy.
            machine
                .number(&own)
                .or_else(|| machine.number(&format!("{mount}/cpu.rt_runtime_us")))
        });
    let bad = profile.real_time_needed();
    match runtime {
        None => Judgement::not_applicable("the kernel has no real-time group scheduling"),
        Some(runtime) => Judgement::when(
            runtime == 0,
            bad,
            format!("group {path}: cpu.rt_runtime_us = {runtime}"),
        ),
    }
}

fn capability(machine: &Machine, bit: u32) -> Option<bool> {
    let status = machine.text("/proc/self/status")?;
    let text = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    Some(u64::from_str_radix(text.trim(), 16).ok()? >> bit & 1 == 1)
}

/// The soft limit of a row of `/proc/self/limits`; `i64::MAX` for unlimited.
fn limit(machine: &Machine, name: &str) -> Option<i64> {
    let limits = machine.text("/proc/self/limits")?;
    let row = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match row.split_whitespace().next()? {
        "unlimited" => Some(i64::MAX),
        number => number.parse().ok(),
    }
}

fn limit_text(limit: i64) -> String {
    if limit == i64::MAX {
        "unlimited".to_owned()
    } else {
        limit.to_string()
    }
}

fn allowed(
    machine: &Machine,
    profile: Profile,
    bit: u32,
    capability_name: &str,
    limit_name: &str,
    needed: i64,
) -> Judgement {
    let (Some(capable), Some(limit)) = (capability(machine, bit), limit(machine, limit_name))
    else {
        return Judgement::cannot_tell("/proc/self/status or /proc/self/limits is not readable");
    };
    let has = if capable { "yes" } else { "no" };
    let read = format!(
        "{capability_name}: {has}; {} = {}; see {LIMITS_D}",
        limit_name.to_lowercase(),
        limit_text(limit)
    );
    Judgement::when(!capable && limit < needed, profile.real_time_needed(), read)
}

fn real_time_allowed(machine: &Machine, profile: Profile) -> Judgement {
    allowed(
        machine,
        profile,
        CAP_SYS_NICE,
        "CAP_SYS_NICE",
        "Max realtime priority",
        i64::from(DEFAULT_PRIORITY),
    )
}

fn memory_lock_allowed(machine: &Machine, profile: Profile) -> Judgement {
    allowed(
        machine,
        profile,
        CAP_IPC_LOCK,
        "CAP_IPC_LOCK",
        "Max locked memory",
        256 << 20,
    )
}

fn rttime(machine: &Machine, profile: Profile) -> Judgement {
    match limit(machine, "Max realtime timeout") {
        None => Judgement::cannot_tell("/proc/self/limits is not readable"),
        Some(limit) => Judgement::when(
            limit != i64::MAX,
            profile.latency_matters(),
            format!("RLIMIT_RTTIME {} us", limit_text(limit)),
        ),
    }
}

fn unified_file(machine: &Machine, name: &str) -> Option<String> {
    let groups = machine.text("/proc/self/cgroup")?;
    let path = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?
        .trim_end_matches('/')
        .to_owned();
    machine
        .text(&format!("/sys/fs/cgroup{path}/{name}"))
        .or_else(|| machine.text(&format!("/sys/fs/cgroup/{name}")))
}

fn quota(machine: &Machine, profile: Profile) -> Judgement {
    match unified_file(machine, "cpu.max") {
        None => Judgement::not_applicable("no cpu.max for this group"),
        Some(text) => Judgement::when(
            !text.starts_with("max"),
            profile.latency_matters(),
            format!("cpu.max {text}"),
        ),
    }
}

fn group_cpus(machine: &Machine, _: Profile) -> Judgement {
    let online = machine.cpus("/sys/devices/system/cpu/online");
    let status = machine.text("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| {
        line.strip_prefix("Cpus_allowed_list:")?
            .trim()
            .parse::<CpuList>()
            .ok()
    });
    let Some(allowed) = allowed else {
        return Judgement::cannot_tell("/proc/self/status is not readable");
    };
    let isolated = isolated(machine);
    let unreachable = online.without(&allowed).without(&isolated);
    let read = format!("allowed {allowed} of {online} online, isolated {isolated}");
    Judgement::when(!unreachable.is_empty(), Verdict::Warn, read)
}

/// Judges a kernel setting that should be zero.
fn should_be_zero(machine: &Machine, name: &str, bad: Verdict) -> Judgement {
    match machine.number(&format!("/proc/sys/kernel/{name}")) {
        None => Judgement::not_applicable(format!("kernel.{name} does not exist here")),
        Some(value) => Judgement::when(value != 0, bad, format!("kernel.{name} = {value}")),
    }
}

fn autogroup(machine: &Machine, profile: Profile) -> Judgement {
    let bad = if profile.wants_isolation() {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    should_be_zero(machine, "sched_autogroup_enabled", bad)
}

fn timer_migration(machine: &Machine, _: Profile) -> Judgement {
    if isolated(machine).is_empty() {
        return Judgement::not_applicable("no isolated cores");
    }
    should_be_zero(machine, "timer_migration", Verdict::Warn)
}

fn watchdog(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    if isolated.is_empty() {
        return Judgement::not_applicable("no isolated cores");
    }
    match machine.number("/proc/sys/kernel/watchdog") {
        None => Judgement::cannot_tell("kernel.watchdog is not readable"),
        Some(0) => Judgement::pass("kernel.watchdog = 0"),
        Some(value) => {
            let mask = machine.cpus("/proc/sys/kernel/watchdog_cpumask");
            let read = format!("kernel.watchdog = {value}, watchdog_cpumask {mask}");
            Judgement::when(
                !mask.intersection(&isolated).is_empty(),
                Verdict::Warn,
                read,
            )
        }
    }
}

fn numa(machine: &Machine, profile: Profile) -> Judgement {
    should_be_zero(machine, "numa_balancing", profile.latency_matters())
}

fn fair_server(machine: &Machine, _: Profile) -> Judgement {
    let folder = "/sys/kernel/debug/sched/fair_server";
    let servers = machine.names(folder);
    if servers.is_empty() {
        return Judgement::cannot_tell("debugfs is not readable, or the kernel is older than 6.12");
    }
    let isolated = isolated(machine);
    let active: Vec<String> = isolated
        .iter()
        .filter(|cpu| {
            machine
                .number(&format!("{folder}/cpu{cpu}/runtime"))
                .is_some_and(|runtime| runtime > 0)
        })
        .map(|cpu| cpu.to_string())
        .collect();
    let read = format!(
        "fair server active on isolated cpu: {}",
        if active.is_empty() {
            "none".to_owned()
        } else {
            active.join(", ")
        }
    );
    Judgement::when(!active.is_empty(), Verdict::Warn, read)
}
