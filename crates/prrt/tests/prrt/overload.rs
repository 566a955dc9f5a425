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
