//! More offered than the path carries, and just not more.

use std::time::Duration;

use prrt::{Config, SendError, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);
const RATE: f64 = 2.5e6;

/// What came of offering `share` of the path's rate in messages of `len` bytes for ten seconds.
#[derive(Debug)]
struct Outcome {
    /// Share of the path's rate that arrived as messages.
    goodput: f64,
    p99: Duration,
    refused: u32,
    expired_unsent: u64,
    overflowed: u64,
    sent: usize,
    received: usize,
}

fn offer(share: f64, len: usize, life: Duration) -> Outcome {
    let narrow = Conditions {
        rate: Some((RATE, 64_000)),
        jitter: Duration::ZERO,
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::connected(&Config::default(), [narrow; 2], 1);
    let gap = Duration::from_secs_f64(len as f64 * 8.0 / (RATE * share));
    let (start, mut born, mut refused) = (pair.now, Vec::new(), 0);
    while pair.now - start < Duration::from_secs(10) {
        let mut payload = vec![0; len];
        payload[..4].copy_from_slice(&(born.len() as u32).to_be_bytes());
        match pair.send(CLIENT, Stream::Ordered(0), Some(life), &payload) {
            Ok(()) => born.push(pair.now),
            Err(SendError::Full { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        pair.run_for(gap);
    }
    pair.run_for(Duration::from_secs(1));
    let number = |data: &[u8]| u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
    let received = &pair.ends[SERVER].received;
    let mut ages: Vec<_> = received
        .iter()
        .map(|(at, m)| *at - born[number(&m.data)])
        .collect();
    ages.sort();
    Outcome {
        goodput: (received.len() * len) as f64 * 8.0 / 10.0 / RATE,
        p99: ages[ages.len() * 99 / 100],
        refused,
        expired_unsent: pair.stats(CLIENT).send.expired_unsent,
        overflowed: pair.nets[CLIENT].overflowed,
        sent: born.len(),
        received: received.len(),
    }
}

#[test]
fn twice_the_bottleneck_keeps_its_delay_and_fills_the_link() {
    let life = 100 * MS;
    let outcome = offer(2.0, 1000, life);
    assert!(outcome.p99 <= life, "{outcome:?}");
    assert!(outcome.goodput >= 0.85, "{outcome:?}");
    assert_eq!(outcome.overflowed, 0, "{outcome:?}");
}

#[test]
fn four_fifths_of_the_bottleneck_lose_nothing_to_pacing() {
    let outcome = offer(0.8, 1000, 100 * MS);
    assert_eq!(
        (outcome.refused, outcome.expired_unsent),
        (0, 0),
        "{outcome:?}"
    );
    assert_eq!(outcome.received, outcome.sent, "{outcome:?}");
    assert!(outcome.p99 < 30 * MS, "{outcome:?}");
}

#[test]
fn small_messages_in_excess_do_not_fill_the_queue_of_the_path() {
    let life = 100 * MS;
    let outcome = offer(1.5, 100, life);
    assert!(outcome.p99 <= life, "{outcome:?}");
    assert!(outcome.goodput >= 0.4, "{outcome:?}");
}

/// The path narrows to half for ten seconds and widens again, under video at 85 % of the wide rate with a life of 200 ms.
#[test]
fn control_keeps_its_delay_while_the_path_narrows() {
    let narrow = |rate| Conditions {
        rate: Some((rate, 64_000)),
        jitter: Duration::ZERO,
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::connected(&Config::default(), [narrow(RATE); 2], 2);
    let start = pair.now;
    let mut born = Vec::new();
    for tick in 0..3000u32 {
        pair.run_until(start + 10 * MS * tick);
        let rate = if (1000..2000).contains(&tick) {
            RATE / 2.0
        } else {
            RATE
        };
        pair.nets[CLIENT].conditions.rate = Some((rate, 64_000));
        if tick % 3 == 0 {
            pair.send(CLIENT, Stream::Ordered(9), Some(200 * MS), &[0; 8000])
                .unwrap();
        }
        pair.run_for(Duration::from_micros(3700));
        born.push(pair.now);
        pair.send(
            CLIENT,
            Stream::Ordered(1),
            Some(100 * MS),
            &tick.to_be_bytes(),
        )
        .unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    let mut delays = vec![Duration::MAX; born.len()];
    for (at, message) in pair.ends[SERVER]
        .received
        .iter()
        .filter(|(_, m)| m.stream == Stream::Ordered(1))
    {
        let tick = u32::from_be_bytes(message.data[..4].try_into().unwrap()) as usize;
        delays[tick] = *at - born[tick];
    }
    let p99 = |range: std::ops::Range<usize>| {
        let mut part = delays[range].to_vec();
        part.sort();
        part[part.len() * 99 / 100]
    };
    let phases = [
        p99(200..1000),
        p99(1000..1300),
        p99(1300..2000),
        p99(2000..3000),
    ];
    assert!(phases[0] < 15 * MS && phases[3] < 15 * MS, "{phases:?}");
    assert!(phases[1] <= 100 * MS, "{phases:?}");
    assert!(phases[2] < 25 * MS, "{phases:?}");
    let video = pair.ends[SERVER]
        .received
        .iter()
        .filter(|(_, m)| m.stream == Stream::Ordered(9))
        .count();
    assert!(video > 700, "{video} of 1000 frames");
}

/// The sender learns of every mark, and a link whose queue marks early is still filled.
#[test]
fn congestion_marks_reach_the_sender() {
    let narrow = Conditions {
        rate: Some((20e6, 640_000)),
        jitter: Duration::ZERO,
        mark_above: Some(MS / 5),
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::connected(&Config::default(), [narrow; 2], 3);
    pair.send(CLIENT, Stream::Ordered(0), None, &vec![0; 4 << 20])
        .unwrap();
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.ends[SERVER].received.len(), 1);
    assert!(pair.nets[CLIENT].marks > 10, "{}", pair.nets[CLIENT].marks);
    assert_eq!(pair.stats(CLIENT).marked, pair.nets[CLIENT].marks);
    assert_eq!(pair.stats(SERVER).marked, pair.nets[SERVER].marks);
}
