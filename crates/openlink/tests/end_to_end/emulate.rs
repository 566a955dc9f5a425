//! The emulated link as a program: between namespaces where this test may make them, else in front of a UDP port.

use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::tools::{Program, free_port, run, until};

const OPENLINK: &str = env!("CARGO_BIN_EXE_openlink");

/// Ends with the test.
struct Inside(Child);

impl Inside {
    fn start(namespace: &str, words: &[&str]) -> Self {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", namespace, OPENLINK])
            .args(words);
        Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn namespaces() -> String {
    let output = Command::new("ip").args(["netns", "list"]).output();
    output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// Namespaces and a TUN device take root and a driver.
fn may_make_namespaces() -> bool {
    rustix::process::geteuid().is_root() && std::fs::File::open("/dev/net/tun").is_ok()
}

#[test]
fn messages_cross_two_namespaces_and_these_are_gone_afterwards() {
    if !may_make_namespaces() {
        eprintln!("not run: namespaces need root and /dev/net/tun");
        return;
    }
    let name = format!("olt{}", std::process::id());
    let (a, b) = (format!("{name}-a"), format!("{name}-b"));
    let emulator = Program::start(&["emulate", "S1", "--name", &name, "--json"]);
    // The route is the last thing made.
    until("the route", || {
        let words = ["-n", &b, "route"];
        let output = Command::new("ip").args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("default")
    });
    let relay = Inside::start(&b, &["relay", "prrt://0.0.0.0:5000?insecure=1"]);
    let ping = Command::new("ip")
        .args([
            "netns",
            "exec",
            &a,
            OPENLINK,
            "ping",
            "prrt://10.77.0.2:5000?insecure=1",
        ])
        .args([
            "--echo", "relay", "--bytes", "64", "--rate", "100", "--count", "100", "--json",
        ])
        .output()
        .unwrap();
    drop(relay);
    let ended = emulator.stop(Signal::INT);
    let text = String::from_utf8_lossy(&ping.stdout);
    let row = serde_json::from_str::<serde_json::Value>(&text).unwrap()["rows"][0].clone();
    assert!(row["received"].as_u64().unwrap() >= 90, "{row}");
    // Twice 3.25 ms, whatever else this machine is doing.
    assert!(row["rtt_us"]["min"].as_f64().unwrap() >= 6500.0, "{row}");
    let report = ended.json();
    assert!(report["up"]["packets"].as_u64().unwrap() >= 100, "{report}");
    assert!(
        report["down"]["delivered"].as_u64().unwrap() >= 90,
        "{report}"
    );
    assert_eq!(report["scenario"]["name"], "S1");
    assert!(!namespaces().contains(&name), "{}", namespaces());
}

#[test]
fn a_udp_port_is_reached_through_the_emulator_without_root() {
    let (server, front) = (free_port(), free_port());
    let _relay = Program::start(&["relay", &format!("prrt://127.0.0.1:{server}")]);
    let (at, to) = (format!("127.0.0.1:{front}"), format!("127.0.0.1:{server}"));
    let emulator = Program::start(&["emulate", "s1", "--udp", &at, "--to", &to, "--json"]);
    let uri = format!("prrt://127.0.0.1:{front}");
    let words = [
        "ping", &uri, "--echo", "relay", "--bytes", "64", "--rate", "100", "--count", "50",
        "--json",
    ];
    let row = run(&words).json()["rows"][0].clone();
    assert!(row["received"].as_u64().unwrap() >= 45, "{row}");
    assert!(row["rtt_us"]["min"].as_f64().unwrap() >= 6500.0, "{row}");
    let report = emulator.stop(Signal::TERM).json();
    assert_eq!(report["form"], "udp");
    assert!(report["up"]["packets"].as_u64().unwrap() >= 50, "{report}");
    assert!(
        report["lateness"][0]["p50_us"].as_f64().is_some(),
        "{report}"
    );
}

#[test]
fn a_bad_scenario_starts_nothing_and_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    let file = file.to_str().unwrap();
    for (text, words) in [
        (
            "mine: {both: {loss: {iid: 2}}}",
            ["mine.up.loss.iid is 2", "0 to 1"],
        ),
        ("mine: {both: {loss: {idd: 1}}}", ["unknown", "idd"]),
        ("mine: {}\nyours: {}", ["mine, yours", ":NAME"]),
    ] {
        std::fs::write(file, text).unwrap();
        let ended = run(&["emulate", file]);
        assert_eq!(ended.status.code(), Some(1));
        assert!(
            words.iter().all(|word| ended.err.contains(word)),
            "{}",
            ended.err
        );
    }
    let ended = run(&["emulate", "S9"]);
    assert!(ended.err.contains("neither built in (H1"), "{}", ended.err);
}
