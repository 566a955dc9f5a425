//! A host on a pseudo-terminal link: the drone's UART driver at one end, `pty://` at the other.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use crtp::{Channel, Packet, Port};
use link::{Class, Link, Outgoing, Reactor, Role, SendOutcome, State};

fn turn_until(
    reactor: &mut Reactor,
    links: &mut [Box<dyn Link>],
    mut done: impl FnMut(&mut [Box<dyn Link>], Instant) -> bool,
) {
    let end = Instant::now() + Duration::from_secs(20);
    let mut now = Instant::now();
    while !done(links, now) {
        assert!(now < end, "nothing came");
        now = reactor
            .turn(links, Some(now + Duration::from_millis(20)))
            .unwrap();
    }
}

#[test]
fn packets_cross_a_pty_both_ways_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crazyflie");
    let now = Instant::now();
    let client: link::Uri = format!("pty://{}", path.display()).parse().unwrap();
    let drone: link::Uri = format!("uart://{}", path.display()).parse().unwrap();
    let mut links = vec![
        link::open(now, &client, Role::From).unwrap(),
        link::open(now, &drone, Role::To).unwrap(),
    ];
    let mut reactor = Reactor::new().unwrap();
    turn_until(&mut reactor, &mut links, |links, _| {
        links.iter().all(|link| link.state() == State::Up)
    });
    for (from, to) in [(0, 1), (1, 0)] {
        for size in [0, 1, 30] {
            let packet = Packet::new(Port::LINK, Channel::C0, &vec![0xff; size]).unwrap();
            let outgoing = Outgoing {
                packet,
                class: Class::Ordered,
                expires: None,
            };
            let outcome = links[from].send(Instant::now(), &outgoing);
            assert_eq!(outcome, SendOutcome::Accepted);
            turn_until(&mut reactor, &mut links, |links, now| {
                links[to]
                    .recv(now)
                    .is_some_and(|received| received.packet == packet)
            });
        }
    }
}

#[test]
fn a_file_in_the_way_stays_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    std::fs::write(&path, "mine").unwrap();
    let uri: link::Uri = format!("pty://{}", path.display()).parse().unwrap();
    let error = link::open(Instant::now(), &uri, Role::From).err().unwrap();
    assert!(error.to_string().contains("notes"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
