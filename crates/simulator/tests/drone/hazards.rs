//! Everything that would have crashed a real drone is recorded, and nothing that the gate lets through is.

use crtp::{Gate, Packet};
use proptest::prelude::*;
use simulator::Hazard;

use crate::bench::{Bench, packet, text};

#[test]
fn payloads_that_crash_real_firmware_are_recorded() {
    let cases = [
        ("7c", Hazard::SetpointEmpty),
        ("7c0a00", Hazard::SetpointLength),
        ("7c0600", Hazard::SetpointLength),
        ("7c0300dc05dc05dc05e8", Hazard::SetpointLength),
        ("7c07aabb", Hazard::SetpointLength),
        ("7c0c", Hazard::SetpointType),
        ("7d00", Hazard::MetaLength),
        ("7d", Hazard::MetaLength),
        ("4c0263", Hazard::MemoryUnknown),
        ("4d", Hazard::WrongLength),
        ("4d630000000018", Hazard::MemoryUnknown),
        ("4d00000000001e", Hazard::MemoryReadTooLong),
        ("3c00", Hazard::WrongLength),
        ("6c0000", Hazard::WrongLength),
        ("6d080000", Hazard::WrongLength),
        ("8c0c00", Hazard::WrongLength),
        ("9d01", Hazard::WrongLength),
        ("9c", Hazard::WrongLength),
        ("5d060107ffff", Hazard::RawMemory),
        ("2e0000", Hazard::WrongLength),
        ("7c070000c07f000000400000003f0000b442", Hazard::NotFinite),
        ("6c0000c07f0000004000004040", Hazard::NotFinite),
    ];
    for (hex, hazard) in cases {
        let mut bench = Bench::ready();
        bench.send(hex);
        let record = bench.drone.report().would_crash;
        assert_eq!(record.count, 1, "{hex}");
        assert_eq!(
            (record.records[0].hazard, record.records[0].hex.as_str()),
            (hazard, hex)
        );
        assert_eq!(record.by_reason[&hazard], 1);
    }
}

#[test]
fn a_setpoint_of_unknown_type_stops_the_motors() {
    let mut bench = Bench::ready();
    bench.stream("7c0acdcc4c3ecdccccbd000070410000003f", 10, 2000);
    assert!(bench.z() > 0.4);
    bench.send("7c0c");
    bench.run(400);
    assert!(bench.z() < 0.1);
}

#[test]
fn the_report_is_json_with_stable_names() {
    let mut bench = Bench::ready();
    bench.send("7c");
    let json = serde_json::to_value(bench.drone.report()).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["would_crash"]["count"], 1);
    assert_eq!(json["would_crash"]["by_reason"]["setpoint_empty"], 1);
    assert_eq!(json["would_crash"]["records"][0]["hex"], "7c");
    assert_eq!(json["traffic"]["by_port"]["7"]["received"], 1);
    assert_eq!(
        json["flight"]["transitions"][0]["to"],
        "preflight_not_passed"
    );
    assert_eq!(json["now"]["state"], "ready_to_fly");
}

/// Packets as clients and attackers make them: known headers before the random.
fn any_packet() -> impl Strategy<Value = Packet> {
    let header = prop_oneof![
        4 => prop::sample::select(vec![0x2c_u8, 0x2d, 0x2e, 0x2f, 0x3c, 0x4c, 0x4d, 0x4e, 0x5c, 0x5d, 0x6c, 0x6d, 0x6e, 0x7c, 0x7d, 0x8c, 0x9c, 0x9d, 0xdc, 0xdd, 0xde, 0xfc, 0xfd]),
        1 => any::<u8>(),
    ];
    let command = prop_oneof![3 => 0_u8..14, 1 => any::<u8>()];
    (header, command, prop::collection::vec(any::<u8>(), 0..30)).prop_map(
        |(header, command, mut data)| {
            if let Some(first) = data.first_mut() {
                *first = command;
            }
            Packet::with_header(header, &data).unwrap()
        },
    )
}

/// Reads every parameter, as clients do after they connect.
fn learn_parameters(bench: &mut Bench, gate: &mut Gate) {
    for id in 0..u16::MAX {
        let [low, high] = id.to_le_bytes();
        bench.send(&format!("2d{low:02x}{high:02x}"));
        let answer = bench.drone.poll_transmit().unwrap();
        if answer.data().get(2) != Some(&0) {
            return;
        }
        gate.observe(&answer);
    }
}

#[test]
fn a_short_value_for_a_long_parameter_is_refused() {
    let (mut bench, mut gate) = (Bench::ready(), Gate::new());
    learn_parameters(&mut bench, &mut gate);
    let write = packet("22050000");
    bench.drone.handle_packet(bench.now, &write);
    assert_eq!(bench.drone.report().would_crash.count, 1);
    assert!(gate.admit(&write).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_the_gate_admits_never_crashes_the_drone(packets in prop::collection::vec(any_packet(), 1..60)) {
        let mut bench = Bench::ready();
        let mut gate = Gate::new();
        bench.send("4c01");
        gate.observe(&bench.drone.poll_transmit().unwrap());
        learn_parameters(&mut bench, &mut gate);
        for packet in packets {
            if let Ok(admitted) = gate.admit(&packet) {
                bench.drone.handle_packet(bench.now, &admitted);
                let record = bench.drone.report().would_crash;
                prop_assert_eq!(record.count, 0, "{} {:?}", text(packet.as_bytes()), record.records);
            }
            bench.run(3);
            bench.received();
        }
    }

    #[test]
    fn random_packets_never_panic(packets in prop::collection::vec(any_packet(), 1..60)) {
        let mut bench = Bench::ready();
        for packet in packets {
            bench.drone.handle_packet(bench.now, &packet);
            bench.run(7);
        }
        bench.run(500);
        let at = bench.position();
        prop_assert!(at.iter().all(|value| value.is_finite()), "{:?}", at);
    }
}

#[test]
fn what_the_gate_refuses_for_its_length_is_recorded() {
    let gate = Gate::new();
    for hex in ["7c", "7c0a00", "7d00", "3c00", "8c0c00", "9d01"] {
        assert!(gate.admit(&packet(hex)).is_err());
        let mut bench = Bench::ready();
        bench.send(hex);
        assert_eq!(bench.hazards(), 1, "{hex}");
    }
}
