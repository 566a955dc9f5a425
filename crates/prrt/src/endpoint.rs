//! Many connections behind one socket: finds the connection of a datagram by its id, accepts and makes connections, and
//! ignores strangers. Pure: no socket, no clock. After every call that takes `&mut self`, drain
//! [`Endpoint::poll_transmit`] until it returns `None`, then ask [`Endpoint::poll_timeout`] again.

mod allowance;
mod ending;
mod handshake;
mod peer;
mod resetting;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::config::Config;
use crate::connect::{Connecting, Handshake};
use crate::cookie::Cookies;
use crate::error::{ConfigError, SendError};
use crate::keys::PublicKey;
use crate::message::{Delivery, Departure, Message, MessageId, Mode, Stream};
use crate::noise::Accept;
use crate::payload::Payload;
use crate::reset::Resets;
use crate::session::Session;
use crate::slab::{Key, Slab};
use crate::stats::Stats;
use crate::time::Epoch;
use crate::trace::Trace;
use crate::wire::frame::CloseReason;
use crate::wire::{ConnectionId, DATA_HEAD, Datagram};
use allowance::Allowance;
use handshake::HANDSHAKES;
use peer::{Peer, PeerState};
use resetting::RESETS;

/// Replies to strangers that may wait for the socket; more are dropped.
const MAX_REPLIES: usize = 16;
const REPLY_LEN: usize = 96;

/// Names a peer for as long as the endpoint works on it; of a client, across reconnections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(Key);

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Messages flow from now on.
    Connected {
        /// Who.
        peer: PeerId,
        /// Where it lives.
        addr: SocketAddr,
    },
    /// The connection is lost or closed; what was queued is gone. Unless it is made anew, what has arrived can still be
    /// read until [`Endpoint::recv`] finds nothing more.
    Disconnected {
        /// Who.
        peer: PeerId,
        /// Why.
        reason: CloseReason,
        /// Whether the endpoint tries again by itself; otherwise the id is no longer valid.
        reconnecting: bool,
    },
    /// The peer now lives elsewhere (another network, another port of a translator).
    Moved {
        /// Who.
        peer: PeerId,
        /// Where it lives now.
        addr: SocketAddr,
    },
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// Bytes used of the buffer.
    pub len: usize,
}

/// What a data datagram says outside its body.
#[derive(Clone, Copy)]
struct Mark {
    phase: bool,
    congested: bool,
}

/// Datagrams that belong to no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrayStats {
    /// Not of this protocol, or damaged.
    pub junk: u64,
    /// Of this protocol but for no connection that exists.
    pub unknown: u64,
    /// Asked for a connection and were not given one: not listening, or no room.
    pub turned_away: u64,
    /// Replies to strangers that were dropped because too many waited.
    pub replies_dropped: u64,
    /// Answers to peers that do not know yet that this end was restarted.
    pub resets: u64,
}

/// All connections behind one socket.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    listening: bool,
    rng: StdRng,
    cookies: Cookies,
    peers: Slab<Peer>,
    by_id: HashMap<ConnectionId, Key>,
    events: VecDeque<Event>,
    replies: VecDeque<(SocketAddr, ArrayVec<u8, REPLY_LEN>)>,
    turn: usize,
    stray: StrayStats,
    /// Where sealed bodies are opened.
    scratch: Vec<u8>,
    /// Handshakes answered without a cookie.
    handshake_allowance: Allowance,
    reset_allowance: Allowance,
    resets: Resets,
    /// Our public key, if we have one.
    public: Option<PublicKey>,
}

impl Endpoint {
    /// An endpoint that makes connections and, if `listening`, accepts them. `seed` feeds connection ids and cookies: take
    /// it from the system's entropy except in tests.
    ///
    /// # Errors
    /// The configuration cannot work.
    pub fn new(
        now: Instant,
        config: Config,
        listening: bool,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let public = config.keys.as_ref().map(|keys| keys.secret.public());
        let resets = Resets::new(config.keys.as_ref());
        let mut rng = StdRng::seed_from_u64(seed);
        let cookies = Cookies::new(now, rng.random());
        Ok(Self {
            config,
            listening,
            rng,
            cookies,
            peers: Slab::default(),
            by_id: HashMap::new(),
            events: VecDeque::new(),
            replies: VecDeque::new(),
            turn: 0,
            stray: StrayStats::default(),
            scratch: Vec::with_capacity(usize::from(u16::MAX)),
            handshake_allowance: Allowance::new(HANDSHAKES),
            reset_allowance: Allowance::new(RESETS),
            resets,
            public,
        })
    }

    /// The settings it was made with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Begins to ask `addr` for a connection; goes on until it answers.
    pub fn connect(&mut self, now: Instant, addr: SocketAddr) -> PeerId {
        let (local, connecting) = self.start_connecting(now);
        let state = PeerState::Connecting(Box::new(connecting));
        let key = self.peers.insert(Peer {
            addr,
            home: addr,
            local,
            remote: None,
            state,
            client: true,
            accept: Accept::new(),
            reset: None,
            announced: false,
            ended: false,
        });
        self.by_id.insert(local, key);
        PeerId(key)
    }

    fn start_connecting(&mut self, now: Instant) -> (ConnectionId, Connecting) {
        let local = self.fresh_id();
        let epoch = Epoch::new(now, self.rng.random());
        let handshake = Handshake::new(self.config.keys.as_ref(), local);
        let connecting = Connecting::new(now, local, epoch, handshake, self.config.connect_retry);
        (local, connecting)
    }

    /// Closes a connection with a goodbye, or stops asking for one.
    pub fn close(&mut self, peer: PeerId) {
        let Some(entry) = self.peers.get_mut(peer.0) else {
            return;
        };
        entry.client = false;
        match &mut entry.state {
            PeerState::Up(session) => session.close(CloseReason::Done),
            PeerState::Connecting(_) => self.remove(peer.0),
        }
    }

    fn remove(&mut self, key: Key) {
        if let Some(peer) = self.peers.remove(key) {
            self.by_id.remove(&peer.local);
        }
    }

    /// Queues a message for a peer. `life` bounds both sending and delivery; `None` means that an ordered message is
    /// repeated until it arrives.
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
        let peer = self.peers.get_mut(peer.0).ok_or(SendError::Closed)?;
        let announced = peer.announced;
        let session = peer
            .session_mut()
            .filter(|_| announced)
            .ok_or(SendError::NotConnected)?;
        session.send(now, stream, life, Payload::copy_of(data))
    }

    /// Whether a message has left yet.
    pub fn departure(&self, peer: PeerId, id: MessageId) -> Departure {
        let session = self.session(peer);
        session.map_or(Departure::Dropped, |session| session.departure(id))
    }

    /// The next message from a peer.
    pub fn recv(&mut self, now: Instant, peer: PeerId, mode: Mode) -> Option<Message> {
        self.take(peer, |session| session.recv(now, mode))
    }

    /// The next message from a peer in order, or in its place the gap that missing messages leave once they expire within
    /// `window` from now.
    pub fn recv_with_gaps(
        &mut self,
        now: Instant,
        peer: PeerId,
        window: Duration,
    ) -> Option<Delivery> {
        self.take(peer, |session| session.recv_with_gaps(now, window))
    }

    /// Takes something out of a session, and ends one that is over when nothing is left in it.
    fn take<T>(&mut self, peer: PeerId, take: impl FnOnce(&mut Session) -> Option<T>) -> Option<T> {
        let entry = self.peers.get_mut(peer.0)?;
        let ended = entry.ended;
        let taken = take(entry.session_mut()?);
        if taken.is_none() && ended {
            self.remove(peer.0);
        }
        taken
    }

    /// Begins to collect what happens to single messages, or stops.
    pub fn set_trace(&mut self, on: bool) {
        self.config.trace = on;
        for (_, peer) in self.peers.iter_mut() {
            if let Some(session) = peer.session_mut() {
                session.set_trace(on);
            }
        }
    }

    /// The next thing that happened to a message of any peer, where that is collected.
    pub fn poll_trace(&mut self) -> Option<Trace> {
        let sessions = self
            .peers
            .iter_mut()
            .filter_map(|(_, peer)| peer.session_mut());
        sessions.filter_map(|session| session.poll_trace()).next()
    }

    fn session(&self, peer: PeerId) -> Option<&Session> {
        self.peers.get(peer.0)?.session()
    }

    /// Whether messages flow.
    pub fn is_connected(&self, peer: PeerId) -> bool {
        self.peers.get(peer.0).is_some_and(|peer| peer.announced)
    }

    /// Where a peer lives.
    pub fn addr(&self, peer: PeerId) -> Option<SocketAddr> {
        self.peers.get(peer.0).map(|peer| peer.addr)
    }

    /// Every peer that messages flow to.
    pub fn connected(&self) -> impl Iterator<Item = PeerId> {
        self.peers
            .iter()
            .filter(|(_, peer)| peer.announced)
            .map(|(key, _)| PeerId(key))
    }

    /// Counters and figures of a connection, since it came up.
    pub fn stats(&self, peer: PeerId) -> Option<Stats> {
        self.session(peer).map(Session::stats)
    }

    /// Messages and bytes queued or in flight towards a peer.
    pub fn load(&self, peer: PeerId) -> Option<(usize, usize)> {
        self.session(peer).map(Session::load)
    }

    /// Tells a peer how long what is behind this application takes for each message, a serial port for instance, so that it
    /// sends no faster; `None`: as fast as the application reads, which is measured in any case.
    pub fn set_reader_pace(&mut self, peer: PeerId, pace: Option<Duration>) {
        if let Some(session) = self.peers.get_mut(peer.0).and_then(Peer::session_mut) {
            session.set_behind(pace);
        }
    }

    /// Time per message that a peer's reader, or what is behind it, has asked for; `None` while it is no limit.
    pub fn peer_pace(&self, peer: PeerId) -> Option<Duration> {
        self.session(peer)?.peer_pace()
    }

    /// Datagrams that belonged to no connection.
    pub const fn stray_stats(&self) -> StrayStats {
        self.stray
    }

    /// Takes a datagram that arrived at `now`.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.handle_marked_datagram(now, from, bytes, false);
    }

    /// The same, of a datagram that a queue on the way has marked if it is `congested` (ECN).
    pub fn handle_marked_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
        congested: bool,
    ) {
        match Datagram::parse(bytes) {
            Ok(Datagram::Data {
                phase,
                destination,
                number,
                ..
            }) => {
                let mark = Mark { phase, congested };
                self.on_data(now, from, destination, (mark, number), bytes);
            }
            Ok(hello @ Datagram::Hello { .. }) => self.on_hello(now, from, &hello),
            Ok(accept @ Datagram::Accept { .. }) => self.on_accept(now, from, &accept),
            Ok(Datagram::Cookie {
                destination,
                cookie,
            }) => self.on_cookie(now, from, destination, cookie),
            Ok(Datagram::Reset {
                destination,
                number,
                token,
            }) => self.on_reset(from, destination, number, token),
            Err(_) => self.stray.junk += 1,
        }
        self.settle(now);
    }

    fn on_data(
        &mut self,
        now: Instant,
        from: SocketAddr,
        to: ConnectionId,
        (mark, low): (Mark, u32),
        bytes: &[u8],
    ) {
        let key = self.by_id.get(&to).copied();
        let session = key
            .and_then(|key| self.peers.get_mut(key))
            .and_then(Peer::session_mut);
        let (Some(key), Some(session)) = (key, session) else {
            return self.on_orphan(now, from, to, low, bytes.len());
        };
        let number = session.expand(low);
        if session.is_repeat(number) {
            session.on_repeat();
            return;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        let Some((head, body)) = self.scratch.split_at_mut_checked(DATA_HEAD) else {
            return;
        };
        let Some(len) = session.open(now, mark.phase, number, head, body) else {
            session.on_malformed();
            return;
        };
        let text = body.get(..len).unwrap_or_default();
        if let Some(newest) = session.handle_body(now, number, bytes.len(), text) {
            if mark.congested {
                session.on_mark();
            }
            self.on_proof(key);
            if newest {
                self.follow(now, key, from, bytes.len());
            }
        }
    }

    /// A peer that knows the id we sent to its address receives there.
    fn on_proof(&mut self, key: Key) {
        let Some(peer) = self.peers.get_mut(key).filter(|peer| !peer.announced) else {
            return;
        };
        peer.announced = true;
        let addr = peer.addr;
        self.events.push_back(Event::Connected {
            peer: PeerId(key),
            addr,
        });
        self.replace_older(key, addr);
    }

    /// A client that starts again from the same address has no use for its earlier connection.
    fn replace_older(&mut self, key: Key, addr: SocketAddr) {
        let older = |(other, peer): &(Key, &Peer)| {
            *other != key && peer.addr == addr && !peer.client && peer.announced
        };
        let Some((other, _)) = self.peers.iter().find(older) else {
            return;
        };
        self.remove(other);
        let reason = CloseReason::Replaced;
        self.events.push_back(Event::Disconnected {
            peer: PeerId(other),
            reason,
            reconnecting: false,
        });
    }

    /// The newest datagram tells where the peer lives.
    fn follow(&mut self, now: Instant, key: Key, from: SocketAddr, len: usize) {
        let token = self.rng.random();
        let Some(peer) = self.peers.get_mut(key).filter(|peer| peer.addr != from) else {
            return;
        };
        peer.addr = from;
        if let Some(session) = peer.session_mut() {
            session.on_moved(now, token, len);
        }
        self.events.push_back(Event::Moved {
            peer: PeerId(key),
            addr: from,
        });
    }

    /// Lets everything happen that is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.peers
            .iter_mut()
            .for_each(|(_, peer)| peer.handle_timeout(now));
        self.settle(now);
    }

    /// Writes the next datagram into `buffer`, which should hold `Config::max_datagram` bytes.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.poll_reply(buffer) {
            return Some(transmit);
        }
        let transmit = self.poll_peers(now, buffer);
        self.settle(now);
        transmit
    }

    fn poll_reply(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        let (to, bytes) = self.replies.pop_front()?;
        buffer.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        Some(Transmit {
            to,
            len: bytes.len(),
        })
    }

    /// Peers take turns, so that one with much to send does not keep the others waiting.
    fn poll_peers(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        let turn = self.turn;
        let mut write = |(at, peer): (usize, &mut Peer)| {
            let len = peer.poll_transmit(now, buffer)?;
            Some((at, Transmit { to: peer.addr, len }))
        };
        let mut found = self
            .peers
            .iter_mut()
            .map(|(_, peer)| peer)
            .enumerate()
            .skip(turn)
            .find_map(&mut write);
        if found.is_none() {
            found = self
                .peers
                .iter_mut()
                .map(|(_, peer)| peer)
                .enumerate()
                .take(turn)
                .find_map(write);
        }
        self.turn = found.map_or(0, |(at, _)| at + 1);
        found.map(|(_, transmit)| transmit)
    }

    /// A peer towards which a Wi-Fi radio seems to sleep between beacons, at most once a minute each.
    pub fn poll_suspicion(&mut self) -> Option<PeerId> {
        self.peers.iter_mut().find_map(|(key, peer)| {
            let suspected = peer.session_mut()?.take_suspicion();
            suspected.then_some(PeerId(key))
        })
    }

    /// A peer that has not answered for `span`, although it is being asked.
    pub fn unanswered(&self, now: Instant, span: Duration) -> Option<SocketAddr> {
        let quiet = |peer: &&Peer| peer.unanswered(now).is_some_and(|waited| waited >= span);
        self.peers
            .iter()
            .map(|(_, peer)| peer)
            .find(quiet)
            .map(|peer| peer.addr)
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Endpoint::handle_timeout`] (and then [`Endpoint::poll_transmit`]) is due, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.peers
            .iter()
            .filter_map(|(_, peer)| peer.poll_timeout())
            .min_by_key(|&(at, _)| at)
    }
}
