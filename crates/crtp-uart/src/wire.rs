//! What the drivers ask of a framing: bytes in and out for the pump, and everything else for a link to a drone.
//! Owns the contracts only.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crtp::{Admitted, Packet};

use crate::outbox::SendError;
use crate::session::{Arrived, Event, Host, Leaving, Phase, Role, Session, Stats};

/// A framing as the pump sees it.
pub trait Wire {
    /// Bytes came, in order, in pieces of any size.
    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]);

    /// The next bytes to write. They count as written; the driver writes all of them in order before it asks again.
    fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]>;

    /// Whether more bytes may be read now; `false` where the peer can be made to wait.
    fn has_room(&self) -> bool {
        true
    }
}

/// The host's end of a serial link in any framing. After every call of a `&mut` method drain
/// [`HostSession::recv`], [`HostSession::poll_event`] and [`Wire::poll_transmit`].
pub trait HostSession: Wire + Debug + Send {
    /// Begins again from the sync, as after the port was opened anew.
    fn restart(&mut self, now: Instant);

    /// Hands over a packet, see [`Session::send`].
    ///
    /// # Errors
    /// [`SendError`]; the packet is dropped.
    fn send(
        &mut self,
        now: Instant,
        packet: Admitted,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError>;

    /// The next packet that came in.
    fn recv(&mut self) -> Option<Packet>;

    /// Like [`HostSession::recv`] at `now`, with the times of the packet's bytes where the framing keeps them.
    fn recv_stamped(&mut self, now: Instant) -> Option<Arrived> {
        let (began, whole) = (now, now);
        self.recv().map(|packet| Arrived {
            packet,
            began,
            whole,
        })
    }

    /// The packet that the last [`Wire::poll_transmit`] handed out, once, with the times of the stages before.
    fn take_leaving(&mut self) -> Option<Leaving<Admitted>>;

    /// Says goodbye where the framing has a way to. Over when [`HostSession::phase`] says [`Phase::Closed`].
    fn close(&mut self, now: Instant);

    /// Ends at once.
    fn abort(&mut self);

    /// The next event for logs and policies.
    fn poll_event(&mut self) -> Option<Event>;

    /// When [`HostSession::handle_timeout`] is due next, and why.
    fn poll_timeout(&self) -> Option<(Instant, &'static str)>;

    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// How far it is.
    fn phase(&self) -> Phase;

    /// Packets that were accepted and not handed out for writing.
    fn backlog(&self) -> usize;

    /// Time the peer takes for a packet lately, where the framing tells; see [`Session::service_time`].
    fn service_time(&self) -> Option<Duration> {
        None
    }

    /// Counters; those a framing has no use for stay 0.
    fn stats(&self) -> Stats;
}

impl<R: Role> Wire for Session<R> {
    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        Self::handle_bytes(self, now, bytes);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<&[u8]> {
        Self::poll_transmit(self, now)
    }
}

impl HostSession for Session<Host> {
    fn restart(&mut self, now: Instant) {
        Self::restart(self, now);
    }

    fn send(
        &mut self,
        now: Instant,
        packet: Admitted,
        key: Option<u8>,
        expires: Option<Instant>,
    ) -> Result<(), SendError> {
        Self::send(self, now, packet, key, expires)
    }

    fn recv(&mut self) -> Option<Packet> {
        Self::recv(self)
    }

    fn recv_stamped(&mut self, _now: Instant) -> Option<Arrived> {
        Self::recv_stamped(self)
    }

    fn take_leaving(&mut self) -> Option<Leaving<Admitted>> {
        Self::take_leaving(self)
    }

    fn close(&mut self, now: Instant) {
        Self::close(self, now);
    }

    fn abort(&mut self) {
        Self::abort(self);
    }

    fn poll_event(&mut self) -> Option<Event> {
        Self::poll_event(self)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        Self::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn phase(&self) -> Phase {
        Self::phase(self)
    }

    fn backlog(&self) -> usize {
        Self::backlog(self)
    }

    fn service_time(&self) -> Option<Duration> {
        Self::service_time(self)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }
}
