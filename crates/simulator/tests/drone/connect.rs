//! The connect sequence and the link's own services, byte for byte.

use crate::bench::{Bench, bytes, quiet, text};
use simulator::Config;

#[test]
fn every_step_of_the_connect_sequence_is_answered() {
    let mut bench = Bench::ready();
    assert_eq!(
        bench.ask("fd00"),
        [format!(
            "fd4269746372617a65204372617a79666c6965{}",
            "00".repeat(12)
        )]
    );
    assert_eq!(bench.ask("dd00"), ["dd000c000000"]);
    assert_eq!(bench.ask("5d05"), ["5d050000"]);
    let info = bytes(&bench.ask("5c03")[0]);
    assert_eq!(
        (info.len(), &info[..2], &info[8..]),
        (10, &[0x50, 3][..], &[16, 128][..])
    );
    assert_eq!(
        bench.ask("5c020000"),
        ["50020000077374617465457374696d617465007800"]
    );
    assert_eq!(bench.ask("5c02ffff"), ["5002"]);
    assert_eq!(bench.ask("4c01"), ["400102"]);
    assert_eq!(bench.ask("4c0200"), ["40020012001000000000000000000000"]);
    let info = bytes(&bench.ask("2c03")[0]);
    assert_eq!((info.len(), &info[..2]), (8, &[0x20, 3][..]));
    assert_eq!(bench.ask("2c02ffff"), ["2002"]);
    assert_eq!(bench.ask("2d0000"), ["2d00000002"]);
    assert_eq!(bench.hazards(), 0);
}

#[test]
fn tables_have_the_announced_size_and_fit_their_packets() {
    for (log, param) in [(0, 0), (380, 245)] {
        let config = Config {
            log_variables: log,
            parameters: param,
            ..quiet()
        };
        let mut bench = Bench::new(config);
        for (table, wanted) in [("5c", log), ("2c", param)] {
            let info = bytes(&bench.ask(&format!("{table}03"))[0]);
            let count = u16::from_le_bytes([info[2], info[3]]);
            assert!(usize::from(count) >= wanted.max(50), "{count}");
            for id in 0..count {
                let item = bench.ask(&format!("{table}02{}", text(&id.to_le_bytes())));
                let item = bytes(&item[0]);
                assert_eq!(item[2..4], id.to_le_bytes());
                assert_eq!(item.iter().skip(5).filter(|byte| **byte == 0).count(), 2);
            }
            assert_eq!(
                bench.ask(&format!("{table}02{}", text(&count.to_le_bytes())))[0].len(),
                4
            );
        }
    }
}

#[test]
fn the_checksum_changes_with_the_table_and_not_with_the_seed() {
    let crc = |config| Bench::new(config).ask("5c03")[0][8..16].to_owned();
    assert_eq!(
        crc(quiet()),
        crc(Config {
            seed: 7,
            ..Config::default()
        })
    );
    assert_ne!(
        crc(quiet()),
        crc(Config {
            log_variables: 380,
            ..quiet()
        })
    );
}

#[test]
fn echo_comes_back_unchanged_and_at_once() {
    let mut bench = Bench::ready();
    assert_eq!(bench.ask("fc00092c959083c3da41"), ["fc00092c959083c3da41"]);
    assert_eq!(bench.ask("f0"), ["f0"]);
    assert!(bench.ask("fe0102").is_empty());
}

#[test]
fn a_thousand_null_packets_are_silence() {
    let mut bench = Bench::ready();
    for _ in 0..1000 {
        assert!(bench.ask("ff").is_empty() && bench.ask("f3").is_empty());
    }
    let report = bench.drone.report();
    assert_eq!((report.traffic.nulls, report.traffic.received()), (2000, 0));
}

#[test]
fn platform_and_app_channel() {
    let mut bench = Bench::ready();
    assert!(bench.ask("dd01")[0].starts_with("dd0132303236"));
    assert!(bench.ask("dd02")[0].starts_with("dd02"));
    assert_eq!(bench.ask("dedeadbeef"), ["dedeadbeef"]);
    let legacy = bench.ask("dc0101");
    assert!(
        legacy[0].starts_with("00"),
        "a console warning comes first: {legacy:?}"
    );
    assert_eq!(legacy.last().unwrap(), "dc010101");
}

#[test]
fn the_greeting_is_console_text_of_at_most_30_bytes_a_packet() {
    let mut drone = simulator::Drone::new(quiet(), std::time::Instant::now());
    let mut console = String::new();
    while let Some(packet) = drone.poll_transmit() {
        assert_eq!(packet.header(), 0);
        console.push_str(std::str::from_utf8(packet.data()).unwrap());
    }
    assert!(console.ends_with("up and running!\n"), "{console}");
}

#[test]
fn memories_are_read_written_and_bounded() {
    let mut bench = Bench::ready();
    assert_eq!(bench.ask("4e0010000000aabbcc"), ["42001000000000"]);
    assert_eq!(bench.ask("4d000f00000005"), ["41000f0000000000aabbcc00"]);
    assert_eq!(
        bench.ask("4d00ff0f000002"),
        ["4100ff0f000005"],
        "beyond the end"
    );
    assert_eq!(
        bench.ask("4d012a00000003"),
        ["41012a000000002a2b2c"],
        "the tester reads as its addresses"
    );
    assert_eq!(bench.hazards(), 0);
}

#[test]
fn the_downlink_queue_is_bounded_and_its_drops_are_counted() {
    let mut bench = Bench::ready();
    for _ in 0..250 {
        bench.send("fc00");
    }
    assert_eq!(bench.received().len(), 200);
    assert_eq!(bench.drone.report().traffic.dropped_full, 50);
}
