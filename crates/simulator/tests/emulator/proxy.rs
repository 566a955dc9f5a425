//! The proxy between real sockets on the loopback interface. Bounds are generous; nothing here measures time.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use simulator::emulator::{Conditions, Loss, Proxy, Report, Scenario};

const LOOPBACK: &str = "127.0.0.1:0";

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    socket
}

struct Running {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

impl Running {
    fn start(to: SocketAddr, scenario: Scenario) -> Self {
        let mut proxy = Proxy::open(LOOPBACK.parse().unwrap(), to, scenario, 1).unwrap();
        let (at, stop) = (
            proxy.local_addr().unwrap(),
            Arc::new(AtomicBool::new(false)),
        );
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || proxy.run(&stop).unwrap()
        });
        Self { at, stop, thread }
    }

    fn end(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 100];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    (buffer[..len].to_vec(), from)
}

#[test]
fn two_clients_get_their_own_answers() {
    let server = socket();
    let running = Running::start(server.local_addr().unwrap(), Scenario::default());
    let clients = [socket(), socket()];
    for (client, word) in clients.iter().zip([b"one", b"two"]) {
        client.send_to(word, running.at).unwrap();
        let (bytes, from) = receive(&server);
        assert_eq!(bytes, word);
        server.send_to(&bytes, from).unwrap();
        assert_eq!(receive(client), (word.to_vec(), running.at));
    }
    let report = running.end();
    assert_eq!((report.up.delivered, report.down.delivered), (2, 2));
    assert_eq!(report.up.bytes, 2 * (3 + 28));
    assert_eq!(report.lateness[0].samples, 2);
}

#[test]
fn everything_is_lost_where_everything_is_to_be_lost() {
    let server = socket();
    let lossy = Conditions {
        loss: Loss {
            iid: 1.0,
            bursts: None,
        },
        ..Conditions::default()
    };
    let scenario = Scenario {
        up: lossy,
        ..Scenario::default()
    };
    let running = Running::start(server.local_addr().unwrap(), scenario);
    let client = socket();
    let mut sent = 0;
    while sent < 10 {
        client.send_to(b"x", running.at).unwrap();
        sent += 1;
    }
    server.set_nonblocking(true).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert!(server.recv(&mut [0; 9]).is_err());
    assert_eq!(running.end().up.delivered, 0);
}

#[test]
fn after_the_nat_changed_the_server_sees_another_port() {
    let server = socket();
    let scenario = Scenario {
        nat: vec![Duration::from_millis(300)],
        ..Scenario::default()
    };
    let running = Running::start(server.local_addr().unwrap(), scenario);
    let client = socket();
    client.send_to(b"before", running.at).unwrap();
    let first = receive(&server).1;
    let second = loop {
        client.send_to(b"after", running.at).unwrap();
        let from = receive(&server).1;
        if from != first {
            break from;
        }
        thread::sleep(Duration::from_millis(5));
    };
    // The old port leads nowhere, the new one to the client.
    server.send_to(b"lost", first).unwrap();
    server.send_to(b"found", second).unwrap();
    assert_eq!(receive(&client).0, b"found");
    running.end();
}
