//! Cores set aside for real-time work: declared, consistent, and observed to be quiet.

use crate::cpu_list::CpuList;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, boot_parameter};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;
use crate::periodic::counters::{growth, per_cpu_table};

const DROID: &str = "Running DROID on a Single Device";
/// Timer interrupts a second on a core that shall have no tick.
const TICK_LIMIT: u64 = 50;
/// Reschedule interrupts a second on an isolated core.
const RESCHEDULE_LIMIT: u64 = 50;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "cpu.isolated",
        why: "isolcpus was the single change that took the worst wake-up down by two orders of magnitude",
        source: DROID,
        remedy: boot_parameter!(
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 irqaffinity=0-1",
            "other work has these cores less; adapt the numbers"
        ),
        judge: present,
    },
    Check {
        id: "cpu.isolation_consistent",
        why: "nohz_full and rcu_nocbs mean nothing on a core that other work may use",
        source: DROID,
        remedy: boot_parameter!(
            "nohz_full= and rcu_nocbs= with the same list as isolcpus=",
            "none beyond that of isolation"
        ),
        judge: consistent,
    },
    Check {
        id: "cpu.isolated_zero",
        why: "core 0 runs timekeeping and early interrupts and cannot be kept quiet",
        source: "kernel-parameters: isolcpus, nohz_full",
        remedy: boot_parameter!("an isolcpus= list without cpu 0", "none"),
        judge: zero,
    },
    Check {
        id: "cpu.observed_tick",
        why: "the command line only asks for a quiet core; the interrupt counters say whether it is one",
        source: "NVIDIA/NV-Kernels#400",
        remedy: Remedy::same(
            "leave one runnable thread a core; from 6.12 on set the fair server's runtime of these cores to 0 in debugfs",
            "ordinary threads on these cores may then starve",
        ),
        judge: observed_tick,
    },
    Check {
        id: "cpu.observed_rescheduling",
        why: "rescheduling interrupts on an isolated core mean that other threads are put there",
        source: DROID,
        remedy: Remedy::same(
            "pin threads one by one with taskset or our cpus setting, and keep others off with systemd CPUAffinity=",
            "none",
        ),
        judge: observed_rescheduling,
    },
    Check {
        id: "cpu.isolated_sharing",
        why: "isolated cores are not balanced: several threads given the whole set pile up on one of them",
        source: "ntop/nProbe#124, ayufan/pve-helpers#4",
        remedy: Remedy::same(
            "give each real-time thread its own core, not the whole isolated set",
            "none",
        ),
        judge: sharing,
    },
    Check {
        id: "cpu.smt",
        why: "a busy sibling shares the execution units; the robot still froze with it on although all else was set",
        source: DROID,
        remedy: boot_parameter!(
            "nosmt",
            "half the logical cores; switching it off in the firmware is equivalent"
        ),
        judge: smt,
    },
];

/// CPUs the kernel keeps other work away from.
pub(crate) fn isolated(machine: &Machine) -> CpuList {
    machine.cpus("/sys/devices/system/cpu/isolated")
}

fn no_isolation() -> Judgement {
    Judgement::not_applicable("no isolated cores")
}

fn present(machine: &Machine, profile: Profile) -> Judgement {
    let isolated = isolated(machine);
    match (isolated.is_empty(), profile.wants_isolation()) {
        (false, _) => Judgement::pass(format!("isolated: {isolated}")),
        (true, true) => Judgement::warn("isolated: none"),
        (true, false) => {
            Judgement::not_applicable("no isolated cores, and this profile does not need them")
        }
    }
}

fn consistent(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    let full: CpuList = parameter(machine, "nohz_full");
    let callbacks: CpuList = parameter(machine, "rcu_nocbs");
    let asked = isolcpus(machine);
    let read = format!(
        "isolated {isolated}; boot parameters: isolcpus {asked}, nohz_full {full}, rcu_nocbs {callbacks}"
    );
    if isolated.is_empty() && full.is_empty() && callbacks.is_empty() && asked.is_empty() {
        return no_isolation();
    }
    let stray = !full.without(&isolated).is_empty() || !callbacks.without(&isolated).is_empty();
    Judgement::when(stray || asked != isolated, Verdict::Warn, read)
}

fn parameter(machine: &Machine, name: &str) -> CpuList {
    machine
        .boot_parameter(name)
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// The list in `isolcpus=`, without its flags.
fn isolcpus(machine: &Machine) -> CpuList {
    let text = machine.boot_parameter("isolcpus").unwrap_or_default();
    let numbers: Vec<&str> = text
        .split(',')
        .filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    numbers.join(",").parse().unwrap_or_default()
}

fn zero(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    if isolated.is_empty() {
        return no_isolation();
    }
    Judgement::when(
        isolated.contains(0),
        Verdict::Warn,
        format!("isolated: {isolated}"),
    )
}

/// How often interrupts whose label starts with `label` came on each isolated core within a second.
fn rates(machine: &Machine, cpus: &CpuList, label: &str) -> Option<Vec<(usize, u64)>> {
    let (before, after) = machine.twice("/proc/interrupts")?;
    let on = |cpu: usize| {
        let only: CpuList = [cpu].into_iter().collect();
        let grown = growth(
            &per_cpu_table(&before, &only),
            &per_cpu_table(&after, &only),
        );
        let counts = grown
            .iter()
            .filter(|(name, _)| name.starts_with(label) || name.contains(label));
        (cpu, counts.map(|(_, count)| *count).sum())
    };
    Some(cpus.iter().map(on).collect())
}

fn judge_rates(machine: &Machine, cpus: &CpuList, label: &str, limit: u64) -> Judgement {
    if cpus.is_empty() {
        return no_isolation();
    }
    let Some(rates) = rates(machine, cpus, label) else {
        return Judgement::cannot_tell("/proc/interrupts cannot be read twice here");
    };
    let read: Vec<String> = rates
        .iter()
        .map(|(cpu, rate)| format!("cpu {cpu}: {rate}/s"))
        .collect();
    let loud = rates.iter().any(|(_, rate)| *rate > limit);
    Judgement::when(loud, Verdict::Warn, read.join(", "))
}

fn observed_tick(machine: &Machine, _: Profile) -> Judgement {
    let full = parameter(machine, "nohz_full");
    if full.is_empty() {
        return Judgement::not_applicable("nohz_full is not set, so the tick is expected");
    }
    // `LOC` on x86, `arch_timer` on Arm.
    let label = if machine
        .text("/proc/interrupts")
        .is_some_and(|text| text.contains("LOC:"))
    {
        "LOC"
    } else {
        "arch_timer"
    };
    judge_rates(machine, &full, label, TICK_LIMIT)
}

fn observed_rescheduling(machine: &Machine, _: Profile) -> Judgement {
    judge_rates(
        machine,
        &isolated(machine),
        "Rescheduling interrupts",
        RESCHEDULE_LIMIT,
    )
}

fn sharing(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    if isolated.is_empty() {
        return no_isolation();
    }
    let mut runnable = vec![0u32; crate::cpu_list::MAX_CPU + 1];
    for cpu in runnable_cpus(machine) {
        runnable[cpu] += 1;
    }
    let crowded: Vec<String> = isolated
        .iter()
        .filter(|cpu| runnable[*cpu] > 1)
        .map(|cpu| format!("cpu {cpu}: {}", runnable[cpu]))
        .collect();
    let read = if crowded.is_empty() {
        "at most one runnable thread on each isolated core".to_owned()
    } else {
        format!("runnable threads on {}", crowded.join(", "))
    };
    Judgement::when(!crowded.is_empty(), Verdict::Warn, read)
}

/// The CPU of every thread in state R.
fn runnable_cpus(machine: &Machine) -> Vec<usize> {
    let pids = machine
        .names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let threads = pids.flat_map(|pid| {
        machine
            .names(&format!("/proc/{pid}/task"))
            .into_iter()
            .map(move |thread| format!("/proc/{pid}/task/{thread}/stat"))
    });
    threads
        .filter_map(|path| runnable_on(&machine.peek(&path)?))
        .collect()
}

/// State is the field behind the name in brackets, the CPU is field 39 of the line (`proc_pid_stat(5)`).
fn runnable_on(stat: &str) -> Option<usize> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let cpu = fields
        .get(36)?
        .parse()
        .ok()
        .filter(|cpu| *cpu <= crate::cpu_list::MAX_CPU)?;
    (fields.first() == Some(&"R")).then_some(cpu)
}

fn smt(machine: &Machine, profile: Profile) -> Judgement {
    match machine
        .text("/sys/devices/system/cpu/smt/active")
        .as_deref()
    {
        None => Judgement::cannot_tell("/sys/devices/system/cpu/smt/active is not readable"),
        Some("0") => Judgement::pass("smt/active: 0"),
        Some(active) => {
            let bad = if profile.wants_isolation() {
                Verdict::Warn
            } else {
                Verdict::Pass
            };
            Judgement::new(bad, format!("smt/active: {active}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_threads_are_read_from_stat_lines() {
        let tail = ["0"; 35].join(" ");
        assert_eq!(runnable_on(&format!("7 (a) b) R {tail} 3 0 0")), Some(3));
        assert_eq!(runnable_on(&format!("7 (a) S {tail} 3 0 0")), None);
        assert_eq!(runnable_on("7 (a) R"), None);
    }
}
