//! Who may speak on one UDP port. Owns the client's seat and its one waiting place; reads no socket and no clock.
//!
//! UDP knows no connections, so that anybody's datagram arrives. The seat goes to whoever opens as a client does,
//! stays theirs until they are silent, and then goes to whoever waits.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crtp::Packet;

/// A client that is silent for this long is gone; cflib sends an echo request every 100 ms.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// The same while somebody else waits: a script that is started again does not wait for its former self.
const SILENCE_WHILE_AWAITED: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Client {
    address: SocketAddr,
    heard: Instant,
}

/// Somebody who opened while the seat was taken. Clients do not open twice, so the opening is kept.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    client: Client,
    opening: Packet,
}

/// The seat of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    client: Option<Client>,
    waiting: Option<Waiting>,
}

/// What a packet from an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The client's.
    Client,
    /// The opening of a client that has just taken the seat.
    Newcomer,
    /// An opening while the seat is taken by this client: kept until the seat is free.
    Waits(SocketAddr),
    /// Of somebody who waits already, or has not opened.
    Stranger,
}

/// Whether `packet` is one that a client may begin with: it commands nothing, and its answer is what clients wait
/// for. cflib begins with the link source, others with the protocol version; echoes are what a client repeats
/// while it is connected, so that one whose listener was started anew is known again.
pub(super) fn opens(packet: &Packet) -> bool {
    matches!(packet.kind(), 0xf0 | 0xf1) || (packet.kind() == 0xd1 && packet.data() == [0])
}

impl Seat {
    /// The client, if one is there.
    pub(super) fn client(&self) -> Option<SocketAddr> {
        self.client.map(|client| client.address)
    }

    /// A sign of life that is no packet for the drone.
    pub(super) fn handle_null(&mut self, now: Instant, from: SocketAddr) {
        if let Some(client) = self.client.as_mut().filter(|client| client.address == from) {
            client.heard = now;
        }
    }

    /// A packet came.
    pub(super) fn handle_packet(
        &mut self,
        now: Instant,
        packet: &Packet,
        from: SocketAddr,
    ) -> Standing {
        let newcomer = Client {
            address: from,
            heard: now,
        };
        match self.client.as_mut() {
            Some(client) if client.address == from => {
                client.heard = now;
                Standing::Client
            }
            _ if !opens(packet) => Standing::Stranger,
            Some(client) => {
                let known = self
                    .waiting
                    .is_some_and(|waiting| waiting.client.address == from);
                let holder = client.address;
                self.waiting = Some(Waiting {
                    client: newcomer,
                    opening: *packet,
                });
                if known {
                    Standing::Stranger
                } else {
                    Standing::Waits(holder)
                }
            }
            None => {
                self.client = Some(newcomer);
                Standing::Newcomer
            }
        }
    }

    /// Frees the seat of a client that is silent; its address.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<SocketAddr> {
        self.expires_at().filter(|&at| at <= now)?;
        self.client.take().map(|client| client.address)
    }

    /// Seats whoever waits for a free seat; their address and the packet they opened with.
    pub(super) fn seat_waiting(&mut self, now: Instant) -> Option<(SocketAddr, Packet)> {
        if self.client.is_some() {
            return None;
        }
        let Waiting {
            mut client,
            opening,
        } = self.waiting.take()?;
        client.heard = now;
        self.client = Some(client);
        Some((client.address, opening))
    }

    /// When [`Seat::handle_timeout`] is due.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        let silence = if self.waiting.is_some() {
            SILENCE_WHILE_AWAITED
        } else {
            SILENCE
        };
        self.client.map(|client| client.heard + silence)
    }

    /// Nobody is there any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn packet(bytes: &[u8]) -> Packet {
        Packet::from_bytes(bytes).unwrap()
    }

    fn seated(now: Instant) -> Seat {
        let mut seat = Seat::default();
        assert_eq!(
            seat.handle_packet(now, &packet(&[0xfd, 0]), at(1)),
            Standing::Newcomer
        );
        seat
    }

    #[test]
    fn only_what_clients_begin_with_opens() {
        for bytes in [
            &[0xfd, 0][..],
            &[0xf1],
            &[0xfc, 0, 1],
            &[0xdd, 0],
            &[0xd1, 0],
        ] {
            assert!(opens(&packet(bytes)), "{bytes:02x?}");
        }
        for bytes in [
            &[0x3c; 15][..],
            &[0x7c, 0],
            &[0x5c, 3],
            &[0xdd, 1],
            &[0xd1],
            &[0xd1, 0, 0],
            &[0x8c, 3, 0],
        ] {
            assert!(!opens(&packet(bytes)), "{bytes:02x?}");
        }
    }

    #[test]
    fn a_stranger_is_no_client() {
        let now = Instant::now();
        let mut seat = Seat::default();
        assert_eq!(
            seat.handle_packet(now, &packet(&[0x7c, 0]), at(9)),
            Standing::Stranger
        );
        assert_eq!((seat.client(), seat.expires_at()), (None, None));
    }

    #[test]
    fn a_client_keeps_its_seat_until_it_is_silent() {
        let now = Instant::now();
        let mut seat = seated(now);
        assert_eq!(
            seat.handle_packet(now, &packet(&[0x7c, 0]), at(2)),
            Standing::Stranger
        );
        assert_eq!(
            seat.handle_packet(now + 4000 * MS, &packet(&[0x3c; 15]), at(1)),
            Standing::Client
        );
        assert_eq!(seat.handle_timeout(now + 8999 * MS), None);
        assert_eq!(seat.handle_timeout(now + 9000 * MS), Some(at(1)));
        assert_eq!(seat.seat_waiting(now + 9000 * MS), None);
    }

    #[test]
    fn whoever_waits_is_seated_with_its_opening_a_second_after_the_last_word() {
        let now = Instant::now();
        let mut seat = seated(now);
        let opening = packet(&[0xfd, 0]);
        assert_eq!(
            seat.handle_packet(now + 10 * MS, &opening, at(2)),
            Standing::Waits(at(1))
        );
        assert_eq!(
            seat.handle_packet(now + 20 * MS, &opening, at(2)),
            Standing::Stranger,
            "said once"
        );
        assert_eq!(seat.expires_at(), Some(now + 1000 * MS));
        assert_eq!(seat.handle_timeout(now + 1000 * MS), Some(at(1)));
        assert_eq!(seat.seat_waiting(now + 1000 * MS), Some((at(2), opening)));
        assert_eq!(seat.expires_at(), Some(now + 6000 * MS));
    }

    #[test]
    fn null_packets_keep_a_client_alive_and_make_none() {
        let now = Instant::now();
        let mut seat = seated(now);
        seat.handle_null(now + 3000 * MS, at(1));
        seat.handle_null(now + 4000 * MS, at(2));
        assert_eq!(seat.expires_at(), Some(now + 8000 * MS));
    }
}
