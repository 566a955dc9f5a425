//! A day of virtual time: time stamps wrap twenty times, estimates stay sane, nothing accumulates.

use std::time::Duration;

use prrt::{Config, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_day_passes_with_every_wrap() {
    let mut pair = Pair::connected(
        &Config::default(),
        [Conditions::wifi(Loss::Iid(0.01)); 2],
        1,
    );
    let mut sent = 0;
    for _ in 0..24 * 60 {
        for n in 0..20u32 {
            pair.send(CLIENT, Stream::Latest(0), Some(50 * MS), &n.to_be_bytes())
                .unwrap();
            pair.send(SERVER, Stream::Ordered(1), None, &n.to_be_bytes())
                .unwrap();
            sent += 1;
            pair.run_for(10 * MS);
        }
        pair.run_for(Duration::from_millis(59_800));
        for end in [CLIENT, SERVER] {
            pair.ends[end].received.retain(|(_, message)| {
                assert!(message.age < 300 * MS, "{message:?}");
                assert!(message.remaining.is_none_or(|left| left <= 50 * MS));
                false
            });
        }
    }
    assert!(pair.now - pair.start >= Duration::from_secs(24 * 3600));
    let (client, server) = (pair.stats(CLIENT), pair.stats(SERVER));
    assert_eq!(client.receive.delivered, sent);
    assert!(server.receive.delivered > sent * 98 / 100, "{server:?}");
    assert_eq!(
        pair.ends[CLIENT]
            .endpoint
            .load(pair.ends[CLIENT].peer.unwrap()),
        Some((0, 0))
    );
    assert!(
        (0.005..0.015).contains(&client.raw_loss.unwrap()),
        "{client:?}"
    );
    let rtt = client.rtt.unwrap();
    assert!(
        rtt.smoothed < 9 * MS && rtt.min >= Duration::from_micros(6500),
        "{rtt:?}"
    );
}
