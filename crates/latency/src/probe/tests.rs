//! The prober on a virtual clock, against relays that drop, delay, duplicate and reorder.

use std::time::Duration;

use super::*;

const MS: u64 = 1_000_000;
const RUN: u64 = 42;

fn at(ms: u64) -> MonoNs {
    MonoNs(ms * MS)
}

fn plan(mode: Mode, count: u64) -> Plan {
    Plan {
        run_id: RUN,
        mode,
        bytes: 64,
        count,
        warmup: 0,
        timeout: Duration::from_millis(100),
        drain: Duration::from_millis(50),
        wait: Duration::ZERO,
        settle: Duration::ZERO,
    }
}

fn echo(sequence: u64) -> Echo {
    Echo {
        run_id: RUN,
        sequence,
        relay: None,
        bytes: 64,
    }
}

fn rate(hz: f64) -> Mode {
    Mode::Rate { hz }
}

fn ping_pong(gap_ms: u64) -> Mode {
    Mode::PingPong {
        gap: Duration::from_millis(gap_ms),
    }
}

/// A relay: what it does with a probe, as (echo, after how many ns).
type Relay<'a> = dyn FnMut(&Probe) -> Vec<(u64, Echo)> + 'a;

/// Drives a run to its end on a virtual clock; returns the measurement and the end.
fn drive(plan: Plan, relay: &mut Relay<'_>) -> (Measurement, MonoNs) {
    let mut now = at(1000);
    let mut prober = Prober::new(plan, now).unwrap();
    let mut flying: Vec<(MonoNs, Echo)> = Vec::new();
    for _ in 0..1_000_000 {
        while let Some(probe) = prober.poll_send(now) {
            flying.extend(
                relay(&probe)
                    .into_iter()
                    .map(|(ns, echo)| (MonoNs(now.0 + ns), echo)),
            );
            flying.sort_by_key(|(at, _)| *at);
        }
        if prober.is_over() {
            return (prober.finish(now), now);
        }
        let timer = prober.poll_timeout().map_or(MonoNs(u64::MAX), |(at, _)| at);
        match flying.first().copied() {
            Some((arrives, echo)) if arrives <= timer => {
                flying.remove(0);
                now = arrives;
                prober.handle_echo(now, &echo);
            }
            _ => {
                now = now.max(timer);
                prober.handle_timeout(now);
            }
        }
    }
    panic!("the run does not end: {:?}", prober.phase());
}

#[test]
fn ping_pong_sends_the_next_probe_a_gap_after_the_answer() {
    let (run, end) = drive(plan(ping_pong(10), 100), &mut |probe| {
        vec![(2 * MS, echo(probe.sequence))]
    });
    assert_eq!(
        (run.counts.sent, run.counts.received, run.counts.lost),
        (100, 100, 0)
    );
    assert_eq!(run.rtt.summary().max, Some(2000.0));
    assert_eq!(end, at(1000 + 100 * 2 + 99 * 10));
    assert!(!run.partial);
}

#[test]
fn best_effort_ping_with_every_tenth_reply_dropped() {
    for mode in [ping_pong(0), rate(100.0)] {
        let (run, end) = drive(plan(mode, 200), &mut |probe| match probe.sequence % 10 {
            9 => vec![],
            5 => vec![(120 * MS, echo(probe.sequence))],
            _ => vec![(3 * MS, echo(probe.sequence))],
        });
        let counts = run.counts;
        assert_eq!(
            (counts.sent, counts.received, counts.lost, counts.late),
            (200, 160, 20, 20),
            "{mode:?}"
        );
        assert_eq!(run.rtt.len(), 160);
        assert_eq!(run.rtt.summary().max, Some(3000.0));
        let longest = match mode {
            Mode::Rate { .. } => 200 * 10 + 150,
            Mode::PingPong { .. } => 160 * 3 + 40 * 100 + 150,
        };
        assert!(end <= at(1000 + longest), "{mode:?} ended at {end:?}");
    }
}

#[test]
fn latency_leaves_out_the_time_in_the_relay() {
    let (run, _) = drive(plan(ping_pong(0), 50), &mut |probe| {
        let relay = Some((at(500), at(505)));
        vec![(
            7 * MS,
            Echo {
                relay,
                ..echo(probe.sequence)
            },
        )]
    });
    assert_eq!(run.rtt.summary().p50, Some(7000.0));
    assert_eq!(run.processing.summary().max, Some(5000.0));
    assert_eq!(run.latency.summary().max, Some(1000.0));
}

#[test]
fn relay_times_that_cannot_be_are_counted_and_in_no_latency() {
    let (run, _) = drive(plan(ping_pong(0), 2), &mut |probe| {
        let relay = Some(if probe.sequence == 0 {
            (at(9), at(3))
        } else {
            (at(0), at(900))
        });
        vec![(
            7 * MS,
            Echo {
                relay,
                ..echo(probe.sequence)
            },
        )]
    });
    assert_eq!(
        (run.counts.bad_stamps, run.latency.len(), run.rtt.len()),
        (2, 0, 2)
    );
}

#[test]
fn a_stall_is_seen_by_every_probe_it_delays() {
    let mut prober = Prober::new(plan(rate(1000.0), 100), at(0)).unwrap();
    let mut sent = Vec::new();
    // The process is off the CPU for 50 ms, then answers take 1 ms.
    for ms in std::iter::once(0).chain(50..150) {
        while let Some(probe) = prober.poll_send(at(ms)) {
            sent.push(probe);
        }
        let due: Vec<Probe> = sent
            .iter()
            .copied()
            .filter(|probe| probe.sent.0 + MS <= at(ms).0)
            .collect();
        sent.retain(|probe| !due.contains(probe));
        for probe in due {
            prober.handle_echo(at(ms), &echo(probe.sequence));
        }
    }
    let run = prober.finish(at(200));
    assert_eq!((run.counts.received, run.partial), (100, false));
    assert_eq!(run.send_lag.summary().max, Some(49_000.0));
    assert!(run.rtt.summary().p90.unwrap() > 40_000.0);
    let from_send = run.rtt_from_send.quantile(0.9).unwrap();
    assert!((990_000.0..1_001_000.0).contains(&from_send), "{from_send}");
}

#[test]
fn warm_up_probes_are_counted_and_in_no_figure() {
    let warm = Plan {
        warmup: 10,
        ..plan(ping_pong(0), 20)
    };
    let (run, _) = drive(warm, &mut |probe| {
        let slow = if probe.sequence < 10 { 50 } else { 1 };
        vec![(slow * MS, echo(probe.sequence))]
    });
    assert_eq!(
        (run.counts.warmup, run.counts.sent, run.counts.received),
        (10, 20, 20)
    );
    assert_eq!(run.rtt.summary().max, Some(1000.0));
}

#[test]
fn duplicates_reordered_foreign_and_damaged_echoes_are_told_apart() {
    let (run, _) = drive(plan(rate(1000.0), 10), &mut |probe| match probe.sequence {
        2 => vec![(MS, echo(2)), (2 * MS, echo(2))],
        4 => vec![(5 * MS + 1, echo(4))],
        6 => vec![
            (
                MS,
                Echo {
                    run_id: 7,
                    ..echo(6)
                },
            ),
            (2 * MS + 1, echo(6)),
            (2 * MS, echo(4711)),
        ],
        8 => vec![(
            MS,
            Echo {
                bytes: 63,
                ..echo(8)
            },
        )],
        other => vec![(MS, echo(other))],
    });
    let counts = run.counts;
    assert_eq!(
        (counts.duplicate, counts.foreign, counts.damaged),
        (1, 2, 1)
    );
    assert_eq!((counts.received, counts.lost, counts.sent), (9, 0, 10));
    assert_eq!(counts.reordered, 2, "4 came after 7, 6 after 7");
}

#[test]
fn prober_started_before_the_relay_waits_then_measures() {
    let early = Plan {
        wait: Duration::from_secs(10),
        settle: Duration::from_millis(300),
        ..plan(ping_pong(0), 5)
    };
    let mut first_of_run = None;
    let (run, _) = drive(early, &mut |probe| {
        if probe.sent < at(6000) {
            assert!(probe.sequence >= HELLO);
            return vec![];
        }
        if probe.sequence < HELLO {
            first_of_run.get_or_insert(probe.sent);
        }
        vec![(MS, echo(probe.sequence))]
    });
    assert_eq!(
        (run.counts.received, run.counts.lost, run.counts.sent),
        (5, 0, 5)
    );
    assert!(first_of_run.unwrap() >= at(6301) && first_of_run.unwrap() < at(7400));
}

#[test]
fn relay_never_comes() {
    let lonely = Plan {
        wait: Duration::from_secs(3),
        ..plan(ping_pong(0), 5)
    };
    let mut hellos = 0;
    let mut prober = Prober::new(lonely, at(0)).unwrap();
    let mut now = at(0);
    while !prober.is_over() {
        while prober.poll_send(now).is_some() {
            hellos += 1;
        }
        if let Some((timer, _)) = prober.poll_timeout() {
            now = timer;
        }
        prober.handle_timeout(now);
    }
    assert_eq!((prober.phase(), now), (Phase::NoPeer, at(3000)));
    assert!((4..10).contains(&hellos), "{hellos}");
    let run = prober.finish(now);
    assert_eq!((run.counts.sent, run.partial), (0, true));
}

#[test]
fn an_early_end_keeps_what_was_measured_and_invents_no_loss() {
    let mut prober = Prober::new(plan(rate(100.0), 100), at(0)).unwrap();
    for ms in (0..=200).step_by(10) {
        let probe = prober.poll_send(at(ms)).unwrap();
        if ms < 150 && ms != 20 {
            prober.handle_echo(at(ms + 1), &echo(probe.sequence));
        }
    }
    let run = prober.finish(at(205));
    assert!(run.partial);
    assert_eq!(
        (
            run.counts.received,
            run.counts.lost,
            run.counts.unsent,
            run.counts.sent
        ),
        (14, 1, 6, 15)
    );
}

#[test]
fn a_probe_the_medium_refused_is_not_lost() {
    let mut prober = Prober::new(plan(ping_pong(5), 2), at(0)).unwrap();
    let refused = prober.poll_send(at(0)).unwrap();
    prober.handle_unsent(at(0), refused.sequence);
    assert_eq!(prober.poll_timeout(), Some((at(5), "next probe")));
    let second = prober.poll_send(at(5)).unwrap();
    prober.handle_echo(at(6), &echo(second.sequence));
    assert_eq!(prober.phase(), Phase::Done);
    let counts = prober.finish(at(6)).counts;
    assert_eq!(
        (counts.sent, counts.unsent, counts.received, counts.lost),
        (1, 1, 1, 0)
    );
}

#[test]
fn a_schedule_does_not_drift() {
    let thirds = plan(rate(300.0), 1000);
    assert_eq!(thirds.due(MonoNs(5), 300), Some(MonoNs(1_000_000_005)));
    assert_eq!(thirds.due(MonoNs(5), 900), Some(MonoNs(3_000_000_005)));
}

#[test]
fn plans_out_of_range_are_refused_by_name() {
    let good = plan(rate(100.0), 10);
    let refused = |plan: Plan| plan.check().unwrap_err().to_string();
    assert_eq!(
        refused(Plan { count: 0, ..good }),
        "count 0 and warmup 0: count is at least 1, both together at most 5000000"
    );
    assert_eq!(
        refused(Plan {
            bytes: MAX_BYTES + 1,
            ..good
        }),
        "bytes 4194305: 0 to 4194304"
    );
    for hz in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6] {
        assert!(
            refused(Plan {
                mode: rate(hz),
                ..good
            })
            .starts_with("rate "),
            "{hz}"
        );
    }
    assert_eq!(
        refused(Plan {
            timeout: Duration::ZERO,
            ..good
        }),
        "timeout 0ns: 1µs to 600s"
    );
}
