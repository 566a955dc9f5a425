//! A small message goes from `send` at one end to `recv` at the other without touching the allocator.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use prrt::{Config, Endpoint, Event, Keys, Mode, PeerId, SecretKey, Stream};

/// Two endpoints on a wire without delay, without anything that allocates in between.
struct Direct {
    now: Instant,
    ends: [Endpoint; 2],
    peers: [Option<PeerId>; 2],
    buffer: [u8; 1500],
}

impl Direct {
    fn new(configs: [Config; 2]) -> Self {
        let now = Instant::now();
        let [a, b] = configs;
        let ends = [
            Endpoint::new(now, a, false, 1).unwrap(),
            Endpoint::new(now, b, true, 2).unwrap(),
        ];
        let mut direct = Self {
            now,
            ends,
            peers: [None; 2],
            buffer: [0; 1500],
        };
        direct.peers[0] = Some(direct.ends[0].connect(now, Self::addr(1)));
        direct.settle();
        direct
    }

    fn addr(end: usize) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1000 + end as u16))
    }

    fn settle(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for end in 0..2 {
                self.ends[end].handle_timeout(self.now);
                while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut self.buffer)
                {
                    let bytes = &self.buffer[..transmit.len];
                    self.ends[1 - end].handle_datagram(self.now, Self::addr(end), bytes);
                    quiet = false;
                }
                while let Some(event) = self.ends[end].poll_event() {
                    if let Event::Connected { peer, .. } = event {
                        self.peers[end] = Some(peer);
                    }
                }
            }
        }
    }

    /// A setpoint one way and an ordered message the other.
    fn exchange(&mut self) {
        self.now += Duration::from_millis(10);
        for (end, stream, life) in [
            (0, Stream::Latest(0), Some(Duration::from_millis(20))),
            (1, Stream::Ordered(2), None),
        ] {
            let peer = self.peers[end].unwrap();
            self.ends[end]
                .send(self.now, peer, stream, life, &[7; 32])
                .unwrap();
            self.settle();
            let peer = self.peers[1 - end].unwrap();
            assert!(
                self.ends[1 - end]
                    .recv(self.now, peer, Mode::IN_ORDER)
                    .is_some()
            );
        }
    }
}

fn allocations(configs: [Config; 2]) -> u64 {
    let mut direct = Direct::new(configs);
    (0..2000).for_each(|_| direct.exchange());
    allocation_counter::measure(|| (0..1000).for_each(|_| direct.exchange())).count_total
}

#[test]
fn small_messages_do_not_allocate() {
    assert_eq!(allocations([Config::default(), Config::default()]), 0);
}

#[test]
fn small_messages_do_not_allocate_when_sealed() {
    let (a, b) = (
        SecretKey::generate().unwrap(),
        SecretKey::generate().unwrap(),
    );
    let config = |secret: &SecretKey, peer: &SecretKey| {
        let keys = Keys {
            secret: secret.clone(),
            peers: vec![peer.public()],
            shared: None,
        };
        Config {
            keys: Some(keys),
            ..Config::default()
        }
    };
    assert_eq!(allocations([config(&a, &b), config(&b, &a)]), 0);
}
