//! `openlink bridge` between a pseudo-terminal, the paced transport and UDP.

use std::net::UdpSocket;
use std::time::Duration;

use rustix::process::Signal;

use crate::tools::{Program, Simulated, free_port, run, until};

/// A cflib-like client: one packet a datagram.
struct Client(UdpSocket);

impl Client {
    fn towards(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Self(socket)
    }

    /// Asks until an answer with this header (reserved bits masked) comes.
    fn ask(&self, request: &[u8], header: u8) -> Vec<u8> {
        let mut answer = vec![0; 64];
        let mut length = 0;
        until("an answer", || {
            // Refused while the bridge is not up yet.
            let _not_there = self.0.send(request);
            while let Ok(got) = self.0.recv(&mut answer) {
                if got > 0 && answer[0] & 0xf3 == header {
                    length = got;
                    return true;
                }
            }
            false
        });
        answer.truncate(length);
        answer
    }

    fn stream(&self, packet: &[u8], seconds: f64) {
        for _ in 0..(seconds * 100.0) as usize {
            self.0.send(packet).unwrap();
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn hover(height: f32) -> Vec<u8> {
    let mut packet = vec![0x7c, 10];
    packet.extend([0; 12]);
    packet.extend(height.to_le_bytes());
    packet
}

#[test]
fn uart_to_paced_transport_and_back() {
    let sim = Simulated::start();
    let uri = format!("prrt://127.0.0.1:{}", free_port());
    let listen = format!("{uri}?listen=1");
    let bridge = Program::start(&["bridge", "--from", &sim.uri(), "--to", &listen, "--json"]);
    let ended = run(&[
        "ping", &uri, "--count", "300", "--warmup", "20", "--wait-s", "50", "--json",
    ]);
    assert!(ended.status.success(), "{}", ended.err);
    let row = &ended.json()["rows"][0];
    assert_eq!(
        (&row["received"], &row["lost"], &row["link"]),
        (&300.into(), &0.into(), &"crtp-prrt".into())
    );
    assert!(bridge.memory() < 20 << 20, "{} bytes", bridge.memory());
    let summary = bridge.stop(Signal::TERM);
    assert!(summary.status.success(), "{}", summary.err);
    let summary = summary.json();
    assert!(
        summary["uplink"]["sent"].as_u64().unwrap() >= 320,
        "{summary}"
    );
    assert_eq!(
        (
            &summary["uplink"]["refused"],
            &summary["drone"]["bad_frames"]
        ),
        (&0.into(), &0.into())
    );
    assert_eq!(sim.report()["would_crash"]["count"], 0);
}

#[test]
fn two_bridges_in_a_row_carry_a_client_to_the_drone() {
    let sim = Simulated::start();
    let prrt = format!("prrt://127.0.0.1:{}", free_port());
    let port = free_port();
    let udp = format!("udp://127.0.0.1:{port}");
    // The ground side first: its peer is not up yet.
    let ground = Program::start(&["bridge", "--from", &udp, "--to", &prrt, "--json"]);
    let client = Client::towards(port);
    assert_eq!(client.ask(&[0xff], 0xf3), [0xff]);
    let drone = Program::start(&["bridge", "--from", &prrt, "--to", &sim.uri(), "--json"]);
    let source = client.ask(&[0xfd, 0], 0xf1);
    assert!(source[1..].starts_with(b"Bitcraze Crazyflie"), "{source:?}");
    assert_eq!(client.ask(&[0xdd, 0], 0xd1)[1..], [0, 12, 0, 0, 0]);
    for program in [ground, drone] {
        let ended = program.stop(Signal::INT);
        assert!(
            ended.status.success() && ended.json()["uplink"]["sent"].as_u64().unwrap() >= 2,
            "{}",
            ended.err
        );
    }
    assert_eq!(sim.report()["would_crash"]["count"], 0);
}

#[test]
fn first_setpoint_has_thrust_and_unsafe_packets_stay_here() {
    let sim = Simulated::start();
    let port = free_port();
    let udp = format!("udp://127.0.0.1:{port}");
    let bridge = Program::start(&["bridge", "--from", &udp, "--to", &sim.uri(), "--json"]);
    let client = Client::towards(port);
    client.ask(&[0xdd, 0], 0xd1);
    let mut climb = vec![0x3c];
    climb.extend([0; 12]);
    climb.extend(50_000_u16.to_le_bytes());
    client.stream(&climb, 0.3);
    for crash in [
        &[0x7c][..],
        &[0x7c, 10, 0],
        &[0x7d, 0],
        &[0x4c, 2, 99],
        &[0x3c, 0],
    ] {
        client.0.send(crash).unwrap();
    }
    client.stream(&[0x7c, 0], 0.1);
    let summary = bridge.stop(Signal::TERM).json();
    assert_eq!(summary["safety"]["unlock"], 1, "{summary}");
    assert_eq!(summary["uplink"]["refused"], 5, "{summary}");
    let report = sim.report();
    assert_eq!(report["would_crash"]["count"], 0);
    assert_eq!(
        report["thrust_lock"]["ignored"], 0,
        "{}",
        report["thrust_lock"]
    );
}

#[test]
fn a_client_that_dies_in_flight_is_landed_before_the_firmware_acts() {
    let sim = Simulated::start();
    let port = free_port();
    let udp = format!("udp://127.0.0.1:{port}");
    let bridge = Program::start(&["bridge", "--from", &udp, "--to", &sim.uri(), "--json"]);
    let client = Client::towards(port);
    client.ask(&[0xdd, 0], 0xd1);
    std::thread::sleep(Duration::from_secs(2));
    client.stream(&hover(0.4), 2.0);
    drop(client);
    std::thread::sleep(Duration::from_secs(4));
    let summary = bridge.stop(Signal::TERM).json();
    assert_eq!(summary["safety"]["link_loss"], 1, "{summary}");
    let report = sim.report();
    let flight = &report["flight"];
    assert_eq!(
        (&flight["flights"], &flight["touchdowns"]),
        (&1.into(), &1.into()),
        "{flight}"
    );
    assert_eq!(
        (&flight["level_outs"], &flight["locks"]),
        (&0.into(), &0.into()),
        "{flight}"
    );
    assert!(flight["highest_m"].as_f64().unwrap() > 0.3, "{flight}");
}

#[test]
fn ending_the_bridge_in_flight_lands_first() {
    let sim = Simulated::start();
    let port = free_port();
    let udp = format!("udp://127.0.0.1:{port}");
    let bridge = Program::start(&["bridge", "--from", &udp, "--to", &sim.uri(), "--json"]);
    let client = Client::towards(port);
    client.ask(&[0xdd, 0], 0xd1);
    std::thread::sleep(Duration::from_secs(2));
    client.stream(&hover(0.4), 2.0);
    let summary = bridge.stop(Signal::TERM).json();
    assert_eq!(summary["safety"]["ending"], 1, "{summary}");
    std::thread::sleep(Duration::from_secs(3));
    let flight = &sim.report()["flight"];
    assert_eq!(
        (&flight["touchdowns"], &flight["locks"]),
        (&1.into(), &0.into()),
        "{flight}"
    );
}

#[test]
fn two_drones_at_both_ends_and_bad_uris_are_refused() {
    let ended = run(&["bridge", "--from", "sim://", "--to", "udp://127.0.0.1:9"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.err.contains("both lead to a drone"), "{}", ended.err);
    let ended = run(&["bridge", "--from", "udp://0.0.0.0:99999", "--to", "sim://"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.err.contains("port is \"99999\", allowed: 1 to 65535"),
        "{}",
        ended.err
    );
    let ended = run(&[
        "bridge",
        "--from",
        "prrt://192.0.2.1:5000",
        "--to",
        "sim://",
    ]);
    assert!(
        ended.err.contains("not a loopback address"),
        "{}",
        ended.err
    );
}
