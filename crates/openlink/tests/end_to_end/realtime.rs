//! `openlink loop`, `box` and `doctor` as whole programs: exit codes, files, signals. Never how fast they are.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn openlink(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openlink"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    openlink(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn recorded(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../realtime/tests/fixtures")
        .join(machine)
}

#[test]
fn the_doctors_exit_code_is_that_of_the_worst_verdict() {
    for (machine, profile, code) in [
        ("vm-guest", "ci", 0),
        ("laptop-battery", "ground-station", 1),
        ("pi5-stock", "bridge-on-pi", 2),
    ] {
        let root = recorded(machine);
        let output = output(&[
            "doctor",
            "--profile",
            profile,
            "--root",
            root.to_str().unwrap(),
            "--json",
        ]);
        assert_eq!(output.status.code(), Some(code), "{machine}");
        assert_eq!(json(&output)["kind"], "doctor");
    }
}

/// Strict: a refusal ends the program before anything is measured.
#[test]
fn a_strict_loop_ends_before_measuring_when_the_kernel_refuses() {
    let output = output(&[
        "loop",
        "--policy",
        "deadline",
        "--pin",
        "0",
        "--strict",
        "--duration",
        "1h",
    ]);
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("refused (E"), "{error}");
}

#[test]
fn priority_99_needs_force() {
    let output = output(&["loop", "--policy", "fifo:99", "--duration", "100ms"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--force"));
}

#[test]
fn a_loop_writes_its_files_and_they_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = output(&[
        "loop",
        "--policy",
        "other",
        "--duration",
        "300ms",
        "--warmup",
        "50ms",
        "--json",
        "-o",
        path,
    ]);
    assert!(output.status.success(), "{output:?}");
    let written: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("results.json")).unwrap())
            .unwrap();
    assert_eq!(written, json(&output));
    assert_eq!(written["cells"][0]["effective"]["policy"], "other");
    for name in ["histogram.csv", "ecdf.svg", "histogram.svg", "report.html"] {
        assert!(
            folder.path().join(name).metadata().unwrap().len() > 100,
            "{name}"
        );
    }
}

/// Waits until the process has a thread of that name.
fn wait_for_thread(child: &Child, name: &str) {
    let give_up = Instant::now() + PATIENCE;
    let folder = format!("/proc/{}/task", child.id());
    let named = || {
        let threads = std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok);
        threads
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok())
            .any(|comm| comm.trim() == name)
    };
    while !named() {
        assert!(Instant::now() < give_up, "no thread {name}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interrupted_loop_reports_what_it_measured() {
    let mut command = openlink(&[
        "loop",
        "--policy",
        "other,other",
        "--duration",
        "1h",
        "--warmup",
        "10ms",
        "--json",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_thread(&child, "loop");
    std::thread::sleep(Duration::from_millis(300));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document = json(&output);
    assert_eq!(
        (
            &document["partial"],
            document["cells"].as_array().unwrap().len()
        ),
        (&Value::Bool(true), 1)
    );
}

fn assert_books_balance(document: &Value) {
    let count = |name: &str| document["counts"][name].as_u64().unwrap();
    let in_flight = document["in_flight"].as_u64().unwrap();
    assert!(count("sent") > 0 && count("accepted") > 0, "{document}");
    assert_eq!(
        count("sent"),
        count("accepted") + count("missed") + count("excluded") + in_flight,
        "{document}"
    );
    assert_eq!(count("wrong_size") + count("malformed"), 0, "{document}");
}

#[test]
fn the_box_balances_its_books() {
    let output = output(&[
        "box",
        "--duration",
        "1s",
        "--link",
        "lo",
        "--auto-recover",
        "20ms",
        "--json",
    ]);
    assert_books_balance(&json(&output));
}

/// Box and responder as two processes, the responder first.
#[test]
fn box_and_responder_find_each_other_in_any_order() {
    let address = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let mut responder = openlink(&["box", "--responder", &address]);
    let mut responder = responder
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = output(&[
        "box",
        "--listen",
        &address,
        "--duration",
        "1s",
        "--auto-recover",
        "20ms",
        "--json",
    ]);
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&responder),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(responder.wait().unwrap().success());
    let document = json(&output);
    assert_eq!(document["link"]["kind"], "network");
    assert_books_balance(&document);
}

/// A responder that would be throttled in every second is refused.
#[test]
fn a_spinning_real_time_responder_needs_force_where_it_would_be_throttled() {
    let limit = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if limit.trim() == "-1" {
        return;
    }
    let output = output(&[
        "box",
        "--mode",
        "spin",
        "--responder-policy",
        "fifo:50",
        "--duration",
        "100ms",
    ]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("sched_rt_runtime_us"));
}
