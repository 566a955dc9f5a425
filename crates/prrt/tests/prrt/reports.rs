//! Reports from the field, each a test named after it.

use std::time::Duration;

use prrt::{Config, Mode, Stats, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn setpoints(pair: &mut Pair, count: u32, life: Duration) {
    for n in 0..count {
        pair.send(CLIENT, Stream::Ordered(1), Some(life), &n.to_be_bytes())
            .unwrap();
        pair.run_for(10 * MS);
    }
}

#[test]
fn reordering_alone_is_not_loss_and_soon_brings_few_repairs() {
    let reorder = Conditions {
        reorder: 0.1,
        fifo: false,
        ..Conditions::wifi(Loss::Never)
    };
    let mut needless = 0;
    for seed in 1..=5 {
        let mut pair = Pair::connected(&Config::default(), [reorder; 2], seed);
        setpoints(&mut pair, 5000, 100 * MS);
        let stats = pair.stats(CLIENT);
        assert_eq!(stats.raw_loss, Some(0.0), "{stats:?}");
        assert_eq!(stats.residual_loss(), Some(0.0));
        assert!(stats.debt < 0.1);
        let learning = stats.send.repairs;
        assert!(learning < 150, "{stats:?}");
        setpoints(&mut pair, 5000, 100 * MS);
        needless += pair.stats(CLIENT).send.repairs - learning;
    }
    assert!(
        needless < 250,
        "{needless} repairs of 25000 messages, none lost"
    );
}

#[test]
fn five_percent_loss_all_repaired_is_raw_five_percent_and_residual_zero() {
    let mut pair = Pair::connected(
        &Config::default(),
        [Conditions::wifi(Loss::Iid(0.05)); 2],
        2,
    );
    setpoints(&mut pair, 20_000, 100 * MS);
    pair.run_for(Duration::from_secs(1));
    let stats = pair.stats(CLIENT);
    assert_eq!(stats.residual_loss(), Some(0.0), "{stats:?}");
    assert!(
        (0.045..0.055).contains(&stats.raw_loss.unwrap()),
        "{stats:?}"
    );
    assert_eq!(pair.ends[SERVER].received.len(), 20_000);
}

#[test]
fn statistics_before_the_first_packet_are_none() {
    assert_eq!(Stats::default().residual_loss(), None);
    let conditions = Conditions {
        jitter: Duration::ZERO,
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::apart(&Config::default(), [conditions; 2], 3);
    pair.connect();
    while !pair.is_up(SERVER) {
        pair.run_for(MS / 10);
    }
    let stats = pair.stats(SERVER);
    assert_eq!((stats.rtt, stats.raw_loss, stats.burst), (None, None, None));
    assert_eq!((stats.bottleneck_bps, stats.residual_loss()), (None, None));
}

#[test]
fn five_thousand_packets_lost_in_a_row_do_not_end_delivery() {
    let config = Config {
        idle_timeout: Duration::from_secs(120),
        ..Config::default()
    };
    let mut pair = Pair::connected(&config, [Conditions::wifi(Loss::Never); 2], 4);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    setpoints(&mut pair, 100, 20 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    setpoints(&mut pair, 5000, 20 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.ends[SERVER].received.clear();
    let back = pair.now;
    setpoints(&mut pair, 100, 20 * MS);
    pair.run_for(100 * MS);
    let mut fresh = pair.ends[SERVER].received.clone();
    fresh.retain(|(at, message)| *at - message.age >= back - MS);
    assert!(fresh[0].0 - back < 20 * MS, "{:?}", fresh[0].0 - back);
    assert_eq!(fresh.len(), 100);
}

#[test]
fn blackout_of_three_seconds_then_fresh_data_at_once_and_nothing_stale() {
    let config = Config {
        idle_timeout: Duration::from_secs(10),
        ..Config::default()
    };
    let mut pair = Pair::connected(&config, [Conditions::wifi(Loss::Never); 2], 5);
    setpoints(&mut pair, 100, 20 * MS);
    for end in [CLIENT, SERVER] {
        pair.nets[end].conditions.loss = Loss::Iid(1.0);
    }
    pair.send(CLIENT, Stream::Ordered(7), None, b"reliable")
        .unwrap();
    setpoints(&mut pair, 300, 20 * MS);
    for end in [CLIENT, SERVER] {
        pair.nets[end].conditions.loss = Loss::Never;
    }
    pair.ends[SERVER].received.clear();
    let back = pair.now;
    setpoints(&mut pair, 50, 20 * MS);
    let received = &pair.ends[SERVER].received;
    assert!(received[0].0 - back < 27 * MS, "{:?}", received[0].0 - back);
    for (_, message) in received {
        assert!(
            message.stream == Stream::Ordered(7) || message.age < 20 * MS,
            "{message:?}"
        );
    }
    let reliable = received
        .iter()
        .find(|(_, m)| m.stream == Stream::Ordered(7))
        .unwrap();
    assert!(reliable.0 - back < 50 * MS, "{:?}", reliable.0 - back);
}

#[test]
fn a_sparse_stream_on_a_blocked_link_dies_by_the_clock() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 6);
    pair.run_for(Duration::from_secs(1));
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    pair.send(CLIENT, Stream::Ordered(1), Some(20 * MS), b"lonely")
        .unwrap();
    pair.run_for(19 * MS);
    assert_eq!(pair.stats(CLIENT).send.expired_unconfirmed, 0);
    pair.run_for(MS);
    assert_eq!(pair.stats(CLIENT).send.expired_unconfirmed, 1);
    let sent = pair.nets[CLIENT].offered;
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.run_for(100 * MS);
    assert_eq!(
        pair.nets[CLIENT].offered, sent,
        "nothing is sent after the deadline"
    );
    assert!(pair.ends[SERVER].received.is_empty());
}

#[test]
fn thirty_percent_loss_delivers_nothing_older_than_its_expiry() {
    for mode in [Mode::Asap, Mode::IN_ORDER] {
        let mut pair =
            Pair::connected(&Config::default(), [Conditions::wifi(Loss::Iid(0.3)); 2], 7);
        pair.ends[SERVER].mode = mode;
        let mut born = Vec::new();
        for n in 0..5000u32 {
            born.push(pair.now);
            pair.send(CLIENT, Stream::Ordered(1), Some(50 * MS), &n.to_be_bytes())
                .unwrap();
            pair.run_for(10 * MS);
        }
        let received = &pair.ends[SERVER].received;
        let mut last = pair.start;
        for (at, message) in received {
            let n = u32::from_be_bytes(message.data[..].try_into().unwrap()) as usize;
            let age = *at - born[n];
            assert!(age <= 51 * MS, "{mode:?}: {age:?}");
            assert!(
                *at - last < 500 * MS || last == pair.start,
                "{mode:?}: silence of {:?}",
                *at - last
            );
            last = *at;
        }
        assert!(received.len() > 4900, "{mode:?}: {}", received.len());
    }
}

#[test]
fn a_stall_delivers_nothing_stale_and_counts_no_loss() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 9);
    setpoints(&mut pair, 200, 50 * MS);
    let until = pair.now + 300 * MS;
    pair.nets[CLIENT].stall(until);
    pair.ends[SERVER].received.clear();
    setpoints(&mut pair, 100, 50 * MS);
    let received = &pair.ends[SERVER].received;
    assert!(received.iter().all(|(_, message)| message.age <= 51 * MS));
    assert!(received.len() >= 68, "{}", received.len());
    assert!(
        pair.ends[SERVER]
            .endpoint
            .stats(pair.ends[SERVER].peer.unwrap())
            .unwrap()
            .receive
            .expired
            > 20
    );
}

/// A radio that sleeps after 50 ms of silence and wakes with the next beacon but one.
#[test]
fn power_save_spikes_name_their_suspicion() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 10);
    pair.run_for(Duration::from_secs(2));
    let peer = pair.ends[CLIENT].peer.unwrap();
    assert_eq!(pair.ends[CLIENT].endpoint.poll_suspicion(), None);
    for _ in 0..4 {
        let until = pair.now + 400 * MS;
        pair.nets[CLIENT].stall(until);
        pair.run_for(Duration::from_secs(3));
    }
    assert_eq!(pair.ends[CLIENT].endpoint.poll_suspicion(), Some(peer));
    assert_eq!(pair.ends[CLIENT].endpoint.poll_suspicion(), None);
    assert!(pair.stats(CLIENT).spikes >= 3);
}

#[test]
fn a_storm_of_repairs_stays_within_the_bucket() {
    let narrow = Conditions {
        rate: Some((200_000.0, 20_000)),
        ..Conditions::wifi(Loss::Iid(0.5))
    };
    let mut pair = Pair::connected(&Config::default(), [narrow; 2], 8);
    let before = pair.nets[CLIENT].offered;
    setpoints(&mut pair, 3000, 300 * MS);
    pair.run_for(Duration::from_secs(1));
    let sent = pair.nets[CLIENT].offered - before;
    assert!(
        sent as f64 <= 3000.0 * 2.5 + 31.0 * 25.0,
        "{sent} datagrams"
    );
}
