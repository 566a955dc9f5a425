//! The drone's UDP end, as cflib has it: one CRTP packet a datagram. Whoever sent the last packet is the client; the
//! scan byte `ff` is answered to whoever asks and makes nobody the client.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use crtp::{MAX_PACKET, Packet};

use super::ServeError;
use super::tap::DroneTap;
use crate::Drone;

/// A client that is silent for this long is gone; cflib sends an echo request every 100 ms.
const SILENCE: Duration = Duration::from_secs(5);
/// Datagrams taken in one wake-up, so that a flood does not keep the drone from flying.
const BATCH: usize = 64;

#[derive(Debug)]
pub(super) struct Udp {
    socket: UdpSocket,
    address: SocketAddr,
    client: Option<(SocketAddr, Instant)>,
    tap: DroneTap,
}

impl Udp {
    pub(super) fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address, source };
        let socket = UdpSocket::bind(address).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            address,
            client: None,
            tap: DroneTap::default(),
        })
    }

    pub(super) fn set_tap(&mut self, tap: DroneTap) {
        self.tap = tap;
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) const fn has_client(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.client.map(|(_, heard)| heard + SILENCE)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.client = None;
        }
    }

    /// Takes what has come; whether a client sent a packet.
    pub(super) fn receive(&mut self, now: Instant, drone: &mut Drone) -> io::Result<bool> {
        let mut heard = false;
        let mut bytes = [0; MAX_PACKET + 1];
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut bytes) {
                Ok((length, from)) => heard |= self.handle(now, &bytes[..length], from, drone),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An earlier datagram found its client gone; its silence ends it.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionRefused | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(heard)
    }

    fn handle(&mut self, now: Instant, bytes: &[u8], from: SocketAddr, drone: &mut Drone) -> bool {
        let Ok(packet) = Packet::from_bytes(bytes) else {
            drone.count_bad_datagram();
            return false;
        };
        if packet.is_null() {
            self.send(&packet, from, drone);
        } else {
            self.client = Some((from, now));
        }
        self.tap.received(&packet);
        drone.handle_packet(now, &packet);
        !packet.is_null()
    }

    /// Sends the drone's packets to the client; without one they wait.
    pub(super) fn transmit(&mut self, drone: &mut Drone) {
        let Some((client, _)) = self.client else {
            return;
        };
        while let Some(packet) = drone.poll_transmit() {
            self.tap.sent(&packet);
            self.send(&packet, client, drone);
        }
    }

    /// A datagram the system does not take is lost, as on any UDP path, and counted.
    fn send(&self, packet: &Packet, to: SocketAddr, drone: &mut Drone) {
        if self.socket.send_to(packet.as_bytes(), to).is_err() {
            drone.count_unsent();
        }
    }
}
