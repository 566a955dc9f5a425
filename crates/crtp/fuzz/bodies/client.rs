//! No drone, however odd, makes a client panic, send what the gate refuses, or ask without end.
//!
//! The input is a row of packets, each behind a byte: its low five bits are the length, the others the pause.

use std::time::{Duration, Instant};

use crtp::{Gate, Packet, Port};
use crtp_client::{Client, Config, LogConfig, NoCache};

/// One input.
pub(crate) fn run(data: &[u8]) {
    let mut now = Instant::now();
    let mut client = Client::new(Config::default(), Box::new(NoCache));
    let mut gate = Gate::new();
    let log = LogConfig::new("log", Duration::from_millis(10), ["a.b", "c.d"]);
    client.add_log(now, log).unwrap();
    client.connect(now);
    let mut rest = data;
    while let Some((&head, behind)) = rest.split_first() {
        let length = usize::from(head & 0x1f).min(behind.len());
        let (bytes, behind) = behind.split_at(length);
        rest = behind;
        if let Ok(packet) = Packet::from_bytes(bytes) {
            gate.observe(&packet);
            client.handle_packet(now, &packet);
        }
        now += Duration::from_millis(u64::from(head >> 5) * 60);
        client.handle_timeout(now);
        drain(&mut client, &gate);
    }
}

fn drain(client: &mut Client, gate: &Gate) {
    let mut sent = 0;
    while let Some(packet) = client.poll_transmit() {
        // The gate believes any number of memories, the client only the one it asked for.
        if packet.port() != Port::MEMORY {
            gate.admit(&packet).unwrap();
        }
        sent += 1;
    }
    assert!(sent < 300, "{sent} packets after one");
    while client.poll_event().is_some() {}
    while client.poll_sample().is_some() {}
}
