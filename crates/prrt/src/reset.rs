//! What an endpoint that has lost its memory can still prove: that an id was given out by it, and that it is the one that
//! gave it out. Both follow from its secret key, so that a restarted server tells its clients at once instead of
//! letting them wait for the idle time-out. Keeps no state of connections.

use std::net::SocketAddr;

use blake2::Blake2sMac256;
use blake2::digest::Mac;
use zeroize::Zeroizing;

use crate::keys::{KEY_LEN, Keys};
use crate::wire::{ConnectionId, RESET_TOKEN_LEN, ResetToken};

/// Secrets of one endpoint that outlive it, if it has keys.
pub(crate) struct Resets {
    key: Option<Zeroizing<[u8; KEY_LEN]>>,
}

impl Resets {
    pub(crate) fn new(keys: Option<&Keys>) -> Self {
        let key = keys.and_then(|keys| {
            let text = mac(keys.secret.bytes(), &[b"prrt reset"])?;
            Some(Zeroizing::new(text))
        });
        Self { key }
    }

    /// Makes an id out of randomness: with keys its low half shows whose it is. Without, all of it is random, because
    /// nothing else keeps others from guessing it.
    pub(crate) fn id(&self, random: u32) -> ConnectionId {
        let Some(key) = &self.key else {
            return ConnectionId(random);
        };
        ConnectionId(random & 0xffff_0000 | u32::from(mark(key, random)))
    }

    /// Whether this endpoint, or an earlier one with its key, gave out `id`. True of one stranger's guess in 65 536;
    /// without keys of all.
    pub(crate) fn is_ours(&self, id: ConnectionId) -> bool {
        self.id(id.0) == id
    }

    /// What proves to the client at `client` that the one who gave it `id` speaks. Without keys there is nothing to prove
    /// it with.
    pub(crate) fn token(&self, id: ConnectionId, client: SocketAddr) -> Option<ResetToken> {
        let address = match client.ip().to_canonical() {
            std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            std::net::IpAddr::V6(ip) => ip,
        };
        let parts: [&[u8]; 4] = [
            b"token",
            &id.0.to_be_bytes(),
            &address.octets(),
            &client.port().to_be_bytes(),
        ];
        let text = mac(self.key.as_ref()?, &parts)?;
        text.first_chunk::<RESET_TOKEN_LEN>().copied()
    }
}

impl std::fmt::Debug for Resets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resets(..)")
    }
}

/// Compares in a time that does not depend on where they differ.
pub(crate) fn same(a: &ResetToken, b: &ResetToken) -> bool {
    a.iter().zip(b).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
}

fn mark(key: &[u8; KEY_LEN], random: u32) -> u16 {
    let text = mac(key, &[b"id", &(random >> 16).to_be_bytes()]);
    text.map_or(0, |text| u16::from_be_bytes([text[0], text[1]]))
}

fn mac(key: &[u8; KEY_LEN], parts: &[&[u8]]) -> Option<[u8; KEY_LEN]> {
    let mut mac = <Blake2sMac256 as Mac>::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SecretKey;

    fn keys() -> Keys {
        let secret = SecretKey::generate().unwrap();
        Keys {
            peers: vec![secret.public()],
            secret,
            shared: None,
        }
    }

    #[test]
    fn an_endpoint_made_again_from_its_key_knows_its_ids_and_tokens() {
        let keys = keys();
        let (before, after) = (Resets::new(Some(&keys)), Resets::new(Some(&keys)));
        let client = SocketAddr::from(([10, 0, 0, 1], 4000));
        for n in 0..1000u32 {
            let id = before.id(n.wrapping_mul(0x9e37_79b9));
            assert!(after.is_ours(id));
            assert_eq!(before.token(id, client), after.token(id, client));
        }
    }

    #[test]
    fn others_guess_an_id_once_in_many_thousand_tries_and_no_token() {
        let (ours, other) = (Resets::new(Some(&keys())), Resets::new(Some(&keys())));
        let guessed = (0..100_000u32)
            .filter(|n| ours.is_ours(ConnectionId(n.wrapping_mul(0x9e37_79b9))))
            .count();
        assert!(guessed < 12, "{guessed}");
        let id = ours.id(7);
        let client = SocketAddr::from(([10, 0, 0, 1], 4000));
        let token = ours.token(id, client).unwrap();
        assert!(!same(&token, &other.token(id, client).unwrap()));
        let neighbour = SocketAddr::from(([10, 0, 0, 1], 4001));
        assert!(!same(&token, &ours.token(id, neighbour).unwrap()));
        assert!(same(&token, &ours.token(id, client).unwrap()));
    }
}
