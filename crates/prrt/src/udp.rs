//! Puts an [`Endpoint`] on a non-blocking UDP socket. Owns the socket and nothing else: the caller waits for
//! [`Driver::as_raw_fd`] to become readable (and writable when [`Driver::wants_write`]) or for
//! [`Driver::poll_timeout`], and calls in. The wait has to be level-triggered, as `poll` is: a call need not read all that is
//! there. Never blocks, never ends because the network does.

mod io;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rand::Rng;
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Config;
use crate::endpoint::{Endpoint, Event, PeerId, StrayStats};
use crate::error::{Error, SendError};
use crate::message::{Delivery, Departure, Message, MessageId, Mode, Stream};
use crate::stats::Stats;
use crate::trace::Trace;
use io::{Arrival, Io};

/// Datagrams read before timers and the reader get their turn.
const READ_BATCH: usize = 64;
/// Socket buffers asked for, bytes; the system may give less.
const SOCKET_BUFFER: usize = 4 << 20;
/// At most one notice of a network error in this time.
const NOTICE_PAUSE: Duration = Duration::from_secs(1);
const MAX_NOTICES: usize = 16;
/// A peer that is silent for this long is remarked upon, at most once in [`REMARK_PAUSE`].
const UNANSWERED: Duration = Duration::from_secs(2);
const REMARK_PAUSE: Duration = Duration::from_secs(10);

/// An endpoint on a socket.
#[derive(Debug)]
pub struct Driver {
    socket: UdpSocket,
    endpoint: Endpoint,
    io: Io,
    /// The latest instant that the endpoint has been told.
    clock: Instant,
    notices: VecDeque<String>,
    last_notice: Option<Instant>,
    last_remark: Option<Instant>,
    network_errors: u64,
}

impl Driver {
    /// Listens on `addr` for peers; it can also connect.
    ///
    /// # Errors
    /// The socket cannot be opened, the configuration cannot work, or `addr` is not a loopback address and plain text to
    /// other machines is not allowed.
    pub fn listen(now: Instant, addr: SocketAddr, config: Config) -> Result<Self, Error> {
        Self::open(now, addr, config, true)
    }

    /// Connects to `addr` from any free port and keeps doing so. The peer may come up later.
    ///
    /// # Errors
    /// As for [`Driver::listen`].
    pub fn connect(
        now: Instant,
        addr: SocketAddr,
        config: Config,
    ) -> Result<(Self, PeerId), Error> {
        check_plain(addr, &config)?;
        let mut driver = Self::open(now, any_port_towards(addr), config, false)?;
        let peer = driver.endpoint.connect(now, addr);
        driver.flush(now);
        Ok((driver, peer))
    }

    fn open(
        now: Instant,
        addr: SocketAddr,
        config: Config,
        listening: bool,
    ) -> Result<Self, Error> {
        if listening {
            check_plain(addr, &config)?;
        }
        let room = config.max_datagram;
        let endpoint = Endpoint::new(now, config, listening, rand::rng().random())?;
        let failed = |source| Error::Socket { addr, source };
        let socket = open_socket(addr).map_err(failed)?;
        let io = Io::new(&socket, room).map_err(failed)?;
        Ok(Self {
            socket,
            endpoint,
            io,
            clock: now,
            notices: VecDeque::new(),
            last_notice: None,
            last_remark: None,
            network_errors: 0,
        })
    }

    /// Where the socket is bound.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether to wait for the socket to become writable, too.
    pub const fn wants_write(&self) -> bool {
        self.io.is_stuck()
    }

    /// The socket is ready: reads what is there and writes what is due. Afterwards drain [`Driver::recv`] and
    /// [`Driver::poll_event`].
    pub fn handle_ready(&mut self, now: Instant) {
        self.handle_readable(now);
        self.flush(now);
    }

    /// Reads what is there and writes nothing: what it asks for, acknowledgements above all, leaves with the next
    /// message or with [`Driver::flush`], which the caller owes it.
    pub fn handle_readable(&mut self, now: Instant) {
        let mut datagrams = 0;
        while datagrams < READ_BATCH {
            let (endpoint, earliest) = (&mut self.endpoint, self.clock);
            let take = |arrival: Arrival, bytes: &[u8]| {
                // Time never runs backwards for the endpoint.
                let at = arrival.at.max(earliest);
                endpoint.handle_marked_datagram(at, arrival.from, bytes, arrival.congested);
            };
            match self.io.read(&self.socket, take) {
                Ok((_, true)) => break,
                Ok((count, false)) => datagrams += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    datagrams += 1;
                    self.on_error(now, "receiving", &error);
                }
            }
        }
        self.take_suspicions();
    }

    fn take_suspicions(&mut self) {
        while let Some(peer) = self.endpoint.poll_suspicion() {
            let Some(addr) = self.endpoint.addr(peer) else {
                continue;
            };
            self.notice(format!(
                "{addr} answers 60 to 600 ms late after pauses: a Wi-Fi radio may be saving power; switch that off, or \
                 set keep_alive (keepalive= in a URI) below 100 ms"
            ));
        }
    }

    /// The instant of [`Driver::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.handle_due(now);
        self.flush(now);
    }

    /// The instant of [`Driver::poll_timeout`] has come. Writes nothing, so that what the same wake-up brings elsewhere can
    /// leave first; the caller owes [`Driver::flush`].
    pub fn handle_due(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.remark_silence(now);
    }

    /// A peer that does not answer is worth a line now and then.
    fn remark_silence(&mut self, now: Instant) {
        let soon = self
            .last_remark
            .is_some_and(|at| now.saturating_duration_since(at) < REMARK_PAUSE);
        let Some(addr) = self.endpoint.unanswered(now, UNANSWERED).filter(|_| !soon) else {
            return;
        };
        self.last_remark = Some(now);
        let keys = if self.endpoint.config().keys.is_some() {
            ", and do the keys match"
        } else {
            ""
        };
        self.notice(format!(
            "no answer from {addr} yet, asking on: is it running{keys}?"
        ));
    }

    fn notice(&mut self, text: String) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push_back(text);
        }
    }

    /// When [`Driver::handle_timeout`] is due, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.endpoint.poll_timeout()
    }

    /// Sends a message; it is on the socket when this returns unless it has to wait for its slot.
    ///
    /// # Errors
    /// The message is not taken; the queue is as before.
    pub fn send(
        &mut self,
        now: Instant,
        peer: PeerId,
        stream: Stream,
        life: Option<Duration>,
        data: &[u8],
    ) -> Result<MessageId, SendError> {
        let id = self.endpoint.send(now, peer, stream, life, data)?;
        self.flush(now);
        Ok(id)
    }

    /// Whether a message has left yet.
    pub fn departure(&self, peer: PeerId, id: MessageId) -> Departure {
        self.endpoint.departure(peer, id)
    }

    /// The next message from a peer.
    pub fn recv(&mut self, now: Instant, peer: PeerId, mode: Mode) -> Option<Message> {
        self.endpoint.recv(now, peer, mode)
    }

    /// The next message from a peer in order, or in its place the gap that missing messages leave once they expire within
    /// `window` from now.
    pub fn recv_with_gaps(
        &mut self,
        now: Instant,
        peer: PeerId,
        window: Duration,
    ) -> Option<Delivery> {
        self.endpoint.recv_with_gaps(now, peer, window)
    }

    /// Begins to collect what happens to single messages, or stops; see [`Driver::poll_trace`].
    pub fn set_trace(&mut self, on: bool) {
        self.endpoint.set_trace(on);
    }

    /// The next thing that happened to a message, where that is collected.
    pub fn poll_trace(&mut self) -> Option<Trace> {
        self.endpoint.poll_trace()
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// A line for a log, about the network; at most one a second.
    pub fn poll_notice(&mut self) -> Option<String> {
        self.notices.pop_front()
    }

    /// Asks `addr` for a connection.
    ///
    /// # Errors
    /// `addr` is not a loopback address and plain text to other machines is not allowed.
    pub fn add_peer(&mut self, now: Instant, addr: SocketAddr) -> Result<PeerId, Error> {
        check_plain(addr, self.endpoint.config())?;
        let peer = self.endpoint.connect(now, addr);
        self.flush(now);
        Ok(peer)
    }

    /// Says goodbye to a peer.
    pub fn close(&mut self, now: Instant, peer: PeerId) {
        self.endpoint.close(peer);
        self.flush(now);
    }

    /// Whether messages flow to and from a peer.
    pub fn is_connected(&self, peer: PeerId) -> bool {
        self.endpoint.is_connected(peer)
    }

    /// Every peer that messages flow to.
    pub fn connected(&self) -> impl Iterator<Item = PeerId> {
        self.endpoint.connected()
    }

    /// Where a peer lives.
    pub fn addr(&self, peer: PeerId) -> Option<SocketAddr> {
        self.endpoint.addr(peer)
    }

    /// Counters and figures of a connection, since it came up.
    pub fn stats(&self, peer: PeerId) -> Option<Stats> {
        self.endpoint.stats(peer)
    }

    /// Messages and bytes queued or in flight towards a peer.
    pub fn load(&self, peer: PeerId) -> Option<(usize, usize)> {
        self.endpoint.load(peer)
    }

    /// Tells a peer how long what is behind this application takes for each message, a serial port for instance, so that it
    /// sends no faster; `None`: as fast as the application reads, which is measured in any case.
    pub fn set_reader_pace(&mut self, peer: PeerId, pace: Option<Duration>) {
        self.endpoint.set_reader_pace(peer, pace);
    }

    /// Time per message that a peer's reader, or what is behind it, has asked for; `None` while it is no limit.
    pub fn peer_pace(&self, peer: PeerId) -> Option<Duration> {
        self.endpoint.peer_pace(peer)
    }

    /// Datagrams that belonged to no connection.
    pub const fn stray_stats(&self) -> StrayStats {
        self.endpoint.stray_stats()
    }

    /// Errors that the system reported for the socket, refused connections included.
    pub const fn network_errors(&self) -> u64 {
        self.network_errors
    }

    /// Writes until the endpoint has nothing more or the socket has no room.
    pub fn flush(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        loop {
            let endpoint = &mut self.endpoint;
            let produce = |buffer: &mut [u8]| endpoint.poll_transmit(now, buffer);
            match self.io.write(&self.socket, produce) {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => self.on_error(now, "sending", &error),
            }
        }
    }

    /// The network may come back: an error costs the datagram, never the loop.
    fn on_error(&mut self, now: Instant, doing: &str, error: &std::io::Error) {
        self.network_errors += 1;
        let soon = self
            .last_notice
            .is_some_and(|at| now.saturating_duration_since(at) < NOTICE_PAUSE);
        if soon {
            return;
        }
        self.last_notice = Some(now);
        self.notice(format!("{doing} failed, trying on: {error}"));
    }
}

impl AsRawFd for Driver {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Driver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn check_plain(addr: SocketAddr, config: &Config) -> Result<(), Error> {
    if addr.ip().to_canonical().is_loopback() || config.keys.is_some() || config.insecure {
        return Ok(());
    }
    Err(Error::Insecure { addr })
}

fn any_port_towards(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn open_socket(addr: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}
