//! What the socket tests share: a loop that is bounded in time, and packets.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that cannot go on has failed; not each test uses all"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crtp::Packet;
use link::{Class, Link, Outgoing, Reactor, Received, State};

pub(crate) const LONG: Duration = Duration::from_secs(10);

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn outgoing(bytes: &[u8]) -> Outgoing {
    Outgoing {
        packet: Packet::from_bytes(bytes).unwrap(),
        class: Class::Ordered,
        expires: None,
    }
}

/// Drives `links` until `done` says so.
pub(crate) fn drive(
    links: &mut [Box<dyn Link>],
    mut done: impl FnMut(&mut [Box<dyn Link>]) -> bool,
) {
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + LONG;
    while !done(links) {
        assert!(
            reactor.turn(links, Some(end)).unwrap() < end,
            "nothing happened for {LONG:?}"
        );
    }
}

pub(crate) fn wait_up(links: &mut [Box<dyn Link>], index: usize) {
    drive(links, |links| links[index].state() == State::Up);
}

pub(crate) fn wait_packet(links: &mut [Box<dyn Link>], index: usize) -> Received {
    let mut got = None;
    drive(links, |links| {
        got = links[index].recv(Instant::now());
        got.is_some()
    });
    got.unwrap()
}
