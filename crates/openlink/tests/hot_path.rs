//! Forwarding between the paced transport and a serial line allocates nothing for a packet. A test binary of its own: the
//! counter replaces the allocator.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bridge_core::{Bridge, Safety};
use crtp::{Channel, Packet, Port, link_service};
use link::{Link, Outgoing, Reactor, Role, State, class_of};

const WARM_UP: u64 = 2000;
const MEASURED: u64 = 10_000;
/// An echo that got lost is followed by another after this.
const PATIENCE: Duration = Duration::from_millis(100);
const LIMIT: Duration = Duration::from_secs(120);

/// The bridge as `openlink bridge` has it: callers first, then the drone.
struct Forwarder {
    reactor: Reactor,
    links: [Box<dyn Link>; 2],
    bridge: Bridge,
    begun: Instant,
}

impl Forwarder {
    fn open(port: u16, uart: &Path) -> Self {
        let open =
            |uri: String, role| link::open(Instant::now(), &uri.parse().unwrap(), role).unwrap();
        Self {
            reactor: Reactor::new().unwrap(),
            links: [
                open(format!("prrt://127.0.0.1:{port}?listen=1"), Role::From),
                open(format!("uart://{}", uart.display()), Role::To),
            ],
            bridge: Bridge::new(Some(Safety::default())),
            begun: Instant::now(),
        }
    }

    fn turn(&mut self) {
        let due = self.bridge.poll_timeout().map(|(at, _)| at);
        let patience = Instant::now() + PATIENCE;
        let due = due.into_iter().chain([patience]).min();
        let now = self.reactor.turn(&mut self.links, due).unwrap();
        let [client, drone] = &mut self.links;
        self.bridge.pump(now, client.as_mut(), drone.as_mut());
        while self.bridge.poll_event().is_some() {}
    }

    /// Packets written to the drone and to the caller.
    fn forwarded(&self) -> u64 {
        self.links.iter().map(|link| link.stats().sent).sum()
    }

    /// Forwards until so many packets more have been written.
    fn forward(&mut self, packets: u64) {
        let end = self.forwarded() + packets;
        while self.forwarded() < end {
            self.turn();
            let stats = self.links.each_ref().map(|link| link.stats());
            assert!(self.begun.elapsed() < LIMIT, "it does not go on: {stats:?}");
        }
    }
}

/// A caller that sends a setpoint and an echo through the drone, again when the echo is back.
fn call(port: u16, stop: &AtomicBool) {
    let uri = format!("prrt://127.0.0.1:{port}").parse().unwrap();
    let mut links = [link::open(Instant::now(), &uri, Role::To).unwrap()];
    let mut reactor = Reactor::new().unwrap();
    let setpoint = Packet::new(Port::COMMANDER, Channel::C0, &[0; 14]).unwrap();
    let echo = link_service::echo(b"allocation").unwrap();
    let mut again = Instant::now();
    while !stop.load(Ordering::Acquire) {
        let now = reactor
            .turn(&mut links, Some(Instant::now() + PATIENCE))
            .unwrap();
        while links[0].poll_event().is_some() {}
        let mut due = now >= again;
        while links[0].recv(now).is_some() {
            due = true;
        }
        if due && links[0].state() == State::Up {
            again = now + PATIENCE;
            for packet in [setpoint, echo] {
                let outgoing = Outgoing {
                    packet,
                    class: class_of(&packet),
                    expires: Some(now + PATIENCE),
                };
                links[0].send(now, &outgoing);
            }
        }
    }
}

/// What has to end with the test.
struct Around {
    simulator: Child,
    stop: Arc<AtomicBool>,
    caller: Option<JoinHandle<()>>,
}

impl Drop for Around {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let ended = self.caller.take().map(JoinHandle::join);
        self.simulator.kill().unwrap();
        self.simulator.wait().unwrap();
        assert!(
            ended.is_none_or(|ended| ended.is_ok()),
            "the caller panicked"
        );
    }
}

#[test]
fn forwarding_between_prrt_and_uart_allocates_nothing_for_a_packet() {
    let folder = tempfile::tempdir().unwrap();
    let uart = folder.path().join("uart");
    let port = {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let simulator = Command::new(env!("CARGO_BIN_EXE_openlink"))
        .args(["sim", "--uart"])
        .arg(&uart)
        .spawn()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut around = Around {
        simulator,
        stop: Arc::clone(&stop),
        caller: None,
    };
    let begun = Instant::now();
    while !uart.exists() {
        assert!(begun.elapsed() < LIMIT, "no simulated drone");
        std::thread::yield_now();
    }
    let mut forwarder = Forwarder::open(port, &uart);
    around.caller = Some(std::thread::spawn(move || call(port, &stop)));
    forwarder.forward(WARM_UP);
    let counted = allocation_counter::measure(|| forwarder.forward(MEASURED));
    assert_eq!(counted.count_total, 0, "{counted:?} for {MEASURED} packets");
}
