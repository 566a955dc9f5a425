//! How connections end: what has arrived stays readable, a client starts again, everything else is forgotten.

use std::time::Instant;

use super::peer::{Peer, PeerState};
use super::{Endpoint, Event, PeerId};
use crate::session::Session;
use crate::slab::Key;
use crate::wire::frame::CloseReason;

/// Ended connections kept for a reader that has not come yet.
const MAX_ENDED: usize = 4;

impl Endpoint {
    /// Removes or restarts connections that have ended.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((key, reason)) = self.ended() {
            self.finish(now, key, reason);
        }
    }

    fn ended(&self) -> Option<(Key, CloseReason)> {
        let mut open = self.peers.iter().filter(|(_, peer)| !peer.ended);
        open.find_map(|(key, peer)| Some((key, peer.session()?.closed()?)))
    }

    fn finish(&mut self, now: Instant, key: Key, reason: CloseReason) {
        let Some(peer) = self.peers.get(key) else {
            return;
        };
        let (announced, reconnecting) = (peer.announced, peer.client && self.config.reconnect);
        if reconnecting {
            self.restart(now, key);
        } else {
            self.retire(key);
        }
        if announced {
            self.events.push_back(Event::Disconnected {
                peer: PeerId(key),
                reason,
                reconnecting,
            });
        }
    }

    /// Keeps what has arrived for the reader and forgets the rest.
    fn retire(&mut self, key: Key) {
        let unread = self
            .peers
            .get(key)
            .and_then(Peer::session)
            .is_some_and(Session::has_unread);
        let Some(peer) = self.peers.get_mut(key).filter(|_| unread) else {
            return self.remove(key);
        };
        self.by_id.remove(&peer.local);
        peer.announced = false;
        peer.ended = true;
        if self.peers.iter().filter(|(_, peer)| peer.ended).count() > MAX_ENDED {
            self.remove_oldest_ended(key);
        }
    }

    fn remove_oldest_ended(&mut self, except: Key) {
        let ended = self
            .peers
            .iter()
            .find(|(key, peer)| peer.ended && *key != except);
        if let Some((key, _)) = ended {
            self.remove(key);
        }
    }

    fn restart(&mut self, now: Instant, key: Key) {
        let (local, connecting) = self.start_connecting(now);
        let Some(peer) = self.peers.get_mut(key) else {
            return;
        };
        self.by_id.remove(&peer.local);
        self.by_id.insert(local, key);
        peer.addr = peer.home;
        peer.local = local;
        peer.remote = None;
        peer.reset = None;
        peer.announced = false;
        peer.state = PeerState::Connecting(Box::new(connecting));
    }
}
