//! Where interrupts go, in what class their threads run, and how long the network card holds them back.

use super::isolation::isolated;
use super::kernel::{is_real_time, release};
use super::network::interfaces;
use crate::cpu_list::CpuList;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, boot_parameter};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;
use crate::thread::policy::DEFAULT_PRIORITY;

const DROID: &str = "Running DROID on a Single Device";
const COALESCING_LIMIT_US: i64 = 50;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "irq.default_affinity",
        why: "new interrupts go where this mask says; one network queue on the control core was the last straggler",
        source: DROID,
        remedy: boot_parameter!(
            "irqaffinity= with the housekeeping cores",
            "interrupts share fewer cores"
        ),
        judge: default_affinity,
    },
    Check {
        id: "irq.on_isolated",
        why: "a device interrupt on an isolated core takes the core from the control thread",
        source: DROID,
        remedy: Remedy::same(
            "write a housekeeping list into /proc/irq/N/smp_affinity_list (the robot's own network card may stay)",
            "none",
        ),
        judge: on_isolated,
    },
    Check {
        id: "irq.network_queues",
        why: "a packet is handled first on the core of its queue; the control thread should be there or that core be quiet",
        source: "frankarobotics/libfranka#36, #163",
        remedy: Remedy::NONE,
        judge: network_queues,
    },
    Check {
        id: "irq.balancer",
        why: "irqbalance moves interrupts at run time, also onto the cores you chose",
        source: "tuned profile cpu-partitioning",
        remedy: Remedy::same(
            "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST= with the isolated cores",
            "interrupts stay where they are",
        ),
        judge: balancer,
    },
    Check {
        id: "irq.thread_priority",
        why: "on PREEMPT_RT handlers run at FIFO 50: a UART thread above them delays its own bytes",
        source: "kernel documentation on threaded interrupts",
        remedy: Remedy::same(
            "run the UART thread below 50 or raise the UART's irq thread with chrt",
            "a thread above its device's handler waits for itself",
        ),
        judge: thread_priority,
    },
    Check {
        id: "irq.coalescing",
        why: "the card collects packets for rx-usecs before it says anything",
        source: "frankarobotics/libfranka#123",
        remedy: Remedy::same(
            "ethtool -C DEVICE rx-usecs 0 adaptive-rx off",
            "more interrupts at high rates",
        ),
        judge: coalescing,
    },
    Check {
        id: "irq.tty_workqueue",
        why: "received bytes pass an unbound kernel worker: frames of 10-15 ms were seen at 30-35 ms on real-time kernels",
        source: "kernel commit d000422a46aa",
        remedy: Remedy::same(
            "keep one core free of real-time threads; with a newer kernel set cpumask and nice of the driver's tty workqueue",
            "none",
        ),
        judge: tty_workqueue,
    },
];

fn default_affinity(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    let Some(mask) = machine.text("/proc/irq/default_smp_affinity") else {
        return Judgement::cannot_tell("/proc/irq/default_smp_affinity is not readable");
    };
    let cpus = CpuList::from_mask(&mask).unwrap_or_default();
    let read = format!("default: cpu {cpus}; isolated: {isolated}");
    Judgement::when(
        !cpus.intersection(&isolated).is_empty(),
        Verdict::Warn,
        read,
    )
}

/// Interrupts of `/proc/irq` with the CPUs they really go to.
fn routed(machine: &Machine) -> Vec<(String, CpuList)> {
    let numbers = machine
        .names("/proc/irq")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let cpus = |number: &str| {
        let effective = machine
            .text(&format!("/proc/irq/{number}/effective_affinity_list"))
            .filter(|list| !list.is_empty());
        effective
            .or_else(|| machine.text(&format!("/proc/irq/{number}/smp_affinity_list")))?
            .parse()
            .ok()
    };
    numbers
        .filter_map(|number| cpus(&number).map(|cpus| (number, cpus)))
        .collect()
}

fn on_isolated(machine: &Machine, _: Profile) -> Judgement {
    let isolated = isolated(machine);
    if isolated.is_empty() {
        return Judgement::not_applicable("no isolated cores");
    }
    let interrupts = machine.text("/proc/interrupts").unwrap_or_default();
    let hits: Vec<String> = routed(machine)
        .into_iter()
        .filter(|(number, cpus)| {
            !cpus.intersection(&isolated).is_empty() && has_fired(&interrupts, number)
        })
        .map(|(number, cpus)| format!("{} on cpu {cpus}", named(&interrupts, &number)))
        .collect();
    let read = if hits.is_empty() {
        format!("none of the active interrupts goes to cpu {isolated}")
    } else {
        hits.join("; ")
    };
    Judgement::when(!hits.is_empty(), Verdict::Warn, read)
}

fn row<'a>(interrupts: &'a str, number: &str) -> Option<&'a str> {
    interrupts
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(number)?.strip_prefix(':'))
}

fn has_fired(interrupts: &str, number: &str) -> bool {
    let counts = row(interrupts, number)
        .into_iter()
        .flat_map(str::split_whitespace)
        .map_while(|word| word.parse::<u64>().ok());
    counts.sum::<u64>() > 0
}

fn named(interrupts: &str, number: &str) -> String {
    let name = row(interrupts, number)
        .and_then(|row| row.split_whitespace().last())
        .unwrap_or_default();
    format!("irq {number} {name}")
}

fn network_queues(machine: &Machine, _: Profile) -> Judgement {
    let names = interfaces(machine);
    let interrupts = machine.text("/proc/interrupts").unwrap_or_default();
    let of_network = |number: &str| {
        let device = named(&interrupts, number);
        let drivers = names.iter().map(|name| {
            machine
                .text(&format!("/sys/class/net/{name}/device/uevent"))
                .unwrap_or_default()
        });
        let drivers: Vec<String> = drivers
            .filter_map(|text| {
                text.lines()
                    .find_map(|line| line.strip_prefix("DRIVER=").map(str::to_owned))
            })
            .collect();
        names
            .iter()
            .chain(&drivers)
            .any(|name| device.contains(name.as_str()))
    };
    let queues: Vec<String> = routed(machine)
        .into_iter()
        .filter(|(number, _)| of_network(number))
        .map(|(number, cpus)| format!("{} on cpu {cpus}", named(&interrupts, &number)))
        .collect();
    if queues.is_empty() {
        return Judgement::cannot_tell(
            "no interrupt carries the name of a network interface or its driver",
        );
    }
    Judgement::pass(queues.join("; "))
}

fn balancer(machine: &Machine, _: Profile) -> Judgement {
    if isolated(machine).is_empty() {
        return Judgement::not_applicable("no isolated cores");
    }
    let runs = machine.runs("irqbalance");
    Judgement::when(
        runs,
        Verdict::Warn,
        if runs {
            "irqbalance runs"
        } else {
            "irqbalance does not run"
        },
    )
}

fn thread_priority(machine: &Machine, profile: Profile) -> Judgement {
    if !is_real_time(machine) {
        return Judgement::not_applicable("handlers are not threads on this kernel");
    }
    let handlers = machine.processes_where(|name| {
        name.starts_with("irq/") && (name.contains("uart") || name.contains("tty"))
    });
    let told: Vec<(String, u8)> = handlers
        .into_iter()
        .filter_map(|(pid, name)| {
            Some((
                name,
                real_time_priority(&machine.text(&format!("/proc/{pid}/stat"))?)?,
            ))
        })
        .collect();
    if told.is_empty() {
        return Judgement::cannot_tell("no interrupt thread of a UART");
    }
    let below = told
        .iter()
        .any(|(_, priority)| *priority < DEFAULT_PRIORITY);
    let read: Vec<String> = told
        .iter()
        .map(|(name, priority)| format!("{name}: {priority}"))
        .collect();
    let read = format!(
        "{}; this project's default for its own threads: {DEFAULT_PRIORITY}",
        read.join(", ")
    );
    Judgement::when(below && profile.wants_uart(), Verdict::Warn, read)
}

/// The real-time priority is field 40 of the line (`proc_pid_stat(5)`).
fn real_time_priority(stat: &str) -> Option<u8> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(37)?
        .parse()
        .ok()
}

fn coalescing(machine: &Machine, profile: Profile) -> Judgement {
    let wired: Vec<String> = interfaces(machine)
        .into_iter()
        .filter(|name| !machine.exists(&format!("/sys/class/net/{name}/phy80211")))
        .collect();
    if wired.is_empty() {
        return Judgement::not_applicable("no wired interface");
    }
    let told: Vec<(String, i64)> = wired
        .iter()
        .filter_map(|name| {
            Some((
                name.clone(),
                rx_usecs(&machine.command(&["ethtool", "-c", name])?)?,
            ))
        })
        .collect();
    if told.is_empty() {
        return Judgement::cannot_tell("ethtool is not installed or the driver does not tell");
    }
    let read: Vec<String> = told
        .iter()
        .map(|(name, us)| format!("{name}: rx-usecs {us}"))
        .collect();
    Judgement::when(
        told.iter().any(|(_, us)| *us > COALESCING_LIMIT_US),
        profile.latency_matters(),
        read.join(", "),
    )
}

fn rx_usecs(text: &str) -> Option<i64> {
    text.lines()
        .find_map(|line| line.strip_prefix("rx-usecs:")?.trim().parse().ok())
}

fn tty_workqueue(machine: &Machine, profile: Profile) -> Judgement {
    if !profile.wants_uart() {
        return Judgement::not_applicable("this profile has no UART");
    }
    let queues: Vec<String> = machine
        .names("/sys/devices/virtual/workqueue")
        .into_iter()
        .filter(|name| name.contains("tty"))
        .collect();
    if !queues.is_empty() {
        return Judgement::pass(format!("the driver has its own: {}", queues.join(", ")));
    }
    let release = release(machine).map_or_else(
        || "unknown".to_owned(),
        |(major, minor)| format!("{major}.{minor}"),
    );
    let read =
        format!("kernel {release} pushes received bytes through the shared unbound workqueue");
    Judgement::when(is_real_time(machine), Verdict::Warn, read)
}
