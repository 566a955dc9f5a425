//! The system's side of the socket: many datagrams for one call where the kernel can do that (probed), the time at which the
//! kernel saw each arrive, and congestion marks. Knows no protocol.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arrayvec::ArrayVec;
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};

use crate::endpoint::Transmit;

/// Datagrams, or runs of them that the kernel has joined, read with one call.
const READS: usize = 8;
/// Largest datagram, or run of them.
const READ_BYTES: usize = 1 << 16;
/// Bytes handed to the kernel with one call.
const WRITE_BYTES: usize = 60_000;
/// An arrival longer ago than this is doubted: somebody has set the clock.
const MAX_AGE: Duration = Duration::from_millis(500);

/// What a datagram brings besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) from: SocketAddr,
    /// A queue on the way has marked it.
    pub(super) congested: bool,
}

/// Buffers and abilities of one socket.
#[derive(Debug)]
pub(super) struct Io {
    state: UdpSocketState,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of one datagram at most.
    room: usize,
    /// Datagrams in `output` that wait to be sent: all to one address and, but for the last, of one size.
    to: Option<SocketAddr>,
    size: usize,
    filled: usize,
    /// A datagram behind them that does not fit in with them.
    next: Option<Transmit>,
    /// Datagrams, or runs, asked for with the next call: one, and more while they come faster than they are read.
    reads: usize,
}

impl Io {
    pub(super) fn new(socket: &UdpSocket, max_datagram: usize) -> io::Result<Self> {
        Ok(Self {
            state: UdpSocketState::new(UdpSockRef::from(socket))?,
            input: vec![0; READS * READ_BYTES],
            output: vec![0; WRITE_BYTES + max_datagram],
            room: max_datagram,
            to: None,
            size: 0,
            filled: 0,
            next: None,
            reads: 1,
        })
    }

    /// Whether something waits for the socket to have room.
    pub(super) const fn is_stuck(&self) -> bool {
        self.to.is_some()
    }

    /// Reads what has arrived, some at a time, and hands over each datagram; returns how many there were and whether to
    /// leave it at that. One that comes alone, as control does, is read with one cheap call; whether there are more is then
    /// left to the next wait, which returns at once if so.
    pub(super) fn read(
        &mut self,
        socket: &UdpSocket,
        mut take: impl FnMut(Arrival, &[u8]),
    ) -> io::Result<(usize, bool)> {
        let mut slices: ArrayVec<IoSliceMut<'_>, READS> = self
            .input
            .chunks_mut(READ_BYTES)
            .take(self.reads)
            .map(IoSliceMut::new)
            .collect();
        let mut meta = [RecvMeta::default(); READS];
        let meta = meta.get_mut(..slices.len()).unwrap_or_default();
        let count = self
            .state
            .recv(UdpSockRef::from(socket), &mut slices, meta)
            .inspect_err(|_| self.reads = 1)?;
        drop(slices);
        let alone = self.reads == 1;
        let filled = count == self.reads;
        self.reads = if filled { READS.min(self.reads * 2) } else { 1 };
        let clock = Clock::read();
        let mut datagrams = 0;
        for (meta, bytes) in meta.iter().zip(self.input.chunks(READ_BYTES)).take(count) {
            let arrival = Arrival {
                at: clock.arrival(meta.timestamp),
                from: meta.addr,
                congested: meta.ecn == Some(EcnCodepoint::Ce),
            };
            let run = bytes.get(..meta.len).unwrap_or_default();
            for datagram in run.chunks(meta.stride.max(1)) {
                datagrams += 1;
                take(arrival, datagram);
            }
        }
        // Empty ones count, too: whoever sends them must not keep the caller here.
        Ok((datagrams.max(count), alone || !filled))
    }

    /// Sends what `produce` writes until it has nothing more.
    ///
    /// # Errors
    /// The system refused; what was refused is dropped, unless the socket has no room, then it waits.
    pub(super) fn write(
        &mut self,
        socket: &UdpSocket,
        mut produce: impl FnMut(&mut [u8]) -> Option<Transmit>,
    ) -> io::Result<()> {
        loop {
            if self.to.is_none() {
                self.gather(&mut produce);
            }
            let Some(to) = self.to else { return Ok(()) };
            let result = self.send(socket, to);
            if matches!(&result, Err(error) if error.kind() == ErrorKind::WouldBlock) {
                return result;
            }
            self.forget();
            result?;
        }
    }

    fn send(&self, socket: &UdpSocket, to: SocketAddr) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: to,
            ecn: Some(EcnCodepoint::Ect0),
            contents: self.output.get(..self.filled).unwrap_or_default(),
            segment_size: (self.filled > self.size).then_some(self.size),
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(socket), &transmit)
    }

    /// Drops what was sent and moves up the datagram behind it.
    fn forget(&mut self) {
        let behind = self.filled;
        (self.to, self.filled) = (None, 0);
        if let Some(next) = self.next.take() {
            self.output.copy_within(behind..behind + next.len, 0);
            self.begin(next);
        }
    }

    const fn begin(&mut self, first: Transmit) {
        self.to = Some(first.to);
        self.size = first.len;
        self.filled = first.len;
    }

    /// Collects datagrams that can leave with one call.
    fn gather(&mut self, produce: &mut impl FnMut(&mut [u8]) -> Option<Transmit>) {
        let most = self.state.max_gso_segments();
        let mut segments = 0;
        loop {
            let Some(place) = self.output.get_mut(self.filled..self.filled + self.room) else {
                return;
            };
            let Some(transmit) = produce(place) else {
                return;
            };
            segments += 1;
            match self.to {
                None => self.begin(transmit),
                Some(to) if to == transmit.to && transmit.len <= self.size => {
                    self.filled += transmit.len;
                }
                Some(_) => {
                    self.next = Some(transmit);
                    return;
                }
            }
            let last = transmit.len < self.size;
            if last || segments >= most || self.filled + self.room > WRITE_BYTES {
                return;
            }
        }
    }
}

/// The two clocks at one moment.
struct Clock {
    /// Not before the moment at which `wall` was read, so that no arrival seems earlier than it was.
    now: Instant,
    wall: Option<Duration>,
}

impl Clock {
    fn read() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Self {
            now: Instant::now(),
            wall,
        }
    }

    /// The instant of a kernel time stamp.
    fn arrival(&self, stamp: Option<Duration>) -> Instant {
        let age = self
            .wall
            .zip(stamp)
            .and_then(|(wall, stamp)| wall.checked_sub(stamp))
            .filter(|age| *age < MAX_AGE);
        self.now
            .checked_sub(age.unwrap_or_default())
            .unwrap_or(self.now)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// Reads until `count` datagrams have come, however long the machine takes.
    fn read(io: &mut Io, socket: &UdpSocket, count: usize) -> Vec<(Arrival, Vec<u8>)> {
        let mut found = Vec::new();
        let begun = Instant::now();
        while found.len() < count && begun.elapsed() < Duration::from_secs(20) {
            let result = io.read(socket, |arrival, bytes| {
                found.push((arrival, bytes.to_vec()))
            });
            match result {
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                other => drop(other.unwrap()),
            }
        }
        found
    }

    #[test]
    fn datagrams_of_any_sizes_and_addresses_arrive_as_they_left() {
        let (a, b, from) = (socket(), socket(), socket());
        let places = [&a, &b].map(|socket| socket.local_addr().unwrap());
        let sizes = [1200, 1200, 1200, 300, 1200, 1200, 9, 40, 1200, 41, 41, 41];
        let mut number = 0;
        let mut io = Io::new(&from, 1200).unwrap();
        let before = Instant::now();
        io.write(&from, |buffer| {
            let len = *sizes.get(number)?;
            buffer[..len].fill(number as u8);
            let to = places[usize::from(number == 5)];
            number += 1;
            Some(Transmit { to, len })
        })
        .unwrap();
        assert!(!io.is_stuck());
        let first = read(&mut io, &a, sizes.len() - 1);
        let numbers: Vec<usize> = first.iter().map(|(_, bytes)| bytes[0].into()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]);
        for (arrival, bytes) in &first {
            assert_eq!(bytes.len(), sizes[usize::from(bytes[0])]);
            assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            assert_eq!(arrival.from, from.local_addr().unwrap());
            assert!(arrival.at <= Instant::now() && arrival.at >= before);
        }
        assert_eq!(read(&mut io, &b, 1)[0].1, [5; 1200]);
    }

    #[test]
    fn a_single_datagram_is_asked_for_alone_and_many_by_more_and_more() {
        let (to, from) = (socket(), socket());
        let mut io = Io::new(&to, 1200).unwrap();
        for number in 0..20 {
            from.send_to(
                &vec![number; 20 + usize::from(number)],
                to.local_addr().unwrap(),
            )
            .unwrap();
        }
        let mut numbers = Vec::new();
        let mut read = || {
            let result = io.read(&to, |_, bytes| numbers.push(bytes[0]));
            result.map_err(|error| error.kind())
        };
        let calls = [1, 2, 4, 8, 5].map(|_| read().unwrap());
        assert_eq!(
            calls,
            [(1, true), (2, false), (4, false), (8, false), (5, true)]
        );
        assert_eq!(read(), Err(ErrorKind::WouldBlock));
        from.send_to(b"alone", to.local_addr().unwrap()).unwrap();
        assert_eq!(read(), Ok((1, true)));
        assert_eq!(
            numbers[..20],
            std::array::from_fn::<u8, 20, _>(|at| at as u8)
        );
    }

    #[test]
    fn stamps_of_the_kernel_are_believed_within_reason() {
        let clock = Clock::read();
        let wall = clock.wall.unwrap();
        let ms = Duration::from_millis(1);
        assert_eq!(clock.arrival(Some(wall - 5 * ms)), clock.now - 5 * ms);
        for doubtful in [None, Some(wall + ms), Some(wall - 5000 * ms)] {
            assert_eq!(clock.arrival(doubtful), clock.now);
        }
    }
}
