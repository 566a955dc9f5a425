//! Protects the bodies of data datagrams: ChaCha20-Poly1305 with the datagram number as nonce and the head as associated
//! data. Each direction moves to a fresh key every two minutes by itself, marks that with a bit in the head, and keeps the
//! old key a little longer for what was overtaken, so that nothing is late because of it. Never uses a number twice:
//! that the numbers only grow is the session's promise.

use std::time::{Duration, Instant};

use blake2::digest::Mac;
use chacha20poly1305::aead::AeadInPlace as _;
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce, Tag};
use zeroize::Zeroizing;

use crate::keys::KEY_LEN;
use crate::seq::PacketNumber;

/// Bytes that protection adds to a datagram.
pub(crate) const TAG_LEN: usize = 16;
/// A key is used this long.
const LIFETIME: Duration = Duration::from_secs(120);
/// A key is used for at most this many datagrams.
const MAX_USES: u64 = 1 << 32;
/// An old key is kept this long.
const OVERLAP: Duration = Duration::from_secs(5);

type Secret = Zeroizing<[u8; KEY_LEN]>;

fn cipher(key: &Secret) -> ChaCha20Poly1305 {
    chacha20poly1305::KeyInit::new(Key::from_slice(&key[..]))
}

/// The key after `key`. It cannot be computed backwards.
fn successor(key: &Secret) -> Option<Secret> {
    let mut mac = <blake2::Blake2sMac256 as Mac>::new_from_slice(&key[..]).ok()?;
    mac.update(b"prrt next key");
    Some(Zeroizing::new(mac.finalize().into_bytes().into()))
}

fn nonce(number: PacketNumber) -> Nonce {
    let mut bytes = [0; 12];
    let (_, low) = bytes.split_at_mut(4);
    low.copy_from_slice(&number.0.to_le_bytes());
    bytes.into()
}

/// Seals what we send.
pub(crate) struct Sealer {
    key: Secret,
    cipher: ChaCha20Poly1305,
    phase: bool,
    since: Instant,
    uses: u64,
}

impl Sealer {
    fn new(now: Instant, key: Secret) -> Self {
        Self {
            cipher: cipher(&key),
            key,
            phase: false,
            since: now,
            uses: 0,
        }
    }

    /// Which key the next datagram is sealed with, as the bit that goes into its head.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let old = now.saturating_duration_since(self.since) >= LIFETIME || self.uses >= MAX_USES;
        if old && let Some(key) = successor(&self.key) {
            *self = Self {
                phase: !self.phase,
                ..Self::new(now, key)
            };
        }
        self.phase
    }

    /// Seals `body` in place; returns the tag to put behind it.
    pub(crate) fn seal(
        &mut self,
        number: PacketNumber,
        head: &[u8],
        body: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        self.uses += 1;
        self.cipher
            .encrypt_in_place_detached(&nonce(number), head, body)
            .ok()
            .map(Into::into)
    }
}

/// Opens what the peer sends.
pub(crate) struct Opener {
    next_key: Secret,
    next: ChaCha20Poly1305,
    current: ChaCha20Poly1305,
    /// The key before, and until when it is kept.
    previous: Option<(ChaCha20Poly1305, Instant)>,
    phase: bool,
    /// First number known to be sealed with the current key.
    since: PacketNumber,
}

impl Opener {
    fn new(key: &Secret) -> Option<Self> {
        let next_key = successor(key)?;
        Some(Self {
            next: cipher(&next_key),
            next_key,
            current: cipher(key),
            previous: None,
            phase: false,
            since: PacketNumber(0),
        })
    }

    /// Opens a body with its tag in place; returns the length of the plain text, or nothing if it is not genuine.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        phase: bool,
        number: PacketNumber,
        head: &[u8],
        body: &mut [u8],
    ) -> Option<usize> {
        let len = body.len().checked_sub(TAG_LEN)?;
        let (text, tag) = body.split_at_mut_checked(len)?;
        let fresh = phase != self.phase && number >= self.since;
        let cipher = match (phase == self.phase, fresh) {
            (true, _) => &self.current,
            (false, true) => &self.next,
            (false, false) => &self.previous.as_ref().filter(|(_, until)| now < *until)?.0,
        };
        cipher
            .decrypt_in_place_detached(&nonce(number), head, text, Tag::from_slice(tag))
            .ok()?;
        if fresh {
            self.advance(now, number);
        }
        Some(len)
    }

    /// The peer has moved to the next key.
    fn advance(&mut self, now: Instant, number: PacketNumber) {
        let Some(key) = successor(&self.next_key) else {
            return;
        };
        let next = std::mem::replace(&mut self.next, cipher(&key));
        let current = std::mem::replace(&mut self.current, next);
        self.previous = Some((current, now + OVERLAP));
        self.next_key = key;
        self.phase = !self.phase;
        self.since = number;
    }
}

/// Both directions of a connection.
pub(crate) struct Seal {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

impl Seal {
    pub(crate) fn new(now: Instant, send: Secret, receive: &Secret) -> Option<Self> {
        Some(Self {
            sealer: Sealer::new(now, send),
            opener: Opener::new(receive)?,
        })
    }
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [u8; 9] = [7; 9];

    fn ends(now: Instant) -> (Sealer, Opener) {
        let key = Zeroizing::new([42; KEY_LEN]);
        (Sealer::new(now, key.clone()), Opener::new(&key).unwrap())
    }

    fn sealed(sealer: &mut Sealer, now: Instant, number: u64) -> (bool, Vec<u8>) {
        let phase = sealer.begin(now);
        let mut body = b"hello".to_vec();
        let tag = sealer.seal(PacketNumber(number), &HEAD, &mut body).unwrap();
        body.extend(tag);
        (phase, body)
    }

    fn open(
        opener: &mut Opener,
        now: Instant,
        number: u64,
        (phase, body): &(bool, Vec<u8>),
    ) -> bool {
        let mut body = body.clone();
        let len = opener.open(now, *phase, PacketNumber(number), &HEAD, &mut body);
        len.is_some_and(|len| &body[..len] == b"hello")
    }

    #[test]
    fn any_flipped_bit_and_any_other_number_is_refused() {
        let now = Instant::now();
        let (mut sealer, mut opener) = ends(now);
        let (phase, body) = sealed(&mut sealer, now, 5);
        for bit in 0..body.len() * 8 {
            let mut damaged = body.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!open(&mut opener, now, 5, &(phase, damaged)), "bit {bit}");
        }
        for cut in 0..body.len() {
            assert!(!open(&mut opener, now, 5, &(phase, body[..cut].to_vec())));
        }
        assert!(!open(&mut opener, now, 6, &(phase, body.clone())));
        assert!(!open(&mut opener, now, 5, &(!phase, body.clone())));
        assert!(open(&mut opener, now, 5, &(phase, body)));
    }

    #[test]
    fn keys_change_without_a_late_datagram() {
        let start = Instant::now();
        let (mut sealer, mut opener) = ends(start);
        let mut now = start;
        for epoch in 0..5u64 {
            let overtaken = sealed(&mut sealer, now, epoch * 10);
            now += LIFETIME;
            let first = sealed(&mut sealer, now, epoch * 10 + 1);
            assert_ne!(overtaken.0, first.0);
            assert!(open(&mut opener, now, epoch * 10 + 1, &first));
            assert!(open(&mut opener, now, epoch * 10, &overtaken));
            assert!(!open(&mut opener, now + OVERLAP, epoch * 10, &overtaken));
        }
    }
}
