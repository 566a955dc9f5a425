//! The kernel: version, preemption, timers, clock source, modules.

use super::isolation::isolated;
use crate::doctor::finding::{Check, Judgement, Remedy, Verdict, boot_parameter};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

const PI_STUDY: &str = "Scheduling Analysis of UAV Flight Control Workloads using Raspberry Pi 5 Using PREEMPT_RT Linux";

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "kernel.version",
        why: "some kernels are known to bring the tick back to isolated cores or to lack what the link needs",
        source: "NVIDIA/NV-Kernels#400",
        remedy: Remedy::each(
            "apt install linux-image-amd64 from stable or backports",
            "apt install linux-generic-hwe-24.04",
            "apt full-upgrade",
            true,
            "a new kernel may need rebuilt out-of-tree drivers",
        ),
        judge: version,
    },
    Check {
        id: "kernel.preempt_rt",
        why: "without it the worst wake-up under load was 1848 us at SCHED_FIFO instead of 224 us",
        source: PI_STUDY,
        remedy: Remedy::each(
            "apt install linux-image-rt-amd64",
            "pro enable realtime-kernel",
            "apt install linux-image-rpi-v8-rt where offered, or build the kernel with CONFIG_PREEMPT_RT",
            true,
            "less throughput; some proprietary drivers refuse to build",
        ),
        judge: preempt_rt,
    },
    Check {
        id: "kernel.preempt_model",
        why: "with no preemption an unisolated control thread waits for every long system call of others",
        source: "Running DROID on a Single Device: in voluntary mode the box itself sent late",
        remedy: boot_parameter!("preempt=full", "slightly less throughput"),
        judge: preempt_model,
    },
    Check {
        id: "kernel.hz",
        why: "the tick rate bounds how fast the scheduler notices an overlong slice",
        source: "kernel configuration CONFIG_HZ",
        remedy: Remedy::NONE,
        judge: hz,
    },
    Check {
        id: "kernel.high_resolution_timers",
        why: "without them every sleep is rounded up to the next tick",
        source: "clock_nanosleep(2), CONFIG_HIGH_RES_TIMERS",
        remedy: Remedy::same(
            "boot a distribution kernel, and remove highres=off from the boot parameters",
            "none",
        ),
        judge: high_resolution,
    },
    Check {
        id: "kernel.clocksource",
        why: "reading hpet or acpi_pm costs a microsecond and more instead of tens of nanoseconds, several times a cycle",
        source: "measured: 43 ns a read with tsc",
        remedy: boot_parameter!(
            "tsc=reliable",
            "time goes wrong on machines whose counters really drift apart"
        ),
        judge: clocksource,
    },
    Check {
        id: "kernel.lockdown",
        why: "a locked-down kernel hides scheduler settings, so some checks below cannot tell",
        source: "kernel_lockdown(7)",
        remedy: Remedy::NONE,
        judge: lockdown,
    },
    Check {
        id: "kernel.proprietary_on_rt",
        why: "the NVIDIA driver is not supported on real-time kernels and can hold the CPU for milliseconds",
        source: "Running DROID on a Single Device",
        remedy: Remedy::same(
            "use the standard kernel with isolated cores on machines with this driver",
            "gives up PREEMPT_RT",
        ),
        judge: proprietary,
    },
];

/// Major and minor version.
pub(crate) fn release(machine: &Machine) -> Option<(u32, u32)> {
    let text = machine.text("/proc/sys/kernel/osrelease")?;
    let mut parts = text.split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn version(machine: &Machine, _: Profile) -> Judgement {
    let (Some(text), Some(version)) =
        (machine.text("/proc/sys/kernel/osrelease"), release(machine))
    else {
        return Judgement::cannot_tell("/proc/sys/kernel/osrelease is not readable");
    };
    if version < (5, 10) {
        return Judgement::warn(format!(
            "{text}: older than 5.10, not tested with this project"
        ));
    }
    if version >= (6, 12) && machine.boot_parameter("nohz_full").is_some() {
        return Judgement::warn(format!(
            "{text}: from 6.12 on the fair server's timer may bring the tick back on nohz_full cores"
        ));
    }
    Judgement::pass(text)
}

/// The four signs of PREEMPT_RT: flag file, version string, configuration, preempt mode.
pub(crate) fn real_time_signs(machine: &Machine) -> Vec<(&'static str, Option<bool>)> {
    let version = machine
        .text("/proc/sys/kernel/version")
        .or_else(|| machine.text("/proc/version"));
    let config = machine.kernel_config();
    let mode = machine.text("/sys/kernel/debug/sched/preempt");
    vec![
        (
            "/sys/kernel/realtime",
            machine.number("/sys/kernel/realtime").map(|flag| flag == 1),
        ),
        (
            "version string",
            version.map(|text| text.contains("PREEMPT_RT")),
        ),
        (
            "CONFIG_PREEMPT_RT",
            config.map(|text| text.lines().any(|line| line == "CONFIG_PREEMPT_RT=y")),
        ),
        (
            "debugfs preempt mode",
            mode.map(|text| text.contains("(rt)") || text.contains("PREEMPT_RT")),
        ),
    ]
}

pub(crate) fn is_real_time(machine: &Machine) -> bool {
    real_time_signs(machine)
        .iter()
        .any(|(_, sign)| *sign == Some(true))
}

fn preempt_rt(machine: &Machine, profile: Profile) -> Judgement {
    let signs = real_time_signs(machine);
    let word = |sign: Option<bool>| match sign {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not readable",
    };
    let read: Vec<String> = signs
        .iter()
        .map(|(name, sign)| format!("{name}: {}", word(*sign)))
        .collect();
    let read = read.join(", ");
    if signs.iter().all(|(_, sign)| sign.is_none()) {
        return Judgement::cannot_tell(read);
    }
    let missing = match profile {
        Profile::Controller1Khz | Profile::BridgeOnPi => Verdict::Warn,
        Profile::GroundStation | Profile::Ci => Verdict::Pass,
    };
    Judgement::when(!is_real_time(machine), missing, read)
}

/// The preemption model in force, and where it was read.
fn model(machine: &Machine) -> Option<(String, &'static str)> {
    if is_real_time(machine) {
        return Some(("rt".to_owned(), "PREEMPT_RT"));
    }
    let current = |text: &str| {
        text.split_whitespace()
            .find_map(|word| Some(word.strip_prefix('(')?.strip_suffix(')')?.to_owned()))
    };
    if let Some(model) = machine
        .text("/sys/kernel/debug/sched/preempt")
        .as_deref()
        .and_then(current)
    {
        return Some((model, "debugfs"));
    }
    if let Some(model) = machine.boot_parameter("preempt") {
        return Some((model, "boot parameter"));
    }
    let log = machine.command(&["dmesg"]).unwrap_or_default();
    let logged = log.lines().find_map(|line| {
        line.split_once("Dynamic Preempt: ")
            .map(|(_, model)| model.to_owned())
    });
    if let Some(model) = logged {
        return Some((model, "boot log"));
    }
    let version = machine.text("/proc/sys/kernel/version")?;
    (!version.contains("PREEMPT_DYNAMIC")).then(|| {
        let full = version.contains("PREEMPT");
        (
            if full { "full" } else { "none or voluntary" }.to_owned(),
            "version string",
        )
    })
}

fn preempt_model(machine: &Machine, profile: Profile) -> Judgement {
    match model(machine) {
        Some((model, from)) => {
            let weak = model.starts_with("none") || model == "voluntary";
            Judgement::when(
                weak,
                profile.latency_matters(),
                format!("{model} (from {from})"),
            )
        }
        None => Judgement::cannot_tell(
            "the kernel can switch models at run time; debugfs and boot log are not readable",
        ),
    }
}

fn config_value(machine: &Machine, key: &str) -> Option<String> {
    let config = machine.kernel_config()?;
    config
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
}

fn hz(machine: &Machine, _: Profile) -> Judgement {
    match config_value(machine, "CONFIG_HZ") {
        Some(hz) => Judgement::pass(format!("CONFIG_HZ={hz}")),
        None => Judgement::cannot_tell("no kernel configuration in /boot or /proc/config.gz"),
    }
}

fn high_resolution(machine: &Machine, profile: Profile) -> Judgement {
    if machine
        .boot_parameter("highres")
        .is_some_and(|value| value == "off")
    {
        return Judgement::new(profile.latency_matters(), "boot parameter highres=off");
    }
    match config_value(machine, "CONFIG_HIGH_RES_TIMERS") {
        Some(value) => Judgement::when(
            value != "y",
            profile.latency_matters(),
            format!("CONFIG_HIGH_RES_TIMERS={value}"),
        ),
        None if machine.kernel_config().is_some() => Judgement::new(
            profile.latency_matters(),
            "CONFIG_HIGH_RES_TIMERS is not set",
        ),
        None => Judgement::cannot_tell("no kernel configuration in /boot or /proc/config.gz"),
    }
}

fn clocksource(machine: &Machine, profile: Profile) -> Judgement {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match machine.text(path).as_deref() {
        None => Judgement::cannot_tell(format!("{path} is not readable")),
        Some(name @ ("hpet" | "acpi_pm" | "jiffies")) => {
            Judgement::new(profile.latency_matters(), name)
        }
        Some(name) => Judgement::pass(name),
    }
}

fn lockdown(machine: &Machine, _: Profile) -> Judgement {
    match machine.text("/sys/kernel/security/lockdown") {
        None => Judgement::cannot_tell("/sys/kernel/security/lockdown is not readable"),
        Some(text) => Judgement::pass(text),
    }
}

fn proprietary(machine: &Machine, profile: Profile) -> Judgement {
    let Some(modules) = machine.text("/proc/modules") else {
        return Judgement::cannot_tell("/proc/modules is not readable");
    };
    let loaded = modules.lines().any(|line| line.starts_with("nvidia"));
    let isolation = if isolated(machine).is_empty() {
        "no isolated cores"
    } else {
        "isolated cores"
    };
    let read = format!(
        "nvidia module {}, {isolation}",
        if loaded { "loaded" } else { "not loaded" }
    );
    Judgement::when(
        loaded && is_real_time(machine),
        profile.latency_matters(),
        read,
    )
}
