//! Video frames: whole or not at all, by their deadline, at little expense, and out of the way of control.

use std::time::Duration;

use prrt::{Config, Mode, Repair, SendError, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);
const FRAME: usize = 6 * 1088 - 20;

fn picture(number: u32, len: usize) -> Vec<u8> {
    let mut data: Vec<u8> = (0..len).map(|i| (i * 31 + number as usize) as u8).collect();
    data[..4].copy_from_slice(&number.to_be_bytes());
    data
}

/// What came of `count` frames of 6 symbols at 30 Hz.
#[derive(Debug)]
struct Outcome {
    lost: usize,
    /// Datagrams with video for each symbol of the frames.
    overhead: f64,
    p99: Duration,
}

fn video(stream: Stream, loss: Loss, life: Duration, count: u32, seed: u64) -> Outcome {
    video_with(Repair::Spread, stream, loss, life, count, seed)
}

fn video_with(
    repair: Repair,
    stream: Stream,
    loss: Loss,
    life: Duration,
    count: u32,
    seed: u64,
) -> Outcome {
    let config = Config {
        repair,
        ..Config::default()
    };
    let wide = Conditions {
        rate: Some((50e6, 1_000_000)),
        ..Conditions::wifi(loss)
    };
    let mut pair = Pair::connected(&config, [wide; 2], seed);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    // The path and its rate are known before it counts.
    for number in 0..60 {
        pair.send(CLIENT, stream, Some(life), &picture(number, FRAME))
            .unwrap();
        pair.run_for(Duration::from_micros(33_333));
    }
    pair.ends[SERVER].received.clear();
    let (offered, mut born) = (pair.nets[CLIENT].offered, Vec::new());
    for number in 0..count {
        born.push(pair.now);
        pair.send(CLIENT, stream, Some(life), &picture(number, FRAME))
            .unwrap();
        pair.run_for(Duration::from_micros(33_333));
    }
    pair.run_for(Duration::from_secs(1));
    let mut ages = Vec::new();
    for (at, message) in &pair.ends[SERVER].received {
        let number = u32::from_be_bytes(message.data[..4].try_into().unwrap());
        assert_eq!(message.data[..], picture(number, FRAME)[..]);
        let age = *at - born[number as usize];
        assert!(age <= life + MS, "{age:?}");
        ages.push(age);
    }
    ages.sort();
    Outcome {
        lost: count as usize - ages.len(),
        overhead: (pair.nets[CLIENT].offered - offered) as f64 / f64::from(count * 6),
        p99: ages[ages.len() * 99 / 100],
    }
}

#[test]
fn frames_survive_ten_percent_loss_for_less_than_half_more() {
    for (loss, most) in [(0.0, 1.1), (0.05, 1.3), (0.1, 1.5)] {
        let outcome = video(Stream::Frame(0), Loss::Iid(loss), 100 * MS, 3000, 1);
        println!("{loss}: {outcome:?}");
        assert!(outcome.lost <= 1, "{loss}: {outcome:?}");
        assert!(outcome.overhead < most, "{loss}: {outcome:?}");
        assert!(outcome.p99 < 40 * MS, "{loss}: {outcome:?}");
    }
}

/// 25 ms leave time for one round of repairs; parity goes ahead, and most frames need no round at all.
#[test]
fn a_short_deadline_gets_parity_ahead() {
    let loss = Loss::Iid(0.05);
    let coded = video(Stream::Frame(0), loss, 22 * MS, 3000, 2);
    let plain = video(Stream::Ordered(0), loss, 22 * MS, 3000, 2);
    println!("{coded:?} {plain:?}");
    assert!(coded.lost * 3 < plain.lost, "{coded:?} {plain:?}");
    assert!(coded.overhead < 1.9, "{coded:?}");
}

#[test]
fn frames_of_every_size_come_back_in_order() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Iid(0.1)); 2], 3);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    let sizes = [
        4, 64, 1000, 1088, 1089, 1150, 1200, 2176, 2177, 40_000, 5, 300_000,
    ];
    for (number, &size) in sizes.iter().enumerate() {
        let life = Some(Duration::from_secs(5));
        let data = picture(number as u32, size);
        pair.send(CLIENT, Stream::Frame(1), life, &data).unwrap();
    }
    pair.run_for(Duration::from_secs(5));
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), sizes.len());
    for (number, (_, message)) in received.iter().enumerate() {
        assert_eq!(message.stream, Stream::Frame(1));
        assert_eq!(message.data[..], picture(number as u32, sizes[number])[..]);
    }
    assert_eq!(pair.stats(CLIENT).send.confirmed, sizes.len() as u64);
}

#[test]
fn a_lost_frame_shows_as_a_gap_before_the_next() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 4);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    pair.run_for(100 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    pair.send(CLIENT, Stream::Frame(0), Some(60 * MS), &picture(0, FRAME))
        .unwrap();
    pair.run_for(70 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.send(CLIENT, Stream::Frame(0), Some(60 * MS), &picture(1, FRAME))
        .unwrap();
    pair.run_for(70 * MS);
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].1.gap_before, 1);
}

#[test]
fn a_frame_too_large_for_the_code_is_refused() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 5);
    let refused = pair.send(CLIENT, Stream::Frame(0), Some(60 * MS), &vec![0; 3 << 20]);
    assert!(
        matches!(refused, Err(SendError::TooLarge { .. })),
        "{refused:?}"
    );
}

/// Streams of different classes with the same number have nothing to do with each other.
#[test]
fn classes_with_the_same_number_are_different_streams() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Iid(0.1)); 2], 6);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    let classes = [Stream::Frame(3), Stream::Ordered(3), Stream::Latest(3)];
    for number in 0..200 {
        for stream in classes {
            let len = if stream == Stream::Frame(3) { 3000 } else { 40 };
            pair.send(CLIENT, stream, Some(200 * MS), &picture(number, len))
                .unwrap();
        }
        pair.run_for(20 * MS);
    }
    pair.run_for(Duration::from_secs(1));
    for stream in classes {
        let numbers: Vec<u32> = pair.ends[SERVER]
            .received
            .iter()
            .filter(|(_, message)| message.stream == stream)
            .map(|(_, message)| u32::from_be_bytes(message.data[..4].try_into().unwrap()))
            .collect();
        assert!(numbers.len() > 190, "{stream:?}: {}", numbers.len());
        assert!(numbers.windows(2).all(|two| two[1] > two[0]), "{stream:?}");
    }
}

/// Share of frames lost with a code of `k` = 6 and parity ahead only, against what the binomial distribution gives.
#[test]
fn a_vector_set_by_hand_loses_as_many_frames_as_the_code_must() {
    for (ahead, share) in [(0u8, 0.265), (1, 0.0444), (2, 0.0058)] {
        let vector = Repair::Vector(vec![ahead]);
        let stream = Stream::Frame(0);
        let o = video_with(vector, stream, Loss::Iid(0.05), 100 * MS, 3000, 6);
        let lost = o.lost as f64 / 3000.0;
        println!("{ahead}: {lost}, {o:?}");
        let slack = share * 0.25 + 0.002;
        assert!((lost - share).abs() < slack, "{ahead}: {lost} {o:?}");
        let expected = 1.0 + f64::from(ahead) / 6.0;
        assert!((o.overhead - expected).abs() < 0.1, "{ahead}: {o:?}");
    }
    let harq = Repair::Vector(vec![0, 2, 3]);
    let stream = Stream::Frame(0);
    let o = video_with(harq, stream, Loss::Iid(0.05), 100 * MS, 3000, 7);
    assert!(o.lost <= 3 && o.overhead < 1.3, "{o:?}");
}

/// Five thousand datagrams lost in a row with the block code on: the first frame after it comes as if nothing had been.
#[test]
fn five_thousand_packets_lost_in_a_row_do_not_end_video() {
    let config = Config {
        idle_timeout: Duration::from_secs(120),
        ..Config::default()
    };
    let mut pair = Pair::connected(&config, [Conditions::wifi(Loss::Never); 2], 8);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    let frame = |pair: &mut Pair, number| {
        pair.send(
            CLIENT,
            Stream::Frame(0),
            Some(100 * MS),
            &picture(number, FRAME),
        )
        .unwrap();
        pair.run_for(33 * MS);
    };
    (0..60).for_each(|number| frame(&mut pair, number));
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    let (lost, mut number) = (pair.nets[CLIENT].lost, 60);
    while pair.nets[CLIENT].lost - lost < 5000 {
        frame(&mut pair, number);
        number += 1;
        assert!(number < 20_000);
    }
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.run_for(100 * MS);
    pair.ends[SERVER].received.clear();
    let back = pair.now;
    (0..30).for_each(|step| frame(&mut pair, number + step));
    pair.run_for(100 * MS);
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 30);
    assert!(received[0].0 - back < 60 * MS, "{:?}", received[0].0 - back);
}
