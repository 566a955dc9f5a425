//! How the two ends find out at once that one of them was restarted: it answers data of connections it has no memory of
//! with a reset, smaller than what it answers, so many a second at most, and only if the id is one of its own; the client
//! believes a reset only if it proves where it comes from.

use std::net::SocketAddr;
use std::time::Instant;

use rand::Rng as _;

use super::Endpoint;
use super::peer::Peer;
use crate::reset::same;
use crate::slab::Key;
use crate::wire::frame::CloseReason;
use crate::wire::{ConnectionId, DATA_HEAD, Datagram, ResetToken};

/// Resets a second.
pub(super) const RESETS: f64 = 50.0;
/// Tries for an id that shows whose it is; on an endpoint with tens of thousands of peers they may all be taken.
const TRIES: usize = 64;

impl Endpoint {
    /// An id that no connection has.
    pub(super) fn fresh_id(&mut self) -> ConnectionId {
        for _ in 0..TRIES {
            let id = self.resets.id(self.rng.random());
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
        loop {
            let id = ConnectionId(self.rng.random());
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Data came for a connection that does not exist (any more).
    pub(super) fn on_orphan(
        &mut self,
        now: Instant,
        from: SocketAddr,
        destination: ConnectionId,
        number: u32,
        len: usize,
    ) {
        self.stray.unknown += 1;
        if !self.listening || !self.resets.is_ours(destination) {
            return;
        }
        let token = self.resets.token(destination, from);
        let size = DATA_HEAD + token.map_or(0, |token| token.len());
        if size >= len || !self.reset_allowance.take(now) {
            return;
        }
        self.stray.resets += 1;
        let reset = Datagram::Reset {
            destination,
            number,
            token,
        };
        self.reply(from, &reset);
    }

    /// The other end says that it does not know our connection.
    pub(super) fn on_reset(
        &mut self,
        from: SocketAddr,
        remote: ConnectionId,
        number: u32,
        token: Option<ResetToken>,
    ) {
        let genuine = |peer: &Peer| peer.is_reset_by(from, remote, number, token);
        let found = self.peers.iter().find(|(_, peer)| genuine(peer));
        let Some(key) = found.map(|(key, _)| key) else {
            self.stray.unknown += 1;
            return;
        };
        self.end(key, CloseReason::Restarted);
    }

    fn end(&mut self, key: Key, reason: CloseReason) {
        if let Some(session) = self.peers.get_mut(key).and_then(Peer::session_mut) {
            session.end(reason);
        }
    }
}

impl Peer {
    /// Whether a reset comes from where the peer lives, names its connection and a datagram under way, and carries the
    /// token that only the peer knows (none in plain text).
    fn is_reset_by(
        &self,
        from: SocketAddr,
        remote: ConnectionId,
        number: u32,
        token: Option<ResetToken>,
    ) -> bool {
        let genuine = match (&self.reset, &token) {
            (Some(ours), Some(theirs)) => same(ours, theirs),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        let open = |session: &crate::session::Session| session.awaits(number);
        self.client
            && self.addr == from
            && self.remote == Some(remote)
            && genuine
            && self.session().is_some_and(open)
    }
}
