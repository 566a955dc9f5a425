//! The clocks: is wall time kept, by whom, and does it jump.

use crate::doctor::finding::{Check, Judgement, Remedy};
use crate::doctor::machine::Machine;
use crate::doctor::profile::Profile;

/// The checks of this group.
pub const CHECKS: &[Check] = &[
    Check {
        id: "time.synchronised",
        why: "one-way figures between two hosts are only as good as their clocks; round trips do not care",
        source: "X-Lap: intra-host stages need no synchronised clocks",
        remedy: Remedy::each(
            "apt install chrony",
            "apt install chrony",
            "apt install chrony",
            false,
            "none",
        ),
        judge: synchronised,
    },
    Check {
        id: "time.precision_protocol",
        why: "with PTP one-way figures get down to microseconds",
        source: "linuxptp",
        remedy: Remedy::NONE,
        judge: precision,
    },
    Check {
        id: "time.monotonic_drift",
        why: "the synchroniser bends the monotonic clock, and with it every measured duration, by this much",
        source: "adjtimex(2): at most 500 ppm",
        remedy: Remedy::same("wait until the synchroniser has settled", "none"),
        judge: drift,
    },
    Check {
        id: "time.leap_smear",
        why: "a smearing server bends time for a day around a leap second and must not be mixed with others",
        source: "chrony documentation: leapsecmode, smoothtime",
        remedy: Remedy::same("use servers that all smear or none", "none"),
        judge: smear,
    },
];

fn synchronised(machine: &Machine, profile: Profile) -> Judgement {
    match machine.command(&["timedatectl", "show", "-p", "NTPSynchronized", "--value"]) {
        Some(answer) => Judgement::when(
            answer != "yes",
            profile.latency_matters(),
            format!("NTPSynchronized={answer}"),
        ),
        None if machine.runs("chronyd") => Judgement::pass("chronyd runs"),
        None => Judgement::cannot_tell("timedatectl does not answer and chronyd does not run"),
    }
}

fn precision(machine: &Machine, _: Profile) -> Judgement {
    if machine.runs("ptp4l") {
        Judgement::pass("ptp4l runs")
    } else {
        Judgement::not_applicable("ptp4l does not run")
    }
}

fn drift(machine: &Machine, profile: Profile) -> Judgement {
    if !machine.is_live() {
        return Judgement::cannot_tell("a recording has no running clock");
    }
    let ppm = monotonic_drift_ppm();
    Judgement::when(
        ppm.abs() > 500.0,
        profile.latency_matters(),
        format!("{ppm:+.1} ppm against the raw clock"),
    )
}

/// Rate of the monotonic clock against the raw one over a fifth of a second, parts per million.
fn monotonic_drift_ppm() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let now = |id| {
        let time = clock_gettime(id);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let (raw, monotonic) = (now(ClockId::MonotonicRaw), now(ClockId::Monotonic));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let (raw, monotonic) = (
        now(ClockId::MonotonicRaw) - raw,
        now(ClockId::Monotonic) - monotonic,
    );
    (monotonic - raw) / raw * 1e6
}

fn smear(machine: &Machine, _: Profile) -> Judgement {
    let Some(config) = machine.text("/etc/chrony/chrony.conf") else {
        return Judgement::not_applicable("no chrony configuration");
    };
    let smearing: Vec<&str> = config
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("smoothtime") || line.starts_with("leapsecmode slew"))
        .collect();
    Judgement::pass(if smearing.is_empty() {
        "no smearing configured".to_owned()
    } else {
        smearing.join("; ")
    })
}
