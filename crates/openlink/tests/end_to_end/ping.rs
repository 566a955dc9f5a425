//! `openlink ping` and `openlink relay`.

use std::net::UdpSocket;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::tools::{Program, Simulated, free_port, run, text};

fn row(results: &Value) -> &Value {
    &results["rows"][0]
}

/// An echo on `udp://` that swallows every `nth` request, until the test ends.
fn lossy_echo(nth: usize) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        let mut count = 0;
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let is_probe = length >= 9 && bytes[8] & 0x80 == 0;
            count += usize::from(is_probe);
            if !is_probe || count % nth != 0 {
                socket.send_to(&bytes[..length], from).unwrap();
            }
        }
    });
    port
}

#[test]
fn over_the_bare_uart() {
    let sim = Simulated::start();
    let ended = run(&[
        "ping",
        &sim.uri(),
        "--count",
        "200",
        "--warmup",
        "10",
        "--json",
    ]);
    let results = ended.json();
    assert!(ended.status.success(), "{}", ended.err);
    assert_eq!(
        (&row(&results)["sent"], &row(&results)["received"]),
        (&200.into(), &200.into())
    );
    assert_eq!(
        (&row(&results)["link"], &row(&results)["bytes"]),
        (&"crtp-uart".into(), &16.into())
    );
    assert!(row(&results)["rtt_us"]["p50"].as_f64().unwrap() > 0.0);
    assert_eq!(sim.report()["would_crash"]["count"], 0);
}

#[test]
fn best_effort_with_every_tenth_reply_dropped_ends_on_time_and_says_so() {
    let uri = format!("udp://127.0.0.1:{}", lossy_echo(10));
    let words = [
        "ping",
        &uri,
        "--count",
        "100",
        "--warmup",
        "0",
        "--rate",
        "500",
        "--timeout-ms",
        "500",
        "--json",
    ];
    let results = run(&words).json();
    let row = row(&results);
    assert_eq!(
        (&row["sent"], &row["received"], &row["lost"]),
        (&100.into(), &90.into(), &10.into()),
        "{row}"
    );
    assert!(
        row["rtt_us"]["max"].as_f64().unwrap() < 500_000.0,
        "percentiles are over answers only: {row}"
    );
}

#[test]
fn a_relay_that_never_comes_is_a_clear_error() {
    let uri = format!("prrt://127.0.0.1:{}", free_port());
    let ended = run(&[
        "ping", &uri, "--echo", "relay", "--bytes", "64", "--wait-s", "1",
    ]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.err.contains("no relay within 1s"), "{}", ended.err);
    let ended = run(&[
        "ping",
        &format!("udp://127.0.0.1:{}", free_port()),
        "--wait-s",
        "1",
    ]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.err.contains("no answer from the drone within 1s"),
        "{}",
        ended.err
    );
}

#[test]
fn prober_started_before_the_relay_waits_and_then_measures() {
    let uri = format!("prrt://127.0.0.1:{}", free_port());
    let words = [
        "ping", &uri, "--echo", "relay", "--bytes", "100", "--count", "50", "--wait-s", "50",
        "--json",
    ];
    let ping = Program::start(&words);
    std::thread::sleep(Duration::from_secs(1));
    let relay = Program::start(&["relay", &uri, "--json"]);
    let ended = ping.wait();
    assert!(ended.status.success(), "{}", ended.err);
    assert_eq!(row(&ended.json())["received"], 50);
    let relay = relay.stop(Signal::TERM);
    assert!(
        relay.status.success() && relay.json()["echoed"].as_u64().unwrap() >= 50,
        "{}",
        relay.out
    );
}

#[test]
fn messages_from_52_bytes_to_4_mib_come_back_whole() {
    let uri = format!("prrt://127.0.0.1:{}", free_port());
    let _relay = Program::start(&["relay", &uri]);
    for (bytes, count) in [("52", "20"), ("33000", "10"), ("4194304", "2")] {
        let words = [
            "ping",
            &uri,
            "--echo",
            "relay",
            "--bytes",
            bytes,
            "--count",
            count,
            "--warmup",
            "1",
            "--timeout-ms",
            "20000",
            "--json",
        ];
        let ended = run(&words);
        let results = ended.json();
        assert_eq!(
            row(&results)["received"].to_string(),
            count,
            "{bytes}: {}",
            ended.out
        );
        assert_eq!(row(&results)["bytes"].to_string(), bytes);
    }
    let ended = run(&["ping", &uri, "--echo", "relay", "--bytes", "51"]);
    assert!(ended.err.contains("52 to 4194304"), "{}", ended.err);
}

#[test]
fn a_signal_ends_the_run_and_what_was_measured_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows/ping.json");
    let words = [
        "ping",
        "sim://",
        "--rate",
        "100",
        "--count",
        "100000",
        "--warmup",
        "0",
        "--output",
        text(&file),
    ];
    let ping = Program::start(&words);
    std::thread::sleep(Duration::from_millis(1500));
    let ended = ping.stop(Signal::INT);
    assert!(ended.status.success(), "{}", ended.err);
    let results: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        (&results["schema"], &row(&results)["partial"]),
        (&1.into(), &true.into())
    );
    assert!(
        row(&results)["received"].as_u64().unwrap() > 10,
        "{}",
        ended.out
    );
}
