//! Records as taps take them: without identities.

use super::super::Trace;
use super::*;
use crate::record::{Contents, Verdict};

const MS: u64 = 1_000_000;

fn hop(at_ms: u64, stage: Stage, direction: Direction, bytes: &[u8]) -> Hop {
    Hop::new(MonoNs(at_ms * MS), 0, stage, direction, bytes)
}

fn up(at_ms: u64, stage: Stage, bytes: &[u8]) -> Hop {
    hop(at_ms, stage, Direction::Up, bytes)
}

fn down(at_ms: u64, stage: Stage, bytes: &[u8]) -> Hop {
    hop(at_ms, stage, Direction::Down, bytes)
}

fn log(name: &str, boot: &str, hops: Vec<Hop>) -> Contents {
    let host = HostInfo {
        name: name.to_owned(),
        boot: boot.to_owned(),
        ..HostInfo::default()
    };
    Contents {
        host,
        hops,
        ..Contents::default()
    }
}

fn ids(trace: &Trace) -> Vec<u64> {
    trace
        .hops
        .iter()
        .map(|(_, hop)| hop.packet - FIRST)
        .collect()
}

#[test]
fn stages_of_the_same_bytes_are_one_packet_and_its_answer_is_found() {
    let trace = Trace::of(vec![log(
        "ground",
        "a",
        vec![
            up(1, Stage::G0, &[0x5d, 2, 7, 0]),
            up(2, Stage::G2, &[0x5d, 2, 7, 0]),
            up(3, Stage::G0, &[0x2d, 9, 0]),
            down(9, Stage::G6, &[0x5d, 2, 7, 0, 1, 65, 0]),
            down(10, Stage::G6, &[0x2d, 9, 0, 4]),
            down(11, Stage::G7, &[0x5d, 2, 7, 0, 1, 65, 0]),
            down(12, Stage::G6, &[0x5e, 1, 0, 0, 0]),
        ],
    )]);
    assert_eq!(ids(&trace), [1, 1, 2, 1, 2, 1, 3]);
}

#[test]
fn a_resend_is_the_same_request_and_the_same_bytes_after_its_answer_are_not() {
    let resend = Hop {
        reason: Reason::Resend,
        attempt: 1,
        ..up(200, Stage::G2, &[0x2d, 9, 0])
    };
    let trace = Trace::of(vec![log(
        "ground",
        "a",
        vec![
            up(1, Stage::G2, &[0x2d, 9, 0]),
            resend,
            down(205, Stage::G6, &[0x2d, 9, 0, 4]),
            down(206, Stage::G6, &[0x2d, 9, 0, 4]),
            up(300, Stage::G2, &[0x2d, 9, 0]),
            down(304, Stage::G6, &[0x2d, 9, 0, 4]),
        ],
    )]);
    assert_eq!(ids(&trace), [1, 1, 1, 1, 2, 2]);
    let rtt = super::super::Rtt::of(&trace).unwrap();
    assert_eq!((rtt.requests, rtt.answered, rtt.resends), (2, 2, 1));
    assert_eq!(rtt.first.summary().max, Some(204_000.0));
    assert_eq!(rtt.last.summary().max, Some(5_000.0));
}

#[test]
fn constant_setpoints_are_packets_of_their_own_and_want_no_answer() {
    let hover = [0x7c, 5, 0, 0, 0, 0];
    let dropped = Hop {
        verdict: Verdict::Superseded,
        ..up(30, Stage::G1, &hover)
    };
    let trace = Trace::of(vec![log(
        "ground",
        "a",
        vec![
            up(10, Stage::G1, &hover),
            up(11, Stage::G2, &hover),
            up(20, Stage::G1, &hover),
            up(30, Stage::G1, &hover),
            dropped,
            up(31, Stage::G2, &hover),
        ],
    )]);
    assert_eq!(ids(&trace), [1, 1, 2, 3, 2, 3]);
    assert!(
        trace
            .hops
            .iter()
            .all(|(_, hop)| hop.reason == Reason::Setpoint)
    );
}

/// Ten requests with the same bytes, answered one by one, seen on the ground and at the drone, whose clock is ahead.
fn both_hosts(boots: [&str; 2], ahead_ms: u64) -> Trace {
    let (mut ground, mut pi) = (Vec::new(), Vec::new());
    let unique = [0xfc, 77, 1, 2, 3, 4, 5, 6];
    ground.push(up(1, Stage::G2, &unique));
    pi.push(up(4 + ahead_ms, Stage::B1, &unique));
    pi.push(down(6 + ahead_ms, Stage::B3, &unique));
    ground.push(down(9, Stage::G6, &unique));
    for start in (100..1100).step_by(100) {
        ground.push(up(start, Stage::G2, &[0x2d, 9, 0]));
        if start == 300 {
            continue;
        }
        pi.push(up(start + 3 + ahead_ms, Stage::B1, &[0x2d, 9, 0]));
        pi.push(down(start + 5 + ahead_ms, Stage::B3, &[0x2d, 9, 0, 4]));
        ground.push(down(start + 8, Stage::G6, &[0x2d, 9, 0, 4]));
    }
    Trace::of(vec![
        log("pi", boots[1], pi),
        log("ground", boots[0], ground),
    ])
}

#[test]
fn repeated_bytes_are_joined_across_hosts_by_time_on_one_clock_and_on_two() {
    for (boots, ahead) in [(["a", "a"], 0), (["a", "b"], 3000), (["", ""], 3000)] {
        let trace = both_hosts(boots, ahead);
        let whole: Vec<_> = trace
            .packets()
            .into_iter()
            .filter(|packet| packet.hops.len() == 4)
            .collect();
        // The lost request and the next one are one and the same only where the sender says so.
        assert_eq!(whole.len(), 9 + 1, "{boots:?}");
        for packet in &whole {
            let stay = packet.between(Stage::B1, Stage::B3).unwrap();
            assert_eq!(stay, 2 * MS);
            assert!(packet.between(Stage::G2, Stage::G6) <= Some(8 * MS));
            let across = packet.between(Stage::G2, Stage::B1);
            let expected = (boots == ["a", "a"]).then_some(3 * MS);
            assert_eq!(across, expected);
        }
    }
}

#[test]
fn records_with_an_identity_keep_it() {
    let mut own = up(1, Stage::G2, &[0x5d, 2, 7, 0]);
    own.packet = 5;
    let trace = Trace::of(vec![log("ground", "a", vec![own])]);
    assert_eq!(trace.hops[0].1.packet, 5);
}
