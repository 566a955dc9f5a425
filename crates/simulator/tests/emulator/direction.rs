//! What a direction does to packets, in virtual time.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use simulator::emulator::{
    Bursts, Conditions, Direction, DirectionStats, Loss, Meta, Outage, Rate, Reorder, Side, Spikes,
    blocked,
};

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);

/// When each of `count` packets arrived, sent `period` apart with `len` bytes; none or several times.
fn carry(
    conditions: &Conditions,
    seed: u64,
    count: usize,
    period: Duration,
    len: usize,
) -> (Vec<Vec<Duration>>, DirectionStats) {
    let start = Instant::now();
    let mut direction = Direction::new(start, conditions.clone(), seed, Side::Up);
    let mut arrivals = vec![Vec::new(); count];
    for index in 0..count {
        let now = start + period * index as u32;
        collect(&mut direction, start, now, &mut arrivals);
        let meta = Meta {
            tag: index as u32,
            ..Meta::default()
        };
        direction.handle_packet(now, &vec![7; len], meta);
    }
    collect(&mut direction, start, start + 3600 * S, &mut arrivals);
    assert_eq!(direction.poll_timeout(), None);
    (arrivals, direction.stats())
}

fn collect(direction: &mut Direction, start: Instant, until: Instant, into: &mut [Vec<Duration>]) {
    while let Some((at, _)) = direction.poll_timeout().filter(|(at, _)| *at <= until) {
        let delivery = direction.poll_packet(at).unwrap();
        assert_eq!(delivery.due, at);
        into[delivery.tag as usize].push(at - start);
    }
}

fn bursts(inside: f64) -> Conditions {
    Conditions {
        loss: Loss {
            iid: 0.0,
            bursts: Some(Bursts {
                share: 0.05,
                mean: 5 * MS,
                inside,
            }),
        },
        ..Conditions::default()
    }
}

fn iid(share: f64) -> Conditions {
    Conditions {
        loss: Loss {
            iid: share,
            bursts: None,
        },
        ..Conditions::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let conditions = Conditions {
        jitter: MS,
        ..iid(0.1)
    };
    let run = |seed| carry(&conditions, seed, 500, MS, 100);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn bursts_are_driven_by_time_so_that_every_rate_meets_the_same() {
    let (slow, _) = carry(&bursts(1.0), 3, 6000, 10 * MS, 100);
    let (fast, _) = carry(&bursts(1.0), 3, 60_000, MS, 100);
    let lost = |packets: &[Vec<Duration>]| packets.iter().map(Vec::is_empty).collect::<Vec<_>>();
    let every_tenth: Vec<_> = lost(&fast).into_iter().step_by(10).collect();
    assert_eq!(lost(&slow), every_tenth);
    assert!(every_tenth.iter().any(|lost| *lost));
}

#[test]
fn losses_have_the_share_that_was_asked_for() {
    // 5 sigma of a coin; bursts of 5 ms are seen by 5 packets on average, so their sigma is about 3 times that.
    let (_, stats) = carry(&iid(0.05), 4, 200_000, MS, 100);
    assert!((9_500..10_500).contains(&stats.lost_iid), "{stats:?}");
    let (_, stats) = carry(&bursts(1.0), 4, 200_000, MS, 100);
    assert!((8_400..11_600).contains(&stats.lost_bursts), "{stats:?}");
    let (_, half) = carry(&bursts(0.5), 4, 200_000, MS, 100);
    let ratio = half.lost_bursts as f64 / stats.lost_bursts as f64;
    assert!((0.46..0.54).contains(&ratio), "{ratio}");
}

#[test]
fn lost_packets_occupy_the_link() {
    let conditions = Conditions {
        rate: Rate::constant(8e5),
        queue_bytes: 10_000,
        ..iid(0.5)
    };
    // 100 bytes take 1 ms, ten arrive at once: the one that is not lost comes after those before it.
    let (arrivals, stats) = carry(&conditions, 5, 10, Duration::ZERO, 100);
    assert!(stats.lost_iid > 0 && stats.delivered > 0);
    for (index, at) in arrivals.iter().enumerate() {
        assert!(at.iter().all(|at| *at == MS * (index as u32 + 1)));
    }
}

#[test]
fn what_finds_no_room_in_the_queue_is_dropped_and_the_delay_is_bounded() {
    let conditions = Conditions {
        rate: Rate::constant(8e5),
        queue_bytes: 1000,
        delay: 3 * MS,
        ..Conditions::default()
    };
    let (arrivals, stats) = carry(&conditions, 6, 1000, MS / 2, 100);
    assert!(stats.overflowed > 450, "{stats:?}");
    assert_eq!(stats.delivered + stats.overflowed, 1000);
    for (index, at) in arrivals.iter().enumerate() {
        let sent = MS / 2 * index as u32;
        assert!(at.iter().all(|at| *at - sent <= 3 * MS + 10 * MS));
    }
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let mut conditions = Conditions {
        delay: 3 * MS,
        jitter: 5 * MS,
        ..Conditions::default()
    };
    let sorted = |conditions: &Conditions| {
        let (arrivals, stats) = carry(conditions, 7, 2000, MS, 100);
        (arrivals.concat().is_sorted(), stats.reordered)
    };
    assert_eq!(sorted(&conditions), (true, 0));
    conditions.reorder = Some(Reorder {
        share: 0.02,
        up_to: 20 * MS,
    });
    let (in_order, reordered) = sorted(&conditions);
    assert!(!in_order && (10..80).contains(&reordered), "{reordered}");
}

#[test]
fn an_outage_takes_everything_and_comes_again() {
    let conditions = Conditions {
        outages: vec![Outage {
            at: 100 * MS,
            length: 50 * MS,
            every: Some(S),
        }],
        ..Conditions::default()
    };
    let (arrivals, stats) = carry(&conditions, 8, 2000, MS, 100);
    assert_eq!(stats.lost_outages, 100);
    let out = |ms: usize| arrivals[ms].is_empty();
    assert!(!out(99) && out(100) && out(149) && !out(150) && !out(1099) && out(1100));
}

#[test]
fn a_spike_holds_packets_and_loses_none() {
    let conditions = Conditions {
        spikes: Some(Spikes {
            per_s: 1.0,
            min: 20 * MS,
            max: 40 * MS,
        }),
        ..Conditions::default()
    };
    let (arrivals, stats) = carry(&conditions, 9, 100_000, MS, 100);
    assert_eq!(stats.delivered, 100_000);
    let late = |index: usize| arrivals[index][0] - MS * index as u32;
    let longest = (0..100_000).map(late).max().unwrap();
    assert!(longest > 30 * MS && longest <= 40 * MS, "{longest:?}");
    let held = (0..100_000)
        .filter(|index| late(*index) > Duration::ZERO)
        .count();
    assert!((2000..4200).contains(&held), "{held}");
}

#[test]
fn duplicates_and_turned_bits_are_counted_and_headers_stay() {
    let start = Instant::now();
    let conditions = Conditions {
        duplicate: 0.5,
        corrupt: 0.5,
        ..Conditions::default()
    };
    let mut direction = Direction::new(start, conditions, 10, Side::Up);
    let meta = Meta {
        protected: 28,
        ..Meta::default()
    };
    (0..1000).for_each(|_| direction.handle_packet(start, &[0; 60], meta));
    let (mut delivered, mut turned) = (0, 0);
    while let Some(delivery) = direction.poll_packet(start) {
        delivered += 1;
        let bits: u32 = delivery.bytes.iter().map(|b| b.count_ones()).sum();
        assert_eq!(bits, u32::from(delivery.corrupted));
        assert!(delivery.bytes[..28].iter().all(|byte| *byte == 0));
        turned += u64::from(delivery.corrupted);
    }
    let stats = direction.stats();
    assert_eq!((stats.delivered, stats.corrupted), (delivered, turned));
    assert!((400..600).contains(&stats.duplicated) && (600..900).contains(&turned));
}

#[test]
fn packets_leave_on_the_slot_grid() {
    let conditions = Conditions {
        slot: Some(10 * MS),
        delay: MS,
        ..Conditions::default()
    };
    let (arrivals, _) = carry(&conditions, 11, 100, 3 * MS, 100);
    for (index, at) in arrivals.iter().enumerate() {
        let slot = (index as u32 * 3).div_ceil(10) * 10;
        assert_eq!(at[0], MS * slot + MS);
    }
}

#[test]
fn memory_is_bounded_without_a_rate() {
    let start = Instant::now();
    let conditions = Conditions {
        delay: S,
        ..Conditions::default()
    };
    let mut direction = Direction::new(start, conditions, 12, Side::Up);
    (0..100_000).for_each(|_| direction.handle_packet(start, &[0; 8], Meta::default()));
    assert_eq!(direction.stats().overflowed, 100_000 - 65_536);
}

#[test]
fn nothing_passes_at_once_in_what_counts_as_blocked() {
    let conditions = Conditions {
        outages: vec![Outage {
            at: S,
            length: 20 * MS,
            every: None,
        }],
        spikes: Some(Spikes {
            per_s: 2.0,
            min: 5 * MS,
            max: 10 * MS,
        }),
        ..bursts(1.0)
    };
    let spans = blocked(&conditions, 13, Side::Up, 20 * S);
    assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0));
    let (arrivals, _) = carry(&conditions, 13, 20_000, MS, 100);
    for (index, at) in arrivals.iter().enumerate() {
        let sent = MS * index as u32;
        let inside = spans.iter().any(|span| span.0 <= sent && sent < span.1);
        assert_eq!(*at != [sent], inside, "at {sent:?}");
    }
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(
        seed in 0u64..1000, loss in 0.0..0.5, twice in 0.0..0.5, kbps in 10.0..5000.0, len in 1usize..1500, gap in 0u64..20
    ) {
        let conditions = Conditions {
            rate: Rate::constant(kbps * 1e3),
            queue_bytes: 20_000,
            duplicate: twice,
            jitter: MS,
            ..Conditions { loss: Loss { iid: loss, ..bursts(0.8).loss }, ..Conditions::default() }
        };
        let (arrivals, s) = carry(&conditions, seed, 300, MS * gap as u32, len);
        prop_assert_eq!(s.packets, 300);
        prop_assert_eq!(s.delivered, arrivals.concat().len() as u64);
        prop_assert_eq!(s.packets + s.duplicated, s.delivered + s.lost_iid + s.lost_bursts + s.overflowed);
    }
}
