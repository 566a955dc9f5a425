//! Spread repairs against plain datagrams on the Wi-Fi-like path.

use std::time::Duration;

use prrt::{Config, Mode, Repair, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

/// Outcome of one run of a periodic one-way stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) sent: u64,
    pub(crate) missed: u64,
    /// Datagrams that carry messages, per message.
    pub(crate) datagrams: f64,
    /// Acknowledgements the other way, per message.
    pub(crate) feedback: f64,
    pub p50: Duration,
    pub p99: Duration,
    pub(crate) oldest: Duration,
}

impl Outcome {
    pub(crate) fn miss_ratio(&self) -> f64 {
        self.missed as f64 / self.sent as f64
    }
}

/// Sends `count` messages of 32 bytes, one per `period`, that must arrive within `life`.
pub(crate) fn stream(
    repair: Repair,
    conditions: Conditions,
    period: Duration,
    life: Duration,
    count: u64,
    seed: u64,
) -> Outcome {
    let config = Config {
        repair,
        ..Config::default()
    };
    stream_with(config, conditions, period, life, count, seed)
}

/// The same with other settings.
pub(crate) fn stream_with(
    config: Config,
    conditions: Conditions,
    period: Duration,
    life: Duration,
    count: u64,
    seed: u64,
) -> Outcome {
    let mut pair = Pair::connected(&config, [conditions; 2], seed);
    pair.ends[SERVER].mode = Mode::Asap;
    let mut born = Vec::with_capacity(count as usize);
    let mut next = pair.now;
    let offered = [pair.nets[CLIENT].offered, pair.nets[SERVER].offered];
    for number in 0..count {
        pair.run_until(next);
        born.push(pair.now);
        let mut payload = [0; 32];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        pair.send(CLIENT, Stream::Ordered(1), Some(life), &payload)
            .unwrap();
        next += period;
    }
    pair.run_for(Duration::from_secs(1));
    let mut delays: Vec<Duration> = Vec::new();
    let mut seen = vec![false; count as usize];
    for (at, message) in &pair.ends[SERVER].received {
        let number = u64::from_be_bytes(message.data[..8].try_into().unwrap()) as usize;
        assert!(
            !std::mem::replace(&mut seen[number], true),
            "message {number} was delivered twice"
        );
        delays.push(*at - born[number]);
    }
    delays.sort();
    let in_time = delays.iter().filter(|delay| **delay <= life).count() as u64;
    let quantile = |q: f64| delays[((delays.len() - 1) as f64 * q) as usize];
    Outcome {
        sent: count,
        missed: count - in_time,
        datagrams: (pair.nets[CLIENT].offered - offered[0]) as f64 / count as f64,
        feedback: (pair.nets[SERVER].offered - offered[1]) as f64 / count as f64,
        p50: quantile(0.5),
        p99: quantile(0.99),
        oldest: quantile(1.0),
    }
}

const PERIOD: Duration = Duration::from_millis(10);
const LIFE: Duration = Duration::from_millis(20);

#[test]
fn spread_repairs_miss_twenty_times_less_often_than_plain_datagrams() {
    let wifi = Conditions::wifi(Loss::Iid(0.05));
    let plain = stream(Repair::Never, wifi, PERIOD, LIFE, 100_000, 1);
    let spread = stream(Repair::Spread, wifi, PERIOD, LIFE, 100_000, 1);
    assert!((0.045..0.055).contains(&plain.miss_ratio()), "{plain:?}");
    assert!(
        spread.miss_ratio() * 20.0 <= plain.miss_ratio(),
        "{spread:?}"
    );
    assert!(spread.datagrams <= 1.6, "{spread:?}");
    assert!(spread.oldest <= LIFE, "{spread:?}");
}

/// In bursts no scheme on one path can do better than the share of outages that outlast the deadline.
#[test]
fn in_bursts_spread_repairs_reach_the_outage_floor() {
    let mean = Duration::from_millis(5);
    let bursts = Conditions::wifi(Loss::Bursts { share: 0.05, mean });
    let spread = stream(Repair::Spread, bursts, PERIOD, LIFE, 100_000, 2);
    let slack = LIFE - bursts.delay - bursts.jitter;
    let floor = 0.05 * (-slack.as_secs_f64() / mean.as_secs_f64()).exp();
    assert!(
        spread.miss_ratio() <= floor * 1.5,
        "{spread:?}, floor {floor}"
    );
    assert!(spread.datagrams <= 1.6, "{spread:?}");
}

/// With 10 ms no loss can be noticed in time on this path; copies are sent ahead.
#[test]
fn a_deadline_too_short_to_react_gets_copies() {
    let life = Duration::from_millis(10);
    let wifi = Conditions::wifi(Loss::Iid(0.05));
    let outcome = stream(Repair::Spread, wifi, PERIOD, life, 20_000, 3);
    assert!(outcome.miss_ratio() < 0.005, "{outcome:?}");
    assert!(outcome.datagrams <= 2.5, "{outcome:?}");
    let clean = stream(
        Repair::Spread,
        Conditions::wifi(Loss::Never),
        PERIOD,
        life,
        5000,
        3,
    );
    assert!(clean.datagrams < 1.1, "{clean:?}");
}

/// Seeds of runs that once failed.
#[test]
fn seeds_that_once_failed() {
    for seed in [1, 2, 3, 17] {
        let wifi = Conditions::wifi(Loss::Iid(0.05));
        let outcome = stream(Repair::Spread, wifi, PERIOD, LIFE, 5000, seed);
        assert!(
            outcome.missed <= 2 && outcome.feedback < 2.0,
            "seed {seed}: {outcome:?}"
        );
    }
}
