//! Hand-written logs with exact answers.

use super::*;
use crate::record::{Direction, Reason, Verdict};
use crate::time::MonoNs;

const US: u64 = 1000;

fn hop(at_us: u64, packet: u64, stage: Stage) -> Hop {
    let down = stage >= Stage::U3 && stage <= Stage::G7;
    let direction = if down { Direction::Down } else { Direction::Up };
    Hop::new(MonoNs(at_us * US), packet, stage, direction, &[0x5d, 1])
}

fn resend(at_us: u64, packet: u64) -> Hop {
    Hop {
        reason: Reason::Resend,
        attempt: 1,
        ..hop(at_us, packet, Stage::G2)
    }
}

fn log(name: &str, mut hops: Vec<Hop>) -> Contents {
    hops.sort_by_key(|hop| hop.at);
    let host = HostInfo {
        name: name.to_owned(),
        links: vec!["prrt".to_owned()],
        mono: MonoNs(0),
        unix_ns: 1_700_000_000_000_000_000,
        boot: name.to_owned(),
    };
    Contents {
        host,
        hops,
        ..Contents::default()
    }
}

fn trace(hops: Vec<Hop>) -> Trace {
    Trace::of(vec![log("ground", hops)])
}

/// 12 packets: 1 to 7 answered after 4 ms; 8 answered after its resend; 9 never; 10 twice; 11 is a setpoint; 12
/// overtakes 10.
fn twelve() -> Trace {
    let mut hops = Vec::new();
    for packet in 1..=7 {
        hops.push(hop(packet * 10_000, packet, Stage::G2));
        hops.push(hop(packet * 10_000 + 4_000, packet, Stage::G6));
    }
    hops.extend([
        hop(80_000, 8, Stage::G2),
        resend(180_000, 8),
        hop(185_000, 8, Stage::G6),
    ]);
    hops.push(hop(190_000, 9, Stage::G2));
    hops.extend([hop(200_000, 10, Stage::G2), hop(209_000, 10, Stage::G6)]);
    hops.push(Hop {
        verdict: Verdict::Duplicate,
        ..hop(209_500, 10, Stage::G6)
    });
    hops.push(Hop {
        reason: Reason::Setpoint,
        ..hop(201_000, 11, Stage::G2)
    });
    hops.extend([hop(202_000, 12, Stage::G2), hop(206_000, 12, Stage::G6)]);
    trace(hops)
}

#[test]
fn round_trips_of_the_hand_written_log() {
    let rtt = Rtt::of(&twelve()).unwrap();
    assert_eq!(rtt.stages, (Stage::G2, Stage::G6));
    assert_eq!((rtt.requests, rtt.answered, rtt.one_way), (11, 10, 1));
    assert_eq!((rtt.resends, rtt.duplicates, rtt.reordered), (1, 1, 1));
    let (first, last) = (rtt.first.summary(), rtt.last.summary());
    assert_eq!((first.min, first.max), (Some(4_000.0), Some(105_000.0)));
    assert_eq!((last.min, last.max), (Some(4_000.0), Some(9_000.0)));
    assert_eq!(
        first.mean,
        Some((8.0 * 4_000.0 + 105_000.0 + 9_000.0) / 10.0)
    );
    assert_eq!(rtt.by_port.keys().collect::<Vec<_>>(), [&(5, 1)]);
}

#[test]
fn inter_packet_times_of_the_hand_written_log() {
    let ipt = Ipt::of(&twelve(), None).unwrap();
    assert_eq!(
        (ipt.stage, ipt.packets, ipt.gaps.len()),
        (Stage::G2, 13, 12)
    );
    let summary = ipt.gaps.summary();
    assert_eq!((summary.min, summary.max), (Some(1_000.0), Some(100_000.0)));
    assert_eq!(summary.mean, Some(192_000.0 / 12.0));
    assert_eq!(ipt.by_reason["resend"].summary().max, Some(100_000.0));
    assert_eq!(ipt.by_reason["setpoint"].summary().max, Some(1_000.0));
}

#[test]
fn links_are_not_mixed_and_drops_are_not_sent() {
    let other = Hop {
        link: 1,
        ..hop(15_000, 2, Stage::G2)
    };
    let dropped = Hop {
        verdict: Verdict::Expired,
        ..hop(16_000, 3, Stage::G2)
    };
    let ipt = Ipt::of(
        &trace(vec![
            hop(10_000, 1, Stage::G2),
            other,
            dropped,
            hop(20_000, 4, Stage::G2),
        ]),
        None,
    )
    .unwrap();
    assert_eq!((ipt.packets, ipt.gaps.summary().max), (3, Some(10_000.0)));
}

/// A whole round trip over both hosts; the bridge's clock is `ahead_us` ahead.
fn whole(packet: u64, start: u64, ahead_us: u64) -> [Vec<Hop>; 2] {
    let ground = [
        (Stage::G0, 0),
        (Stage::G2, 7),
        (Stage::G4, 12),
        (Stage::G5, 9_000 + packet),
        (Stage::G7, 9_050 + packet),
    ];
    let bridge = [
        (Stage::B0, 3_000),
        (Stage::B1, 3_010),
        (Stage::U0, 3_020),
        (Stage::U1, 3_030),
        (Stage::U2, 3_640),
        (Stage::U3, 3_740 + packet),
        (Stage::U4, 4_300 + packet),
        (Stage::B4, 4_400 + packet),
    ];
    let at = |stamps: &[(Stage, u64)], ahead: u64| {
        stamps
            .iter()
            .map(|(stage, us)| hop(start + us + ahead, packet, *stage))
            .collect()
    };
    [at(&ground, 0), at(&bridge, ahead_us)]
}

fn two_hosts(ahead_us: u64) -> Trace {
    let mut hops = [Vec::new(), Vec::new()];
    for packet in 1..=50 {
        let [ground, bridge] = whole(packet, packet * 20_000, ahead_us);
        hops[0].extend(ground);
        hops[1].extend(bridge);
    }
    let [ground, bridge] = hops;
    Trace::of(vec![log("ground", ground), log("pi", bridge)])
}

#[test]
fn stage_sums_equal_end_to_end_to_the_nanosecond() {
    let stages = Stages::of(&two_hosts(0), &StagePlan::parse(DEFAULT_STAGES).unwrap()).unwrap();
    assert_eq!(stages.rows.len(), 50);
    for row in &stages.rows {
        let sum: u64 = row.durations.iter().flatten().sum();
        assert!(row.durations.iter().all(Option::is_some), "{row:?}");
        assert_eq!(Some(sum), row.total, "{row:?}");
    }
    assert_eq!(stages.names[1], "network");
    assert_eq!(stages.rows[4].durations[1], Some((9_005 - 12 - 1_405) * US));
}

#[test]
fn two_hosts_whose_clocks_differ_by_3_s() {
    let plan = StagePlan::parse(DEFAULT_STAGES).unwrap();
    let (near, far) = (two_hosts(0), two_hosts(3_000_000));
    assert_eq!(
        Stages::of(&near, &plan).unwrap().rows,
        Stages::of(&far, &plan).unwrap().rows
    );
    let offset = Offset::of(&far).unwrap();
    assert!(
        offset.low <= 3_000_000_000 && offset.high >= 3_000_000_000,
        "{offset:?}"
    );
    assert_eq!(offset.packets, 50);
    assert!(
        offset.uncertainty() < 4_000_000
            && (offset.middle() - 3_000_000_000).abs() <= offset.uncertainty()
    );
    let split =
        StagePlan::parse("total: {from: G0, to: G7}\ndurations: [{name: out, from: G4, to: B0}]")
            .unwrap();
    assert_eq!(
        Stages::of(&far, &split).unwrap_err(),
        StageError::NoStamps { packets: 50 }
    );
}

#[test]
fn stamps_missing_in_30_percent_are_absent_counted_and_rows_stay_aligned() {
    let mut holed = two_hosts(0);
    holed
        .hops
        .retain(|(_, hop)| !(hop.stage == Stage::U2 && hop.packet % 10 < 3));
    let stages = Stages::of(&holed, &StagePlan::parse(DEFAULT_STAGES).unwrap()).unwrap();
    let summaries = stages.summaries();
    let missing: Vec<u64> = summaries.iter().map(|stage| stage.missing).collect();
    assert_eq!(missing, [0, 0, 0, 0, 15, 15, 0, 0, 0, 0]);
    assert!(summaries.iter().all(|stage| stage.summary.min > Some(0.0)));
    for row in &stages.rows {
        assert_eq!(row.durations[4].is_none(), row.id % 10 < 3);
        assert_eq!(row.durations[5].is_none(), row.id % 10 < 3);
        assert_eq!(row.durations[8], Some(50 * US));
    }
}

#[test]
fn the_stage_that_varies_correlates_with_the_total_and_worst_come_first() {
    let stages = Stages::of(&two_hosts(0), &StagePlan::parse(DEFAULT_STAGES).unwrap()).unwrap();
    let by_name: BTreeMap<String, Option<f64>> = stages
        .summaries()
        .into_iter()
        .map(|stage| (stage.name, stage.correlation))
        .collect();
    assert!((by_name["drone"].unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(by_name["UART write"], None, "it never changes");
    let worst: Vec<u64> = stages.worst().iter().map(|row| row.id).collect();
    assert_eq!((worst.len(), worst[0], worst[19]), (20, 50, 31));
}

#[test]
fn empty_single_unanswered_and_equal_logs_give_a_clear_answer() {
    let empty = Trace::default();
    assert_eq!(Ipt::of(&empty, None).unwrap_err(), TimingError::Empty);
    assert_eq!(Rtt::of(&empty).unwrap_err(), TimingError::Empty);
    let single = trace(vec![hop(5, 1, Stage::G2)]);
    let (ipt, rtt) = (Ipt::of(&single, None).unwrap(), Rtt::of(&single).unwrap());
    assert_eq!((ipt.packets, ipt.gaps.len()), (1, 0));
    assert_eq!(
        (rtt.requests, rtt.answered, rtt.first.summary().p50),
        (1, 0, None)
    );
    let equal = trace(
        (1..=100)
            .flat_map(|n| [hop(n * 100, n, Stage::G2), hop(n * 100 + 50, n, Stage::G6)])
            .collect(),
    );
    let rtt = Rtt::of(&equal).unwrap();
    assert_eq!(
        (rtt.first.summary().min, rtt.first.summary().p99),
        (Some(50.0), Some(50.0))
    );
    for trace in [&empty, &single, &equal] {
        let (ipt, rtt) = (Ipt::of(trace, None).ok(), Rtt::of(trace).ok());
        let page = page(trace, ipt.as_ref(), rtt.as_ref(), None).unwrap();
        assert!(page.ends_with("</html>") && !page.contains("NaN"));
    }
    assert_eq!(
        Rtt::of(&trace(vec![hop(5, 1, Stage::G5)])).unwrap_err(),
        TimingError::NoPair
    );
    assert_eq!(
        Ipt::of(&trace(vec![hop(5, 1, Stage::G5)]), None).unwrap_err(),
        TimingError::NothingSent
    );
}

#[test]
fn one_way_stages_carry_their_uncertainty_and_are_exact_on_one_clock() {
    let plan = StagePlan::parse(DEFAULT_STAGES).unwrap();
    let far = Stages::of(&two_hosts(3_000_000), &plan).unwrap();
    let names: Vec<_> = far.one_way.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["network out", "network back"]);
    let (out, back) = (&far.one_way[0], &far.one_way[1]);
    assert!(out.uncertainty > 0 && out.histogram.len() == 50);
    let truth = 3_000_000.0 - 12_000.0;
    let doubt = out.uncertainty as f64;
    assert!((out.histogram.quantile(0.5).unwrap() - truth).abs() <= doubt * 1.01);
    assert!(back.uncertainty == out.uncertainty);
    let mut near = two_hosts(0);
    near.clocks = [0, 0].into();
    let near = Stages::of(&near, &plan).unwrap();
    assert_eq!(near.one_way[0].uncertainty, 0);
    assert_eq!(near.one_way[0].histogram.summary().min, Some(2_988.0));
}

#[test]
fn alternatives_of_a_stamp_are_settled_once_for_a_run() {
    let plan = "stamps: {out: [U2, U1]}\ntotal: {from: U0, to: U4}\ndurations:\n  - {name: wire, from: U1, to: out}\n  \
                - {name: drone, from: out, to: U4}";
    let mut holed = two_hosts(0);
    holed
        .hops
        .retain(|(_, hop)| hop.stage != Stage::U2 || hop.packet == 1);
    let stages = Stages::of(&holed, &StagePlan::parse(plan).unwrap()).unwrap();
    assert_eq!(stages.names, ["wire", "drone"]);
    assert_eq!(stages.summaries()[1].missing, 0);
    assert_eq!(stages.rows.len(), 1, "only one packet has the stamp");
    holed.hops.retain(|(_, hop)| hop.stage != Stage::U2);
    let stages = Stages::of(&holed, &StagePlan::parse(plan).unwrap()).unwrap();
    assert_eq!(
        stages.names,
        ["drone"],
        "no zero stands for a stage nobody stamped"
    );
    assert_eq!(stages.rows.len(), 50);
}

#[test]
fn stage_declarations_are_checked() {
    let refused = |text: &str| StagePlan::parse(text).unwrap_err().to_string();
    let unknown = refused("total: {from: G0, to: G9}\ndurations: []");
    assert_eq!(
        unknown,
        "stages: total \"G9\": G0 to G7, B0 to B4, UQ, U0, UC, U1 to U5, D0, D1 or a declared stamp"
    );
    assert!(refused("total: {from: G0, to: G7}\ndurations: []\nextra: 1").starts_with("stages: "));
    assert!(refused("").starts_with("stages: "));
}

#[test]
fn warnings_tell_of_cut_logs_and_dropped_records() {
    let cut = Contents {
        cut: true,
        dropped: 7,
        ..log("pi", vec![])
    };
    let warnings = Trace::of(vec![cut]).warnings();
    assert_eq!(warnings[0], "7 records were dropped while logging");
    assert!(warnings[1].contains("pi has no end mark"));
}

#[test]
fn a_table_has_a_line_for_each_record() {
    let mut text = Vec::new();
    export::csv(&twelve(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 24);
    assert_eq!(
        lines[1],
        "ground,10000000,1700000000010000000,1,G2,up,prrt,5,1,2,0,new,passed,5d01,0"
    );
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
}

#[test]
fn a_capture_has_both_headers_as_they_are_read() {
    let one = trace(vec![hop(1, 1, Stage::G2)]);
    let of = |header| {
        let mut bytes = Vec::new();
        export::pcapng(&one, header, None, &mut bytes).unwrap();
        bytes
    };
    let dissector = of(export::Header::Dissector);
    let packet = &dissector[dissector.len() - 44..];
    assert_eq!(packet[..8], [6, 0, 0, 0, 44, 0, 0, 0]);
    assert_eq!(
        u64::from(u32::from_le_bytes(packet[12..16].try_into().unwrap())),
        1_700_000_000_000_001_000 >> 32
    );
    assert_eq!(packet[20..24], [11, 0, 0, 0]);
    assert_eq!(
        packet[28..39],
        [1, 0, 0xe7, 0xe7, 0xe7, 0xe7, 0xe7, 0, 0, 0x5d, 1]
    );
    let capture = of(export::Header::Capture);
    let packet = &capture[capture.len() - 76..];
    assert_eq!(packet[20..24], [43, 0, 0, 0]);
    assert_eq!(
        packet[28 + 31..28 + 41],
        *[&1_700_000_000_000_001_u64.to_le_bytes()[..], &[2, 0]].concat()
    );
    assert_eq!(packet[28 + 41..28 + 43], [0x5d, 1]);
}

#[test]
fn a_perfetto_trace_has_one_flow_for_each_packet_across_hosts() {
    let mut bytes = Vec::new();
    export::perfetto(&two_hosts(0), &mut bytes).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let events = value["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!(
        (count("X"), count("s"), count("f"), count("t")),
        (50 * 13, 50, 50, 50 * 11)
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| event["name"] == "process_name")
            .count(),
        2
    );
}

#[test]
fn age_of_information_of_a_hand_written_stream() {
    // Made every 10 ms, known after 2 ms; the third is lost, the fourth comes after the fifth.
    let setpoint = |packet: u64, made: u64, came: u64| {
        let at = |us, stage| Hop {
            reason: Reason::Setpoint,
            ..hop(us, packet, stage)
        };
        [at(made, Stage::G0), at(came, Stage::D0)]
    };
    let mut hops: Vec<Hop> = [
        setpoint(1, 0, 2_000),
        setpoint(2, 10_000, 12_000),
        setpoint(4, 30_000, 45_000),
        setpoint(5, 40_000, 42_000),
    ]
    .concat();
    hops.push(hop(20_000, 3, Stage::G0));
    let ages = Age::of(&trace(hops));
    assert_eq!(ages.len(), 1);
    let age = &ages[0];
    assert_eq!((age.updates, age.stale, age.uncertainty), (3, 1, 0));
    let peaks = age.peaks.summary();
    assert_eq!((peaks.min, peaks.max), (Some(12_000.0), Some(32_000.0)));
    // From 2 to 12 ms the age grows from 2 to 12 ms, from 12 to 42 ms from 2 to 32 ms.
    let area =
        (12.0_f64.powi(2) - 2.0_f64.powi(2)) / 2.0 + (32.0_f64.powi(2) - 2.0_f64.powi(2)) / 2.0;
    assert!((age.average / 1e6 - area / 40.0).abs() < 1e-9);
}

#[test]
fn fates_count_every_record_once() {
    let fates = fates(&twelve());
    assert_eq!(fates.values().sum::<u64>(), 24);
    let duplicates = fates
        .iter()
        .filter(|(fate, _)| fate.verdict == Verdict::Duplicate);
    assert_eq!(duplicates.map(|(_, count)| count).sum::<u64>(), 1);
}
