//! The sender keeps the pace of the slowest stage, be it the reader at the other end or what is behind it.

use std::time::{Duration, Instant};

use prrt::{Config, Mode, Stats, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);
const LIFE: Duration = Duration::from_millis(300);

/// Five seconds of 200 messages a second for a reader that takes one in 10 ms, or all at once if `slow` is off.
fn slow_reader(
    slow: bool,
    behind: Option<Duration>,
) -> (Pair, Vec<(Instant, Duration)>, Vec<Duration>) {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 1);
    pair.ends[SERVER].reads = !slow;
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    let peer = pair.ends[SERVER].peer.unwrap();
    pair.ends[SERVER].endpoint.set_reader_pace(peer, behind);
    let (mut read, mut told) = (Vec::new(), Vec::new());
    for n in 0..1000u32 {
        pair.send(CLIENT, Stream::Ordered(1), Some(LIFE), &n.to_be_bytes())
            .unwrap();
        pair.run_for(5 * MS);
        if slow && n % 2 == 0 {
            let now = pair.now;
            let message = pair.ends[SERVER].endpoint.recv(now, peer, Mode::IN_ORDER);
            read.extend(message.map(|message| (now, message.age)));
        }
        told.push(pair.stats(CLIENT).paces.receiver.unwrap_or_default());
    }
    (pair, read, told)
}

fn server(pair: &Pair) -> Stats {
    pair.stats(SERVER)
}

#[test]
fn a_slow_reader_slows_the_sender_and_nothing_piles_up_on_the_way() {
    let (pair, read, told) = slow_reader(true, None);
    let stats = pair.stats(CLIENT);
    let right = |pace: &&Duration| (8 * MS..12 * MS).contains(*pace);
    let kept = told.iter().skip(200).filter(right).count();
    println!(
        "{kept} of 800, {} read, {stats:?} {:?}",
        read.len(),
        server(&pair).receive
    );
    assert!(kept > 500, "{kept} of 800: {told:?}");
    let application = stats.paces.application.unwrap();
    assert!((4 * MS..6 * MS).contains(&application), "{application:?}");
    assert!(read.len() > 430, "{} read", read.len());
    assert!(read.iter().all(|(_, age)| *age <= LIFE + MS));
    assert!(
        stats.send.expired_unsent > 300,
        "they die before they leave: {stats:?}"
    );
    assert!(server(&pair).receive.expired < 60, "{:?}", server(&pair));
}

#[test]
fn a_pace_that_the_application_tells_is_kept() {
    let (pair, ..) = slow_reader(false, Some(10 * MS));
    let received = pair.ends[SERVER].received.len();
    assert!((450..530).contains(&received), "{received}");
}

#[test]
fn a_fast_reader_limits_nothing() {
    let (pair, ..) = slow_reader(false, None);
    assert_eq!(pair.stats(CLIENT).paces.receiver, None);
    assert_eq!(pair.stats(CLIENT).send.expired_unsent, 0);
    assert_eq!(pair.ends[SERVER].received.len(), 1000);
}

#[test]
fn the_sender_goes_free_again_when_the_reader_does() {
    let (mut pair, ..) = slow_reader(true, None);
    pair.ends[SERVER].reads = true;
    pair.run_for(Duration::from_secs(4));
    assert_eq!(pair.stats(CLIENT).paces.receiver, None);
    pair.ends[SERVER].received.clear();
    for n in 0..200u32 {
        pair.send(CLIENT, Stream::Ordered(1), Some(LIFE), &n.to_be_bytes())
            .unwrap();
        pair.run_for(5 * MS);
    }
    pair.run_for(100 * MS);
    assert_eq!(pair.ends[SERVER].received.len(), 200);
}

#[test]
fn an_encoder_is_told_less_than_the_bottleneck() {
    let narrow = Conditions {
        rate: Some((2.5e6, 64_000)),
        jitter: Duration::ZERO,
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::connected(&Config::default(), [narrow; 2], 2);
    assert_eq!(pair.stats(CLIENT).encoder_bps, None);
    for _ in 0..200 {
        let frame = [0; 12_000];
        pair.send(CLIENT, Stream::Frame(0), Some(200 * MS), &frame)
            .unwrap();
        pair.run_for(33 * MS);
    }
    let stats = pair.stats(CLIENT);
    let told = stats.encoder_bps.unwrap();
    assert!((1_800_000..2_300_000).contains(&told), "{stats:?}");
    assert!(stats.paces.network.is_some());
}
