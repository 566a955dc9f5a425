//! UDP links over real sockets, driven by the real loop.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{LONG, drive, loopback, outgoing, wait_packet, wait_up};
use link::{Event, Link, Reactor, Refusal, SendOutcome, State, UdpClient, UdpServer};

/// A server, a client that calls it, and a loop around both.
fn pair() -> Vec<Box<dyn Link>> {
    let server = UdpServer::bind(loopback()).unwrap();
    let client = UdpClient::connect(Instant::now(), server.local_addr().unwrap()).unwrap();
    vec![Box::new(server), Box::new(client)]
}

#[test]
fn packets_go_both_ways() {
    let mut links = pair();
    wait_up(&mut links, 1);
    let now = Instant::now();
    assert_eq!(
        links[1].send(now, &outgoing(&[0xfd, 0])),
        SendOutcome::Accepted
    );
    assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xfd, 0]);
    assert_eq!(links[0].state(), State::Up);
    links[0].send(now, &outgoing(&[0x52, 1, 2, 3]));
    assert_eq!(
        wait_packet(&mut links, 1).packet.as_bytes(),
        [0x52, 1, 2, 3]
    );
}

#[test]
fn scan_byte_is_answered_to_whoever_asks_and_makes_nobody_the_client() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    let scanner = UdpSocket::bind(loopback()).unwrap();
    scanner.set_nonblocking(true).unwrap();
    scanner.send_to(&[0xff], address).unwrap();
    let mut answer = [0; 64];
    drive(&mut links, |_| {
        scanner.recv(&mut answer).is_ok_and(|length| length == 1)
    });
    assert_eq!((answer[0], links[0].state()), (0xff, State::Connecting));
    let nobody = links[0].send(Instant::now(), &outgoing(&[0x52]));
    assert_eq!(nobody, SendOutcome::Refused(Refusal::NotConnected));
}

#[test]
fn the_peer_is_not_up_yet() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    drop(server);
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(
        UdpClient::connect(Instant::now(), address).unwrap(),
    )];
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + Duration::from_millis(1100);
    while reactor.turn(&mut links, Some(end)).unwrap() < end {}
    assert_eq!(links[0].state(), State::Connecting);
    let notices = std::iter::from_fn(|| links[0].poll_event());
    let count = notices
        .filter(|event| matches!(event, Event::Notice(_)))
        .count();
    assert!(
        (1..=2).contains(&count),
        "at most one line a second, got {count}"
    );
    links.push(Box::new(UdpServer::bind(address).unwrap()));
    wait_up(&mut links, 0);
}

#[test]
fn a_drone_that_restarts_takes_the_link_down_and_up() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let client = UdpClient::connect(Instant::now(), address).unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(client), Box::new(server)];
    wait_up(&mut links, 0);
    links.truncate(1);
    drive(&mut links, |links| {
        links[0].send(Instant::now(), &outgoing(&[0xfd, 0]));
        links[0].state() == State::Down
    });
    links.push(Box::new(UdpServer::bind(address).unwrap()));
    wait_up(&mut links, 0);
    assert_eq!(links[0].stats().reopened, 1);
}

#[test]
fn the_newest_client_gets_the_answers() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let old = UdpClient::connect(Instant::now(), address).unwrap();
    let new = UdpClient::connect(Instant::now(), address).unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server), Box::new(old), Box::new(new)];
    for index in [1, 2] {
        wait_up(&mut links, index);
        links[index].send(Instant::now(), &outgoing(&[0xfd, index as u8]));
        wait_packet(&mut links, 0);
    }
    links[0].send(Instant::now(), &outgoing(&[0x52, 9]));
    assert_eq!(wait_packet(&mut links, 2).packet.as_bytes(), [0x52, 9]);
    assert!(links[1].recv(Instant::now()).is_none());
}

#[test]
fn damaged_datagrams_are_counted_and_unsafe_packets_stay_here() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    let socket = UdpSocket::bind(loopback()).unwrap();
    socket.send_to(&[], address).unwrap();
    socket.send_to(&[7; 32], address).unwrap();
    drive(&mut links, |links| links[0].stats().bad_frames == 2);
    let client = UdpClient::connect(Instant::now(), address).unwrap();
    links.push(Box::new(client));
    wait_up(&mut links, 1);
    let unsafe_one = links[1].send(Instant::now(), &outgoing(&[0x7c]));
    assert!(
        matches!(unsafe_one, SendOutcome::Refused(Refusal::Unsafe(_))),
        "{unsafe_one:?}"
    );
    assert_eq!(links[1].stats().dropped_unsafe, 1);
}

#[test]
fn a_waker_ends_the_wait_of_another_thread() {
    let mut reactor = Reactor::new().unwrap();
    let waker = reactor.waker();
    let sleeper =
        std::thread::spawn(move || reactor.turn(&mut [], Some(Instant::now() + LONG)).unwrap());
    let called = Instant::now();
    waker.wake();
    assert!(sleeper.join().unwrap() < called + LONG);
}
