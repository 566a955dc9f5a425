//! Large messages: complete, in bounded memory, at the pace of the path and out of the way of control traffic.

use std::time::Duration;

use prrt::{Config, Mode, Payload, SendError, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn pattern(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + salt * 7) >> 3) as u8).collect()
}

fn narrow(bits_per_second: f64, queue: usize) -> Conditions {
    let jitter = Duration::ZERO;
    Conditions {
        rate: Some((bits_per_second, queue)),
        jitter,
        ..Conditions::wifi(Loss::Never)
    }
}

#[test]
fn four_megabytes_arrive_whole_through_five_percent_loss() {
    let wifi = Conditions {
        rate: Some((50e6, 500_000)),
        ..Conditions::wifi(Loss::Iid(0.05))
    };
    let mut pair = Pair::connected(&Config::default(), [wifi; 2], 1);
    let data = pattern(4 << 20, 1);
    pair.send(CLIENT, Stream::Ordered(2), None, &data).unwrap();
    let begun = pair.now;
    while pair.ends[SERVER].received.is_empty() {
        pair.run_for(10 * MS);
        assert!(
            pair.now - begun < Duration::from_secs(5),
            "{:?}",
            pair.stats(CLIENT)
        );
    }
    assert_eq!(pair.ends[SERVER].received[0].1.data[..], data[..]);
    pair.run_for(Duration::from_millis(500));
    assert_eq!(pair.stats(CLIENT).send.confirmed, 1);
    let ratio = pair.nets[CLIENT].offered_bytes as f64 / data.len() as f64;
    assert!(ratio < 1.2, "{ratio} bytes sent per byte");
}

#[test]
fn sizes_around_every_limit_come_back_in_order() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Iid(0.1)); 2], 2);
    pair.ends[SERVER].mode = Mode::IN_ORDER;
    let sizes = [
        0, 1, 127, 128, 129, 199, 200, 201, 1100, 1130, 1150, 1160, 1200, 5000, 2, 100_000,
    ];
    for (n, &size) in sizes.iter().enumerate() {
        pair.send(CLIENT, Stream::Ordered(0), None, &pattern(size, n))
            .unwrap();
    }
    pair.run_for(Duration::from_secs(5));
    let received: Vec<&Payload> = pair.ends[SERVER]
        .received
        .iter()
        .map(|(_, m)| &m.data)
        .collect();
    assert_eq!(received.len(), sizes.len());
    for (n, &size) in sizes.iter().enumerate() {
        assert_eq!(
            received[n][..],
            pattern(size, n)[..],
            "message {n} of {size} bytes"
        );
    }
}

#[test]
fn a_newer_large_latest_message_replaces_an_unfinished_one() {
    let mut pair = Pair::connected(&Config::default(), [narrow(1e6, 64_000); 2], 3);
    pair.send(CLIENT, Stream::Latest(1), None, &pattern(100_000, 1))
        .unwrap();
    pair.run_for(100 * MS);
    pair.send(CLIENT, Stream::Latest(1), None, &pattern(50_000, 2))
        .unwrap();
    pair.run_for(Duration::from_secs(3));
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].1.data[..], pattern(50_000, 2)[..]);
    assert_eq!(pair.stats(CLIENT).send.superseded, 1);
}

#[test]
fn a_message_larger_than_the_buffer_is_an_error_and_leaves_the_queue_untouched() {
    let config = Config {
        max_message: 100_000,
        send_bytes: 150_000,
        ..Config::default()
    };
    let mut pair = Pair::connected(&config, [narrow(1e6, 64_000); 2], 4);
    pair.send(CLIENT, Stream::Ordered(0), None, &pattern(90_000, 1))
        .unwrap();
    let too_large = pair.send(CLIENT, Stream::Ordered(0), None, &pattern(100_001, 2));
    assert_eq!(
        too_large,
        Err(SendError::TooLarge {
            len: 100_001,
            max: 100_000
        })
    );
    let full = pair.send(CLIENT, Stream::Ordered(0), None, &pattern(70_000, 3));
    assert!(
        matches!(full, Err(SendError::Full { messages: 1, .. })),
        "{full:?}"
    );
    pair.run_for(Duration::from_secs(3));
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].1.data[..], pattern(90_000, 1)[..]);
}

#[test]
fn a_large_message_fills_the_bottleneck_without_filling_its_queue() {
    let mut pair = Pair::connected(&Config::default(), [narrow(10e6, 1_000_000); 2], 5);
    let data = pattern(4 << 20, 1);
    pair.send(CLIENT, Stream::Ordered(0), None, &data).unwrap();
    let begun = pair.now;
    while pair.ends[SERVER].received.is_empty() {
        pair.run_for(10 * MS);
        assert!(
            pair.now - begun < Duration::from_secs(20),
            "{:?}",
            pair.stats(CLIENT)
        );
    }
    let goodput = data.len() as f64 * 8.0 / (pair.now - begun).as_secs_f64();
    let rtt = pair.stats(CLIENT).rtt.unwrap();
    println!("goodput {goodput:.0} bit/s, {rtt:?}");
    assert!(goodput > 8.5e6, "{goodput} bit/s");
    assert!(rtt.smoothed < 40 * MS, "{rtt:?}");
    assert_eq!(pair.nets[CLIENT].overflowed, 0);
}

/// Control messages of 32 bytes at 100 Hz for 20 s next to 1.7 Mbit/s of video in frames, on a 2.5 Mbit/s path.
#[test]
fn control_beside_video_keeps_its_delay() {
    let mut pair = Pair::connected(&Config::default(), [narrow(2.5e6, 64_000); 2], 6);
    let mut born = Vec::new();
    let start = pair.now;
    for tick in 0..2000u32 {
        pair.run_until(start + 10 * MS * tick);
        if tick % 3 == 0 {
            let size = if tick % 99 == 0 { 40_000 } else { 5_500 };
            pair.send(
                CLIENT,
                Stream::Ordered(9),
                Some(200 * MS),
                &pattern(size, 0),
            )
            .unwrap();
        }
        pair.run_for(Duration::from_micros(3700));
        born.push(pair.now);
        let mut payload = [0; 32];
        payload[..4].copy_from_slice(&tick.to_be_bytes());
        pair.send(CLIENT, Stream::Ordered(1), Some(100 * MS), &payload)
            .unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    let mut delays = Vec::new();
    let mut frames = 0;
    for (at, message) in &pair.ends[SERVER].received {
        if message.stream == Stream::Ordered(1) {
            let tick = u32::from_be_bytes(message.data[..4].try_into().unwrap()) as usize;
            delays.push(*at - born[tick]);
        } else {
            frames += 1;
        }
    }
    delays.sort();
    let p99 = delays[delays.len() * 99 / 100];
    println!(
        "control p50 {:?} p99 {p99:?} max {:?}, {frames} frames",
        delays[delays.len() / 2],
        delays.last()
    );
    assert_eq!(delays.len(), 2000);
    assert!(p99 < Duration::from_micros(9000), "{p99:?}");
    assert!(frames > 640, "{frames} of 667 frames");
}
