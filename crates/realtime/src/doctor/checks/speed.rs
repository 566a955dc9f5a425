//! How fast and how steadily the cores run: governor, frequency, idle states, hypervisor, heat.

use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, boot_parameter};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;
use crate::periodic::counters::machine_times;
use crate::thread::process::WakeLatency;

const PI_STUDY: &str = "Scheduling Analysis of UAV Flight Control Workloads using Raspberry Pi 5 Using PREEMPT_RT Linux";
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu0/cpufreq";
/// Exit latency that a 4 ms loop notices, microseconds.
const DEEP_US: i64 = 50;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "cpu.governor",
        why: "a governor that saves energy lowers the clock between two cycles and raises it too late",
        source: PI_STUDY,
        remedy: Remedy::each(
            "apt install linux-cpupower && cpupower frequency-set -g performance",
            "apt install linux-tools-generic && sudo cpupower frequency-set -g performance",
            "set force_turbo=1 in /boot/firmware/config.txt, or echo performance into scaling_governor of each core",
            false,
            "more power and heat; shorter flight on a drone",
        ),
        judge: governor,
    },
    Check {
        id: "cpu.fixed_frequency",
        why: "the published figures hold at a fixed 2.4 GHz; a moving clock moves the execution time",
        source: PI_STUDY,
        remedy: Remedy::same(
            "write scaling_max_freq into scaling_min_freq of each core",
            "more power and heat",
        ),
        judge: fixed_frequency,
    },
    Check {
        id: "cpu.turbo",
        why: "turbo makes the execution time depend on what the other cores do",
        source: "Red Hat and Intel real-time guides",
        remedy: Remedy::same(
            "echo 1 into /sys/devices/system/cpu/intel_pstate/no_turbo or 0 into cpufreq/boost",
            "lower peak speed",
        ),
        judge: turbo,
    },
    Check {
        id: "cpu.idle_states",
        why: "waking from a deep idle state costs its exit latency each cycle; a request in /dev/cpu_dma_latency avoids it while held",
        source: "jlelli/rt-tests#7",
        remedy: boot_parameter!(
            "cpuidle.off=1 (or hold /dev/cpu_dma_latency, as the loop does)",
            "more power and heat"
        ),
        judge: idle_states,
    },
    Check {
        id: "cpu.hypervisor",
        why: "the hypervisor can take the core away for milliseconds and nothing inside the guest prevents it",
        source: "measured: one cyclictest command, maximum 0.56 ms in one run and 6.9 ms in another",
        remedy: Remedy::same("measure on the bare machine", "none"),
        judge: hypervisor,
    },
    Check {
        id: "cpu.steal",
        why: "time stolen by the hypervisor shows as latency without a cause inside the guest",
        source: "proc_stat(5)",
        remedy: Remedy::same("give the guest cores of its own on the host", "none"),
        judge: steal,
    },
    Check {
        id: "cpu.throttled",
        why: "heat or low voltage lowers the clock in the middle of a flight",
        source: PI_STUDY,
        remedy: Remedy::each(
            "better cooling",
            "better cooling",
            "active cooling and the 5 V 5 A supply; vcgencmd get_throttled shows which of them",
            false,
            "none",
        ),
        judge: throttled,
    },
];

fn governor(machine: &Machine, profile: Profile) -> Judgement {
    match machine.text(&format!("{CPUFREQ}/scaling_governor")) {
        None => Judgement::not_applicable("no frequency scaling here"),
        Some(name) => Judgement::when(name != "performance", profile.latency_matters(), name),
    }
}

fn fixed_frequency(machine: &Machine, profile: Profile) -> Judgement {
    let bound = |name: &str| machine.number(&format!("{CPUFREQ}/scaling_{name}_freq"));
    let (Some(low), Some(high)) = (bound("min"), bound("max")) else {
        return Judgement::not_applicable("no frequency scaling here");
    };
    let bad = if profile.wants_isolation() {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    Judgement::when(low != high, bad, format!("{low} to {high} kHz"))
}

fn turbo(machine: &Machine, profile: Profile) -> Judgement {
    let off = machine
        .number("/sys/devices/system/cpu/intel_pstate/no_turbo")
        .map(|flag| flag == 1);
    let off = off.or_else(|| {
        machine
            .number("/sys/devices/system/cpu/cpufreq/boost")
            .map(|flag| flag == 0)
    });
    let bad = if profile.wants_isolation() {
        Verdict::Warn
    } else {
        Verdict::Pass
    };
    match off {
        None => Judgement::not_applicable("no turbo switch here"),
        Some(off) => Judgement::when(!off, bad, if off { "turbo off" } else { "turbo on" }),
    }
}

fn idle_states(machine: &Machine, profile: Profile) -> Judgement {
    let folder = "/sys/devices/system/cpu/cpu0/cpuidle";
    let states: Vec<String> = machine
        .names(folder)
        .into_iter()
        .filter(|name| name.starts_with("state"))
        .collect();
    if states.is_empty() {
        return Judgement::not_applicable("no idle driver here");
    }
    let deep: Vec<String> = states
        .iter()
        .filter_map(|state| deep_state(machine, &format!("{folder}/{state}")))
        .collect();
    // Opening the file to read it makes a request that ends at once and changes nothing.
    let held = machine.is_live().then(WakeLatency::in_force).flatten();
    let request = held.map_or_else(
        || "request not readable".to_owned(),
        |us| format!("request in force: {us} us"),
    );
    let read = if deep.is_empty() {
        format!("no state above {DEEP_US} us; {request}")
    } else {
        format!("{}; {request}", deep.join(", "))
    };
    let limited = held.is_some_and(|us| i64::from(us) < DEEP_US);
    Judgement::when(
        !deep.is_empty() && !limited,
        profile.latency_matters(),
        read,
    )
}

fn deep_state(machine: &Machine, state: &str) -> Option<String> {
    let latency = machine.number(&format!("{state}/latency"))?;
    let disabled = machine.number(&format!("{state}/disable")) == Some(1);
    let name = machine.text(&format!("{state}/name")).unwrap_or_default();
    (latency > DEEP_US && !disabled).then(|| format!("{name} {latency} us"))
}

fn hypervisor(machine: &Machine, profile: Profile) -> Judgement {
    let Some(info) = machine.text("/proc/cpuinfo") else {
        return Judgement::cannot_tell("/proc/cpuinfo is not readable");
    };
    let flagged = info.lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    });
    let kind = machine.text("/sys/hypervisor/type");
    let inside = flagged || kind.is_some();
    let read = match (inside, kind) {
        (true, Some(kind)) => format!("inside {kind}"),
        (true, None) => "the processor flags say hypervisor".to_owned(),
        (false, _) => "no sign of a hypervisor".to_owned(),
    };
    Judgement::when(
        inside,
        if profile.wants_real_time() {
            Verdict::Warn
        } else {
            Verdict::Pass
        },
        read,
    )
}

fn steal(machine: &Machine, profile: Profile) -> Judgement {
    let Some(times) = machine
        .text("/proc/stat")
        .as_deref()
        .and_then(machine_times)
    else {
        return Judgement::cannot_tell("/proc/stat is not readable");
    };
    let share = times.steal as f64 / (times.busy + times.steal).max(1) as f64;
    Judgement::when(
        share > 0.005,
        profile.latency_matters(),
        format!("{:.2} % of the busy time since boot", share * 100.0),
    )
}

fn throttled(machine: &Machine, profile: Profile) -> Judgement {
    let firmware = machine.text("/sys/devices/platform/soc/soc:firmware/get_throttled");
    if let Some(bits) = firmware
        .as_deref()
        .and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
    {
        return Judgement::when(
            bits != 0,
            profile.latency_matters(),
            format!("firmware: {bits:#x}{}", pi_bits(bits)),
        );
    }
    let cpus = machine.names("/sys/devices/system/cpu");
    let counts = cpus.iter().filter_map(|cpu| {
        machine.number(&format!(
            "/sys/devices/system/cpu/{cpu}/thermal_throttle/core_throttle_count"
        ))
    });
    let counts: Vec<i64> = counts.collect();
    if counts.is_empty() {
        return Judgement::cannot_tell("no throttle counters here");
    }
    let total: i64 = counts.iter().sum();
    Judgement::when(
        total > 0,
        profile.latency_matters(),
        format!("{total} events since boot"),
    )
}

/// Meaning of the firmware's bits (`vcgencmd get_throttled`).
fn pi_bits(bits: u32) -> String {
    let names = [
        (0, "under-voltage now"),
        (2, "throttled now"),
        (3, "soft limit now"),
        (16, "under-voltage since boot"),
        (18, "throttled since boot"),
    ];
    let set: Vec<&str> = names
        .iter()
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        String::new()
    } else {
        format!(" ({})", set.join(", "))
    }
}
