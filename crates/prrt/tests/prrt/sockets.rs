//! Real sockets on the loopback interface. Bounds are generous; nothing here measures time.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use prrt::blocking::{Listener, RecvError, Socket, Wait};
use prrt::udp::Driver;
use prrt::{Config, Delivery, Error, SendError, Stream};

const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn soon() -> Wait {
    Wait::at_most(Duration::from_secs(20))
}

fn joined() -> (Listener, Socket, Socket) {
    let listener = Listener::bind(LOOPBACK, Config::default()).unwrap();
    let client = Socket::connect(listener.local_addr().unwrap(), Config::default()).unwrap();
    assert!(client.wait_connected(soon()));
    let server = listener.accept(soon()).unwrap();
    (listener, client, server)
}

#[test]
fn messages_go_both_ways() {
    let (_listener, client, server) = joined();
    client
        .send(Stream::Latest(0), Some(Duration::from_secs(10)), b"ping")
        .unwrap();
    let message = server.recv_asap(soon()).unwrap();
    assert_eq!(
        (&message.data[..], message.stream),
        (&b"ping"[..], Stream::Latest(0))
    );
    server.send(Stream::Ordered(4), None, b"pong").unwrap();
    assert_eq!(
        &client.recv_ordered(Duration::ZERO, soon()).unwrap().data[..],
        b"pong"
    );
    assert!(server.flush(soon()));
    assert_eq!(server.stats().unwrap().send.confirmed, 1);
}

#[test]
fn a_reader_that_wants_gaps_may_wait_for_them_or_not() {
    let (_listener, server, client) = joined();
    let nothing = server.recv_with_gaps(Duration::ZERO, Wait::No);
    assert_eq!(nothing, Err(RecvError::TimedOut));
    client.try_send(Stream::Ordered(3), None, b"here").unwrap();
    let delivery = server.recv_with_gaps(Duration::ZERO, soon()).unwrap();
    assert!(
        matches!(&delivery, Delivery::Message(message) if message.data[..] == b"here"[..]),
        "{delivery:?}"
    );
}

#[test]
fn four_megabytes_cross_the_loopback() {
    let (_listener, client, server) = joined();
    let data: Vec<u8> = (0..4usize << 20).map(|i| ((i * 7) >> 4) as u8).collect();
    client.send(Stream::Ordered(0), None, &data).unwrap();
    assert_eq!(server.recv_asap(soon()).unwrap().data[..], data[..]);
}

#[test]
fn nothing_there_is_told_apart_from_closed() {
    let (_listener, client, server) = joined();
    assert_eq!(server.recv_latest(Wait::No), Err(RecvError::TimedOut));
    client.try_send(Stream::Ordered(0), None, b"bye").unwrap();
    assert!(client.flush(soon()));
    drop(client);
    assert_eq!(&server.recv_asap(soon()).unwrap().data[..], b"bye");
    assert_eq!(server.recv_asap(soon()), Err(RecvError::Closed));
    assert_eq!(
        server.try_send(Stream::Ordered(0), None, b"x"),
        Err(SendError::Closed)
    );
}

#[test]
fn the_peer_may_come_up_later() {
    let place = UdpSocket::bind(LOOPBACK).unwrap();
    let addr = place.local_addr().unwrap();
    drop(place);
    let client = Socket::connect(addr, Config::default()).unwrap();
    assert!(!client.wait_connected(Wait::at_most(Duration::from_millis(2500))));
    let notice = client.poll_notice().unwrap();
    assert!(notice.contains("no answer from 127.0.0.1"), "{notice}");
    assert_eq!(client.poll_notice(), None);
    let listener = Listener::bind(addr, Config::default()).unwrap();
    assert!(client.wait_connected(soon()));
    assert!(listener.accept(soon()).is_some());
}

#[test]
fn a_restarted_server_is_found_again() {
    let (listener, client, server) = joined();
    let addr = listener.local_addr().unwrap();
    drop((listener, server));
    let listener = Listener::bind(addr, Config::default()).unwrap();
    let server = listener.accept(soon()).unwrap();
    assert!(client.wait_connected(soon()));
    client.send(Stream::Ordered(0), None, b"again").unwrap();
    assert_eq!(&server.recv_asap(soon()).unwrap().data[..], b"again");
}

#[test]
fn plain_text_to_other_machines_needs_a_word() {
    let now = Instant::now();
    let far: SocketAddr = "192.0.2.1:5000".parse().unwrap();
    let refused = Driver::connect(now, far, Config::default());
    let Err(Error::Insecure { addr }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(addr, far);
    let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let error = Driver::listen(now, any, Config::default()).unwrap_err();
    assert!(error.to_string().contains("insecure"), "{error}");
    let insecure = Config {
        insecure: true,
        ..Config::default()
    };
    assert!(Driver::listen(now, any, insecure).is_ok());
}
