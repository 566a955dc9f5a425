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

/// Report: a client of a drone that is not there says so once a second for ever.
#[test]
fn a_missing_drone_is_told_once_and_its_coming_and_going_each_time() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    drop(server);
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(
        UdpClient::connect(Instant::now(), address).unwrap(),
    )];
    let mut events = Vec::new();
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + Duration::from_millis(2300);
    while reactor.turn(&mut links, Some(end)).unwrap() < end {
        events.extend(std::iter::from_fn(|| links[0].poll_event()));
    }
    assert_eq!(links[0].state(), State::Connecting);
    assert!(
        matches!(&events[..], [Event::Notice(text)] if text.contains("nobody listens")),
        "{events:?}"
    );
    links.push(Box::new(UdpServer::bind(address).unwrap()));
    wait_up(&mut links, 0);
    links.truncate(1);
    drive(&mut links, |links| {
        links[0].send(Instant::now(), &outgoing(&[0xfd, 0]));
        links[0].state() == State::Down
    });
    let events: Vec<_> = std::iter::from_fn(|| links[0].poll_event()).collect();
    assert!(
        matches!(&events[..], [Event::Up(_), Event::Down(text)] if text.contains("nobody listens")),
        "{events:?}"
    );
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

/// Report: anybody's datagram on a listener takes the drone away from its client.
#[test]
fn a_stranger_takes_no_seat_and_a_second_client_waits_until_the_first_is_silent() {
    let server = UdpServer::bind(loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    let clients: [UdpSocket; 3] = std::array::from_fn(|_| {
        let socket = UdpSocket::bind(loopback()).unwrap();
        socket.connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    });
    let [first, second, stranger] = &clients;
    stranger.send(&[0x7c, 0]).unwrap();
    drive(&mut links, |links| links[0].stats().strangers == 1);
    assert_eq!(links[0].state(), State::Connecting);
    first.send(&[0xfd, 0]).unwrap();
    assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xfd, 0]);
    // Neither a command nor a second opening moves the first client.
    stranger.send(&[0x7c, 0]).unwrap();
    second.send(&[0xdd, 0]).unwrap();
    drive(&mut links, |links| links[0].stats().strangers == 2);
    links[0].send(Instant::now(), &outgoing(&[0x52, 9]));
    let mut bytes = [0; 64];
    drive(&mut links, |_| first.recv(&mut bytes).is_ok());
    assert_eq!(bytes[..2], [0x52, 9]);
    assert!(second.recv(&mut bytes).is_err() && stranger.recv(&mut bytes).is_err());
    // The first one falls silent: the second is served, with the request it began with.
    assert_eq!(wait_packet(&mut links, 0).packet.as_bytes(), [0xdd, 0]);
    links[0].send(Instant::now(), &outgoing(&[0x52, 8]));
    drive(&mut links, |_| second.recv(&mut bytes).is_ok());
    assert_eq!(bytes[..2], [0x52, 8]);
}

#[test]
fn clients_on_consecutive_ports_all_hear_the_drone_and_each_may_command() {
    let now = Instant::now();
    // Somebody else may take a port in between: then a row further up is tried.
    let (server, port) = (20_000..30_000)
        .step_by(7)
        .find_map(|port| {
            let address = ([127, 0, 0, 1], port).into();
            Some((UdpServer::bind_row(address, 3).ok()?, port))
        })
        .unwrap();
    let mut links: Vec<Box<dyn Link>> = vec![Box::new(server)];
    for step in 0..3 {
        let address = ([127, 0, 0, 1], port + step).into();
        links.push(Box::new(UdpClient::connect(now, address).unwrap()));
    }
    for step in 1..=3 {
        wait_up(&mut links, step);
        links[step].send(now, &outgoing(&[0xfc, step as u8]));
        assert_eq!(
            wait_packet(&mut links, 0).packet.as_bytes(),
            [0xfc, step as u8]
        );
    }
    links[0].send(now, &outgoing(&[0x52, 7]));
    for step in 1..=3 {
        assert_eq!(wait_packet(&mut links, step).packet.as_bytes(), [0x52, 7]);
    }
    let busy: link::Uri = format!("udp://127.0.0.1:{}?listen=1&clients=2", port - 1)
        .parse()
        .unwrap();
    let error = link::open(now, &busy, link::Role::From).err().unwrap();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
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
