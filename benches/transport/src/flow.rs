//! What every contender is reduced to: messages in, messages out, nothing else waits.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use anyhow::bail;

use crate::flows;

/// What a message is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Newest wins.
    Control,
    /// Part of a video frame, or all of it.
    Video,
}

/// A message with the instant at which the contender handed it over, ns of the monotonic clock.
pub(crate) struct Received {
    pub(crate) at_ns: u64,
    pub(crate) data: Vec<u8>,
}

/// One end of a connection.
pub(crate) trait Flow {
    /// Hands a message over without waiting; `false` if the contender refused it.
    fn send(&mut self, class: Class, data: &[u8]) -> anyhow::Result<bool>;

    /// The next message until then; does what is due meanwhile.
    fn recv(&mut self, until: Instant) -> anyhow::Result<Option<Received>>;

    /// Whether a frame is handed over whole, because the contender cuts and paces it itself.
    fn takes_frames(&self) -> bool {
        false
    }
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Connects and sends.
    Client,
    /// Listens.
    Server,
}

/// Where and how.
pub(crate) struct Open<'a> {
    pub(crate) role: Role,
    pub(crate) addr: SocketAddr,
    /// `key=value` pairs of the contender.
    pub(crate) settings: &'a [(String, String)],
    /// Life of a control message.
    pub(crate) deadline: std::time::Duration,
    /// Secret key of this end and public key of the other, hexadecimal.
    pub(crate) keys: Option<(&'a str, &'a str)>,
}

impl Open<'_> {
    /// A setting as a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, key: &str, default: T) -> anyhow::Result<T> {
        match self.text(key) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(value) => Ok(value),
                Err(_) => bail!("setting {key} is {text:?}; allowed: a number"),
            },
        }
    }

    /// A setting as it was written.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    }
}

/// Opens a contender by name; a connection is up when this returns.
pub(crate) fn open(contender: &str, how: &Open<'_>) -> anyhow::Result<Box<dyn Flow>> {
    Ok(match contender {
        "udp" => Box::new(flows::udp::Udp::open(how)?),
        "tcp" => Box::new(flows::tcp::Tcp::open(how)?),
        "prrt" => Box::new(flows::paced::Paced::open(how)?),
        "quic" => Box::new(flows::quic::Quic::open(how)?),
        "kcp" => Box::new(flows::kcp::Kcp::open(how)?),
        "srt" => Box::new(flows::srt::Srt::open(how)?),
        other => bail!("contender {other:?} is unknown; allowed: udp, tcp, prrt, quic, kcp, srt"),
    })
}

/// The next of what a background thread received.
pub(crate) fn next(inbox: &Receiver<Received>, until: Instant) -> anyhow::Result<Option<Received>> {
    match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(received) => Ok(Some(received)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => bail!("the connection is closed"),
    }
}

/// Takes length-prefixed messages from the front of `bytes`.
pub(crate) fn unframe(bytes: &mut Vec<u8>, mut each: impl FnMut(Vec<u8>)) {
    let mut from = 0;
    while let Some(head) = bytes.get(from..from + 2) {
        let length = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let Some(message) = bytes.get(from + 2..from + 2 + length) else {
            break;
        };
        each(message.to_vec());
        from += 2 + length;
    }
    bytes.drain(..from);
}

/// Appends a message with its length.
pub(crate) fn frame(bytes: &mut Vec<u8>, message: &[u8]) {
    // Probes are far below 64 KiB: `video` cuts frames for everything that uses this.
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&message[..usize::from(length)]);
}
