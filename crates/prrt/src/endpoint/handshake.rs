//! How connections come about: the server's half of the handshake and the end of the client's. Strangers cost no lasting
//! memory, and get nothing larger than what they sent, if anything.

use std::net::SocketAddr;
use std::time::Instant;

use rand::Rng as _;

use super::peer::{Peer, PeerState};
use super::{Endpoint, Event, MAX_REPLIES, PeerId, REPLY_LEN};
use crate::noise::{self, Accept};
use crate::seal::Seal;
use crate::session::{Role, Session, Setup};
use crate::time::{Epoch, Stamp};
use crate::wire::{ConnectionId, Cookie, Datagram, Protection, Writer};

/// Connections that have not proven their address before cookies are asked for.
const MAX_UNPROVEN: usize = 8;
/// Handshakes a second that are answered without a cookie.
pub(super) const HANDSHAKES: f64 = 50.0;

impl Endpoint {
    pub(super) fn on_hello(&mut self, now: Instant, from: SocketAddr, hello: &Datagram<'_>) {
        let Datagram::Hello {
            protection,
            source,
            time,
            ref cookie,
            handshake,
        } = *hello
        else {
            return;
        };
        if !self.is_welcome(protection, source, handshake) {
            self.stray.turned_away += 1;
            return;
        }
        if let Some((local, accept)) = self.known(from, source) {
            self.accept(from, source, local, time, &accept);
            return;
        }
        if self.is_besieged(now) && !self.cookies.check(now, from, cookie) {
            let cookie = self.cookies.make(now, from);
            self.reply(
                from,
                &Datagram::Cookie {
                    destination: source,
                    cookie,
                },
            );
            return;
        }
        match self.admit(now, from, source, handshake) {
            Some((local, accept)) => self.accept(from, source, local, time, &accept),
            None => self.stray.turned_away += 1,
        }
    }

    /// Whether a hello deserves any attention: cheap to tell. There is no way from encrypted to plain.
    fn is_welcome(&self, protection: Protection, client: ConnectionId, handshake: &[u8]) -> bool {
        let room = self.peers.len() < self.config.max_peers;
        let fits = match (&self.public, protection) {
            (None, Protection::Plain) => handshake.is_empty(),
            (Some(public), Protection::Noise) => noise::is_meant_for(public, client, handshake),
            (None, Protection::Noise) | (Some(_), Protection::Plain) => false,
        };
        self.listening && room && fits
    }

    /// The id and the handshake bytes we gave to a client that asks again.
    fn known(&self, from: SocketAddr, source: ConnectionId) -> Option<(ConnectionId, Accept)> {
        let same = |peer: &&Peer| !peer.client && peer.addr == from && peer.remote == Some(source);
        let peer = self.peers.iter().map(|(_, peer)| peer).find(same)?;
        Some((peer.local, peer.accept.clone()))
    }

    fn is_besieged(&mut self, now: Instant) -> bool {
        let unproven = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.client && !peer.announced)
            .count();
        !self.handshake_allowance.take(now) || unproven >= MAX_UNPROVEN
    }

    fn admit(
        &mut self,
        now: Instant,
        addr: SocketAddr,
        remote: ConnectionId,
        handshake: &[u8],
    ) -> Option<(ConnectionId, Accept)> {
        let local = self.fresh_id();
        let (seal, accept) = self.respond(now, addr, (remote, local), handshake)?;
        let epoch = Epoch::new(now, self.rng.random());
        let setup = Setup {
            role: Role::Server,
            local,
            remote,
            epoch,
            rtt: None,
            seal,
        };
        let peer = Peer {
            addr,
            home: addr,
            local,
            remote: Some(remote),
            state: PeerState::Up(Box::new(Session::new(now, &self.config, setup))),
            accept: accept.clone(),
            reset: None,
            client: false,
            announced: false,
            ended: false,
        };
        let key = self.peers.insert(peer);
        self.by_id.insert(local, key);
        Some((local, accept))
    }

    /// Protection of a new connection and what to answer; `None` if the client is none of our peers.
    fn respond(
        &self,
        now: Instant,
        addr: SocketAddr,
        (client, server): (ConnectionId, ConnectionId),
        handshake: &[u8],
    ) -> Option<(Option<Seal>, Accept)> {
        let Some(keys) = &self.config.keys else {
            return Some((None, Accept::new()));
        };
        let token = self.resets.token(server, addr)?;
        let (seal, accept) = noise::respond(now, keys, client, (server, token), handshake)?;
        Some((Some(seal), accept))
    }

    fn accept(
        &mut self,
        to: SocketAddr,
        client: ConnectionId,
        local: ConnectionId,
        echo: Stamp,
        handshake: &[u8],
    ) {
        self.reply(
            to,
            &Datagram::Accept {
                destination: client,
                source: local,
                echo,
                handshake,
            },
        );
    }

    pub(super) fn reply(&mut self, to: SocketAddr, datagram: &Datagram<'_>) {
        if self.replies.len() >= MAX_REPLIES {
            self.stray.replies_dropped += 1;
            return;
        }
        let mut bytes = [0; REPLY_LEN];
        let mut writer = Writer::new(&mut bytes);
        if datagram.emit(&mut writer).is_some() {
            let len = writer.len();
            self.replies
                .push_back((to, bytes.into_iter().take(len).collect()));
        }
    }

    pub(super) fn on_accept(&mut self, now: Instant, from: SocketAddr, accept: &Datagram<'_>) {
        let Datagram::Accept {
            destination,
            source,
            echo,
            handshake,
        } = *accept
        else {
            return;
        };
        let key = self.by_id.get(&destination).copied();
        let peer = key
            .and_then(|key| self.peers.get_mut(key))
            .filter(|peer| peer.client && peer.addr == from);
        let (Some(key), Some(peer)) = (key, peer) else {
            self.stray.unknown += 1;
            return;
        };
        let PeerState::Connecting(connecting) = &mut peer.state else {
            return;
        };
        let Some(agreed) = connecting.finish(now, source, handshake) else {
            self.stray.junk += 1;
            return;
        };
        let (rtt, epoch) = (connecting.rtt(now, echo), connecting.epoch());
        let setup = Setup {
            role: Role::Client,
            local: destination,
            remote: source,
            epoch,
            rtt,
            seal: agreed.seal,
        };
        peer.reset = agreed.reset;
        peer.state = PeerState::Up(Box::new(Session::new(now, &self.config, setup)));
        peer.remote = Some(source);
        peer.announced = true;
        self.events.push_back(Event::Connected {
            peer: PeerId(key),
            addr: from,
        });
    }

    pub(super) fn on_cookie(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: ConnectionId,
        cookie: Cookie,
    ) {
        let peer = self
            .by_id
            .get(&to)
            .copied()
            .and_then(|key| self.peers.get_mut(key));
        let Some(peer) = peer.filter(|peer| peer.addr == from) else {
            self.stray.unknown += 1;
            return;
        };
        if let PeerState::Connecting(connecting) = &mut peer.state {
            connecting.on_cookie(now, cookie);
        }
    }
}
