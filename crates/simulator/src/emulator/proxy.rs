//! An emulated path between UDP sockets, for machines without TUN devices or root. Clients send to one address, and their
//! datagrams come out towards another; all share the one emulated link.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrayvec::ArrayVec;
use rustix::event::{PollFd, PollFlags};

use super::conditions::Scenario;
use super::direction::{Direction, Meta, UDP_IP_HEADERS};
use super::lateness::Recorder;
use super::namespaces::EmulationError;
use super::running::{Report, schedule_exactly, wait_readable};
use super::weather::Side;

/// Most clients at a time; datagrams of others are counted and dropped.
const MAX_CLIENTS: usize = 64;
const READ_BATCH: usize = 64;
const MAX_DATAGRAM: usize = 65_536;

/// A client, and the socket that stands for it towards the server.
#[derive(Debug)]
struct Client {
    addr: SocketAddr,
    socket: UdpSocket,
    /// Changes of the NAT when the socket was opened.
    epoch: usize,
}

/// A path between UDP sockets.
#[derive(Debug)]
pub struct Proxy {
    start: Instant,
    scenario: Scenario,
    seed: u64,
    listen: UdpSocket,
    to: SocketAddr,
    clients: Vec<Client>,
    up: Direction,
    down: Direction,
    lateness: [Recorder; 2],
    not_written: u64,
    buffer: Vec<u8>,
}

impl Proxy {
    /// Listens on `listen` for clients of the server at `to`. Its clock starts now.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn open(
        listen: SocketAddr,
        to: SocketAddr,
        scenario: Scenario,
        seed: u64,
    ) -> Result<Self, EmulationError> {
        let failed = |source| EmulationError::System {
            what: format!("cannot listen on {listen}"),
            source,
        };
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let recorder =
            || Recorder::new().ok_or_else(|| failed(io::Error::other("no room for a histogram")));
        let start = Instant::now();
        Ok(Self {
            start,
            up: Direction::new(start, scenario.up.clone(), seed, Side::Up),
            down: Direction::new(start, scenario.down.clone(), seed, Side::Down),
            scenario,
            seed,
            listen: socket,
            to,
            clients: Vec::new(),
            lateness: [recorder()?, recorder()?],
            not_written: 0,
            buffer: vec![0; MAX_DATAGRAM],
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listen.local_addr()
    }

    /// Carries datagrams until `stop` is set.
    ///
    /// # Errors
    /// A socket broke, or no further one can be opened.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<Report> {
        let scheduling = schedule_exactly()?;
        while !stop.load(Ordering::Relaxed) {
            self.move_ports()?;
            self.read_clients()?;
            self.read_server();
            self.write_due();
            self.wait()?;
        }
        let lateness = [self.lateness[0].summary(), self.lateness[1].summary()];
        Ok(Report {
            scenario: self.scenario.clone(),
            seed: self.seed,
            form: "udp",
            seconds: self.start.elapsed().as_secs_f64(),
            up: self.up.stats(),
            down: self.down.stats(),
            clean: Report::judge(&lateness),
            lateness,
            not_written: self.not_written,
            scheduling: vec![scheduling],
        })
    }

    /// After a change of the NAT every client has a new port; datagrams to the old one meet a closed socket.
    fn move_ports(&mut self) -> io::Result<()> {
        let epoch = self.scenario.nat_epoch(self.start.elapsed());
        for client in &mut self.clients {
            if client.epoch < epoch {
                (client.socket, client.epoch) = (upstream(self.to)?, epoch);
            }
        }
        Ok(())
    }

    fn read_clients(&mut self) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            let (len, from) = match self.listen.recv_from(&mut self.buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // An ICMP error of an earlier datagram: the emulated network would not tell.
                Err(_) => continue,
            };
            match self.client(from)? {
                Some(tag) => self
                    .up
                    .handle_packet(Instant::now(), &self.buffer[..len], meta(tag)),
                None => self.not_written += 1,
            }
        }
        Ok(())
    }

    fn client(&mut self, addr: SocketAddr) -> io::Result<Option<u32>> {
        if let Some(at) = self.clients.iter().position(|client| client.addr == addr) {
            return Ok(Some(at as u32));
        }
        if self.clients.len() == MAX_CLIENTS {
            return Ok(None);
        }
        self.clients.push(Client {
            addr,
            socket: upstream(self.to)?,
            epoch: self.scenario.nat_epoch(self.start.elapsed()),
        });
        Ok(Some(self.clients.len() as u32 - 1))
    }

    fn read_server(&mut self) {
        for (tag, client) in self.clients.iter().enumerate() {
            for _ in 0..READ_BATCH {
                match client.socket.recv(&mut self.buffer) {
                    Ok(len) => self.down.handle_packet(
                        Instant::now(),
                        &self.buffer[..len],
                        meta(tag as u32),
                    ),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => {}
                }
            }
        }
    }

    fn write_due(&mut self) {
        let now = Instant::now();
        while let Some(delivery) = self.up.poll_packet(now) {
            let client = &self.clients[delivery.tag as usize];
            match client.socket.send(delivery.bytes) {
                Ok(_) => self.lateness[0].record(Instant::now() - delivery.due),
                Err(_) => self.not_written += 1,
            }
        }
        while let Some(delivery) = self.down.poll_packet(now) {
            let client = &self.clients[delivery.tag as usize];
            match self.listen.send_to(delivery.bytes, client.addr) {
                Ok(_) => self.lateness[1].record(Instant::now() - delivery.due),
                Err(_) => self.not_written += 1,
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let due = self
            .up
            .poll_timeout()
            .into_iter()
            .chain(self.down.poll_timeout());
        let until_due = due
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
            .min();
        let sockets = self.clients.iter().map(|client| &client.socket);
        let mut fds: ArrayVec<PollFd<'_>, { MAX_CLIENTS + 1 }> = [&self.listen]
            .into_iter()
            .chain(sockets)
            .map(|socket| PollFd::new(socket, PollFlags::IN))
            .collect();
        wait_readable(&mut fds, until_due)
    }
}

const fn meta(tag: u32) -> Meta {
    Meta {
        tag,
        protected: 0,
        overhead: UDP_IP_HEADERS,
    }
}

fn upstream(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
