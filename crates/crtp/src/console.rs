//! Port 0, the drone's console: pieces of text, split anywhere. Joining pieces to lines is the client's.

use arrayvec::ArrayVec;

use crate::error::ParseError;
use crate::packet::{Channel, MAX_DATA, Packet, Port};
use crate::wire::{Reader, Writer};

/// One piece of console text, not closed by a zero and cut at any byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// The text's bytes, up to 30.
    pub text: ArrayVec<u8, MAX_DATA>,
}

impl Console {
    /// The pieces of a longer text.
    pub fn pieces(text: &str) -> impl Iterator<Item = Self> + '_ {
        text.as_bytes().chunks(MAX_DATA).map(|bytes| Self {
            text: bytes.iter().copied().collect(),
        })
    }

    /// The packet the drone sends.
    #[must_use]
    pub fn encode(&self) -> Packet {
        Writer::reply(Port::CONSOLE, Channel::C0)
            .bytes(&self.text)
            .packet()
    }

    /// The text in a console packet.
    ///
    /// # Errors
    /// [`ParseError::Kind`] for other packets.
    pub fn parse(packet: &Packet) -> Result<Self, ParseError> {
        let mut reader = Reader::new(packet, 0x00, "console text")?;
        let text = reader.rest().iter().copied().collect();
        Ok(Self { text })
    }
}
