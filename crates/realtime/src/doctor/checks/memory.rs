//! What can take pages away from a running loop.

use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, sysctl};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

const ENOUGH_KIB: i64 = 128 * 1024;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "mem.swap",
        why: "a page that was swapped out costs milliseconds when it is touched again; locked memory is safe from it",
        source: "mlockall(2)",
        remedy: Remedy::each(
            "swapoff -a and remove the swap line from /etc/fstab",
            "swapoff -a and remove the swap line from /etc/fstab",
            "systemctl disable --now dphys-swapfile",
            false,
            "processes are killed instead when memory runs out",
        ),
        judge: swap,
    },
    Check {
        id: "mem.swappiness",
        why: "a high value swaps out idle parts of a program although memory is free",
        source: "kernel documentation: vm.swappiness",
        remedy: sysctl!("vm.swappiness = 10", "less memory for file caches"),
        judge: swappiness,
    },
    Check {
        id: "mem.huge_pages",
        why: "always-on huge pages are assembled in the background and stall whoever touches them meanwhile",
        source: "tuned profile realtime",
        remedy: Remedy::same(
            "echo madvise into /sys/kernel/mm/transparent_hugepage/enabled, or boot with transparent_hugepage=madvise",
            "some programs get slower",
        ),
        judge: huge_pages,
    },
    Check {
        id: "mem.same_page_merging",
        why: "the merging thread scans and write-protects pages; each next write faults",
        source: "tuned profile realtime",
        remedy: Remedy::same(
            "echo 0 into /sys/kernel/mm/ksm/run",
            "more memory used by virtual machines",
        ),
        judge: merging,
    },
    Check {
        id: "mem.compaction",
        why: "proactive compaction moves pages of running programs",
        source: "kernel documentation: vm.compaction_proactiveness",
        remedy: sysctl!(
            "vm.compaction_proactiveness = 0",
            "large allocations may be slower"
        ),
        judge: compaction,
    },
    Check {
        id: "mem.available",
        why: "under memory pressure every allocation of anyone may wait for reclaim",
        source: "proc_meminfo(5), MemAvailable",
        remedy: Remedy::same("end other programs or add memory", "none"),
        judge: available,
    },
    Check {
        id: "mem.overcommit",
        why: "with strict accounting locking future memory can fail although memory is free",
        source: "kernel documentation: overcommit accounting",
        remedy: sysctl!(
            "vm.overcommit_memory = 0",
            "the machine may promise more memory than it has"
        ),
        judge: overcommit,
    },
];

fn swap(machine: &Machine, profile: Profile) -> Judgement {
    let Some(text) = machine.text("/proc/swaps") else {
        return Judgement::cannot_tell("/proc/swaps is not readable");
    };
    let devices: Vec<&str> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let read = if devices.is_empty() {
        "none".to_owned()
    } else {
        devices.join(", ")
    };
    // Compressed swap in memory costs microseconds, not milliseconds.
    let slow = devices.iter().any(|device| !device.contains("zram"));
    Judgement::when(
        slow && profile.wants_real_time(),
        profile.latency_matters(),
        read,
    )
}

fn vm(machine: &Machine, name: &str) -> Result<i64, Judgement> {
    machine
        .number(&format!("/proc/sys/vm/{name}"))
        .ok_or_else(|| Judgement::cannot_tell(format!("vm.{name} is not readable")))
}

fn swappiness(machine: &Machine, profile: Profile) -> Judgement {
    let swaps = machine
        .text("/proc/swaps")
        .is_some_and(|text| text.lines().count() > 1);
    match vm(machine, "swappiness") {
        Err(unknown) => unknown,
        Ok(value) => Judgement::when(
            swaps && value > 30 && profile.wants_real_time(),
            profile.latency_matters(),
            format!("vm.swappiness = {value}"),
        ),
    }
}

fn huge_pages(machine: &Machine, profile: Profile) -> Judgement {
    match machine.text("/sys/kernel/mm/transparent_hugepage/enabled") {
        None => Judgement::not_applicable("no transparent huge pages here"),
        Some(text) => Judgement::when(
            text.contains("[always]") && profile.wants_real_time(),
            Verdict::Warn,
            text,
        ),
    }
}

fn merging(machine: &Machine, profile: Profile) -> Judgement {
    match machine.number("/sys/kernel/mm/ksm/run") {
        None => Judgement::not_applicable("no same-page merging here"),
        Some(run) => Judgement::when(
            run == 1,
            profile.latency_matters(),
            format!("ksm/run: {run}"),
        ),
    }
}

fn compaction(machine: &Machine, profile: Profile) -> Judgement {
    let bad = if profile.wants_isolation() {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    match vm(machine, "compaction_proactiveness") {
        Err(unknown) => unknown,
        Ok(value) => Judgement::when(
            value > 0,
            bad,
            format!("vm.compaction_proactiveness = {value}"),
        ),
    }
}

fn available(machine: &Machine, _: Profile) -> Judgement {
    let info = machine.text("/proc/meminfo").unwrap_or_default();
    let kib = info.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?
            .split_whitespace()
            .next()?
            .parse::<i64>()
            .ok()
    });
    match kib {
        None => Judgement::cannot_tell("/proc/meminfo is not readable"),
        Some(kib) => Judgement::when(
            kib < ENOUGH_KIB,
            Verdict::Warn,
            format!("{} MiB available", kib / 1024),
        ),
    }
}

fn overcommit(machine: &Machine, _: Profile) -> Judgement {
    match vm(machine, "overcommit_memory") {
        Err(unknown) => unknown,
        Ok(value) => Judgement::when(
            value == 2,
            Verdict::Warn,
            format!("vm.overcommit_memory = {value}"),
        ),
    }
}
