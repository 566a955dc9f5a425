//! The encrypted handshake: Noise IKpsk2 with X25519, ChaCha20-Poly1305 and BLAKE2s. The client proves its key with the
//! first message, the server with the second; no message of the application travels before both have. Strangers who do
//! not know the server's public key get no answer.

use std::time::Instant;

use arrayvec::ArrayVec;
use blake2::digest::Mac;
use blake2::digest::consts::U16;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use crate::keys::{Keys, PublicKey};
use crate::seal::Seal;
use crate::wire::{ConnectionId, RESET_TOKEN_LEN, ResetToken};

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"crazyflie_openlink prrt 1";
const STAMP_LEN: usize = 16;
const FIRST_LEN: usize = 96;
const PAYLOAD_LEN: usize = 4 + RESET_TOKEN_LEN;
const SECOND_LEN: usize = 48 + PAYLOAD_LEN;

/// What a hello carries: a stamp that shows knowledge of the server's public key, and the first message.
pub(crate) const HELLO_LEN: usize = STAMP_LEN + FIRST_LEN;

/// Handshake bytes of a hello.
pub(crate) type Hello = ArrayVec<u8, HELLO_LEN>;
/// Handshake bytes of an accept: the second message.
pub(crate) type Accept = ArrayVec<u8, SECOND_LEN>;

fn builder_for<T>(
    keys: &Keys,
    client: ConnectionId,
    build: impl FnOnce(Builder<'_>) -> Result<T, snow::Error>,
) -> Option<T> {
    let mut prologue = [0; PROLOGUE.len() + 4];
    let (fixed, id) = prologue.split_at_mut(PROLOGUE.len());
    fixed.copy_from_slice(PROLOGUE);
    id.copy_from_slice(&client.0.to_be_bytes());
    let no_shared_key = [0; 32];
    let shared = keys
        .shared
        .as_ref()
        .map_or(&no_shared_key, |key| key.bytes());
    let builder = Builder::new(PATTERN.parse().ok()?);
    let builder = builder
        .prologue(&prologue)
        .ok()?
        .local_private_key(keys.secret.bytes())
        .ok()?;
    build(builder.psk(2, shared).ok()?).ok()
}

/// Shows that the sender knows `server`, so that others can be ignored cheaply.
fn stamp(server: &PublicKey, client: ConnectionId, first: &[u8]) -> Option<[u8; STAMP_LEN]> {
    let mut mac = <blake2::Blake2sMac<U16> as Mac>::new_from_slice(server.bytes()).ok()?;
    mac.update(&client.0.to_be_bytes());
    mac.update(first);
    Some(mac.finalize().into_bytes().into())
}

fn seal(now: Instant, state: &mut HandshakeState) -> Option<Seal> {
    let (first, second) = state.dangerously_get_raw_split();
    let (to_server, to_client) = (Zeroizing::new(first), Zeroizing::new(second));
    if state.is_initiator() {
        Seal::new(now, to_server, &to_client)
    } else {
        Seal::new(now, to_client, &to_server)
    }
}

/// The client's side between hello and accept.
pub(crate) struct Initiator {
    state: Box<HandshakeState>,
    hello: Hello,
}

impl Initiator {
    /// `None` if there is nobody to connect to or no randomness.
    pub(crate) fn new(keys: &Keys, client: ConnectionId) -> Option<Self> {
        let server = keys.peers.first()?;
        let build =
            |builder: Builder<'_>| builder.remote_public_key(server.bytes())?.build_initiator();
        let mut state = Box::new(builder_for(keys, client, build)?);
        let mut first = [0; FIRST_LEN];
        let len = state.write_message(&[], &mut first).ok()?;
        let mut hello = Hello::new();
        hello
            .try_extend_from_slice(&stamp(server, client, first.get(..len)?)?)
            .ok()?;
        hello.try_extend_from_slice(first.get(..len)?).ok()?;
        Some(Self { state, hello })
    }

    /// Handshake bytes of every hello; the same until the connection is up.
    pub(crate) fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Reads the server's answer, which must name the id that was sent in the clear, and brings the token of its resets. A
    /// forged one changes nothing.
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        server: ConnectionId,
        accept: &[u8],
    ) -> Option<(Seal, ResetToken)> {
        let mut payload = [0; SECOND_LEN];
        let len = self.state.read_message(accept, &mut payload).ok()?;
        let (id, token) = payload.get(..len)?.split_first_chunk::<4>()?;
        if *id != server.0.to_be_bytes() {
            return None;
        }
        Some((seal(now, &mut self.state)?, *token.first_chunk()?))
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator(..)")
    }
}

/// Whether a hello comes from someone who knows our public key. Cheap.
pub(crate) fn is_meant_for(server: &PublicKey, client: ConnectionId, hello: &[u8]) -> bool {
    let Some((shown, first)) = hello.split_first_chunk::<STAMP_LEN>() else {
        return false;
    };
    first.len() == FIRST_LEN && stamp(server, client, first).is_some_and(|right| right == *shown)
}

/// Answers a hello, if it comes from one of our peers.
pub(crate) fn respond(
    now: Instant,
    keys: &Keys,
    client: ConnectionId,
    (server, token): (ConnectionId, ResetToken),
    hello: &[u8],
) -> Option<(Seal, Accept)> {
    let (_, first) = hello.split_first_chunk::<STAMP_LEN>()?;
    let mut state = builder_for(keys, client, |builder| builder.build_responder())?;
    state.read_message(first, &mut [0; FIRST_LEN]).ok()?;
    let known = |remote: &[u8]| keys.peers.iter().any(|peer| peer.bytes()[..] == *remote);
    if !state.get_remote_static().is_some_and(known) {
        return None;
    }
    let mut second = [0; SECOND_LEN];
    let mut payload = [0; PAYLOAD_LEN];
    let (id, rest) = payload.split_first_chunk_mut::<4>()?;
    *id = server.0.to_be_bytes();
    rest.copy_from_slice(&token);
    let len = state.write_message(&payload, &mut second).ok()?;
    let mut accept = Accept::new();
    accept.try_extend_from_slice(second.get(..len)?).ok()?;
    Some((seal(now, &mut state)?, accept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SecretKey;
    use crate::seq::PacketNumber;

    fn keys(of: &SecretKey, peer: &SecretKey) -> Keys {
        Keys {
            secret: of.clone(),
            peers: vec![peer.public()],
            shared: None,
        }
    }

    #[test]
    fn both_ends_arrive_at_the_same_keys() {
        let now = Instant::now();
        let (alice, bob) = (
            SecretKey::generate().unwrap(),
            SecretKey::generate().unwrap(),
        );
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let mut initiator = Initiator::new(&keys(&alice, &bob), a).unwrap();
        assert_eq!(initiator.hello().len(), HELLO_LEN);
        assert!(is_meant_for(&bob.public(), a, initiator.hello()));
        let (mut server, accept) =
            respond(now, &keys(&bob, &alice), a, (b, [7; 16]), initiator.hello()).unwrap();
        assert_eq!(accept.len(), SECOND_LEN);
        let mut forged = accept.clone();
        forged[10] ^= 1;
        assert!(initiator.finish(now, b, &forged).is_none());
        let (mut client, token) = initiator.finish(now, b, &accept).unwrap();
        assert_eq!(token, [7; 16]);
        let mut body = *b"hi................";
        let (text, tag) = body.split_at_mut(2);
        let phase = client.sealer.begin(now);
        tag.copy_from_slice(&client.sealer.seal(PacketNumber(0), &[], text).unwrap());
        assert_eq!(
            server
                .opener
                .open(now, phase, PacketNumber(0), &[], &mut body),
            Some(2)
        );
        assert_eq!(&body[..2], b"hi");
    }

    #[test]
    fn strangers_and_those_without_the_shared_key_get_nothing() {
        let now = Instant::now();
        let key = || SecretKey::generate().unwrap();
        let (alice, bob, eve) = (key(), key(), key());
        let (a, b) = (ConnectionId(1), ConnectionId(2));
        let hello = Initiator::new(&keys(&eve, &bob), a).unwrap();
        assert!(respond(now, &keys(&bob, &alice), a, (b, [0; 16]), hello.hello()).is_none());
        assert!(!is_meant_for(&alice.public(), a, hello.hello()));
        let shared = Some(alice.to_hex().parse().unwrap());
        let bob_keys = Keys {
            shared,
            ..keys(&bob, &alice)
        };
        let mut initiator = Initiator::new(&keys(&alice, &bob), a).unwrap();
        let (_, accept) = respond(now, &bob_keys, a, (b, [0; 16]), initiator.hello()).unwrap();
        assert!(initiator.finish(now, b, &accept).is_none());
    }
}
