//! Streams and ways to read them.

use std::time::Duration;

use prrt::{Config, Delivery, Mode, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn wifi(loss: f64) -> [Conditions; 2] {
    [Conditions::wifi(Loss::Iid(loss)); 2]
}

#[test]
fn reliable_messages_of_many_streams_arrive_once_and_in_order() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.2), 1);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    for n in 0..2000u32 {
        let stream = Stream::Ordered((n % 5) as u8);
        pair.send(CLIENT, stream, None, &n.to_be_bytes()).unwrap();
        pair.run_for(5 * MS);
    }
    pair.run_for(Duration::from_secs(5));
    let mut next = [0, 1, 2, 3, 4];
    for (_, message) in &pair.ends[SERVER].received {
        let Stream::Ordered(id) = message.stream else {
            panic!("{message:?}")
        };
        let expected = &mut next[usize::from(id)];
        assert_eq!(
            u32::from_be_bytes(message.data[..].try_into().unwrap()),
            *expected
        );
        assert_eq!(message.gap_before, 0);
        *expected += 5;
    }
    assert_eq!(next, [2000, 2001, 2002, 2003, 2004]);
}

#[test]
fn a_loss_on_one_stream_does_not_hold_up_another() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 2);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    pair.send(CLIENT, Stream::Ordered(1), None, b"lost")
        .unwrap();
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.send(CLIENT, Stream::Ordered(2), None, b"other")
        .unwrap();
    pair.send(CLIENT, Stream::Ordered(1), None, b"held")
        .unwrap();
    pair.run_for(7 * MS);
    let texts: Vec<_> = pair.ends[SERVER]
        .received
        .iter()
        .map(|(_, m)| m.data.to_vec())
        .collect();
    assert_eq!(texts, [b"other".to_vec()]);
    pair.run_for(30 * MS);
    let texts: Vec<_> = pair.ends[SERVER]
        .received
        .iter()
        .map(|(_, m)| m.data.to_vec())
        .collect();
    assert_eq!(
        texts,
        [b"other".to_vec(), b"lost".to_vec(), b"held".to_vec()]
    );
}

#[test]
fn an_expired_message_holds_up_its_stream_until_its_expiry_only() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 3);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    pair.run_for(Duration::from_secs(1));
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    let born = pair.now;
    pair.send(CLIENT, Stream::Ordered(1), Some(30 * MS), b"lost")
        .unwrap();
    pair.run_for(20 * MS);
    pair.run_for(8 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.send(CLIENT, Stream::Ordered(1), Some(30 * MS), b"next")
        .unwrap();
    pair.run_for(20 * MS);
    let (at, message) = &pair.ends[SERVER].received[0];
    assert_eq!((&message.data[..], message.gap_before), (&b"next"[..], 1));
    assert!(*at - born < 33 * MS, "{:?}", *at - born);
}

#[test]
fn ages_tell_how_far_they_may_be_off_on_an_asymmetric_path() {
    let delays = [1, 3, 6];
    for (there, back) in delays.into_iter().zip(delays.into_iter().rev()) {
        let way = |delay: u32| Conditions {
            delay: MS * delay,
            jitter: Duration::ZERO,
            ..Conditions::wifi(Loss::Never)
        };
        let mut pair = Pair::connected(&Config::default(), [way(there), way(back)], 8);
        for _ in 0..100 {
            pair.send(CLIENT, Stream::Latest(0), Some(50 * MS), b"on time")
                .unwrap();
            pair.run_for(10 * MS);
        }
        let (_, message) = pair.ends[SERVER].received.last().unwrap();
        let error = message.age_error.unwrap();
        let half_round_trip = Duration::from_micros(500) * (there + back);
        let step = Duration::from_micros(100);
        assert!(error.abs_diff(half_round_trip) <= step, "{error:?}");
        let off = message.age.abs_diff(MS * there);
        assert!(off <= error + step, "{off:?} off, at most {error:?}");
    }
}

#[test]
fn a_reader_that_wants_gaps_sees_them_in_the_place_of_what_was_lost() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 31);
    pair.run_for(Duration::from_secs(1));
    pair.ends[SERVER].reads = false;
    for (number, lost) in [false, true, true, false].into_iter().enumerate() {
        let loss = if lost { Loss::Iid(1.0) } else { Loss::Never };
        pair.nets[CLIENT].conditions.loss = loss;
        pair.send(CLIENT, Stream::Ordered(1), Some(30 * MS), &[number as u8])
            .unwrap();
        pair.run_for(28 * MS);
        let seen = deliveries(&mut pair);
        let expected: &[&str] = match number {
            0 => &["message 0"],
            3 => &["gap of 2", "message 3"],
            _ => &[],
        };
        assert_eq!(seen, expected, "after message {number}");
    }
}

/// Everything there is to read now, gaps as gaps.
fn deliveries(pair: &mut Pair) -> Vec<String> {
    let (now, peer) = (pair.now, pair.ends[SERVER].peer.unwrap());
    let endpoint = &mut pair.ends[SERVER].endpoint;
    let next = || endpoint.recv_with_gaps(now, peer, Duration::ZERO);
    std::iter::from_fn(next)
        .map(|delivery| match delivery {
            Delivery::Message(message) => format!("message {}", message.data[0]),
            Delivery::Gap(gap) => format!("gap of {}", gap.count()),
        })
        .collect()
}

#[test]
fn setpoints_are_never_older_than_what_was_delivered() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.1), 4);
    pair.nets[CLIENT].conditions.reorder = 0.05;
    for n in 0..5000u32 {
        pair.send(CLIENT, Stream::Latest(3), Some(20 * MS), &n.to_be_bytes())
            .unwrap();
        pair.run_for(10 * MS);
    }
    let mut last = None;
    let received = &pair.ends[SERVER].received;
    for (_, message) in received {
        let number = u32::from_be_bytes(message.data[..].try_into().unwrap());
        assert!(last.is_none_or(|last| number > last));
        let missing = number - last.map_or(0, |last| last + 1);
        assert_eq!(message.gap_before, missing);
        last = Some(number);
    }
    assert!(received.len() > 4400, "{}", received.len());
}

#[test]
fn superseded_setpoints_are_not_repaired() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 5);
    pair.run_for(Duration::from_secs(1));
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    let before = pair.stats(CLIENT).send.repairs;
    for _ in 0..50 {
        pair.send(CLIENT, Stream::Latest(0), Some(50 * MS), b"setpoint")
            .unwrap();
        pair.run_for(5 * MS);
    }
    let stats = pair.stats(CLIENT).send;
    assert_eq!(stats.repairs - before, 0, "{stats:?}");
    assert_eq!(stats.superseded, 49);
}

#[test]
fn small_messages_sent_together_share_a_datagram() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 6);
    pair.run_for(Duration::from_secs(1));
    let before = pair.nets[CLIENT].offered;
    let peer = pair.ends[CLIENT].peer.unwrap();
    for id in 0..4 {
        let end = &mut pair.ends[CLIENT].endpoint;
        end.send(pair.now, peer, Stream::Ordered(id), None, b"small")
            .unwrap();
    }
    pair.send(CLIENT, Stream::Latest(0), None, b"small")
        .unwrap();
    assert_eq!(pair.nets[CLIENT].offered - before, 1);
    pair.run_for(10 * MS);
    assert_eq!(pair.ends[SERVER].received.len(), 5);
}

#[test]
fn age_and_remaining_life_are_true_on_a_symmetric_path() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 7);
    for _ in 0..500 {
        pair.send(CLIENT, Stream::Ordered(0), Some(50 * MS), b"x")
            .unwrap();
        pair.run_for(10 * MS);
    }
    for (_, message) in &pair.ends[SERVER].received[300..] {
        let off = message
            .age
            .abs_diff(message.age.clamp(3250 * MS / 1000, 7 * MS));
        assert!(off < MS / 4, "{:?}", message.age);
        let sum = message.age + message.remaining.unwrap();
        assert!(sum.abs_diff(50 * MS) < MS / 10, "{sum:?}");
    }
}
