//! Bytes of a message. Small ones live inside the value, so that a control packet never touches the allocator.

use std::fmt;
use std::ops::Deref;

/// Largest payload kept without an allocation, bytes.
pub const INLINE_PAYLOAD: usize = 128;

#[derive(Clone)]
enum Repr {
    Inline {
        len: u8,
        bytes: [u8; INLINE_PAYLOAD],
    },
    Heap(Vec<u8>),
}

/// Owned bytes of a message; derefs to `[u8]`.
#[derive(Clone)]
pub struct Payload(Repr);

impl Payload {
    /// Copies `data`; allocates only above [`INLINE_PAYLOAD`] bytes.
    pub fn copy_of(data: &[u8]) -> Self {
        let mut bytes = [0; INLINE_PAYLOAD];
        let Some(target) = bytes.get_mut(..data.len()) else {
            return Self(Repr::Heap(data.to_vec()));
        };
        target.copy_from_slice(data);
        Self(Repr::Inline {
            len: data.len() as u8,
            bytes,
        })
    }

    /// The bytes as a vector; moves where they already are one.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Repr::Inline { .. } => self.to_vec(),
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Repr::Heap(bytes))
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_the_size() {
        for len in [0, 1, INLINE_PAYLOAD, INLINE_PAYLOAD + 1, 5000] {
            let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let payload = Payload::copy_of(&data);
            assert_eq!(&payload[..], &data[..]);
            assert_eq!(payload.into_vec(), data);
        }
    }
}
