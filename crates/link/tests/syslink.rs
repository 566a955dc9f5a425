//! The syslink dialect from end to end: our driver on a real pseudo-terminal, the simulated drone at its other end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{drive, outgoing, wait_packet, wait_up};
use link::{Event, Link, Reactor, Role, SendOutcome, State};
use simulator::{Config, Drone, Framing, Report, Server, ServerConfig};

struct Simulated {
    stop: UnixStream,
    thread: JoinHandle<Report>,
}

impl Simulated {
    fn start(path: PathBuf) -> Self {
        let now = Instant::now();
        let config = ServerConfig {
            uart: Some(path),
            framing: Framing::Syslink,
            ..ServerConfig::default()
        };
        let mut server = Server::open(&config, now).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut drone = Drone::new(Config::default(), now);
            server.run(&mut drone, &stopped).unwrap();
            drone.report()
        });
        Self { stop, thread }
    }

    fn finish(mut self) -> Report {
        self.stop.write_all(&[1]).unwrap();
        self.thread.join().unwrap()
    }
}

fn open(path: &std::path::Path) -> Vec<Box<dyn Link>> {
    let uri = format!("uart://{}?framing=syslink", path.display());
    vec![link::open(Instant::now(), &uri.parse().unwrap(), Role::To).unwrap()]
}

fn ask(links: &mut [Box<dyn Link>], request: &[u8]) -> Vec<u8> {
    let sent = links[0].send(Instant::now(), &outgoing(request));
    assert_eq!(sent, SendOutcome::Accepted);
    loop {
        let packet = wait_packet(links, 0).packet;
        if packet.header() & 0xf3 == request[0] & 0xf3 {
            return packet.as_bytes().to_vec();
        }
    }
}

#[test]
fn requests_are_answered_and_log_data_comes_by_polling() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cf");
    let drone = Simulated::start(path.clone());
    let mut links = open(&path);
    wait_up(&mut links, 0);
    let up = links[0].poll_event().unwrap();
    assert!(
        matches!(&up, Event::Up(text) if text.contains("512000 bit/s, syslink")),
        "{up:?}"
    );
    assert_eq!(ask(&mut links, &[0xdd, 0])[1..], [0, 12, 0, 0, 0]);
    assert_eq!(ask(&mut links, &[0x5d, 6, 1, 7, 0, 0])[1..], [6, 1, 0]);
    assert_eq!(ask(&mut links, &[0x5d, 3, 1, 1])[1..], [3, 1, 0]);
    for _ in 0..50 {
        let data = wait_packet(&mut links, 0).packet;
        assert_eq!((data.header(), data.data()[0]), (0x52, 1));
    }
    links[0].close(Instant::now());
    assert_eq!(links[0].state(), State::Closed);
    let report = drone.finish();
    assert_eq!(report.would_crash.count, 0);
    assert!(report.traffic.nulls > 50, "{} polls", report.traffic.nulls);
}

/// Report: 1000 null packets a second: they are no packets to anybody.
#[test]
fn a_thousand_null_packets_a_second_are_no_packets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cf");
    let drone = Simulated::start(path.clone());
    let mut links = open(&path);
    wait_up(&mut links, 0);
    // The greeting on the console is all that an idle drone says.
    let mut reactor = Reactor::new().unwrap();
    let end = Instant::now() + Duration::from_millis(600);
    let mut console = 0;
    while reactor.turn(&mut links, Some(end)).unwrap() < end {
        while let Some(received) = links[0].recv(Instant::now()) {
            assert_eq!(received.packet.header() & 0xf3, 0);
            console += 1;
        }
    }
    let stats = links[0].stats();
    assert_eq!((stats.received, stats.sent), (console, 0));
    assert_eq!((stats.bad_frames, stats.stalls), (0, 0));
    let report = drone.finish();
    assert!(report.traffic.nulls > 20, "{} polls", report.traffic.nulls);
}

#[test]
fn a_cpx_drone_is_told_apart_by_its_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cf");
    let now = Instant::now();
    // A drone that speaks CPX makes nothing of syslink.
    let uri: link::Uri = format!("pty://{}", path.display()).parse().unwrap();
    let mut links = open(&path);
    links.push(link::open(now, &uri, Role::From).unwrap());
    let mut told = String::new();
    drive(&mut links, |links| {
        while let Some(event) = links[0].poll_event() {
            if let Event::Notice(text) = event {
                told = text;
            }
        }
        told.contains("no answer from the drone")
    });
    assert!(
        told.contains("framing=cpx") && told.contains("512000"),
        "{told}"
    );
}
