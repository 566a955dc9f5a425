//! One peer of an endpoint: a handshake under way or an established session, and where it lives.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::connect::Connecting;
use crate::noise::Accept;
use crate::session::Session;
use crate::wire::{ConnectionId, ResetToken};

/// How far a connection is.
#[derive(Debug)]
pub(super) enum PeerState {
    Connecting(Box<Connecting>),
    Up(Box<Session>),
}

/// A peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) addr: SocketAddr,
    /// Where it was first; a client looks for it there again.
    pub(super) home: SocketAddr,
    pub(super) local: ConnectionId,
    /// How the peer wants to be addressed; known once it has spoken.
    pub(super) remote: Option<ConnectionId>,
    pub(super) state: PeerState,
    /// What a server answers when the client asks again.
    pub(super) accept: Accept,
    /// What the server would say if it had lost its memory of the connection; plain text has none.
    pub(super) reset: Option<ResetToken>,
    /// We asked for the connection.
    pub(super) client: bool,
    /// The application knows that it is up. A server's peer is silent until it has proven its address.
    pub(super) announced: bool,
    /// Over; kept only for what has not been read.
    pub(super) ended: bool,
}

impl Peer {
    pub(super) fn session(&self) -> Option<&Session> {
        match &self.state {
            PeerState::Up(session) => Some(session),
            PeerState::Connecting(_) => None,
        }
    }

    pub(super) fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            PeerState::Up(session) => Some(session),
            PeerState::Connecting(_) => None,
        }
    }

    /// For how long a connection has been asked for.
    pub(super) fn unanswered(&self, now: Instant) -> Option<Duration> {
        match &self.state {
            PeerState::Connecting(connecting) => {
                Some(now.saturating_duration_since(connecting.begun()))
            }
            PeerState::Up(_) => None,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let PeerState::Up(session) = &mut self.state {
            session.handle_timeout(now);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        match &mut self.state {
            PeerState::Connecting(connecting) => connecting.poll_transmit(now, buffer),
            PeerState::Up(session) if self.announced => session.poll_transmit(now, buffer),
            PeerState::Up(_) => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        match &self.state {
            PeerState::Connecting(connecting) => Some((connecting.next(), "connection attempt")),
            PeerState::Up(session) if self.announced => session.poll_timeout(),
            PeerState::Up(_) if self.ended => None,
            PeerState::Up(session) => Some((session.idle_at(), "end of waiting for a new peer")),
        }
    }
}
