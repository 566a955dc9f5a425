//! The doctor on recorded machines: every verdict of every machine as a snapshot, and the findings that matter one by
//! one.

use std::fmt::Write as _;
use std::path::PathBuf;

use realtime::doctor::report::Document;
use realtime::doctor::{Finding, Machine, Profile, Verdict, examine};

const MACHINES: [(&str, Profile); 8] = [
    ("vm-guest", Profile::Ci),
    ("pi5-stock", Profile::BridgeOnPi),
    ("pi5-rt-tuned", Profile::BridgeOnPi),
    ("pc-stock", Profile::Controller1Khz),
    ("pc-isolated", Profile::Controller1Khz),
    ("pc-smt-on", Profile::Controller1Khz),
    ("container-no-rt-runtime", Profile::Controller1Khz),
    ("laptop-battery", Profile::GroundStation),
];

fn machine(name: &str) -> Machine {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    assert!(folder.is_dir(), "no recording {name}");
    Machine::recorded(&folder)
}

fn findings(name: &str) -> Vec<Finding> {
    let (_, profile) = MACHINES.iter().find(|(known, _)| *known == name).unwrap();
    examine(&machine(name), *profile)
}

fn find(name: &str, id: &str) -> Finding {
    findings(name)
        .into_iter()
        .find(|finding| finding.id == id)
        .unwrap()
}

/// A changed verdict shows as a diff of `tests/golden/doctor.txt`.
#[test]
fn verdicts_of_all_machines_are_the_recorded_ones() {
    let mut text = String::new();
    for (name, profile) in MACHINES {
        writeln!(text, "# {name} as {}", profile.name()).unwrap();
        for finding in findings(name) {
            writeln!(
                text,
                "{:<14} {}: {}",
                finding.verdict.word(),
                finding.id,
                finding.read
            )
            .unwrap();
        }
        text.push('\n');
    }
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/doctor.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    for (now, then) in text.lines().zip(expected.lines()) {
        assert_eq!(now, then);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
}

/// Busy FIFO thread: 50 ms holes each second from throttling; the doctor reports the limit.
#[test]
fn the_real_time_limit_is_reported_with_the_hole_it_makes() {
    let finding = find("pi5-stock", "sched.rt_runtime");
    assert!(
        finding.read.contains("kernel.sched_rt_runtime_us = 950000"),
        "{}",
        finding.read
    );
    assert!(finding.read.contains("holes of 50 ms"), "{}", finding.read);
}

#[test]
fn root_in_a_container_with_zero_runtime_is_a_failure_with_the_remedy() {
    let finding = find("container-no-rt-runtime", "sched.cgroup_runtime");
    assert_eq!(finding.verdict, Verdict::Fail);
    assert!(finding.remedy.unwrap().debian.contains("--cpu-rt-runtime"));
    assert_eq!(
        find("container-no-rt-runtime", "sched.cgroup_quota").verdict,
        Verdict::Warn
    );
    assert_eq!(
        find("container-no-rt-runtime", "sched.cgroup_cpus").verdict,
        Verdict::Warn
    );
}

#[test]
fn capabilities_count_where_the_limits_alone_would_blame_wrongly() {
    let machine = machine("vm-guest");
    let of = |id| {
        examine(&machine, Profile::Controller1Khz)
            .into_iter()
            .find(|finding| finding.id == id)
            .unwrap()
    };
    assert_eq!(of("sched.real_time_allowed").verdict, Verdict::Pass);
    assert_eq!(
        find("pc-stock", "sched.real_time_allowed").verdict,
        Verdict::Fail
    );
}

/// The command line asks for a quiet core; the counters say that the tick is back.
#[test]
fn a_tick_on_a_nohz_full_core_is_observed_not_believed() {
    assert_eq!(
        find("pc-isolated", "cpu.observed_tick").verdict,
        Verdict::Pass
    );
    let finding = find("pc-smt-on", "cpu.observed_tick");
    assert_eq!(finding.verdict, Verdict::Warn);
    assert!(finding.read.contains("cpu 10: 1000/s"), "{}", finding.read);
    assert_eq!(find("pc-smt-on", "cpu.smt").verdict, Verdict::Warn);
}

#[test]
fn preempt_rt_is_recognised_by_several_signs_and_lists_are_parsed() {
    assert_eq!(
        find("pi5-rt-tuned", "kernel.preempt_rt").verdict,
        Verdict::Pass
    );
    assert_eq!(
        find("pi5-stock", "kernel.preempt_rt").verdict,
        Verdict::Warn
    );
    let lists = find("pi5-rt-tuned", "cpu.isolation_consistent");
    assert_eq!(lists.verdict, Verdict::Pass);
    assert!(
        lists
            .read
            .contains("isolcpus 2-3, nohz_full 2-3, rcu_nocbs 2-3"),
        "{}",
        lists.read
    );
}

#[test]
fn a_stock_pi_is_told_about_its_console_radio_and_governor() {
    for (id, verdict) in [
        ("uart.console", Verdict::Fail),
        ("wifi.power_save", Verdict::Fail),
        ("wifi.gateway", Verdict::Warn),
        ("cpu.governor", Verdict::Warn),
        ("cpu.throttled", Verdict::Warn),
        ("sched.real_time_allowed", Verdict::Warn),
    ] {
        let finding = find("pi5-stock", id);
        assert_eq!(finding.verdict, verdict, "{finding:?}");
        assert!(finding.remedy.is_some());
    }
    assert!(
        findings("pi5-rt-tuned")
            .iter()
            .all(|finding| finding.verdict < Verdict::Fail)
    );
}

#[test]
fn the_exit_code_is_that_of_the_worst_verdict_and_the_report_explains() {
    let tuned = Document::new(Profile::Ci, findings("vm-guest"));
    assert_eq!(
        (tuned.worst.exit_code(), tuned.worst),
        (0, Verdict::Pass.max(tuned.worst))
    );
    let stock = Document::new(Profile::BridgeOnPi, findings("pi5-stock"));
    assert_eq!(stock.worst.exit_code(), 2);
    let text = stock.text(false);
    for part in [
        "why:",
        "remedy: Raspberry Pi OS:",
        "risk:",
        "needs a reboot",
        "raspberrypi/linux#7533",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("\npass"));
    let json = serde_json::to_value(&stock).unwrap();
    assert_eq!(
        (json["schema"].as_u64(), json["worst"].as_str()),
        (Some(1), Some("fail"))
    );
}

/// The live machine is only read: the examination ends and every check has an answer.
#[test]
fn this_machine_can_be_examined_and_recorded() {
    let live = Machine::live();
    let findings = examine(&live, Profile::Ci);
    let folder = tempfile::tempdir().unwrap();
    assert!(live.record(folder.path()).unwrap() > 20);
    let again = examine(&Machine::recorded(folder.path()), Profile::Ci);
    assert_eq!(findings.len(), again.len());
    let of = |findings: &[Finding], id: &str| {
        findings
            .iter()
            .find(|finding| finding.id == id)
            .unwrap()
            .clone()
    };
    for id in [
        "kernel.version",
        "sched.rt_runtime",
        "sched.real_time_allowed",
        "net.receive_buffer_limit",
        "mem.swap",
    ] {
        assert_eq!(of(&findings, id), of(&again, id));
    }
}
