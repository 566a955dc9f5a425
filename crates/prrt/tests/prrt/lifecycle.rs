//! How connections come, move and go.

use std::net::SocketAddr;
use std::time::Duration;

use prrt::{CloseReason, Config, Event, SendError, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn wifi(loss: f64) -> [Conditions; 2] {
    [Conditions::wifi(Loss::Iid(loss)); 2]
}

fn texts(pair: &Pair, end: usize) -> Vec<Vec<u8>> {
    pair.ends[end]
        .received
        .iter()
        .map(|(_, message)| message.data.to_vec())
        .collect()
}

#[test]
fn connects_through_half_the_datagrams_lost() {
    for seed in 0..50 {
        let pair = Pair::connected(&Config::default(), wifi(0.5), seed);
        assert!(
            pair.now - pair.start < Duration::from_secs(5),
            "seed {seed}: {:?}",
            pair.now - pair.start
        );
    }
}

#[test]
fn connects_within_two_round_trips_on_a_clean_path() {
    let pair = Pair::connected(&Config::default(), wifi(0.0), 1);
    assert!(
        pair.now - pair.start < 15 * MS,
        "{:?}",
        pair.now - pair.start
    );
}

#[test]
fn messages_before_the_connection_are_refused() {
    let mut pair = Pair::apart(&Config::default(), wifi(0.0), 1);
    pair.connect();
    assert_eq!(
        pair.send(CLIENT, Stream::Ordered(0), None, b"early"),
        Err(SendError::NotConnected)
    );
}

#[test]
fn goodbye_ends_both_sides_at_once() {
    let config = Config {
        reconnect: false,
        ..Config::default()
    };
    let mut pair = Pair::connected(&config, wifi(0.0), 2);
    let peer = pair.ends[CLIENT].peer.unwrap();
    pair.send(CLIENT, Stream::Ordered(0), None, b"last words")
        .unwrap();
    pair.ends[CLIENT].endpoint.close(peer);
    pair.run_for(10 * MS);
    let reason = CloseReason::Done;
    let gone = Event::Disconnected {
        peer: pair.ends[SERVER].peer.unwrap(),
        reason,
        reconnecting: false,
    };
    assert_eq!(pair.ends[SERVER].events.last(), Some(&gone));
    assert_eq!(texts(&pair, SERVER), [b"last words".to_vec()]);
    let again = pair.ends[CLIENT]
        .endpoint
        .send(pair.now, peer, Stream::Ordered(0), None, b"x");
    assert_eq!(again, Err(SendError::Closed));
}

#[test]
fn a_silent_peer_is_noticed_and_found_again() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 3);
    let first = pair.ends[SERVER].peer.unwrap();
    for end in [CLIENT, SERVER] {
        pair.nets[end].conditions.loss = Loss::Iid(1.0);
    }
    pair.run_for(Duration::from_millis(2300));
    assert!(!pair.is_up(CLIENT));
    let lost = pair.ends[CLIENT].events.last().unwrap();
    assert!(
        matches!(
            lost,
            Event::Disconnected {
                reason: CloseReason::Silence,
                reconnecting: true,
                ..
            }
        ),
        "{lost:?}"
    );
    for end in [CLIENT, SERVER] {
        pair.nets[end].conditions.loss = Loss::Never;
    }
    pair.run_for(300 * MS);
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
    assert_ne!(pair.ends[SERVER].peer, Some(first));
    pair.send(CLIENT, Stream::Ordered(0), None, b"again")
        .unwrap();
    pair.run_for(10 * MS);
    assert_eq!(texts(&pair, SERVER), [b"again".to_vec()]);
}

#[test]
fn an_idle_connection_stays_up_on_few_datagrams() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.05), 4);
    pair.run_for(Duration::from_secs(1));
    let before = [pair.nets[CLIENT].offered, pair.nets[SERVER].offered];
    pair.run_for(Duration::from_secs(60));
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
    for end in [CLIENT, SERVER] {
        let sent = pair.nets[end].offered - before[end];
        assert!((230..340).contains(&sent), "{sent} datagrams in a minute");
    }
}

#[test]
fn the_peer_may_change_its_address() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 5);
    let moved = SocketAddr::from(([127, 0, 0, 9], 4242));
    pair.ends[CLIENT].addr = moved;
    let at = pair.now;
    pair.send(CLIENT, Stream::Ordered(0), None, b"from elsewhere")
        .unwrap();
    pair.run_for(8 * MS);
    pair.send(SERVER, Stream::Ordered(0), None, b"found you")
        .unwrap();
    pair.run_for(8 * MS);
    assert_eq!(texts(&pair, CLIENT), [b"found you".to_vec()]);
    let event = Event::Moved {
        peer: pair.ends[SERVER].peer.unwrap(),
        addr: moved,
    };
    assert!(pair.ends[SERVER].events.contains(&event));
    assert!(pair.now - at < 20 * MS);
}

/// In plain text anybody can make a peer seem to have moved; a client comes back to where it was told to look.
#[test]
fn a_client_connects_again_to_the_address_it_was_given() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 9);
    let home = pair.ends[SERVER].addr;
    pair.ends[SERVER].addr = SocketAddr::from(([127, 0, 0, 8], 4242));
    pair.send(SERVER, Stream::Ordered(0), None, b"from elsewhere")
        .unwrap();
    pair.run_for(20 * MS);
    let peer = pair.ends[CLIENT].peer.unwrap();
    assert_ne!(pair.ends[CLIENT].endpoint.addr(peer), Some(home));
    pair.ends[SERVER].addr = home;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ends[CLIENT].endpoint.addr(peer), Some(home));
    assert!(pair.is_up(CLIENT));
}

#[test]
fn a_restarted_client_takes_the_place_of_its_earlier_self() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 6);
    let first = pair.ends[SERVER].peer.unwrap();
    let to = pair.ends[SERVER].addr;
    let config = Config::default();
    pair.ends[CLIENT].endpoint = prrt::Endpoint::new(pair.now, config, false, 4711).unwrap();
    pair.ends[CLIENT].peer = Some(pair.ends[CLIENT].endpoint.connect(pair.now, to));
    pair.run_for(30 * MS);
    assert!(pair.is_up(CLIENT));
    let reason = CloseReason::Replaced;
    let replaced = Event::Disconnected {
        peer: first,
        reason,
        reconnecting: false,
    };
    assert!(pair.ends[SERVER].events.contains(&replaced));
    assert_eq!(pair.ends[SERVER].endpoint.connected().count(), 1);
}

#[test]
fn strangers_get_no_answer_larger_than_their_question_and_no_lasting_memory() {
    let mut pair = Pair::connected(&Config::default(), wifi(0.0), 7);
    pair.capture = Some(Vec::new());
    let mut hello = [0; 26];
    hello[0] = 0xa1;
    for n in 0..10_000u32 {
        hello[2..6].copy_from_slice(&n.to_be_bytes());
        let from = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 9));
        pair.inject(SERVER, from, &hello);
        pair.run_for(MS / 100);
    }
    let replies: Vec<usize> = pair
        .capture
        .take()
        .unwrap()
        .iter()
        .filter(|(end, _)| *end == SERVER)
        .map(|(_, b)| b.len())
        .collect();
    assert!(
        replies.len() >= 10_000 && replies.len() < 10_100,
        "{}",
        replies.len()
    );
    assert!(pair.is_up(CLIENT));
    pair.send(CLIENT, Stream::Ordered(0), None, b"still here")
        .unwrap();
    pair.run_for(10 * MS);
    assert_eq!(texts(&pair, SERVER), [b"still here".to_vec()]);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.ends[SERVER].endpoint.connected().count(), 1);
}

#[test]
fn a_besieged_server_still_lets_an_honest_client_in() {
    let mut pair = Pair::apart(&Config::default(), wifi(0.0), 8);
    let mut hello = [0; 26];
    hello[0] = 0xa1;
    for n in 0..20u8 {
        hello[2] = n;
        pair.inject(SERVER, SocketAddr::from(([10, 0, 0, n], 9)), &hello);
    }
    pair.connect();
    pair.run_for(50 * MS);
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
}
