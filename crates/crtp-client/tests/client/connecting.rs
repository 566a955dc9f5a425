//! Connecting, losing the link, connecting again.

use crtp::{Packet, ProtocolVersion};
use crtp_client::{Config, DisconnectReason, Event, LogConfig};

use crate::ms;
use crate::pair::Pair;

fn is_connected(event: &Event) -> bool {
    matches!(event, Event::Connected { .. })
}

fn is_disconnected(event: &Event) -> bool {
    matches!(event, Event::Disconnected { .. })
}

#[test]
fn connecting_takes_the_documented_steps() {
    let mut pair = Pair::new(Config {
        extended_types: true,
        ..Config::default()
    });
    pair.client.connect(pair.now);
    let event = pair.until(is_connected);
    assert_eq!(
        event,
        Event::Connected {
            version: ProtocolVersion(12),
            log_variables: 120,
            params: 4,
            from_cache: false
        }
    );
    let steps: Vec<String> = pair.drone.taken[..4]
        .iter()
        .map(|p| format!("{p:?}"))
        .collect();
    assert_eq!(steps, ["fd00", "dd00", "5d05", "2c03"]);
    assert_eq!(pair.taken(0x50).len(), 121);
    assert_eq!(
        pair.taken(0x23),
        [packet("2f070100")],
        "flight.rate is extended"
    );
    assert_eq!(pair.client.memories().len(), 1);
    assert!(pair.client.param_table().unwrap().persistent().contains(&1));
}

fn packet(hex: &str) -> Packet {
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect();
    Packet::from_bytes(&bytes).unwrap()
}

#[test]
fn connecting_survives_thirty_percent_loss() {
    for seed in 0..20 {
        let mut pair = Pair::new(Config {
            attempts: 20,
            request_timeout: ms(20),
            ..Config::default()
        });
        pair.seed(seed);
        pair.loss = 0.3;
        pair.client.connect(pair.now);
        pair.until(is_connected);
        let table = pair.client.log_table().unwrap();
        assert_eq!(table.find("b.59").unwrap().0, 119);
    }
}

#[test]
fn a_doubled_table_entry_does_not_shift_the_table() {
    let mut pair = Pair::new(Config::default());
    pair.client.connect(pair.now);
    while pair.taken(0x50).len() < 3 {
        pair.run(ms(1));
    }
    let doubled = pair.drone.handle(pair.now, &packet("5c020000")).unwrap();
    pair.send_down(&doubled, ms(0));
    pair.send_down(&doubled, ms(1));
    pair.until(is_connected);
    let table = pair.client.log_table().unwrap();
    assert_eq!(table.len(), 120);
    assert_eq!(table.find("f.0").unwrap().0, 0);
    assert_eq!(table.find("b.59").unwrap().0, 119);
}

#[test]
fn a_drone_that_wakes_after_seven_seconds_is_found() {
    let mut pair = Pair::new(Config::default());
    pair.dead = true;
    pair.client.connect(pair.now);
    let failed = pair.until(is_disconnected);
    let Event::Disconnected { reason, retry_in } = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(
        reason.to_string(),
        "no answer to the link source request within 1500 ms"
    );
    assert_eq!(retry_in, Some(ms(1000)));
    pair.run(ms(7000) - pair.elapsed());
    pair.dead = false;
    pair.until(is_connected);
    assert!(pair.elapsed() < ms(10_000));
}

#[test]
fn silence_ends_the_connection_and_logs_and_values_come_back() {
    let mut pair = Pair::connected(Config::default());
    let config = LogConfig::new("pose", ms(10), ["f.1", "b.2"]);
    pair.client.add_log(pair.now, config).unwrap();
    pair.client.write_param(pair.now, "flight.mode", 7).unwrap();
    pair.run(ms(500));
    assert!(!pair.samples.is_empty());

    pair.dead = true;
    let lost = pair.now;
    pair.events.clear();
    let event = pair.until(is_disconnected);
    let silent = DisconnectReason::Silent { silence: ms(1000) };
    assert!(matches!(event, Event::Disconnected { reason, .. } if reason == silent));
    assert!(pair.now - lost <= ms(1010));

    // Another drone battery: everything is forgotten on board.
    pair.drone.blocks.clear();
    pair.drone.params[0].value = crtp::Value::U8(1);
    pair.dead = false;
    pair.until(is_connected);
    pair.samples.clear();
    pair.run(ms(500));
    assert_eq!(pair.drone.value("flight.mode"), crtp::Value::U8(7));
    assert!(pair.samples.len() > 20, "{}", pair.samples.len());
}

#[test]
fn latency_is_the_round_trip_of_echoes() {
    let mut pair = Pair::connected(Config::default());
    pair.delay = ms(7);
    pair.run(ms(1000));
    let latencies = pair.events.iter().filter_map(|event| match event {
        Event::Latency(round_trip) => Some(*round_trip),
        _ => None,
    });
    let latencies: Vec<_> = latencies.skip(1).collect();
    assert!(latencies.len() >= 8);
    assert!(latencies.iter().all(|latency| *latency == ms(14)));
}

#[test]
fn old_and_foreign_drones_are_told_apart() {
    let mut pair = Pair::new(Config::default());
    pair.drone.version = ProtocolVersion(5);
    pair.client.connect(pair.now);
    let event = pair.until(is_disconnected);
    let Event::Disconnected { reason, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(reason, DisconnectReason::TooOld(ProtocolVersion(5)));

    let mut pair = Pair::new(Config::default());
    pair.drone.version = ProtocolVersion(13);
    pair.client.connect(pair.now);
    let notice = pair.until(|event| matches!(event, Event::Notice(_)));
    assert!(matches!(notice, Event::Notice(text) if text.contains("13 is newer than 12")));
    pair.until(is_connected);
}

#[test]
fn closing_stops_the_drones_blocks_and_stays_closed() {
    let mut pair = Pair::connected(Config::default());
    let config = LogConfig::new("pose", ms(10), ["f.1"]);
    pair.client.add_log(pair.now, config).unwrap();
    pair.run(ms(100));
    pair.client.disconnect(pair.now);
    pair.run(ms(5000));
    assert!(pair.drone.blocks.is_empty());
    assert!(!pair.client.is_connected());
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn a_thousand_null_packets_a_second_are_nothing() {
    let mut pair = Pair::connected(Config::default());
    let before = pair.client.stats();
    for _ in 0..1000 {
        pair.send_down(&Packet::NULL, ms(0));
        pair.run(ms(1));
    }
    let after = pair.client.stats();
    assert_eq!(after.unexpected, before.unexpected);
    assert_eq!(after.malformed + after.unknown_blocks, 0);
    let others = pair
        .events
        .iter()
        .filter(|e| !matches!(e, Event::Latency(_)));
    assert_eq!(others.count(), 0);
}

#[test]
fn null_packets_alone_keep_no_link_up() {
    let mut pair = Pair::connected(Config::default());
    pair.loss = 1.0;
    for _ in 0..1100 {
        pair.client.handle_packet(pair.now, &Packet::NULL);
        pair.run(ms(1));
    }
    assert!(pair.events.iter().any(is_disconnected));
}

#[test]
fn console_pieces_become_lines() {
    let mut pair = Pair::connected(Config::default());
    for piece in crtp::console::Console::pieces("SYS: ready for flight, more than 30 bytes\nnext\n")
    {
        pair.send_down(&piece.encode(), ms(0));
    }
    pair.run(ms(50));
    let lines: Vec<&str> = pair
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Console(line) => Some(line.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(lines, ["SYS: ready for flight, more than 30 bytes", "next"]);
}

proptest::proptest! {
    #[test]
    fn random_packets_never_panic(packets in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 1..=31), 0..60)) {
        let mut pair = Pair::new(Config::default());
        pair.drone.impersonated = true;
        pair.client.connect(pair.now);
        for (i, bytes) in packets.iter().enumerate() {
            if i == packets.len() / 2 {
                pair.run(ms(600));
            }
            pair.client.handle_packet(pair.now, &Packet::from_bytes(bytes).unwrap());
            pair.run(ms(1));
        }
    }
}
