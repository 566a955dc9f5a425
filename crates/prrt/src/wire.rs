//! The wire format: datagram heads here, frames in [`frame`]. Everything is parsed once, checked and never indexed on
//! trust; nothing here keeps state. All numbers are big endian. The format is our own (docs of each type give it).

mod cursor;
pub mod frame;

pub use cursor::{Reader, Writer};

use crate::error::WireError;
use crate::time::Stamp;

/// Identifies a connection at the end that receives the datagram; chosen at random by that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u32);

/// Bytes of a cookie.
pub const COOKIE_LEN: usize = 16;

/// Proof that the sender of a hello receives at the address it claims; all zero when it has none yet.
pub type Cookie = [u8; COOKIE_LEN];

/// Bytes of the proof that a reset is genuine.
pub const RESET_TOKEN_LEN: usize = 16;

/// Proof that a reset comes from the end that gave out the connection id; sent to the client within the handshake.
pub type ResetToken = [u8; RESET_TOKEN_LEN];

/// How the body of data datagrams is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    Plain,
    /// Noise IKpsk2 handshake, ChaCha20-Poly1305 for data.
    Noise,
}

const HELLO: u8 = 0xa1;
const COOKIE: u8 = 0xa2;
const ACCEPT: u8 = 0xa3;
const DATA: u8 = 0xa4;
const DATA_PHASED: u8 = 0xa5;
const RESET: u8 = 0xa6;

/// Bytes of the head of a data datagram: kind 1, connection 4, number 4.
pub const DATA_HEAD: usize = 9;

/// A datagram: its head, and what follows it. The first byte holds the version (high half, `a`) and the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// Client asks for a connection: `a1 protection:1 source:4 time:4 cookie:16 handshake`.
    Hello {
        /// Protection the client wants.
        protection: Protection,
        /// How the client wants to be addressed.
        source: ConnectionId,
        /// Client time, echoed by the accept.
        time: Stamp,
        /// Cookie, zero when there is none yet.
        cookie: Cookie,
        /// First handshake message; empty in plain text.
        handshake: &'a [u8],
    },
    /// Server asks the client to prove its address: `a2 destination:4 cookie:16`. Never larger than a hello.
    Cookie {
        /// The client's connection id.
        destination: ConnectionId,
        /// To be sent back in the next hello.
        cookie: Cookie,
    },
    /// Server agrees: `a3 destination:4 source:4 echo:4 handshake`. Never larger than a hello.
    Accept {
        /// The client's connection id.
        destination: ConnectionId,
        /// How the server wants to be addressed.
        source: ConnectionId,
        /// The time of the hello it answers.
        echo: Stamp,
        /// Second handshake message; empty in plain text.
        handshake: &'a [u8],
    },
    /// Frames: `a4 destination:4 number:4 body`, or `a5` where the bit `phase` is set. The body is `time:4` and then
    /// frames; where protected, sealed, with a 16-byte tag behind.
    Data {
        /// Changes with every new key.
        phase: bool,
        /// The receiver's connection id.
        destination: ConnectionId,
        /// Low half of the datagram number.
        number: u32,
        /// What follows.
        body: &'a [u8],
    },
    /// Server has no memory of a connection: `a6 destination:4 number:4 token`. Smaller than the data it answers. The token
    /// has 16 bytes where connections are protected and none in plain text.
    Reset {
        /// The connection id of the data it answers: the server's own, not the client's, which it does not know.
        destination: ConnectionId,
        /// The number of that data.
        number: u32,
        /// Proof of who speaks.
        token: Option<ResetToken>,
    },
}

impl<'a> Datagram<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is too short, or of a kind or version that nothing sends.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        match reader.u8("kind")? {
            HELLO => Self::parse_hello(&mut reader),
            COOKIE => Ok(Self::Cookie {
                destination: id(&mut reader)?,
                cookie: reader.array("cookie")?,
            }),
            ACCEPT => Ok(Self::Accept {
                destination: id(&mut reader)?,
                source: id(&mut reader)?,
                echo: Stamp(reader.u32("echo")?),
                handshake: reader.rest(),
            }),
            kind @ (DATA | DATA_PHASED) => Ok(Self::Data {
                phase: kind == DATA_PHASED,
                destination: id(&mut reader)?,
                number: reader.u32("number")?,
                body: reader.rest(),
            }),
            RESET => Self::parse_reset(&mut reader),
            other => Err(WireError::Unknown {
                field: "kind",
                value: other.into(),
            }),
        }
    }

    fn parse_hello(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        Ok(Self::Hello {
            protection: match reader.u8("protection")? {
                0 => Protection::Plain,
                1 => Protection::Noise,
                other => {
                    return Err(WireError::Unknown {
                        field: "protection",
                        value: other.into(),
                    });
                }
            },
            source: id(reader)?,
            time: Stamp(reader.u32("time")?),
            cookie: reader.array("cookie")?,
            handshake: reader.rest(),
        })
    }

    fn parse_reset(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let (destination, number) = (id(reader)?, reader.u32("number")?);
        let token = if reader.is_empty() {
            None
        } else {
            Some(reader.array("token")?)
        };
        Ok(Self::Reset {
            destination,
            number,
            token,
        })
    }

    /// Writes the datagram; `None` if it does not fit.
    pub fn emit(&self, writer: &mut Writer<'_>) -> Option<()> {
        match *self {
            Self::Hello {
                protection,
                source,
                time,
                cookie,
                handshake,
            } => {
                writer.u8(HELLO)?;
                writer.u8(u8::from(protection == Protection::Noise))?;
                writer.u32(source.0)?;
                writer.u32(time.0)?;
                writer.bytes(&cookie)?;
                writer.bytes(handshake)
            }
            Self::Cookie {
                destination,
                cookie,
            } => {
                writer.u8(COOKIE)?;
                writer.u32(destination.0)?;
                writer.bytes(&cookie)
            }
            Self::Accept {
                destination,
                source,
                echo,
                handshake,
            } => {
                writer.u8(ACCEPT)?;
                writer.u32(destination.0)?;
                writer.u32(source.0)?;
                writer.u32(echo.0)?;
                writer.bytes(handshake)
            }
            Self::Data {
                phase,
                destination,
                number,
                body,
            } => {
                writer.u8(if phase { DATA_PHASED } else { DATA })?;
                writer.u32(destination.0)?;
                writer.u32(number)?;
                writer.bytes(body)
            }
            Self::Reset {
                destination,
                number,
                token,
            } => {
                writer.u8(RESET)?;
                writer.u32(destination.0)?;
                writer.u32(number)?;
                token.map_or(Some(()), |token| writer.bytes(&token))
            }
        }
    }
}

fn id(reader: &mut Reader<'_>) -> Result<ConnectionId, WireError> {
    reader.u32("connection id").map(ConnectionId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(datagram: Datagram<'_>) -> usize {
        let mut buffer = [0; 256];
        let mut writer = Writer::new(&mut buffer);
        datagram.emit(&mut writer).unwrap();
        let len = writer.len();
        assert_eq!(Datagram::parse(&buffer[..len]), Ok(datagram));
        for cut in 0..len.min(DATA_HEAD) {
            assert!(Datagram::parse(&buffer[..cut]).is_err());
        }
        len
    }

    #[test]
    fn every_kind_comes_back_and_answers_are_smaller_than_the_hello() {
        let (a, b) = (ConnectionId(1), ConnectionId(u32::MAX));
        let hello = round_trip(Datagram::Hello {
            protection: Protection::Plain,
            source: a,
            time: Stamp(7),
            cookie: [3; COOKIE_LEN],
            handshake: &[],
        });
        let cookie = round_trip(Datagram::Cookie {
            destination: a,
            cookie: [9; COOKIE_LEN],
        });
        let accept = round_trip(Datagram::Accept {
            destination: a,
            source: b,
            echo: Stamp(7),
            handshake: &[],
        });
        round_trip(Datagram::Data {
            phase: true,
            destination: b,
            number: 12,
            body: b"frames",
        });
        assert!(cookie <= hello && accept <= hello);
        for (token, size) in [(None, DATA_HEAD), (Some([5; RESET_TOKEN_LEN]), 25)] {
            let reset = round_trip(Datagram::Reset {
                destination: b,
                number: 12,
                token,
            });
            assert_eq!(reset, size);
        }
    }

    #[test]
    fn data_head_has_this_layout() {
        let mut buffer = [0; 32];
        let mut writer = Writer::new(&mut buffer);
        let data = Datagram::Data {
            phase: false,
            destination: ConnectionId(0x01020304),
            number: 0x0a0b0c0d,
            body: &[0xee],
        };
        data.emit(&mut writer).unwrap();
        assert_eq!(
            buffer[..10],
            [0xa4, 1, 2, 3, 4, 0x0a, 0x0b, 0x0c, 0x0d, 0xee]
        );
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Datagram::parse(&bytes);
        }
    }
}
