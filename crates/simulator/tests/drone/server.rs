//! The server over real sockets and a real pseudo-terminal; time-outs are generous, nothing is timed.

use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use simulator::{Drone, Hazard, Report, Server, ServerConfig};

use crate::bench::{bytes, quiet};

const PATIENCE: Duration = Duration::from_secs(20);

struct Served {
    stop: UnixStream,
    thread: JoinHandle<Report>,
    udp: Option<std::net::SocketAddr>,
    uart: Option<PathBuf>,
}

impl Served {
    fn start(config: &ServerConfig) -> Self {
        let now = Instant::now();
        let mut server = Server::open(config, now).unwrap();
        let (udp, uart) = (server.udp_address(), server.uart_path().map(PathBuf::from));
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || {
            let mut drone = Drone::new(quiet(), now);
            server.run(&mut drone, &stopped).unwrap();
            drone.report()
        });
        Self {
            stop,
            thread,
            udp,
            uart,
        }
    }

    fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.udp.unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    fn finish(mut self) -> Report {
        self.stop.write_all(&[1]).unwrap();
        self.thread.join().unwrap()
    }
}

fn udp_only() -> ServerConfig {
    ServerConfig {
        udp: Some("127.0.0.1:0".parse().unwrap()),
        ..ServerConfig::default()
    }
}

/// Sends a packet and waits for the answer of the same port and channel.
fn ask(socket: &UdpSocket, hex: &str) -> Vec<u8> {
    socket.send(&bytes(hex)).unwrap();
    let wanted = bytes(hex)[0] & 0xf3;
    let mut buffer = [0; 64];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        if buffer[0] & 0xf3 == wanted {
            return buffer[..length].to_vec();
        }
    }
}

#[test]
fn udp_answers_the_scan_byte_and_the_newest_client() {
    let served = Served::start(&udp_only());
    let (first, second, scanner) = (served.client(), served.client(), served.client());
    assert_eq!(ask(&scanner, "ff"), [0xff]);
    assert_eq!(ask(&first, "fc0001"), [0xfc, 0, 1]);
    assert_eq!(ask(&second, "fc0002"), [0xfc, 0, 2]);
    assert_eq!(ask(&scanner, "ff"), [0xff]);
    assert_eq!(
        ask(&second, "dd00"),
        bytes("dd000c000000"),
        "a scan takes nobody's place"
    );
    second.send(&[0; 32]).unwrap();
    second.send(&[]).unwrap();
    assert_eq!(ask(&second, "fc0003"), [0xfc, 0, 3]);
    let report = served.finish();
    assert_eq!((report.traffic.bad_datagrams, report.traffic.nulls), (2, 2));
    assert_eq!(report.link.len(), 1);
}

#[test]
fn udp_carries_log_data_while_the_client_lives() {
    let served = Served::start(&udp_only());
    let client = served.client();
    ask(&client, "5d0601070000");
    ask(&client, "5d030101");
    let mut buffer = [0; 64];
    for _ in 0..20 {
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!((length, buffer[0], buffer[1]), (9, 0x52, 1));
    }
    served.finish();
}

#[test]
fn the_uart_speaks_cpx_from_the_first_token_on() {
    let dir = tempfile::tempdir().unwrap();
    let config = ServerConfig {
        uart: Some(dir.path().join("cf")),
        ..ServerConfig::default()
    };
    let served = Served::start(&config);
    let mut host = Host::open(served.uart.as_deref().unwrap());
    host.expect("ff00");
    host.write("ff00");
    host.exchange("ff0419012101c3", "ff00");
    host.exchange("ff0419012001c2", "ff00");
    host.write("ff041903dd003c");
    let reply = host.frame_of(0xdd);
    assert_eq!(reply, bytes("dd000c000000"));
    let report = served.finish();
    assert_eq!(report.would_crash.count, 0);
    assert!(report.link[0].connected);
}

#[test]
fn a_wrong_checksum_on_the_uart_would_have_crashed_the_drone() {
    let dir = tempfile::tempdir().unwrap();
    let config = ServerConfig {
        uart: Some(dir.path().join("cf")),
        ..ServerConfig::default()
    };
    let served = Served::start(&config);
    let mut host = Host::open(served.uart.as_deref().unwrap());
    host.expect("ff00");
    host.write("ff00");
    host.write("ff041903dd003d");
    host.write("ff041903dd003c");
    assert_eq!(
        host.frame_of(0xdd),
        bytes("dd000c000000"),
        "the next frame is found"
    );
    let report = served.finish();
    assert!(report.would_crash.by_reason[&Hazard::UartChecksum] >= 1);
}

#[test]
fn nothing_to_serve_on_is_an_error() {
    let error = Server::open(&ServerConfig::default(), Instant::now()).unwrap_err();
    assert!(error.to_string().contains("nothing to serve on"));
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = ServerConfig {
        udp: Some(taken.local_addr().unwrap()),
        ..ServerConfig::default()
    };
    let error = Server::open(&config, Instant::now())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot listen on udp 127.0.0.1:"),
        "{error}"
    );
}

/// A host that does no more than it must.
struct Host(std::fs::File);

impl Host {
    fn open(path: &std::path::Path) -> Self {
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        Self(file)
    }

    fn write(&mut self, hex: &str) {
        self.0.write_all(&bytes(hex)).unwrap();
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).unwrap();
        byte[0]
    }

    fn expect(&mut self, hex: &str) {
        for wanted in bytes(hex) {
            assert_eq!(self.byte(), wanted);
        }
    }

    /// Writes, then skips what was said before the token that answers.
    fn exchange(&mut self, hex: &str, answer: &str) {
        self.write(hex);
        assert_eq!(answer, "ff00");
        while self.item().is_some() {}
    }

    /// One frame's CRTP bytes (answered with a token), or `None` for a token.
    fn item(&mut self) -> Option<Vec<u8>> {
        assert_eq!(self.byte(), 0xff);
        let length = usize::from(self.byte());
        if length == 0 {
            return None;
        }
        let body: Vec<u8> = (0..=length).map(|_| self.byte()).collect();
        let xor = body[..length]
            .iter()
            .fold(0xff ^ length as u8, |xor, byte| xor ^ byte);
        assert_eq!(body[length], xor);
        self.write("ff00");
        Some(body[2..length].to_vec())
    }

    fn frame_of(&mut self, header: u8) -> Vec<u8> {
        loop {
            if let Some(frame) = self.item().filter(|frame| frame[0] == header) {
                return frame;
            }
        }
    }
}
