//! Sparse feedback: on a path that loses little a steady stream needs few datagrams back, and loses nothing by it.

use std::time::Duration;

use prrt::{Config, Repair, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};
use crate::repair::{Outcome, stream_with};

const MS: Duration = Duration::from_millis(1);

fn run(loss: Loss, sparse_feedback: bool, count: u64) -> Outcome {
    let config = Config {
        sparse_feedback,
        repair: Repair::Spread,
        ..Config::default()
    };
    stream_with(config, Conditions::wifi(loss), 10 * MS, 20 * MS, count, 21)
}

#[test]
fn a_good_path_carries_half_the_datagrams_and_misses_as_little() {
    for loss in [Loss::Never, Loss::Iid(0.01)] {
        let each = run(loss, false, 50_000);
        let sparse = run(loss, true, 50_000);
        let total = |o: &Outcome| o.datagrams + o.feedback;
        assert!(total(&sparse) < total(&each) * 0.65, "{sparse:?} {each:?}");
        assert!(sparse.miss_ratio() <= 1e-4, "{sparse:?}");
    }
}

#[test]
fn a_path_that_loses_more_is_acknowledged_datagram_by_datagram() {
    let sparse = run(Loss::Iid(0.05), true, 20_000);
    assert!(sparse.feedback > 1.0, "{sparse:?}");
    assert!(sparse.miss_ratio() <= 2e-4, "{sparse:?}");
}

#[test]
fn a_stream_that_stops_is_asked_for_a_few_times_and_then_left_alone() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 3);
    for n in 0..500u32 {
        pair.send(CLIENT, Stream::Ordered(1), Some(50 * MS), &n.to_be_bytes())
            .unwrap();
        pair.run_for(10 * MS);
    }
    let before = pair.stats(SERVER).requests_sent;
    pair.run_for(Duration::from_secs(5));
    let asked = pair.stats(SERVER).requests_sent - before;
    assert!((1..=8).contains(&asked), "{asked}");
    assert_eq!(pair.stats(CLIENT).send.unconfirmed, 0);
}

#[test]
fn setpoints_need_few_datagrams_back_too() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 4);
    let offered = pair.nets[SERVER].offered;
    for n in 0..2000u32 {
        pair.send(CLIENT, Stream::Latest(1), Some(20 * MS), &n.to_be_bytes())
            .unwrap();
        pair.run_for(10 * MS);
    }
    assert_eq!(pair.ends[SERVER].received.len(), 2000);
    let back = pair.nets[SERVER].offered - offered;
    assert!(back < 700, "{back}");
}
