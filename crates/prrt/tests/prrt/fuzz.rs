//! Junk, damage, truncation, repetition and reflection against a live connection: no panic, no growth, counters add up.

use std::net::SocketAddr;
use std::time::Duration;

use prrt::{Config, Stream};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

/// A connected pair and every datagram that went between its ends during some traffic of all kinds.
fn recorded(seed: u64) -> (Pair, Vec<(usize, Vec<u8>)>) {
    let mut pair = Pair::apart(
        &Config::default(),
        [Conditions::wifi(Loss::Iid(0.05)); 2],
        seed,
    );
    pair.capture = Some(Vec::new());
    pair.connect();
    pair.run_for(300 * MS);
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
    for n in 0..100u32 {
        pair.send(CLIENT, Stream::Latest(1), Some(20 * MS), &n.to_be_bytes())
            .unwrap();
        pair.send(SERVER, Stream::Ordered(2), None, &n.to_be_bytes())
            .unwrap();
        if n % 20 == 0 {
            pair.send(CLIENT, Stream::Ordered(3), None, &[n as u8; 10_000])
                .unwrap();
        }
        pair.run_for(5 * MS);
    }
    let capture = pair.capture.take().unwrap();
    pair.run_for(Duration::from_secs(1));
    (pair, capture)
}

fn mutate(rng: &mut SmallRng, capture: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = capture[rng.random_range(0..capture.len())].1.clone();
    match rng.random_range(0..6) {
        0 => bytes.truncate(rng.random_range(0..=bytes.len())),
        1 => bytes.extend_from_slice(&capture[rng.random_range(0..capture.len())].1),
        2 => {
            bytes = (0..rng.random_range(0..200))
                .map(|_| rng.random())
                .collect()
        }
        _ => {
            for _ in 0..rng.random_range(1..8) {
                if !bytes.is_empty() {
                    let at = rng.random_range(0..bytes.len());
                    bytes[at] = rng.random();
                }
            }
        }
    }
    bytes
}

/// Makes most data datagrams look like new ones of the connection that there is now. Handshakes become data: they are answered
/// rather than booked, and have tests of their own.
fn aim(bytes: &mut [u8], id: Option<[u8; 4]>, number: u32) {
    let Some((kind, rest)) = bytes.split_first_mut() else {
        return;
    };
    if (0xa1..0xa4).contains(kind) {
        *kind = 0xa4;
    }
    let Some((head, _)) = rest.split_first_chunk_mut::<8>() else {
        return;
    };
    if !number.is_multiple_of(4)
        && let Some(id) = id
    {
        head[..4].copy_from_slice(&id);
        head[4..].copy_from_slice(&number.to_be_bytes());
    }
}

/// Datagrams that belonged to no connection.
fn strays(pair: &Pair, end: usize) -> u64 {
    let stray = pair.ends[end].endpoint.stray_stats();
    stray.junk + stray.unknown + stray.turned_away
}

/// Datagrams that an end has booked, whatever they were.
fn booked(pair: &Pair, end: usize) -> u64 {
    let endpoint = &pair.ends[end].endpoint;
    // Without encryption a damaged datagram may well be a goodbye.
    let peer = pair.ends[end].peer.unwrap();
    let stats = endpoint.stats(peer).unwrap_or_default();
    strays(pair, end) + stats.datagrams_received + stats.duplicate_datagrams + stats.malformed
}

#[test]
fn a_million_random_and_mutated_datagrams_do_no_harm() {
    let (mut pair, capture) = recorded(1);
    let mut rng = SmallRng::seed_from_u64(99);
    let stranger = SocketAddr::from(([10, 0, 0, 7], 77));
    pair.capture = Some(Vec::new());
    let mut ids: [Option<[u8; 4]>; 2] = [None; 2];
    let mut number = 10_000;
    let mut throw = |pair: &mut Pair, count: u32| {
        let (mut unknown, mut reached) = (0, 0);
        for n in 0..count {
            let end = (n % 2) as usize;
            let mut bytes = mutate(&mut rng, &capture);
            number += 1;
            aim(&mut bytes, ids[end], number);
            let (before, stray) = (booked(pair, end), strays(pair, end));
            let from = if n % 50 < 2 {
                stranger
            } else {
                pair.ends[1 - end].addr
            };
            let endpoint = &mut pair.ends[end].endpoint;
            endpoint.handle_datagram(pair.now, from, &bytes);
            unknown += u64::from(booked(pair, end) == before);
            reached += u32::from(strays(pair, end) == stray);
            if n % 50 == 0 {
                pair.run_for(MS);
                // Damaged goodbyes end connections; new ones have new ids.
                for (sender, bytes) in pair.capture.iter_mut().flat_map(|seen| seen.drain(..)) {
                    if bytes[0] >= 0xa4 {
                        ids[1 - sender] = bytes[1..5].try_into().ok();
                    }
                }
            }
            pair.ends[end].received.clear();
            pair.ends[end].events.clear();
        }
        assert!(
            reached > count / 20,
            "{reached} of {count} reached a connection"
        );
        unknown
    };
    throw(&mut pair, 500_000);
    let growth = allocation_counter::measure(|| {
        let unknown = throw(&mut pair, 500_000);
        // Connections that are not up yet have books that cannot be read here.
        assert!(unknown < 500, "{unknown} datagrams that no counter knows");
    });
    assert!(
        growth.bytes_current < 1 << 20,
        "{} bytes more",
        growth.bytes_current
    );
    for end in [CLIENT, SERVER] {
        let endpoint = &pair.ends[end].endpoint;
        let stray = endpoint.stray_stats();
        assert!(stray.junk + stray.unknown > 50_000, "{stray:?}");
        assert!(endpoint.connected().count() <= Config::default().max_peers);
    }
}

/// Handshakes among the junk, too: no panic, and no more peers than there may be.
#[test]
fn mutated_handshakes_do_no_harm() {
    let (mut pair, capture) = recorded(7);
    let hellos: Vec<_> = capture
        .into_iter()
        .filter(|(_, bytes)| bytes.first().is_some_and(|kind| *kind < 0xa4))
        .collect();
    assert!(!hellos.is_empty());
    let mut rng = SmallRng::seed_from_u64(98);
    for n in 0..100_000u32 {
        let bytes = mutate(&mut rng, &hellos);
        let from = SocketAddr::from(([10, 0, 0, rng.random()], 77));
        pair.ends[(n % 2) as usize]
            .endpoint
            .handle_datagram(pair.now, from, &bytes);
        if n % 1000 == 0 {
            pair.run_for(MS);
        }
    }
    pair.run_for(Duration::from_secs(3));
    assert!(pair.ends[SERVER].endpoint.connected().count() <= 1);
}

#[test]
fn every_datagram_repeated_delivers_nothing_twice() {
    let (mut pair, capture) = recorded(2);
    let before = [CLIENT, SERVER].map(|end| pair.ends[end].received.len());
    let from = [CLIENT, SERVER].map(|end| pair.ends[end].addr);
    for (sender, bytes) in &capture {
        pair.inject(1 - sender, from[*sender], bytes);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        [CLIENT, SERVER].map(|end| pair.ends[end].received.len()),
        before
    );
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
    assert!(pair.stats(SERVER).duplicate_datagrams > 100);
}

#[test]
fn datagrams_thrown_back_at_their_sender_do_nothing() {
    let (mut pair, capture) = recorded(3);
    let before = [CLIENT, SERVER].map(|end| pair.ends[end].received.len());
    let from = [CLIENT, SERVER].map(|end| pair.ends[1 - end].addr);
    for (sender, bytes) in &capture {
        pair.inject(*sender, from[*sender], bytes);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        [CLIENT, SERVER].map(|end| pair.ends[end].received.len()),
        before
    );
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
}

#[test]
fn a_flood_of_junk_leaves_control_traffic_alone() {
    let mut pair = Pair::connected(&Config::default(), [Conditions::wifi(Loss::Never); 2], 4);
    let mut rng = SmallRng::seed_from_u64(5);
    for n in 0..100u32 {
        pair.send(CLIENT, Stream::Ordered(1), Some(20 * MS), &n.to_be_bytes())
            .unwrap();
        for _ in 0..1000 {
            let junk: [u8; 40] = rng.random();
            let from = SocketAddr::from((rng.random::<[u8; 4]>(), rng.random()));
            pair.ends[SERVER]
                .endpoint
                .handle_datagram(pair.now, from, &junk);
        }
        pair.run_for(10 * MS);
    }
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 100);
    assert!(received.iter().all(|(_, message)| message.age < 7 * MS));
    assert_eq!(pair.ends[SERVER].endpoint.connected().count(), 1);
}
