//! `prrt://…?keys=`: two ends that trust each other connect, a stranger does not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use crtp::{Channel, Packet, Port};
use link::{Class, Link, Outgoing, Reactor, Role, SendOutcome, State, key_file};

fn open(port: u16, keys: &Path, listen: u8) -> Box<dyn Link> {
    let uri = format!(
        "prrt://127.0.0.1:{port}?listen={listen}&keys={}",
        keys.display()
    );
    link::open(Instant::now(), &uri.parse().unwrap(), Role::To).unwrap()
}

fn turn_for(
    reactor: &mut Reactor,
    links: &mut [Box<dyn Link>],
    limit: Duration,
    mut done: impl FnMut(&mut [Box<dyn Link>], Instant) -> bool,
) -> bool {
    let end = Instant::now() + limit;
    let mut now = Instant::now();
    while now < end {
        if done(links, now) {
            return true;
        }
        let next = now + Duration::from_millis(20);
        now = reactor.turn(links, Some(next)).unwrap();
    }
    false
}

#[test]
fn ends_that_trust_each_other_connect_and_a_stranger_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["ground", "drone", "stranger"].map(|name| folder.path().join(name));
    let [ground, drone, stranger] = &files;
    let [ground_key, drone_key, _] =
        [ground, drone, stranger].map(|f| key_file::create(f).unwrap());
    key_file::trust(ground, drone_key).unwrap();
    key_file::trust(drone, ground_key).unwrap();
    key_file::trust(stranger, drone_key).unwrap();
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut reactor = Reactor::new().unwrap();
    let mut links = vec![open(port, drone, 1), open(port, stranger, 0)];
    let up = |links: &mut [Box<dyn Link>], _| links[1].state() == State::Up;
    assert!(!turn_for(
        &mut reactor,
        &mut links,
        Duration::from_secs(2),
        up
    ));
    links[1] = open(port, ground, 0);
    assert!(turn_for(
        &mut reactor,
        &mut links,
        Duration::from_secs(20),
        up
    ));
    let packet = Packet::new(Port::LINK, Channel::C0, &[1, 2, 3]).unwrap();
    let outgoing = Outgoing {
        packet,
        class: Class::Ordered,
        expires: None,
    };
    assert_eq!(
        links[1].send(Instant::now(), &outgoing),
        SendOutcome::Accepted
    );
    let arrived = |links: &mut [Box<dyn Link>], now| {
        links[0]
            .recv(now)
            .is_some_and(|received| received.packet == packet)
    };
    assert!(turn_for(
        &mut reactor,
        &mut links,
        Duration::from_secs(20),
        arrived
    ));
}

#[test]
fn keys_and_insecure_exclude_each_other() {
    let text = "prrt://127.0.0.1:5000?keys=/k&insecure=1";
    let error = text.parse::<link::Uri>().unwrap_err().to_string();
    assert!(error.contains("either keys"), "{error}");
}
