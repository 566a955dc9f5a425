//! What can go wrong, one enum per boundary.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// A configuration that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A number is outside its range.
    #[error("{key} is {value}, allowed is {min} to {max}")]
    Range {
        /// Field of [`Config`](crate::Config).
        key: &'static str,
        /// What was asked for.
        value: u128,
        /// Smallest allowed value.
        min: u128,
        /// Largest allowed value.
        max: u128,
    },
}

/// A message was not taken. Nothing that was queued before is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The message is larger than the configured limit. Split it.
    #[error("message of {len} bytes is larger than the limit of {max} bytes")]
    TooLarge {
        /// Bytes offered.
        len: usize,
        /// Bytes allowed, `Config::max_message`.
        max: usize,
    },
    /// The bounded queue is full. Try later or drop the message.
    #[error("send queue is full ({messages} messages, {bytes} bytes)")]
    Full {
        /// Messages queued or in flight.
        messages: usize,
        /// Bytes queued or in flight.
        bytes: usize,
    },
    /// The life is zero or longer than [`MAX_LIFE`](crate::MAX_LIFE).
    #[error("life of {0:?} is outside 1 us to 30 min")]
    Life(Duration),
    /// There is no such connection any more.
    #[error("connection is closed")]
    Closed,
    /// The connection is still shaking hands.
    #[error("connection is not up yet")]
    NotConnected,
    /// The message could not leave before its deadline (only from calls that wait).
    #[error("message expired before it could leave")]
    Expired,
}

/// The UDP driver could not do what was asked.
#[derive(Debug, Error)]
pub enum Error {
    /// The socket could not be opened or set up.
    #[error("udp socket on {addr}: {source}")]
    Socket {
        /// Local or remote address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Plain text towards another machine was not allowed explicitly.
    #[error(
        "{addr} is not a loopback address and the link is not encrypted: anyone on the network could read and forge \
         packets; give both sides keys, or allow plain text explicitly (insecure = true)"
    )]
    Insecure {
        /// The refused address.
        addr: SocketAddr,
    },
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why a datagram could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// It ends before `field` is complete.
    #[error("datagram ends within {0}")]
    Truncated(&'static str),
    /// `field` has a value that nothing sends.
    #[error("{field} has the unknown value {value}")]
    Unknown {
        /// Which field.
        field: &'static str,
        /// What it said.
        value: u64,
    },
}
