//! Encryption end to end: who gets in, what an attacker on the path can do (nothing but lose datagrams), and that it costs
//! neither delay nor datagrams.

use std::net::SocketAddr;
use std::time::Duration;

use prrt::{Config, Keys, SecretKey, SharedKey, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn with_keys(secret: &SecretKey, peer: &SecretKey) -> Config {
    let keys = Keys {
        secret: secret.clone(),
        peers: vec![peer.public()],
        shared: None,
    };
    Config {
        keys: Some(keys),
        ..Config::default()
    }
}

fn key() -> SecretKey {
    SecretKey::generate().unwrap()
}

fn acquainted() -> [Config; 2] {
    let (client, server) = (key(), key());
    [with_keys(&client, &server), with_keys(&server, &client)]
}

fn wifi(loss: f64) -> [Conditions; 2] {
    [Conditions::wifi(Loss::Iid(loss)); 2]
}

fn recorded(seed: u64) -> (Pair, Vec<(usize, Vec<u8>)>) {
    let mut pair = Pair::strangers(&acquainted(), wifi(0.05), seed);
    pair.capture = Some(Vec::new());
    pair.join();
    for n in 0..200u32 {
        pair.send(CLIENT, Stream::Latest(1), Some(20 * MS), &n.to_be_bytes())
            .unwrap();
        pair.send(SERVER, Stream::Ordered(2), None, b"very secret words")
            .unwrap();
        pair.run_for(5 * MS);
    }
    let capture = pair.capture.take().unwrap();
    pair.run_for(Duration::from_secs(1));
    (pair, capture)
}

fn received(pair: &Pair) -> [usize; 2] {
    [CLIENT, SERVER].map(|end| pair.ends[end].received.len())
}

#[test]
fn peers_who_know_each_other_talk_and_nobody_else_can_read() {
    let (pair, capture) = recorded(1);
    assert_eq!(received(&pair)[CLIENT], 200);
    let words = b"very secret words";
    assert!(
        capture
            .iter()
            .all(|(_, bytes)| !bytes.windows(words.len()).any(|window| window == words))
    );
}

#[test]
fn strangers_plain_clients_and_wrong_shared_keys_get_no_answer() {
    let (client, server, eve) = (key(), key(), key());
    let right = with_keys(&server, &client);
    let shared = |hex: &str| Some(hex.repeat(32).parse::<SharedKey>().unwrap());
    let with_shared = |config: &Config, hex| {
        let keys = Keys {
            shared: shared(hex),
            ..config.keys.clone().unwrap()
        };
        Config {
            keys: Some(keys),
            ..Config::default()
        }
    };
    for (who, visitor, host, silent) in [
        ("stranger", with_keys(&eve, &server), right.clone(), true),
        (
            "one who takes us for another",
            with_keys(&client, &eve),
            right.clone(),
            true,
        ),
        ("plain client", Config::default(), right.clone(), true),
        (
            "encrypted client of a plain server",
            with_keys(&client, &server),
            Config::default(),
            true,
        ),
        (
            "wrong shared key",
            with_shared(&with_keys(&client, &server), "11"),
            with_shared(&right, "22"),
            false,
        ),
    ] {
        let mut pair = Pair::strangers(&[visitor, host], wifi(0.0), 2);
        pair.connect();
        pair.run_for(Duration::from_secs(3));
        assert!(!pair.is_up(CLIENT) && !pair.is_up(SERVER), "{who}");
        assert_eq!(pair.nets[SERVER].offered == 0, silent, "{who}");
        assert!(
            pair.nets[SERVER].offered_bytes < pair.nets[CLIENT].offered_bytes,
            "{who}"
        );
    }
}

#[test]
fn every_captured_datagram_replayed_and_reflected_does_nothing() {
    let (mut pair, capture) = recorded(3);
    let before = received(&pair);
    let stranger = SocketAddr::from(([10, 9, 8, 7], 6));
    for (sender, bytes) in &capture {
        pair.inject(1 - sender, stranger, bytes);
        pair.inject(*sender, stranger, bytes);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(received(&pair), before);
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
    assert_ne!(
        pair.ends[SERVER]
            .endpoint
            .addr(pair.ends[SERVER].peer.unwrap()),
        Some(stranger)
    );
}

#[test]
fn datagrams_of_another_connection_do_nothing() {
    let (_, foreign) = recorded(4);
    let (mut pair, _) = recorded(5);
    let before = received(&pair);
    let from = [CLIENT, SERVER].map(|end| pair.ends[end].addr);
    for (sender, bytes) in &foreign {
        pair.inject(1 - sender, from[*sender], bytes);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(received(&pair), before);
    assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
}

#[test]
fn damage_on_the_way_is_loss_and_nothing_else() {
    let damaging = Conditions {
        corrupt: 0.1,
        ..Conditions::wifi(Loss::Never)
    };
    let mut pair = Pair::strangers(&acquainted(), [damaging; 2], 6);
    pair.join();
    for n in 0..2000u32 {
        pair.send(CLIENT, Stream::Ordered(0), Some(100 * MS), &n.to_be_bytes())
            .unwrap();
        pair.run_for(10 * MS);
    }
    let received = &pair.ends[SERVER].received;
    assert!(received.len() > 1990, "{}", received.len());
    for (_, message) in received {
        assert!(u32::from_be_bytes(message.data[..].try_into().unwrap()) < 2000);
    }
    assert!(pair.stats(SERVER).malformed > 100);
}

#[test]
fn hours_of_flight_change_keys_without_a_late_message() {
    let mut pair = Pair::strangers(&acquainted(), wifi(0.0), 7);
    pair.join();
    for n in 0..36_000u32 {
        pair.send(CLIENT, Stream::Ordered(0), Some(50 * MS), &n.to_be_bytes())
            .unwrap();
        pair.run_for(100 * MS);
    }
    let received = &pair.ends[SERVER].received;
    assert_eq!(received.len(), 36_000);
    assert!(
        received
            .iter()
            .all(|(_, message)| message.age < 10 * MS && message.attempt == 0)
    );
}

#[test]
fn large_messages_and_address_changes_work_sealed() {
    let mut pair = Pair::strangers(&acquainted(), wifi(0.02), 8);
    pair.join();
    let data: Vec<u8> = (0..300_000usize).map(|i| (i % 251) as u8).collect();
    pair.send(CLIENT, Stream::Ordered(0), None, &data).unwrap();
    pair.run_for(20 * MS);
    let moved = SocketAddr::from(([127, 0, 0, 9], 4242));
    pair.ends[CLIENT].addr = moved;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ends[SERVER].received[0].1.data[..], data[..]);
    assert_eq!(
        pair.ends[SERVER]
            .endpoint
            .addr(pair.ends[SERVER].peer.unwrap()),
        Some(moved)
    );
}

#[test]
fn a_flood_of_hellos_that_know_the_public_key_is_answered_with_cookies() {
    let [client, server] = acquainted();
    let mut pair = Pair::strangers(&[client, server], wifi(0.0), 9);
    pair.capture = Some(Vec::new());
    pair.connect();
    let (_, hello) = pair.capture.as_ref().unwrap()[0].clone();
    pair.run_for(100 * MS);
    pair.capture = Some(Vec::new());
    for n in 0..1000u32 {
        let from = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 9));
        pair.inject(SERVER, from, &hello);
    }
    let replies = pair.capture.take().unwrap();
    assert!(replies.iter().all(|(_, bytes)| bytes.len() < hello.len()));
    let accepts = replies.iter().filter(|(_, bytes)| bytes[0] == 0xa3).count();
    assert!(accepts <= 8, "{accepts} handshakes computed");
    assert!(pair.is_up(CLIENT));
}

/// Somebody on the path sends a datagram of the client on under the address of a victim: the victim gets no more than a few
/// times its size until the answer to a challenge would come, and the client is found again with its next datagram.
#[test]
fn a_forged_move_turns_no_flood_on_anybody() {
    let mut pair = Pair::strangers(&acquainted(), wifi(0.0), 10);
    pair.join();
    pair.run_for(500 * MS);
    pair.send(SERVER, Stream::Ordered(0), None, &vec![7; 2 << 20])
        .unwrap();
    pair.run_for(100 * MS);
    pair.nets[CLIENT].conditions.loss = Loss::Iid(1.0);
    pair.run_for(20 * MS);
    pair.capture = Some(Vec::new());
    pair.send(CLIENT, Stream::Ordered(1), None, b"stolen")
        .unwrap();
    let (_, stolen) = pair.capture.take().unwrap()[0].clone();
    let victim = SocketAddr::from(([10, 9, 8, 7], 6));
    pair.capture = Some(Vec::new());
    pair.inject(SERVER, victim, &stolen);
    pair.run_for(500 * MS);
    let sent = pair.capture.take().unwrap();
    let flood: usize = sent
        .iter()
        .filter(|(end, _)| *end == SERVER)
        .map(|(_, bytes)| bytes.len())
        .sum();
    assert!(flood < 3000, "{flood} bytes");
    pair.nets[CLIENT].conditions.loss = Loss::Never;
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ends[CLIENT].received[0].1.data.len(), 2 << 20);
}
