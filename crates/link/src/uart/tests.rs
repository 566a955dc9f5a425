//! A link and a drone's end on both sides of a real pseudo-terminal.

mod drone;

use std::path::Path;
use std::time::{Duration, Instant};

use crtp::Packet;
use crtp_uart::Pty;
use crtp_uart::cpx::System;

use super::*;
use crate::Reactor;
use drone::{Drone, Strict};

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct Bench {
    reactor: Reactor,
    links: [Box<dyn Link>; 1],
    events: Vec<Event>,
    received: Vec<Packet>,
    turns: u32,
}

impl Bench {
    fn open(path: &Path) -> Self {
        let link = UartLink::open(UartConfig::new(path), Instant::now()).unwrap();
        Self {
            reactor: Reactor::new().unwrap(),
            links: [Box::new(link)],
            events: Vec::new(),
            received: Vec::new(),
            turns: 0,
        }
    }

    fn link(&mut self) -> &mut dyn Link {
        self.links[0].as_mut()
    }

    fn turn(&mut self, until: Instant) {
        let now = self.reactor.turn(&mut self.links, Some(until)).unwrap();
        self.turns += 1;
        let link = self.links[0].as_mut();
        self.events.extend(std::iter::from_fn(|| link.poll_event()));
        let received = std::iter::from_fn(|| link.recv(now));
        self.received
            .extend(received.map(|received| received.packet));
    }

    fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.turn(end);
        }
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Duration {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < PATIENCE, "{what}: {:?}", self.events);
            self.turn(start + PATIENCE);
        }
        start.elapsed()
    }

    fn run_until_up(&mut self) -> Duration {
        self.run_until("up", |bench| bench.links[0].state() == State::Up)
    }

    fn send(&mut self, bytes: &[u8]) -> SendOutcome {
        let packet = Packet::from_bytes(bytes).unwrap();
        let outgoing = Outgoing {
            packet,
            class: crate::class_of(&packet),
            expires: None,
        };
        self.link().send(Instant::now(), &outgoing)
    }

    fn echo(&mut self, number: u8) {
        let wanted = self.received.len() + 1;
        assert_eq!(self.send(&[0xfc, number]), SendOutcome::Accepted);
        self.run_until("echo", |bench| bench.received.len() >= wanted);
        assert_eq!(self.received.last().unwrap().as_bytes(), [0xfc, number]);
    }

    fn losses(&self) -> usize {
        let down = |event: &&Event| matches!(event, Event::Down(_));
        self.events.iter().filter(down).count()
    }
}

fn cable(dir: &tempfile::TempDir) -> std::path::PathBuf {
    dir.path().join("cf")
}

#[test]
fn greets_and_echoes_through_a_pseudo_terminal() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let drone = Drone::power_on(pty);
    bench.run_until_up();
    for number in 0..200 {
        bench.echo(number);
    }
    let stats = bench.link().stats();
    assert_eq!((stats.sent, stats.received), (200, 200));
    assert_eq!((stats.bad_frames, stats.stalls), (0, 0));
    let Some(Event::Up(text)) = bench.events.first() else {
        panic!("{:?}", bench.events);
    };
    assert!(
        text.ends_with("at 576000 bit/s, cpx, low latency: not available"),
        "{text}"
    );
    let (_, system) = drone.unplug();
    assert_eq!(
        system,
        [System::UseThisLink(true), System::ClientConnected(true)]
    );
}

#[test]
fn a_burst_arrives_whole_and_in_order() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let _drone = Drone::power_on(pty);
    bench.run_until_up();
    for number in 0..64 {
        assert_eq!(bench.send(&[0xfc, number]), SendOutcome::Accepted);
    }
    bench.run_until("burst", |bench| bench.received.len() == 64);
    let numbers: Vec<u8> = bench
        .received
        .iter()
        .map(|packet| packet.data()[0])
        .collect();
    assert_eq!(numbers, (0..64).collect::<Vec<u8>>());
    assert_eq!(bench.link().backlog(), 0);
}

/// Report: USB serial unplugged for 5 s: CPU stays low, one log line, traffic resumes within 2 s of its return.
#[test]
fn usb_serial_unplugged_for_5_s() {
    let dir = tempfile::tempdir().unwrap();
    let path = cable(&dir);
    let mut bench = Bench::open(&path);
    let drone = Drone::power_on(Pty::open(Some(&path)).unwrap());
    bench.run_until_up();
    bench.echo(1);
    let (session, _) = drone.unplug();
    bench.events.clear();
    bench.turns = 0;
    bench.run_for(Duration::from_secs(5));
    assert!(bench.turns < 40, "{} turns without a port", bench.turns);
    assert_eq!(bench.losses(), 1, "{:?}", bench.events);
    assert_eq!(bench.events.len(), 1, "{:?}", bench.events);
    assert!(matches!(
        bench.send(&[0xfc, 2]),
        SendOutcome::Refused(Refusal::NotConnected)
    ));

    // The drone had power all the time: it is synced and says nothing by itself.
    let _drone = Drone::plug_in(Pty::open(Some(&path)).unwrap(), session);
    let returned = Instant::now();
    bench.run_until_up();
    bench.echo(3);
    assert!(
        returned.elapsed() < Duration::from_secs(2),
        "{:?}",
        returned.elapsed()
    );
    assert_eq!(bench.losses(), 1);
    assert_eq!(
        bench.link().stats().reopened,
        2,
        "first plug and second plug"
    );
}

#[test]
fn a_port_that_is_not_there_yet_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = cable(&dir);
    let mut bench = Bench::open(&path);
    bench.run_for(Duration::from_millis(300));
    assert_eq!(bench.link().state(), State::Down);
    assert_eq!(bench.losses(), 1);
    let _drone = Drone::power_on(Pty::open(Some(&path)).unwrap());
    bench.run_until_up();
    bench.echo(1);
}

#[test]
fn a_second_bridge_is_told_that_the_port_is_busy() {
    let pty = Pty::open(None).unwrap();
    let _first = Bench::open(pty.path());
    let second = UartLink::open(UartConfig::new(pty.path()), Instant::now());
    let error = second.unwrap_err().to_string();
    assert!(
        error.contains("in use") && error.contains("/dev/pts/"),
        "{error}"
    );
}

#[test]
fn what_would_crash_the_drone_never_reaches_the_port() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let drone = Drone::power_on(pty);
    bench.run_until_up();
    for bytes in [&[0x7c][..], &[0x7c, 0x0a, 0], &[0x7d, 0], &[0x4c, 2, 0x63]] {
        let refused = bench.send(bytes);
        assert!(
            matches!(refused, SendOutcome::Refused(Refusal::Unsafe(_))),
            "{refused:?}"
        );
    }
    bench.echo(1);
    assert_eq!(bench.link().stats().dropped_unsafe, 4);
    let (session, _) = drone.unplug();
    assert_eq!(session.stats().received, 1, "the echo and nothing else");
}

#[test]
fn close_says_goodbye_and_frees_the_port() {
    let pty = Pty::open(None).unwrap();
    let path = pty.path().to_owned();
    let mut bench = Bench::open(&path);
    let drone = Drone::power_on(pty);
    bench.run_until_up();
    bench.echo(1);
    bench.link().close(Instant::now());
    bench.run_until("closed", |bench| bench.links[0].state() == State::Closed);
    assert!(Serial::open(&path, 576_000).is_ok());
    let (_, system) = drone.unplug();
    let goodbye = [System::ClientConnected(false), System::UseThisLink(false)];
    assert_eq!(system[2..], goodbye);
}

#[test]
fn a_closing_link_that_is_dropped_still_says_goodbye() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let drone = Drone::power_on(pty);
    bench.run_until_up();
    bench.echo(1);
    bench.link().close(Instant::now());
    drop(bench);
    let goodbye = [System::ClientConnected(false), System::UseThisLink(false)];
    assert_eq!(drone.unplug().1[2..], goodbye);
}

/// Report: three `ff 00` in a row, then traffic: link stays up, never two frames in flight.
#[test]
fn three_tokens_in_a_row_and_never_two_frames_in_flight() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let strict = Strict::start(pty);
    bench.run_until_up();
    for number in 0..40 {
        assert_eq!(bench.send(&[0xfc, number]), SendOutcome::Accepted);
    }
    bench.run_until("all written", |bench| bench.links[0].backlog() == 0);
    bench.run_for(Duration::from_millis(50));
    assert_eq!(bench.link().state(), State::Up);
    let seen = strict.stop();
    assert_eq!(seen.without_credit, 0, "{seen:?}");
    assert_eq!(seen.damaged, 0, "{seen:?}");
    assert!(seen.crtp >= 40, "{seen:?}");
}

#[test]
fn a_silent_port_is_explained() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    bench.run_until("explained", |bench| !bench.events.is_empty());
    let Some(Event::Notice(text)) = bench.events.first() else {
        panic!("{:?}", bench.events);
    };
    for word in [
        "clear-to-send",
        "3 s",
        "DECK_FORCE=cpxOverUART2",
        "576000",
        "powered",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(bench.link().state(), State::Connecting);
}

/// Report: nobody reads the other end of the UART: what cannot leave is dropped and counted, and closing takes no
/// second. (The ten seconds of the report pass in `crtp-uart`, on a virtual clock.)
#[test]
fn nobody_reads_the_other_end() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let drone = Drone::power_on(pty);
    bench.run_until_up();
    bench.echo(1);
    drone.freeze();
    let full = |bench: &Bench| bench.links[0].stats().dropped_full > 0;
    for number in 0..1000 {
        bench.send(&[0xfc, number as u8]);
        if full(&bench) {
            break;
        }
    }
    bench.send(&[0x7c, 0]);
    bench.send(&[0x7c, 0]);
    let stats = bench.link().stats();
    assert!(stats.dropped_full > 0 && stats.superseded > 0, "{stats:?}");
    assert!(bench.link().backlog() <= 66);
    let asked = Instant::now();
    bench.link().close(asked);
    drop(bench);
    assert!(asked.elapsed() < PATIENCE);
    drone.unplug();
}

/// Report: low latency is not available: one line says so, and nothing fails.
#[test]
fn low_latency_not_available_is_one_line() {
    let pty = Pty::open(None).unwrap();
    let mut bench = Bench::open(pty.path());
    let _drone = Drone::power_on(pty);
    bench.run_until_up();
    bench.echo(1);
    let said = bench.events.iter().filter(|event| {
        let (Event::Up(text) | Event::Down(text) | Event::Notice(text)) = event;
        text.contains("low latency: not available")
    });
    assert_eq!(said.count(), 1, "{:?}", bench.events);
}
