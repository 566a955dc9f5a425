//! The paced transport as a link, over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::{drive, loopback, outgoing, wait_packet, wait_up};
use link::{
    Class, Event, Link, Outgoing, PrrtLink, PrrtOptions, Refusal, Role, SendOutcome, State, open,
};

const OPTIONS: PrrtOptions = PrrtOptions {
    target_delay: Duration::from_millis(50),
    insecure: false,
    keys: None,
    keep_alive: None,
};

fn listener(address: SocketAddr) -> (Box<dyn Link>, SocketAddr) {
    let link = PrrtLink::listen(Instant::now(), address, OPTIONS).unwrap();
    let address = link.local_addr().unwrap();
    (Box::new(link), address)
}

fn caller(address: SocketAddr) -> Box<dyn Link> {
    Box::new(PrrtLink::connect(Instant::now(), address, OPTIONS).unwrap())
}

#[test]
fn packets_go_both_ways_with_their_class() {
    let (server, address) = listener(loopback());
    let mut links = vec![server, caller(address)];
    wait_up(&mut links, 0);
    wait_up(&mut links, 1);
    let now = Instant::now();
    assert_eq!(
        links[1].send(now, &outgoing(&[0xfd, 0])),
        SendOutcome::Accepted
    );
    let got = wait_packet(&mut links, 0);
    assert_eq!(
        (got.packet.as_bytes(), got.class, got.expires),
        (&[0xfd, 0][..], Class::Ordered, None)
    );
    let class = Class::Latest { key: 1 };
    let setpoint = Outgoing {
        class,
        expires: Some(now + Duration::from_secs(5)),
        ..outgoing(&[0x7c, 0])
    };
    links[1].send(now, &setpoint);
    let got = wait_packet(&mut links, 0);
    assert_eq!(got.class, class);
    assert!(
        got.expires.unwrap() <= now + Duration::from_secs(5),
        "the target delay bounds a setpoint's life"
    );
    links[0].send(now, &outgoing(&[0x52, 1]));
    assert_eq!(wait_packet(&mut links, 1).packet.as_bytes(), [0x52, 1]);
}

#[test]
fn what_the_drone_says_goes_to_every_peer_and_each_may_command() {
    let (server, address) = listener(loopback());
    let mut links = vec![server, caller(address), caller(address)];
    for index in 0..3 {
        wait_up(&mut links, index);
    }
    let mut ups = 0;
    drive(&mut links, |links| {
        ups += std::iter::from_fn(|| links[0].poll_event())
            .filter(|event| matches!(event, Event::Up(_)))
            .count();
        ups == 2
    });
    for from in [1, 2] {
        links[from].send(Instant::now(), &outgoing(&[0xfd, from as u8]));
        assert_eq!(
            wait_packet(&mut links, 0).packet.as_bytes(),
            [0xfd, from as u8]
        );
    }
    links[0].send(Instant::now(), &outgoing(&[0x52, 7]));
    for to in [1, 2] {
        assert_eq!(wait_packet(&mut links, to).packet.as_bytes(), [0x52, 7]);
    }
}

#[test]
fn the_peer_is_not_up_yet_and_comes_and_goes() {
    let (server, address) = listener(loopback());
    drop(server);
    let mut links = vec![caller(address)];
    let early = links[0].send(Instant::now(), &outgoing(&[0xfd]));
    assert_eq!(early, SendOutcome::Refused(Refusal::NotConnected));
    links.push(listener(address).0);
    wait_up(&mut links, 0);
    wait_up(&mut links, 1);
    links[1].close(Instant::now());
    drive(&mut links, |links| links[0].state() == State::Down);
    links.truncate(1);
    links.push(listener(address).0);
    wait_up(&mut links, 0);
    assert_eq!(links[0].stats().reopened, 1);
}

#[test]
fn plain_text_beyond_this_host_must_be_asked_for() {
    let now = Instant::now();
    let refused = open(now, &"prrt://192.0.2.1:5000".parse().unwrap(), Role::To)
        .err()
        .unwrap()
        .to_string();
    assert!(
        refused.contains("192.0.2.1:5000") && refused.contains("insecure"),
        "{refused}"
    );
    assert!(
        open(
            now,
            &"prrt://192.0.2.1:5000?insecure=1".parse().unwrap(),
            Role::To
        )
        .is_ok()
    );
}

/// Who sends faster than what lies behind the other end takes is held to its pace, and sees what that costs.
#[test]
fn setpoints_beyond_the_readers_pace_are_superseded_at_the_sender_and_counted() {
    let (server, address) = listener(loopback());
    let mut links = vec![caller(address), server];
    wait_up(&mut links, 0);
    wait_up(&mut links, 1);
    links[1].set_reader_pace(Some(Duration::from_millis(40)));
    drive(&mut links, |links| {
        let hover = Outgoing {
            class: Class::Latest { key: 1 },
            ..outgoing(&[&[0x7c, 0x0a][..], &[0; 16]].concat())
        };
        for _ in 0..3 {
            links[0].send(Instant::now(), &hover);
        }
        while links[1].recv(Instant::now()).is_some() {}
        links[0].pace().is_some() && links[0].stats().superseded > 20
    });
    let (sent, received) = (links[0].stats(), links[1].stats());
    assert!(
        sent.sent >= received.received + sent.superseded,
        "{sent:?} {received:?}"
    );
    let superseded = sent.superseded;
    links[0].close(Instant::now());
    assert!(
        links[0].stats().superseded >= superseded,
        "kept when the link closes"
    );
}
