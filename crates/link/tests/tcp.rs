//! CPX over TCP, over real sockets, driven by the real loop.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::{LONG, drive, loopback, outgoing, wait_packet, wait_up};
use link::{
    Class, Event, Link, Outgoing, Reactor, Refusal, SendOutcome, State, TcpClient, TcpServer,
};

fn pair() -> Vec<Box<dyn Link>> {
    let server = TcpServer::bind(loopback()).unwrap();
    let client = TcpClient::connect(Instant::now(), server.local_addr().unwrap());
    vec![Box::new(server), Box::new(client)]
}

fn events(link: &mut dyn Link) -> Vec<Event> {
    std::iter::from_fn(|| link.poll_event()).collect()
}

/// A socket that is read and written while the loop runs.
fn raw(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Drives `links` until `done` says so, and asks it every 10 ms: it may look at sockets the loop knows nothing of.
fn poll_until(links: &mut [Box<dyn Link>], mut done: impl FnMut(&mut [Box<dyn Link>]) -> bool) {
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + LONG;
    while !done(links) {
        let soon = Instant::now() + Duration::from_millis(10);
        assert!(reactor.turn(links, Some(soon)).unwrap() < end);
    }
}

fn wait_bytes(links: &mut [Box<dyn Link>], stream: &mut TcpStream, wanted: &[u8]) {
    let mut got = Vec::<u8>::new();
    poll_until(links, |_| {
        let mut bytes = [0; 256];
        if let Ok(count) = stream.read(&mut bytes) {
            got.extend(&bytes[..count]);
        }
        got.len() >= wanted.len()
    });
    assert_eq!(got, wanted);
}

#[test]
fn packets_go_both_ways() {
    let mut links = pair();
    wait_up(&mut links, 1);
    wait_up(&mut links, 0);
    let now = Instant::now();
    for number in 0..50 {
        let sent = links[1].send(now, &outgoing(&[0xfc, number]));
        assert_eq!(sent, SendOutcome::Accepted);
    }
    for number in 0..50 {
        assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xfc, number]);
    }
    links[0].send(now, &outgoing(&[0x52, 1, 2, 3]));
    assert_eq!(
        wait_packet(&mut links, 1).packet.as_bytes(),
        [0x52, 1, 2, 3]
    );
    let unsafe_one = links[1].send(now, &outgoing(&[0x7c]));
    assert!(
        matches!(unsafe_one, SendOutcome::Refused(Refusal::Unsafe(_))),
        "{unsafe_one:?}"
    );
}

#[test]
fn a_client_is_one_once_it_speaks_and_a_second_one_waits_for_its_leaving() {
    let server = TcpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    let mut first = raw(address);
    first.write_all(&[4, 0, 0x19, 1, 0x21]).unwrap();
    let mut reactor = Reactor::new().unwrap();
    let soon = Instant::now() + Duration::from_millis(100);
    while reactor.turn(&mut links, Some(soon)).unwrap() < soon {}
    assert_eq!(links[0].state(), State::Connecting);
    first.write_all(&[1, 4, 0, 0x19, 3, 0xfd, 0]).unwrap();
    assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xfd, 0]);
    assert_eq!(links[0].state(), State::Up);
    let mut second = raw(address);
    second.write_all(&[4, 0, 0x19, 3, 0xdd, 0]).unwrap();
    let mut seen = Vec::new();
    poll_until(&mut links, |links| {
        seen.extend(events(links[0].as_mut()));
        seen.len() == 2
    });
    assert!(
        matches!(&seen[..], [Event::Up(_), Event::Notice(_)]),
        "{seen:?}"
    );
    links[0].send(Instant::now(), &outgoing(&[0x52, 9]));
    wait_bytes(&mut links, &mut first, &[4, 0, 0x0b, 3, 0x52, 9]);
    assert!(links[0].recv(Instant::now()).is_none());
    drop(first);
    assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xdd, 0]);
    links[0].send(Instant::now(), &outgoing(&[0x52, 8]));
    wait_bytes(&mut links, &mut second, &[4, 0, 0x0b, 3, 0x52, 8]);
    let seen = events(links[0].as_mut());
    assert!(
        matches!(&seen[..], [Event::Down(_), Event::Up(_)]),
        "{seen:?}"
    );
}

#[test]
fn a_peer_that_does_not_speak_cpx_is_put_out() {
    let server = TcpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    let mut odd = raw(address);
    odd.write_all(&[0; 8]).unwrap();
    drive(&mut links, |links| links[0].stats().bad_frames == 1);
    assert_eq!(links[0].state(), State::Connecting);
    assert_eq!(
        odd.set_nonblocking(false)
            .and_then(|()| odd.read(&mut [0; 8]))
            .unwrap_or(0),
        0
    );
    links.push(Box::new(TcpClient::connect(Instant::now(), address)));
    wait_up(&mut links, 0);
}

#[test]
fn a_missing_drone_is_told_once_and_found_when_it_comes() {
    let server = TcpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    drop(server);
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(TcpClient::connect(Instant::now(), address))];
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + Duration::from_millis(1500);
    while reactor.turn(&mut links, Some(end)).unwrap() < end {}
    let told = events(links[0].as_mut());
    assert!(matches!(&told[..], [Event::Notice(_)]), "{told:?}");
    links.push(Box::new(TcpServer::bind(address).unwrap()));
    wait_up(&mut links, 0);
    wait_up(&mut links, 1);
    links[1].close(Instant::now());
    drive(&mut links, |links| links[0].state() == State::Down);
    links.truncate(1);
    links.push(Box::new(TcpServer::bind(address).unwrap()));
    wait_up(&mut links, 0);
    assert_eq!(links[0].stats().reopened, 1);
}

/// A deck that reads nothing for a while: memory stays bounded, and the newest setpoint arrives, not the oldest.
#[test]
fn nobody_reads_the_other_end_and_the_newest_setpoint_survives() {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(TcpClient::connect(Instant::now(), address))];
    wait_up(&mut links, 0);
    let (mut deck, _) = listener.accept().unwrap();
    let setpoint = |number: u32| {
        let mut bytes = vec![0x7c, 7];
        bytes.extend((number as f32).to_le_bytes());
        bytes.extend([0; 12]);
        bytes
    };
    let count = 100_000;
    for number in 0..=count {
        let newest = Outgoing {
            class: Class::Latest { key: 3 },
            ..outgoing(&setpoint(number))
        };
        assert_eq!(
            links[0].send(Instant::now(), &newest),
            SendOutcome::Accepted
        );
    }
    assert!(links[0].stats().superseded > 0);
    assert!(links[0].backlog() <= 1);
    deck.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    let wanted = setpoint(count);
    poll_until(&mut links, |_| {
        let mut bytes = [0; 4096];
        if let Ok(count) = deck.read(&mut bytes) {
            got.extend(&bytes[..count]);
        }
        got.ends_with(&wanted)
    });
    assert!(got.len() < 100_000 * 20, "{} bytes", got.len());
}
