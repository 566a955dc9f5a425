//! Long-term keys of this end and of those it speaks to. Reads no files: where keys are kept is the program's business.

use std::fmt;
use std::str::FromStr;

use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use thiserror::Error;
use zeroize::Zeroizing;

/// Bytes of every key.
pub const KEY_LEN: usize = 32;

/// A key could not be read or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A key is 64 hexadecimal digits.
    #[error("a key is {expected} hexadecimal digits, this has {0} characters", expected = KEY_LEN * 2)]
    Length(usize),
    /// Something else than a hexadecimal digit.
    #[error("a key is made of hexadecimal digits, character {0} is none")]
    Digit(usize),
    /// The system gave no randomness.
    #[error("no randomness to make a key from")]
    Entropy,
}

/// Public half of a key pair (X25519). Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

/// Secret half of a key pair (X25519). Erased from memory when dropped, and never printed by `Debug`.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; KEY_LEN]>);

/// A key shared by both ends in addition to their pairs, against those who might break the pairs one day.
#[derive(Clone)]
pub struct SharedKey(Zeroizing<[u8; KEY_LEN]>);

/// Whom to be and whom to trust.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Our own key.
    pub secret: SecretKey,
    /// Who may connect to a listener. A client connects to the first of them.
    pub peers: Vec<PublicKey>,
    /// Additional key that both ends must have.
    pub shared: Option<SharedKey>,
}

impl SecretKey {
    /// A new key from the system's randomness.
    ///
    /// # Errors
    /// The system gave none.
    pub fn generate() -> Result<Self, KeyError> {
        let mut random = DefaultResolver.resolve_rng().ok_or(KeyError::Entropy)?;
        let mut dh = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .ok_or(KeyError::Entropy)?;
        dh.generate(random.as_mut())
            .map_err(|_| KeyError::Entropy)?;
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        bytes.copy_from_slice(dh.privkey().get(..KEY_LEN).ok_or(KeyError::Entropy)?);
        Ok(Self(bytes))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let mut public = [0; KEY_LEN];
        if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
            dh.set(&self.0[..]);
            if let Some(key) = dh.pubkey().first_chunk() {
                public = *key;
            }
        }
        PublicKey(public)
    }

    /// The 64 digits to keep in a file that nobody else can read.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(&self.0[..]))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl SharedKey {
    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PublicKey {
    pub(crate) const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(text: &str) -> Result<[u8; KEY_LEN], KeyError> {
    let text = text.trim();
    if text.chars().count() != KEY_LEN * 2 {
        return Err(KeyError::Length(text.chars().count()));
    }
    let mut bytes = [0; KEY_LEN];
    for (at, digit) in text.chars().enumerate() {
        let value = digit.to_digit(16).ok_or(KeyError::Digit(at + 1))?;
        if let Some(byte) = bytes.get_mut(at / 2) {
            *byte = *byte << 4 | value as u8;
        }
    }
    Ok(bytes)
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(Self)
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(|bytes| Self(Zeroizing::new(bytes)))
    }
}

impl FromStr for SharedKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(|bytes| Self(Zeroizing::new(bytes)))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public half comes from an independent X25519 implementation.
    #[test]
    fn public_half_follows_from_the_secret_one() {
        let secret: SecretKey = SECRET.parse().unwrap();
        assert_eq!(secret.public().to_string(), PUBLIC);
    }

    const SECRET: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    const PUBLIC: &str = "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c";

    #[test]
    fn keys_come_back_from_text_and_secrets_are_not_printed() {
        let secret = SecretKey::generate().unwrap();
        let again: SecretKey = secret.to_hex().parse().unwrap();
        assert_eq!(again.public(), secret.public());
        assert_eq!(format!("{secret:?}"), "SecretKey(..)");
        assert_eq!("ab".parse::<PublicKey>(), Err(KeyError::Length(2)));
        assert_eq!(
            "zz".repeat(32).parse::<PublicKey>(),
            Err(KeyError::Digit(1))
        );
    }
}
